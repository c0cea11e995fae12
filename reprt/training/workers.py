"""The workers that share one run, as TensorFlow's `TF_CONFIG` names them."""

import os

import pydantic

EXAMPLE = (
    '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, '
    '"task": {"type": "worker", "index": 0}}'
)


class _Task(pydantic.BaseModel):
    type: str
    index: int


class _Config(pydantic.BaseModel):
    """What `TF_CONFIG` says of the workers: their addresses by job, and this one."""

    cluster: dict[str, list[str]] = {}
    task: _Task | None = None

    @property
    def several(self) -> bool:
        return sum(map(len, self.cluster.values())) > 1

    @pydantic.model_validator(mode="after")
    def _task_has_an_address(self):
        if self.several:
            if self.task is None:
                raise ValueError("there is no task")
            addresses = self.cluster.get(self.task.type, [])
            if self.task.index not in range(len(addresses)):
                raise ValueError("the task has no address in the cluster")
        return self


def several_workers() -> bool:
    """Returns whether this process is one of several that train the same run."""
    return _config().several


def is_chief() -> bool:
    """Returns whether this process is the one that writes: chief or first worker."""
    config = _config()
    if not config.several or config.task is None:
        return True
    chief = "chief" if config.cluster.get("chief") else "worker"
    return config.task == _Task(type=chief, index=0)


def _config() -> _Config:
    text = os.environ.get("TF_CONFIG") or "{}"
    try:
        return _Config.model_validate_json(text)
    except pydantic.ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        reason = f"{place} {fault['msg']}".strip()
        raise ValueError(
            f"Expected TF_CONFIG to name a cluster of workers, as in {EXAMPLE}. "
            f"Received: {text!r} ({reason})."
        ) from None
