"""The benchmark of training: our models and their peers, on the same ids.

First it is shown that all compute the same: as many parameters, and with the same
weights and no dropout the losses of the same training. Then each of them takes turns
with ours. No more than two models are in memory, which some peers fill, but where our
own models are compared with each other.
"""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from driver import Benchmark, Worker, on_jax
from peers.settings import OURS
from text import generate

# How far losses may be from ours, and over a training from the reference's.
FIRST_LOSS, LOSSES = 1e-5, 1e-4


class Training(Benchmark):
    """Trains, for the command's options."""

    # The models of each peer: of ours any preset, and any model of a recipe.
    everyone = {
        OURS: (),
        "plain_keras": ("baseline", "repe"),
        "plain_jax": ("baseline", "repe"),
        "keras_hub": ("baseline",),
        "pytorch": ("baseline",),
    }
    modules, out = {"reprt:fit": "reprt_by_fit"}, "runs/benchmark"

    @classmethod
    def add_arguments(cls, add):
        both, which = (
            ["baseline", "repe"],
            "presets, or RECIPE:MODEL, such as a.toml:b",
        )
        add("--models", nargs="+", default=both, help=which)
        add(
            "--inexact",
            nargs="+",
            default=[],
            help="peers whose losses may differ",
        )
        add(
            "--before",
            type=Path,
            help="a checkout of an earlier commit, whose steps are timed beside ours",
        )
        add("--steps", type=int, default=3, help="training steps a round")
        add("--pairs", type=int, default=640, help="of an epoch")
        add(
            "--agreement-steps",
            type=int,
            default=50,
            help="0 to show no agreement",
        )

    def __init__(self, options):
        super().__init__(options, generate(6400))
        self.found |= {"training": {}, "side_by_side": {}}

    def run(self):
        for model in self.options.models:
            names = {peer: peer.partition(":")[0] for peer in self.peers[1:]}
            others = [
                peer
                for peer, name in names.items()
                if name == OURS or model in self.everyone[name]
            ]
            if self.options.agreement_steps:
                self._show_agreement(model, [OURS, *others])
            for peer in others:
                self._measure(model, peer)
        if self.options.models[1:]:
            self._compare_models()
        if self.options.before:
            self._compare_commits()

    def _row(self, model, peer):
        rows = self.found["training"].setdefault(model, {})
        return rows.setdefault(peer, {"measured": {}, "ours": {}})

    def _show_agreement(self, model, peers):
        """Trains all from our initial weights, without dropout, and compares."""
        given, count = {}, self.options.agreement_steps
        for peer in peers:
            with self.worker(peer) as worker:
                # Adam as it is defined: by default Keras squares the gradient of each
                # occurrence of an id, and PyTorch squares their sum.
                built = self.build(
                    worker, model=model, dropout=0, dense=True, **given
                )
                if peer == OURS:
                    worker.ask("save", path=self.weights)
                    given = {"weights": self.weights}
                losses = worker.ask("train", first=0, count=count, size=8)
            facts = {"parameters": built["parameters"], "first_loss": losses[0]}
            self._row(model, peer).update(facts, losses=losses)
        os.remove(self.weights)
        rows, wrong = self.found["training"][model], []
        ours = rows[OURS]
        reference = rows.get("plain_keras", ours)["losses"]
        for peer, row in rows.items():
            first = _difference(row["first_loss"], ours["first_loss"])
            losses = _difference(row["losses"], reference)
            row.update(first_loss_difference=first, losses_difference=losses)
            same = row["parameters"] == ours["parameters"]
            if not (same and first <= FIRST_LOSS and losses <= LOSSES):
                wrong.append(peer)
        self.write()
        if others := set(wrong) - set(self.options.inexact):
            sys.exit(
                f"{model}: not the same model, so nothing is timed: {others}."
            )

    def _measure(self, model, peer):
        """Our model and a peer's, by turns."""
        row, steps = self._row(model, peer), self.options.steps
        with self.worker(OURS) as ours, self.worker(peer) as theirs:

            def measured(worker, values):
                into = row["ours" if worker is ours else "measured"]
                for name, value in values.items():
                    into.setdefault(name, []).append(value)

            for worker in (ours, theirs):
                built = self.build(worker, model=model)
                found = {"import": built["import"], "build": built["build"]}
                found["first_step"] = worker.ask("step", first=0, count=1)[
                    "step"
                ]
                measured(worker, found | {"start_up": sum(found.values())})
            for worker in (ours, theirs):
                # Other shapes, a small last batch among them: a tf.function has seen
                # enough of them then to be traced no more; JAX is compiled for each.
                count = self.options.rounds * steps if on_jax(peer) else 1
                worker.ask("train", first=2, count=count)
                worker.ask("epoch", number=0, count=71)
            for number in range(self.options.rounds):
                for do, arguments in (
                    ("step", {"first": 2 + number * steps, "count": steps}),
                    ("epoch", {"number": number, "count": self.options.pairs}),
                    ("pipeline", {"number": number}),
                ):
                    for worker in (
                        (ours, theirs) if number % 2 else (theirs, ours)
                    ):
                        measured(worker, worker.ask(do, **arguments))
                self.write()

    def _compare_models(self):
        """What share of the first model's time the others take, in ours."""
        steps, rows = self.options.steps, self.found["side_by_side"]
        with contextlib.ExitStack() as stack:
            workers = {}
            for model in self.options.models:
                worker = workers[model] = stack.enter_context(self.worker(OURS))
                parameters = self.build(worker, model=model)["parameters"]
                rows[model] = {"parameters": parameters, "seconds": []}
                worker.ask("train", first=0, count=4)
            for number in range(self.options.rounds):
                for model, worker in workers.items():
                    took = worker.ask(
                        "step", first=4 + number * steps, count=steps
                    )
                    rows[model]["seconds"].append(took["step"])
        self.write()

    def _compare_commits(self):
        """Our steps now and at an earlier commit, by turns on the same batches."""
        root, steps = self.options.before.resolve(), self.options.steps
        commit = subprocess.run(
            ["git", "-C", root, "rev-parse", "--short=12", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
        )
        rows = {}
        self.found["commits"] = {
            "before": commit.stdout.strip(),
            "models": rows,
        }
        for model in self.options.models:
            row = rows[model] = {"before": [], "now": []}
            with (
                Worker(OURS, OURS, self.options.out, root) as before,
                Worker(OURS, OURS, self.options.out) as now,
            ):
                for worker in (before, now):
                    worker.ask("build", model=model)
                    worker.ask("train", first=0, count=4)
                for number in range(self.options.rounds):
                    turns = [("before", before), ("now", now)]
                    for name, worker in turns[:: 1 if number % 2 else -1]:
                        took = worker.ask(
                            "step", first=4 + number * steps, count=steps
                        )
                        row[name].append(took["step"])
            self.write()


def _difference(found, wanted):
    """Returns the greatest relative difference."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    return float(np.max(np.abs(found - wanted) / np.abs(wanted)))
