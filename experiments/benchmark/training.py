"""The benchmark of training: our models and their peers, on the same ids.

First it is shown that all compute the same: as many parameters, and with the same
weights and no dropout the losses of the same training. Then each of them takes turns
with ours. Its time is divided by ours of the same round. No more than two models are in
memory, which some peers fill, but where our own models are compared with each other.
"""

import contextlib
import os
import sys

import numpy as np
from driver import Benchmark, on_jax, say
from peers.settings import OURS
from text import generate

# The models of each peer. Ours are presets.
PEERS = {
    OURS: (
        *("baseline", "repe", "repe-causal"),
        *("transformer-modern-tiny", "transformer-modern-small"),
    ),
    "plain_keras": ("baseline", "repe"),
    "keras_hub": ("baseline",),
    "pytorch": ("baseline",),
}
REFERENCE, PAIRS = "plain_keras", 6400
# How far losses may be from ours, and over a training from the reference's.
FIRST_LOSS, LOSSES = 1e-5, 1e-4


def add_arguments(parser):
    add, models = parser.add_argument, PEERS[OURS]
    add("--models", nargs="+", default=["baseline", "repe"], choices=models)
    add("--inexact", nargs="+", default=[], help="peers whose losses may differ")
    add("--steps", type=int, default=3, help="training steps a round")
    add("--pairs", type=int, default=640, help="of an epoch")
    add("--agreement-steps", type=int, default=50, help="0 to show no agreement")


class Training(Benchmark):
    """Trains, for the command's options."""

    def __init__(self, options):
        super().__init__(options, generate(PAIRS))
        self.found |= {"training": {}, "side_by_side": {}}

    def run(self):
        for model in self.options.models:
            peers = [p for p in self.peers if model in PEERS[p.partition(":")[0]]]
            if self.options.agreement_steps:
                self._show_agreement(model, peers)
            for peer in peers[1:]:
                self._measure(model, peer)
        if self.options.models[1:]:
            self._compare_models()

    def _row(self, model, peer):
        rows = self.found["training"].setdefault(model, {})
        return rows.setdefault(peer, {"measured": {}, "ours": {}})

    def _show_agreement(self, model, peers):
        """Trains all from our initial weights, without dropout, and compares."""
        given, count = {}, self.options.agreement_steps
        for peer in peers:
            say(f"{model}, {peer}: agreement")
            with self.worker(peer) as worker:
                # Adam as it is defined: by default Keras leaves those rows of an
                # embedding as they are that a batch does not touch; PyTorch moves them.
                built = self.build(worker, model=model, dropout=0, dense=True, **given)
                if peer == OURS:
                    worker.ask("save", path=self.weights)
                    given = {"weights": self.weights}
                first = worker.ask("evaluate", count=64)
                losses = worker.ask("steps", first=0, count=count, size=8)["losses"]
            self._row(model, peer).update(
                parameters=built["parameters"], first_loss=first, losses=losses
            )
        os.remove(self.weights)
        rows, wrong = self.found["training"][model], []
        ours = rows[OURS]
        reference = rows.get(REFERENCE, ours)["losses"]
        for peer, row in rows.items():
            first = _difference(row["first_loss"], ours["first_loss"])
            losses = _difference(row["losses"], reference)
            row.update(first_loss_difference=first, losses_difference=losses)
            same = row["parameters"] == ours["parameters"]
            if not (same and first <= FIRST_LOSS and losses <= LOSSES):
                wrong.append(peer)
        self.write()
        if others := set(wrong) - set(self.options.inexact):
            sys.exit(f"{model}: not the same model, so nothing is timed: {others}.")

    def _measure(self, model, peer):
        """Our model and a peer's, by turns."""
        row, rounds = self._row(model, peer), self.options.rounds
        with self.worker(OURS) as ours, self.worker(peer) as theirs:

            def measured(measure, first, *arguments):
                for worker in (ours, theirs) if first else (theirs, ours):
                    values = row["ours" if worker is ours else "measured"]
                    for name, value in measure(worker, *arguments).items():
                        values.setdefault(name, []).append(value)

            say(f"{model}, {peer}: start")
            measured(self._start, True, model)
            for worker in (ours, theirs):
                # Other shapes, a small last batch among them: a tf.function has seen
                # enough of them then to be traced no more; JAX is compiled for each.
                count = rounds * self.options.steps if on_jax(worker.peer) else 1
                worker.ask("steps", first=2, count=count)
                worker.ask("epoch", number=0, count=71)
            for number in range(rounds):
                say(f"{model}, {peer}: round {number + 1} of {rounds}")
                for measure in (self._step, self._epoch, self._input):
                    measured(measure, number % 2, number)
                self.write()

    def _compare_models(self):
        """What share of the first model's time the others take, in ours."""
        steps, rows = self.options.steps, self.found["side_by_side"]
        with contextlib.ExitStack() as stack:
            workers = {}
            for model in self.options.models:
                say(f"{model}: start")
                worker = workers[model] = stack.enter_context(self.worker(OURS))
                parameters = self.build(worker, model=model)["parameters"]
                rows[model] = {"parameters": parameters, "seconds": []}
                worker.ask("steps", first=0, count=4)
            for number in range(self.options.rounds):
                for model, worker in workers.items():
                    took = worker.ask("steps", first=4 + number * steps, count=steps)
                    rows[model]["seconds"].append(sum(took["seconds"]))
                self.write()

    def _start(self, worker, model):
        built = self.build(worker, model=model)
        seconds = {"import": built["import"], "build": built["build"]}
        seconds["first_step"] = worker.ask("steps", first=0, count=1)["seconds"][0]
        return {**seconds, "start_up": sum(seconds.values())}

    def _step(self, worker, number):
        count = self.options.steps
        took = worker.ask("steps", first=2 + number * count, count=count)
        seconds = sum(took["seconds"])
        tokens = sum(took["target_tokens"]) / seconds
        found = {"step": seconds / count, "step_tokens": tokens}
        if "operations" in took:
            rate = sum(took["operations"]) / seconds
            found["share"] = rate / worker.ask("products")
        return found

    def _epoch(self, worker, number):
        took = worker.ask("epoch", number=number, count=self.options.pairs)
        tokens = took["target_tokens"] / took["seconds"]
        memory = worker.ask("memory")
        return {"epoch": took["seconds"], "epoch_tokens": tokens, "memory": memory}

    def _input(self, worker, number):
        return {"pipeline": worker.ask("pipeline", number=number)}


def _difference(found, wanted):
    """Returns the greatest relative difference."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    return float(np.max(np.abs(found - wanted) / np.abs(wanted)))
