"""The workers that share one run, as TensorFlow's `TF_CONFIG` names them."""

import json
import os


def several_workers() -> bool:
    """Returns whether this process is one of several that train the same run."""
    return sum(map(len, _config()["cluster"].values())) > 1


def is_chief() -> bool:
    """Returns whether this process is the one that writes: chief or first worker."""
    if not several_workers():
        return True
    config = _config()
    task = config["task"]
    chief = "chief" if config["cluster"].get("chief") else "worker"
    return task["type"] == chief and task["index"] == 0


def _config() -> dict:
    """TF_CONFIG's `cluster` and `task`, both empty where it does not name them."""
    text = os.environ.get("TF_CONFIG") or "{}"
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ValueError(
            f"Expected TF_CONFIG to be JSON: {error}. Received: {text!r}."
        ) from error
    if not isinstance(config, dict):
        raise _no_cluster(text, "an object")
    cluster, task = config.get("cluster", {}), config.get("task", {})
    if not isinstance(cluster, dict) or not all(
        map(_are_addresses, cluster.values())
    ):
        raise _no_cluster(text, "'cluster' to be lists of addresses by job")
    several = sum(map(len, cluster.values())) > 1
    if several and not (isinstance(task, dict) and _is_in(cluster, task)):
        raise _no_cluster(
            text, "'task' to have the type and index of an address"
        )
    return {"cluster": cluster, "task": task}


def _are_addresses(value) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, str) for each in value
    )


def _is_in(cluster: dict[str, list[str]], task: dict) -> bool:
    addresses = cluster.get(str(task.get("type")), [])
    return task.get("index") in range(len(addresses))


def _no_cluster(text: str, expected: str) -> ValueError:
    return ValueError(
        f"Expected TF_CONFIG to name a cluster of workers: {expected}, as in "
        '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": '
        f'"worker", "index": 0}}}}. Received: {text!r}.'
    )
