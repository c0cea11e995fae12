"""The driver's end: workers, and the results that they give."""

import contextlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pages
from peers.settings import OURS, SEED
from text import Text

from reprt_lab.provenance import provenance

ROOT = Path(__file__).parents[2]
# PyTorch's threads wait by spinning otherwise, and whatever else runs costs them most.
PASSIVE_WAITING = {"OMP_WAIT_POLICY": "PASSIVE"}


def on_jax(peer: str) -> bool:
    """Returns whether a peer runs on JAX: its name ends in it, or the driver does."""
    return peer.endswith("jax") or os.environ.get("KERAS_BACKEND") == "jax"


class Worker:
    """A process that has one peer, as a context manager; see `worker.py`."""

    def __init__(self, module: str, peer: str, folder: Path, root=ROOT):
        name, _, variant = peer.partition(":")
        environment = "plain_keras" if name == "tutorial" else name
        # `make` runs the driver in one of the environments that it has built for all
        # peers. Elsewhere the driver's own has to do.
        environments = ROOT / ".bench"
        python = environments / environment / "bin" / "python"
        driver = Path(sys.executable)
        if driver.parents[1] != environments / "reprt" or not python.exists():
            python = driver
        script = root / "experiments" / "benchmark" / "worker.py"
        variables = {
            **PASSIVE_WAITING,
            **os.environ,
            # Keras reads its backend when it is imported.
            "KERAS_BACKEND": "jax" if on_jax(peer) else "tensorflow",
            # Another checkout's code goes before that of the environment.
            "PYTHONPATH": str(root),
        }
        if variant == "cpu":
            variables["JAX_PLATFORMS"] = "cpu"
        self.peer = peer
        self.log = folder / f"{peer.replace(':', '-')}.log"
        with self.log.open("a") as messages:
            self._process = subprocess.Popen(
                [python, script, module, variant, folder / "text.json"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
                env=variables,
            )

    def ask(self, method: str, **arguments):
        """Calls a method of the process's `Worker`, and returns its answer."""
        print(f"{self.peer}: {method}", file=sys.stderr)
        order = json.dumps({"do": method, **arguments})
        # A process that has ended gives no answer either.
        with contextlib.suppress(BrokenPipeError):
            print(order, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit(f"{self.peer} failed at {method!r}; see {self.log}.")
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
        facts: what the results say of the benchmark beside its provenance.
    """

    # The modules of peers whose modules have other names.
    modules: dict[str, str] = {}

    def __init__(self, options, text: Text, **facts):
        self.options = options
        self.peers = [OURS, *(peer for peer in options.peers if peer != OURS)]
        self.weights = str(options.out / "weights.npz")
        options.out.mkdir(parents=True, exist_ok=True)
        text.save(options.out / "text.json")
        command = shlex.join(["python", "run.py", *sys.argv[1:]])
        origin = {
            **provenance().changed(command=command).as_table(),
            "load": os.getloadavg()[0],
            "seed": SEED,
            "text": text.describe(),
            **facts,
        }
        self.results = {"provenance": origin, "versions": {}}

    def worker(self, peer: str) -> Worker:
        """Starts the process of a peer."""
        name = peer.partition(":")[0]
        module = self.modules.get(peer, self.modules.get(name, name))
        return Worker(module, peer, self.options.out)

    def build(self, worker: Worker, **settings) -> dict:
        """Has a worker make its model, and returns what it says of it."""
        answer = worker.ask("build", **settings)
        self.results["versions"][worker.peer] = answer.pop("versions")
        return answer

    def write(self):
        """Writes the results so far."""
        pages.write(self.options.out, self.results)
