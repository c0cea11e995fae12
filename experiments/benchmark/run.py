"""The benchmark: our models and their peers side by side, on the same ids.

Every peer is a process of its own, in its own environment. First it is shown that they
compute the same: as many parameters, and with the same weights and no dropout the
losses of the same training. Then each of them takes turns with ours, and only one
computes at any moment, so that whatever else the machine does falls on both alike. Its
time is divided by ours of the same round; medians and quartiles are over the rounds.
No more than two models are in memory, which some peers fill, but where only our own
models are compared with each other.

    python run.py --out runs/benchmark --rounds 5

`results.json` and `results.md` are written after every round. Run it on a machine that
does nothing else: PyTorch's threads wait by spinning, and a competitor for the cores
then costs it ten times its time.
"""

import argparse
import contextlib
import subprocess
import sys
from pathlib import Path

import numpy as np
from peers.settings import PEERS
from process import ROOT, Process, WorkerFailed, on_jax, provenance
from results import Results
from text import generate, load

OURS = "reprt"
REFERENCE = "plain_keras"
# How far losses may be from ours, and over a training from the reference's.
FIRST_LOSS, LOSSES = 1e-5, 1e-4


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--models", nargs="+", default=["baseline", "repe"], choices=PEERS[OURS]
    )
    parser.add_argument(
        "--peers",
        nargs="+",
        default=list(PEERS),
        help="names, each with a variant after a colon if it has any",
    )
    parser.add_argument(
        "--inexact",
        nargs="+",
        default=[],
        help="peers whose losses may differ, e.g. of a lower precision",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3, help="training steps a round")
    parser.add_argument("--pairs", type=int, default=640, help="of an epoch")
    parser.add_argument(
        "--agreement-steps", type=int, default=50, help="0 to show no agreement"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--text", type=Path, help="an .npz of ids; else generated")
    parser.add_argument("--text-pairs", type=int, default=6400, help="to generate")
    parser.add_argument("--corpus", help="take ids from this, as `reprt --text`")
    parser.add_argument("--pair", default="az_to_en", help="of the corpus")
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="PEER=PATH",
        help="interpreter of a peer; else .bench/PEER/bin/python",
    )
    parser.add_argument("--out", type=Path, default=Path("runs/benchmark"))
    options = parser.parse_args()
    if unknown := {peer.partition(":")[0] for peer in options.peers} - set(PEERS):
        parser.error(f"no such peers: {', '.join(sorted(unknown))}")
    if OURS not in options.peers:
        parser.error(f"the others are divided by {OURS}, which must be among the peers")
    return options


