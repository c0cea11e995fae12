"""The workers that share one run, as TensorFlow's `TF_CONFIG` names them."""

import json
import os


def several_workers() -> bool:
    """Returns whether this process is one of several that train the same run."""
    return sum(map(len, _config().get("cluster", {}).values())) > 1


def is_chief() -> bool:
    """Returns whether this process is the one that writes what comes out.

    That is the task called chief or, without one, the first worker.
    """
    if not several_workers():
        return True
    config = _config()
    task = config.get("task", {})
    chief = "chief" if config["cluster"].get("chief") else "worker"
    return task.get("type") == chief and task.get("index") == 0


def _config() -> dict:
    text = os.environ.get("TF_CONFIG") or "{}"
    try:
        config = json.loads(text)
        _check(config)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            "Expected TF_CONFIG to be JSON, as TensorFlow's documentation of "
            f"MultiWorkerMirroredStrategy has it: {error}. Received: {text!r}."
        ) from error
    return config


def _check(config):
    if not isinstance(config, dict):
        raise ValueError("it is no object")
    cluster, task = config.get("cluster", {}), config.get("task", {})
    if not isinstance(cluster, dict) or not all(map(_is_addresses, cluster.values())):
        raise ValueError("'cluster' is no object of lists of addresses")
    kinds = [kind for kind, addresses in cluster.items() if addresses]
    if not kinds:
        return
    if not isinstance(task, dict) or task.get("type") not in kinds:
        raise ValueError(f"'task' has no 'type' that is one of {kinds}")
    last = len(cluster[task["type"]]) - 1
    if task.get("index") not in range(last + 1):
        raise ValueError(f"'task' has no 'index' from 0 to {last}")


def _is_addresses(value):
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
