"""The driver's end of a worker, and what the driver says of itself."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from reprt.runs import provenance as of_reprt

ROOT = Path(__file__).parents[2]


def provenance() -> dict:
    """Returns what stands beside every number, as runs have it, with the load."""
    # Without the interpreters' paths, which are nobody else's.
    arguments = [
        argument
        for argument, previous in zip(sys.argv[1:], ["", *sys.argv[1:]])
        if "--python" not in (argument, previous)
    ]
    command = shlex.join(["python", Path(sys.argv[0]).name, *arguments])
    return {**of_reprt.provenance(command), "load": os.getloadavg()[0]}


def on_jax(peer: str) -> bool:
    """Returns whether a peer runs on JAX, as variants do whose name ends in it."""
    return peer.endswith("jax")


class WorkerFailed(RuntimeError):
    """A worker ended before it had answered."""


class Process:
    """A worker, to be used as a context manager.

    Args:
        worker: the script beside this one that it runs.
        python: the interpreter of the peer's environment.
        peer: name of the peer, with its variant after a colon.
        text: the ids' file.
        log: where the libraries' messages go.
    """

    def __init__(self, worker: str, python: Path, peer: str, text: Path, log: Path):
        self.peer, self.log = peer, log
        keras_backend = "jax" if on_jax(peer) else "tensorflow"
        with log.open("a") as messages:
            self._process = subprocess.Popen(
                [python, Path(__file__).with_name(worker), peer, text],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
                # Keras reads its backend when it is imported.
                env={**os.environ, "KERAS_BACKEND": keras_backend},
            )

    def ask(self, do: str, **arguments):
        """Calls a method of its `Worker`, and returns its answer.

        Raises:
            WorkerFailed: if there is none.
        """
        try:
            order = json.dumps({"do": do, **arguments})
            print(order, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            pass  # there will be no answer either
        answer = self._process.stdout.readline()
        if not answer:
            raise WorkerFailed(f"{self.peer} failed at {do!r}; see {self.log}.")
        return json.loads(answer)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        # A worker ends with its orders, but one that computes would go on with them.
        if any(exception):
            self._process.kill()
        self._process.communicate()