class Benchmark:
    """The whole of it, for the command's arguments."""

    def __init__(self, options):
        self.options = options
        self.pythons = dict(mapping.split("=", 1) for mapping in options.python)
        options.out.mkdir(parents=True, exist_ok=True)
        self.text = self._text()
        facts = {"seed": options.seed, "text": load(self.text).describe()}
        self.results = Results(options.out, OURS, {**provenance(), **facts})

    def run(self):
        for model in self.options.models:
            peers = [
                peer
                for peer in self.options.peers
                if model in PEERS[peer.partition(":")[0]]
            ]
            for peer in peers:
                self.results.note(model, peer)
            if self.options.agreement_steps:
                self._show_agreement(model, peers)
            for peer in peers:
                if peer != OURS and self.options.rounds:
                    self._measure(model, peer)
        if self.options.models[1:] and self.options.rounds:
            self._compare_models()
        print(self.results.markdown())

    def _show_agreement(self, model, peers):
        """Trains all from our initial weights, without dropout, and compares."""
        weights = self.options.out / "weights.npz"
        losses = {}
        # Ours comes first, since the others start from its weights.
        for peer in sorted(peers, key=lambda peer: peer != OURS):
            _say(f"{model}, {peer}: agreement")
            with self._process(peer) as worker:
                hello = worker.ask("hello")
                # Adam as it is defined: of itself Keras leaves those rows of an
                # embedding alone that a batch does not touch, which PyTorch moves.
                built = self._build(worker, model, dropout=0.0, dense=True)
                if peer == OURS:
                    worker.ask("save", path=str(weights))
                worker.ask("load", path=str(weights))
                first = worker.ask("evaluate", count=64)["loss"]
                trained = worker.ask(
                    "steps", first=0, count=self.options.agreement_steps, size=8
                )
            losses[peer] = trained["losses"]
            self.results.note(
                model,
                peer,
                versions=hello["versions"],
                parameters=built["parameters"],
                first_loss=first,
                losses=losses[peer],
            )
        weights.unlink()
        reference = losses.get(REFERENCE, losses[OURS])
        ours = self.results.rows[model, OURS]
        for peer in peers:
            row = self.results.rows[model, peer]
            row["first_loss_difference"] = _difference(
                row["first_loss"], ours["first_loss"]
            )
            row["losses_difference"] = _difference(losses[peer], reference)
        self.results.write()
        for peer in set(peers) - set(self.options.inexact):
            row = self.results.rows[model, peer]
            if not (
                row["parameters"] == ours["parameters"]
                and row["first_loss_difference"] <= FIRST_LOSS
                and row["losses_difference"] <= LOSSES
            ):
                sys.exit(
                    f"{model}: {peer} is not the same model, so nothing is timed; see "
                    f"{self.options.out / 'results.md'}."
                )

    def _measure(self, model, peer):
        """Our model and a peer's, by turns."""
        with self._process(OURS) as ours, self._process(peer) as theirs:

            def measured(measure, first, *arguments):
                pair = (ours, theirs) if first else (theirs, ours)
                for worker in pair:
                    values = measure(worker, *arguments)
                    self.results.add(model, peer, worker is ours, **values)

            measured(self._start, True, model)
            for worker in (ours, theirs):
                # Other shapes, a small last batch among them: a tf.function has seen
                # enough of them then to be traced no more; JAX is compiled for each.
                every = self.options.rounds * self.options.steps
                count = every if on_jax(worker.peer) else 1
                worker.ask("steps", first=2, count=count)
                worker.ask("epoch", number=0, count=71)
            for number in range(self.options.rounds):
                _say(f"{model}, {peer}: round {number + 1} of {self.options.rounds}")
                for measure in (self._step, self._epoch, self._input):
                    measured(measure, number % 2, number)
                self.results.write()

    def _compare_models(self):
        """What share of the first model's time the others take, in ours."""
        _say(f"{', '.join(self.options.models)}: side by side")
        with contextlib.ExitStack() as stack:
            workers = {
                model: stack.enter_context(self._process(OURS))
                for model in self.options.models
            }
            for model, worker in workers.items():
                parameters = self._build(worker, model)["parameters"]
                self.results.note(model, OURS, parameters=parameters)
                worker.ask("steps", first=0, count=4)
            for number in range(self.options.rounds):
                first = 4 + number * self.options.steps
                for model, worker in workers.items():
                    took = worker.ask("steps", first=first, count=self.options.steps)
                    self.results.add_side_by_side(model, sum(took["seconds"]))
                self.results.write()

    def _start(self, worker, model):
        _say(f"{model}, {worker.peer}: start")
        hello = worker.ask("hello")
        self.results.note(model, worker.peer, versions=hello["versions"])
        seconds = {"import": hello["import"]}
        seconds["build"] = self._build(worker, model)["build"]
        seconds["first_step"] = worker.ask("steps", first=0, count=1)["seconds"][0]
        return {**seconds, "start_up": sum(seconds.values())}

    def _step(self, worker, number):
        count = self.options.steps
        took = worker.ask("steps", first=2 + number * count, count=count)
        seconds = sum(took["seconds"])
        found = {
            "step": seconds / count,
            "step_tokens": sum(took["target_tokens"]) / seconds,
        }
        if took["operations"]:
            rate = worker.ask("products")["rate"]
            found["share"] = sum(took["operations"]) / seconds / rate
        return found

    def _epoch(self, worker, number):
        took = worker.ask("epoch", number=number, count=self.options.pairs)
        tokens = took["target_tokens"] / took["seconds"]
        memory = worker.ask("memory")
        return {"epoch": took["seconds"], "epoch_tokens": tokens, "memory": memory}

    def _input(self, worker, number):
        pipeline = worker.ask("pipeline", number=number)
        return {"pipeline": pipeline["seconds"] / pipeline["batches"]}

    def _build(self, worker, model, **settings):
        return worker.ask("build", model=model, seed=self.options.seed, **settings)

    def _process(self, peer):
        log = self.options.out / f"{peer.replace(':', '-')}.log"
        return Process("worker.py", self._python(peer), peer, self.text, log)

    def _python(self, peer):
        name = peer.partition(":")[0]
        default = ROOT / ".bench" / name / "bin" / "python"
        return Path(self.pythons.get(name, default))

    def _text(self):
        options = self.options
        if options.text:
            return options.text
        path = options.out / "text.npz"
        if options.corpus:
            script = Path(__file__).with_name("corpus.py")
            command = [self._python(OURS), script]
            command += [options.corpus, options.pair, "train", path]
            subprocess.run(command, check=True)
        else:
            generate(options.text_pairs, options.seed).save(path)
        return path


def _difference(found, wanted):
    """Returns the greatest relative difference."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    return float(np.max(np.abs(found - wanted) / np.abs(wanted)))


def _say(what):
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        Benchmark(arguments()).run()
    except WorkerFailed as error:
        sys.exit(str(error))
