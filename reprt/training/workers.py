"""The workers that share one run, as TensorFlow's `TF_CONFIG` names them."""

import json
import os


def several_workers() -> bool:
    """Returns whether this process is one of several that train the same run."""
    return sum(map(len, _config().get("cluster", {}).values())) > 1


def is_chief() -> bool:
    """Returns whether this process is the one that writes: chief or first worker."""
    if not several_workers():
        return True
    config = _config()
    task = config.get("task", {})
    chief = "chief" if config["cluster"].get("chief") else "worker"
    return task.get("type") == chief and task.get("index") == 0


def _config() -> dict:
    # TensorFlow checks the rest when it joins the workers.
    text = os.environ.get("TF_CONFIG") or "{}"
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(
            f"Expected TF_CONFIG to be JSON: {error}. Received: {text!r}."
        ) from error
