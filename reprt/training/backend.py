"""Where and how a `Trainer` takes its steps, on either backend."""

import contextlib
from collections.abc import Iterable
from typing import Any, Protocol

import keras

from reprt.data.batch_plan import BatchPlan
from reprt.data.encoding import EncodedSplit
from reprt.training.objective import Objective


class Backend(Protocol):
    """What a `Trainer` asks of TensorFlow or JAX."""

    @property
    def devices(self) -> list[str]:
        """One for each replica."""

    @property
    def accelerators(self) -> list[str]:
        """The names of the GPUs or TPUs among them."""

    def scope(self) -> contextlib.AbstractContextManager:
        """Returns the context in which model and optimizer are to be made."""

    def agreed(self, number: float) -> float:
        """Returns the mean of all workers' numbers, so that they decide the same."""

    def check_same(self, what: str):
        """Raises a `ValueError` on every worker if they are to do different things."""

    def compile(self, objective: Objective, optimizer, split: EncodedSplit):
        """Makes the steps of an objective and a built optimizer.

        Batches are like those of a split.
        """

    def warm_up(self, split: EncodedSplit, plan: BatchPlan):
        """Compiles what can be compiled in advance; `load` undoes its steps."""

    def load(self):
        """Takes the variables as they are now."""

    def store(self):
        """Sets the variables to what training has made of them."""

    def batches(
        self,
        split: EncodedSplit,
        plan: BatchPlan,
        epoch: int | None = None,
        skip: int = 0,
    ) -> Iterable[Any]:
        """Returns what `train` and `evaluate` take, all but the first few of an epoch.

        Args:
            split: the sentences.
            plan: of the split.
            epoch: as `BatchPlan.batches` takes it.
            skip: number of batches to leave out at the start.
        """

    def train(self, batch) -> Any:
        """Takes a step; returns what `read` makes numbers of."""

    def evaluate(self, batch) -> Any:
        """Returns the same sums without a step, and without dropout."""

    def read(self, sums) -> list[tuple[int, float, int, int]]:
        """Waits for steps; returns each one's rows, loss, tokens and correct tokens."""


def backend(deterministic: bool) -> Backend:
    """Returns Keras' present backend; there is no training on PyTorch.

    With `deterministic` TensorFlow is held to operations that give the same bits each
    time; JAX always does.
    """
    match keras.backend.backend():
        case "tensorflow":
            from reprt.training.tensorflow_backend import OnTensorFlow

            return OnTensorFlow(deterministic)
        case "jax":
            from reprt.training.jax_backend import OnJax

            return OnJax()
        case other:
            raise ValueError(
                "Training runs on the backends tensorflow and jax. Received: "
                f"KERAS_BACKEND={other}. The layers and models work with model.fit."
            )
