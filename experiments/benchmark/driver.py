"""The driver's end: workers, and the results that they give."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pages
from peers.settings import OURS, SEED
from text import Text

from reprt.runs.provenance import provenance

ROOT = Path(__file__).parents[2]
# Where a peer's environment and its module do not have its name.
ENVIRONMENTS = {"tutorial": "plain_keras"}
MODULES = {"reprt:fit": "reprt_by_fit"}


def on_jax(peer: str) -> bool:
    """Returns whether a peer runs on JAX, as variants do whose name ends in it."""
    return peer.endswith("jax")


def say(what: str):
    print(what, file=sys.stderr, flush=True)


class Worker:
    """A process that has one peer, as a context manager; see `worker.py`.

    Args:
        module: the peer's.
        peer: its name, with its variant after a colon.
        folder: where the text is, and where the libraries' messages go.
    """

    def __init__(self, module: str, peer: str, folder: Path):
        name, _, variant = peer.partition(":")
        python = ROOT / ".bench" / ENVIRONMENTS.get(name, name) / "bin" / "python"
        script = Path(__file__).with_name("worker.py")
        # Keras reads its backend when it is imported.
        backend = "jax" if on_jax(peer) else "tensorflow"
        # Only `make` builds the environments; a test has its own.
        python = python if python.exists() else sys.executable
        self.peer, self.log = peer, folder / f"{peer.replace(':', '-')}.log"
        with self.log.open("a") as messages:
            self._process = subprocess.Popen(
                [python, script, module, variant, folder / "text.json"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
                env=os.environ | {"KERAS_BACKEND": backend},
            )

    def ask(self, do: str, **arguments):
        """Calls a method of the process's `Worker`, and returns its answer."""
        try:
            order = json.dumps({"do": do, **arguments})
            print(order, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            pass  # there will be no answer either
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit(f"{self.peer} failed at {do!r}; see {self.log}.")
        return json.loads(answer)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        # A worker ends with its orders, but one that computes would go on with them.
        if any(exception):
            self._process.kill()
        self._process.communicate()


class Benchmark:
    """What both benchmarks have: options, a text, workers and results.

    Args:
        options: the command's.
        text: what the peers are given.
        **facts: what stands beside the numbers, besides where and when.
    """

    def __init__(self, options, text: Text, **facts):
        self.options = options
        self.peers = [OURS, *(peer for peer in options.peers if peer != OURS)]
        self.weights = str(options.out / "weights.npz")
        options.out.mkdir(parents=True, exist_ok=True)
        text.save(options.out / "text.json")
        found = provenance(shlex.join(["python", "run.py", *sys.argv[1:]]))
        found |= {"load": os.getloadavg()[0], "seed": SEED, "text": text.describe()}
        self.found = {"provenance": found | facts, "versions": {}}

    def worker(self, peer: str) -> Worker:
        """Starts the process of a peer."""
        return Worker(self.module(peer), peer, self.options.out)

    def module(self, peer: str) -> str:
        """Returns the name of a peer's module."""
        return MODULES.get(peer, peer.partition(":")[0])

    def build(self, worker: Worker, **settings) -> dict:
        """Has a worker make its model, and returns what it says of it."""
        built = worker.ask("build", **settings)
        self.found["versions"][worker.peer] = built.pop("versions")
        return built

    def write(self):
        """Writes what has been found so far."""
        pages.write(self.options.out, self.found)
