"""Where and how a `Trainer` takes its steps, on either backend."""

import abc
import contextlib
import zlib
from collections.abc import Iterable
from typing import Any

from reprt.data.batching import BatchPlan
from reprt.data.encoding import EncodedSplit
from reprt.training.objective import Objective


class Backend(abc.ABC):
    """What a `Trainer` asks of TensorFlow or JAX.

    Methods with a body are those of one worker whose variables are always up to date.
    """

    devices: list[str]
    """One for each replica."""
    accelerators: list[str]
    """The names of the GPUs or TPUs among them."""

    def scope(self) -> contextlib.AbstractContextManager:
        """Returns the context in which model and optimizer are to be made."""
        return contextlib.nullcontext()

    def mean_over_workers(self, number: float) -> float:
        """Returns the mean of all workers' numbers, so that they decide the same."""
        return number

    def check_same(self, what: str):
        """Raises a `ValueError` on every worker if they are to do different things."""
        number = zlib.crc32(what.encode()) % 2**20
        mean = self.mean_over_workers(number)
        mean_of_squares = self.mean_over_workers(number**2)
        # Unless all numbers are equal, the mean of their squares is larger.
        if mean_of_squares != mean**2:
            raise ValueError(
                "The workers do not have the same settings, text, vocabularies and "
                f"checkpoint. They need one --out and one text. This one has: {what}"
            )

    @abc.abstractmethod
    def compile(
        self,
        objective: Objective,
        optimizer,
        split: EncodedSplit,
        parts: int = 1,
    ):
        """Makes the steps for batches like those of a split. The optimizer is built.

        A step takes the parts of its batch one after the other, in the memory of one.
        """

    def warm_up(self, split: EncodedSplit, plan: BatchPlan) -> None:
        """Compiles what can be compiled in advance; `load` undoes its steps."""

    def load(self) -> None:
        """Takes the variables as they are now."""

    def store(self) -> None:
        """Sets the variables to what training has made of them."""

    @abc.abstractmethod
    def batches(
        self,
        split: EncodedSplit,
        plan: BatchPlan,
        epoch: int | None = None,
        skip=0,
    ) -> Iterable[Any]:
        """Returns what `train` and `evaluate` take, for each of `plan.batches`."""

    # Attributes, because TensorFlow compiles them from functions.
    train: Any
    """Takes a batch's step; returns what `read` makes numbers of."""
    evaluate: Any
    """Returns the same sums without a step, and without dropout."""

    def read(self, sums) -> list[tuple[int, float, int, int]]:
        """Waits for steps; returns each one's rows, loss, tokens and correct tokens."""
        return [
            (int(rows), float(loss), int(tokens), int(correct))
            for rows, loss, tokens, correct in sums
        ]


def seed_variables(model) -> list[Any]:
    """Returns the variables that random numbers come from, such as a Dropout's."""
    weights = {id(weight) for weight in model.weights}
    return [seed for seed in model.variables if id(seed) not in weights]
