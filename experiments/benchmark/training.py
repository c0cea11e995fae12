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

# How far the first loss may be from ours, relatively.
FIRST_LOSS = 1e-5
# How far the losses of a training may be from the reference's, relatively.
LOSSES = 1e-4


class Training(Benchmark):
    """Trains, for the command's options."""

    # The models of each peer. Ours has any preset, and any model of a recipe.
    all_peers = {
        OURS: (),
        "plain_keras": ("baseline", "repe"),
        "plain_jax": ("baseline", "repe"),
        "keras_hub": ("baseline",),
        "pytorch": ("baseline",),
    }
    modules = {"reprt:fit": "reprt_by_fit"}
    out = "runs/benchmark"

    @classmethod
    def add_arguments(cls, add):
        add(
            "--models",
            nargs="+",
            default=["baseline", "repe"],
            help="presets, or RECIPE:MODEL, such as a.toml:b",
        )
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
        self.results |= {"training": {}, "side_by_side": {}}

    def run(self):
        for model in self.options.models:
            others = []
            for peer in self.peers[1:]:
                name = peer.partition(":")[0]
                if name == OURS or model in self.all_peers[name]:
                    others.append(peer)
            if self.options.agreement_steps:
                self._show_agreement(model, [OURS, *others])
            for peer in others:
                self._measure(model, peer)
        if self.options.models[1:]:
            self._compare_models()
        if self.options.before:
            self._compare_commits()

    def _row(self, model, peer):
        rows = self.results["training"].setdefault(model, {})
        return rows.setdefault(peer, {"measured": {}, "ours": {}})

    def _show_agreement(self, model, peers):
        """Trains all from our initial weights, without dropout, and compares."""
        for peer in peers:
            # With `dense`, Adam is as it is defined: by default Keras squares the
            # gradient of each occurrence of an id, and PyTorch squares their sum.
            settings = {"model": model, "dropout": 0, "dense": True}
            # Ours comes first, and saves the weights of all others.
            if peer != OURS:
                settings["weights"] = self.weights
            with self.worker(peer) as worker:
                answer = self.build(worker, **settings)
                if peer == OURS:
                    worker.ask("save", path=self.weights)
                losses = worker.ask(
                    "train",
                    first=0,
                    count=self.options.agreement_steps,
                    size=8,
                )
            row = self._row(model, peer)
            row["parameters"] = answer["parameters"]
            row["first_loss"] = losses[0]
            row["losses"] = losses
        os.remove(self.weights)
        rows = self.results["training"][model]
        our_row = rows[OURS]
        reference = rows.get("plain_keras", our_row)["losses"]
        others = []
        for peer, row in rows.items():
            first = _difference(row["first_loss"], our_row["first_loss"])
            losses = _difference(row["losses"], reference)
            row["first_loss_difference"] = first
            row["losses_difference"] = losses
            same_losses = first <= FIRST_LOSS and losses <= LOSSES
            same_losses = same_losses or peer in self.options.inexact
            if row["parameters"] != our_row["parameters"] or not same_losses:
                others.append(peer)
        self.write()
        if others:
            sys.exit(
                f"{model}: not the same model, so nothing is timed: {others}."
            )

    def _measure(self, model, peer):
        """Measures our model and a peer's, by turns."""
        row, steps = self._row(model, peer), self.options.steps
        with self.worker(OURS) as our_worker, self.worker(peer) as peer_worker:
            turns = [(our_worker, row["ours"]), (peer_worker, row["measured"])]
            for worker, values in turns:
                answer = self.build(worker, model=model)
                start = {"import": answer["import"], "build": answer["build"]}
                step = worker.ask("step", first=0, count=1)
                start["first_step"] = step["step"]
                start["start_up"] = sum(start.values())
                _append(values, start)
            for worker, _ in turns:
                # These batches have other shapes, and the last is small. After them a
                # tf.function is traced no more; JAX is compiled for each shape.
                count = self.options.rounds * steps if on_jax(peer) else 1
                worker.ask("train", first=2, count=count)
                worker.ask("epoch", number=0, count=71)
            for number in range(self.options.rounds):
                turns.reverse()
                orders = {
                    "step": {"first": 2 + number * steps, "count": steps},
                    "epoch": {"number": number, "count": self.options.pairs},
                    "pipeline": {"number": number},
                }
                for method, arguments in orders.items():
                    for worker, values in turns:
                        _append(values, worker.ask(method, **arguments))
                self.write()

    def _compare_models(self):
        """Measures the steps of our models, by turns on the same batches."""
        steps, rows = self.options.steps, self.results["side_by_side"]
        with contextlib.ExitStack() as stack:
            workers = {}
            for model in self.options.models:
                worker = stack.enter_context(self.worker(OURS))
                workers[model] = worker
                parameters = self.build(worker, model=model)["parameters"]
                rows[model] = {"parameters": parameters, "seconds": []}
                worker.ask("train", first=0, count=4)
            for number in range(self.options.rounds):
                first = 4 + number * steps
                for model, worker in workers.items():
                    step = worker.ask("step", first=first, count=steps)
                    rows[model]["seconds"].append(step["step"])
        self.write()

    def _compare_commits(self):
        """Measures steps now and at an earlier commit, by turns on the same batches."""
        root, steps = self.options.before.resolve(), self.options.steps
        commit = subprocess.run(
            ["git", "-C", root, "rev-parse", "--short=12", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
        )
        rows = {}
        self.results["commits"] = {
            "before": commit.stdout.strip(),
            "models": rows,
        }
        for model in self.options.models:
            row = {"before": [], "now": []}
            rows[model] = row
            with (
                Worker(OURS, OURS, self.options.out, root) as old_worker,
                Worker(OURS, OURS, self.options.out) as worker,
            ):
                turns = [(old_worker, row["before"]), (worker, row["now"])]
                for worker, _ in turns:
                    worker.ask("build", model=model)
                    worker.ask("train", first=0, count=4)
                for number in range(self.options.rounds):
                    turns.reverse()
                    first = 4 + number * steps
                    for worker, seconds in turns:
                        step = worker.ask("step", first=first, count=steps)
                        seconds.append(step["step"])
            self.write()


def _append(lists, values):
    """Appends each value to the list of its name."""
    for name, value in values.items():
        lists.setdefault(name, []).append(value)


def _difference(values, reference):
    """Returns the greatest relative difference."""
    values, reference = np.asarray(values), np.asarray(reference)
    return float(np.max(np.abs(values - reference) / np.abs(reference)))
