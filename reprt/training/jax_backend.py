"""Training on JAX: packed batches of a few shapes, on one device or several."""

import contextlib
import itertools
from collections.abc import Iterator

import jax
import keras
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from reprt.compilation import keep_compiled
from reprt.data.batch_plan import BatchPlan
from reprt.data.batching import arrays
from reprt.data.encoding import EncodedSplit
from reprt.data.packing import fitting, lay_out, plan_shapes, shares
from reprt.training.objective import Objective

FEW_BATCHES = 200  # of which the shapes are compiled in advance; others are rare
DEVICES = "batch"  # the mesh's axis, as Keras names it


class OnJax:
    """Where and how a `Trainer` takes its steps: by functions of all state.

    JAX compiles anew for each shape, so batches are packed to a few shapes that are
    chosen once for a text. Each device packs its own rows. The losses do not depend on
    that, except with `padding_in_statistics=True`, where there is more padding to be
    counted than on TensorFlow.

    While training goes on, the variables lag behind: `store` brings them up to date.
    """

    def __init__(self):
        self._everywhere = self._apart = None  # where arrays are: JAX's own choice
        if jax.device_count() > 1:
            # Weights are on every device, and each has its share of a batch.
            distribution = keras.distribution.DataParallel()
            keras.distribution.set_distribution(distribution)
            mesh = distribution.device_mesh.backend_mesh
            self._everywhere = NamedSharding(mesh, PartitionSpec())
            self._apart = NamedSharding(mesh, PartitionSpec(DEVICES))

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
        self._model = objective.model
        self._plans: dict[tuple[BatchPlan, bool], tuple] = {}
        keep_compiled()
        self._train = jax.jit(self._on_devices(self._step), donate_argnums=0)
        self._evaluate = jax.jit(self._on_devices(self._validate))

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
        for chosen in plan.batches(epoch, skip):
            yield len(chosen), self._packed(split, plan, epoch, chosen)[1]

    def warm_up(self, split: EncodedSplit, plan: BatchPlan):
        seen = set()
        for chosen in itertools.islice(plan.batches(0), FEW_BATCHES):
            shape, batch = self._packed(split, plan, 0, chosen)
            if shape not in seen:
                seen.add(shape)
                self.train((0, batch))

    def _packed(self, split, plan, epoch, chosen):
        """A batch, each device's share after the other, and their common shape."""
        layout, devices = self._model.packed_layout, jax.device_count()
        key = plan, epoch is None
        if key not in self._plans:
            sides, training = split.tokens, epoch is not None
            shapes = plan_shapes(plan, sides, layout, devices, training)
            self._plans[key] = sides, shapes  # the same in all epochs
        sides, shapes = self._plans[key]
        rows, lengths = zip(*shares(sides, chosen, devices))
        shape = fitting(lengths, shapes, layout)
        of_devices = [
            lay_out(source, target, labels, layout=layout, shapes=[shape])
            for (source, target), labels in (arrays(split, each) for each in rows)
        ]
        batch = jax.tree.map(lambda *each: np.concatenate(each), *of_devices)
        if self._apart is not None:
            batch = jax.device_put(batch, self._apart)
        return shape, batch

    def train(self, batch):
        rows, batch = batch
        self._state, sums = self._train(self._state, batch)
        return rows, sums

    def evaluate(self, batch):
        rows, batch = batch
        return rows, self._evaluate(self._state, batch)

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

    def _on_devices(self, function):
        """Each device calls it with all of the state and its share of a batch."""
        if self._apart is None:
            return function
        return jax.shard_map(
            function,
            mesh=self._apart.mesh,
            in_specs=(PartitionSpec(), self._apart.spec),
            out_specs=PartitionSpec(),
            check_vma=False,
        )

    def _summed(self, numbers):
        return numbers if self._apart is None else lax.psum(numbers, DEVICES)

    def _step(self, state, batch):
        weights, others, of_optimizer = state
        inputs, labels = batch

        def objective(weights):
            state = weights, self._seeded(others), of_optimizer
            with self._scope(state) as scope:
                loss, sums = self._objective.loss(
                    inputs, labels, self._optimizer.iterations.value, self._summed
                )
                loss = self._optimizer.scale_loss(loss)
            after = [scope.get_current_value(each) for each in self._variables[1]]
            return loss, (sums, after)

        gradients, (sums, after) = jax.grad(objective, has_aux=True)(weights)
        gradients, sums = self._summed((gradients, sums))
        weights, of_optimizer = self._optimizer.stateless_apply(
            of_optimizer, gradients, weights
        )
        return [weights, self._seeded(after, -1), of_optimizer], sums

    def _seeded(self, others, sign=1):
        """Gives each device a dropout of its own, or takes that back."""
        if self._apart is None:
            return others
        device = sign * lax.axis_index(DEVICES)
        weights = {id(weight) for weight in self._model.weights}
        return [
            value if id(variable) in weights else value.at[0].add(device)
            for variable, value in zip(self._variables[1], others, strict=True)
        ]

    def _validate(self, state, batch):
        with self._scope(state):
            return self._summed(self._objective.validate(*batch))

    def _scope(self, state):
        """Returns the context in which all variables have these values."""
        return keras.StatelessScope(
            state_mapping=[
                pair
                for variables, values in zip(self._variables, state, strict=True)
                for pair in zip(variables, values, strict=True)
            ]
        )
