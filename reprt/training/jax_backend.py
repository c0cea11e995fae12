"""Training on JAX: padded batches of a few lengths, on one device or several."""

import contextlib
import functools
from collections.abc import Iterator

import jax
import keras
import numpy as np
from jax import numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from reprt.compilation import keep_compiled, length_with_room
from reprt.data.batch_plan import BatchPlan
from reprt.data.batching import arrays
from reprt.data.encoding import EncodedSplit
from reprt.training.objective import Objective


@functools.cache
def data_parallel() -> keras.distribution.DataParallel | None:
    """Returns the distribution over all devices, or None for a single one.

    Weights are on every device, and each has its share of a batch.
    """
    if jax.device_count() == 1:
        return None
    return keras.distribution.DataParallel()


class OnJax:
    """Where and how a `Trainer` takes its steps: by functions of all state.

    JAX compiles anew for each shape. So batches are padded to one of a few lengths, the
    same for both sides, and to few numbers of rows. The losses do not depend on
    that, except with `padding_in_statistics=True`, where there is more padding to be
    counted than on TensorFlow.

    While training goes on, the variables lag behind: `store` brings them up to date.
    """

    def __init__(self):
        self._distribution = data_parallel()
        self._everywhere = None  # where a step's results are: JAX's own choice
        if self._distribution is not None:
            # Each time, because Keras forgets it when it clears its session.
            keras.distribution.set_distribution(self._distribution)
            mesh = self._distribution.device_mesh.backend_mesh
            self._everywhere = NamedSharding(mesh, PartitionSpec())

    @property
    def devices(self) -> list[str]:
        return [str(device) for device in jax.devices()]

    @property
    def accelerators(self) -> list[str]:
        devices = [device for device in jax.devices() if device.platform != "cpu"]
        return [device.device_kind for device in devices]

    def agreed(self, number: float) -> float:
        """Returns the number: there are no other workers."""
        return number

    def check_same(self, what: str):
        """Passes, because there are no other workers."""

    def scope(self) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext()

    def compile(self, objective: Objective, optimizer, split: EncodedSplit):
        self._objective, self._optimizer = objective, optimizer
        self._model = model = objective.model
        self._longest = min(model.longest_source, model.longest_target)
        keep_compiled()
        self._train = jax.jit(
            self._step, donate_argnums=0, out_shardings=self._everywhere
        )
        self._evaluate = jax.jit(self._validate)

    def load(self):
        # Copies, because a step overwrites its arguments.
        self._state = [
            [
                jax.device_put(jnp.copy(variable.value), self._everywhere)
                for variable in variables
            ]
            for variables in self._variables
        ]

    def store(self):
        for variables, values in zip(self._variables, self._state, strict=True):
            for variable, value in zip(variables, values, strict=True):
                variable.assign(jnp.copy(value))

    def batches(
        self,
        split: EncodedSplit,
        plan: BatchPlan,
        epoch: int | None = None,
        skip: int = 0,
    ) -> Iterator[tuple[int, tuple]]:
        # Rows of padding fill up batches that could have more.
        for chosen in plan.batches(epoch, skip):
            rows = self._rows(plan, plan.lengths[chosen].max())
            inputs, labels = arrays(split, chosen, rows, self._length)
            yield len(chosen), self._shared((*inputs, labels))

    def warm_up(self, plan: BatchPlan):
        lengths = np.unique(plan.lengths)
        for shape in sorted({(self._rows(plan, n), self._length(n)) for n in lengths}):
            side = np.zeros(shape, "int32")
            self.train((0, self._shared((side, side, side))))

    def _length(self, length: int) -> int:
        return length_with_room(length, self._longest)

    def _rows(self, plan: BatchPlan, longest: int) -> int:
        """The rows of a batch, as many on each device."""
        rows = length_with_room(plan.most(longest), plan.size)
        return -(-rows // jax.device_count()) * jax.device_count()

    def train(self, batch):
        rows, sides = batch
        self._state, sums = self._train(self._state, *sides)
        return rows, sums

    def evaluate(self, batch):
        rows, sides = batch
        return rows, self._evaluate(self._state, *sides)

    def read(self, sums) -> list[tuple[int, float, int, int]]:
        return [
            (rows, float(loss), int(tokens), int(correct))
            for rows, (loss, tokens, correct) in jax.device_get(sums)
        ]

    @property
    def _variables(self):
        """Weights, what else the model has, and what the optimizer has."""
        model = self._model
        return (
            model.trainable_variables,
            model.non_trainable_variables,
            self._optimizer.variables,
        )

    def _step(self, state, source, target, labels):
        weights, others, of_optimizer = state

        def objective(weights):
            with self._scope((weights, others, of_optimizer)) as scope:
                loss, sums = self._objective.loss(
                    (source, target), labels, self._optimizer.iterations.value
                )
                loss = self._optimizer.scale_loss(loss)
            after = [scope.get_current_value(each) for each in self._variables[1]]
            return loss, (sums, after)

        gradients, (sums, others) = jax.grad(objective, has_aux=True)(weights)
        weights, of_optimizer = self._optimizer.stateless_apply(
            of_optimizer, gradients, weights
        )
        return [weights, others, of_optimizer], sums

    def _validate(self, state, source, target, labels):
        with self._scope(state):
            return self._objective.validate((source, target), labels)

    def _scope(self, state):
        """Returns the context in which all variables have these values."""
        return keras.StatelessScope(
            state_mapping=[
                pair
                for variables, values in zip(self._variables, state, strict=True)
                for pair in zip(variables, values, strict=True)
            ]
        )

    def _shared(self, batch):
        """Gives every device its rows."""
        if self._distribution is None:
            return batch
        return tuple(
            keras.distribution.distribute_tensor(
                array, self._distribution.get_data_layout(array.shape)
            )
            for array in batch
        )
