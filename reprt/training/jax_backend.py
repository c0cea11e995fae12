"""Training on JAX: packed batches of a few shapes, on one device or several."""

import itertools

import jax
import keras
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from reprt.compilation import keep_compiled
from reprt.data.batching import BatchPlan, arrays
from reprt.data.packing import fitting, lay_out, plan_shapes, shares
from reprt.training.backend import Backend

FEW_BATCHES = (
    200  # of which the shapes are compiled in advance; others are rare
)
DEVICES = "batch"  # the mesh's axis, as Keras names it


def _summed(numbers):
    return lax.psum(numbers, DEVICES)


class OnJax(Backend):
    """Where and how a `Trainer` takes its steps: by functions of all state.

    JAX compiles anew for each shape, so each device packs its rows to one of a few that
    are chosen once for a text. With `padding_in_statistics=True` more padding counts
    than on TensorFlow. The variables lag behind: `store` brings them up to date.
    """

    def __init__(self):
        found = jax.devices()
        self.devices = list(map(str, found))
        self.accelerators = [
            e.device_kind for e in found if e.platform != "cpu"
        ]
        distribution = keras.distribution.DataParallel()
        if jax.device_count() > 1:
            keras.distribution.set_distribution(distribution)
        # Weights are on every device, and each has its share of a batch.
        mesh = distribution.device_mesh.backend_mesh
        self._everywhere = NamedSharding(mesh, PartitionSpec())
        self._apart = NamedSharding(mesh, PartitionSpec(DEVICES))

    def compile(self, objective, optimizer, split):
        self._objective, self._optimizer = objective, optimizer
        model = objective.model
        weights = {id(weight) for weight in model.weights}
        others = model.non_trainable_variables
        self._are_seeds = [id(variable) not in weights for variable in others]
        self._variables = [
            model.trainable_variables,
            others,
            optimizer.variables,
        ]
        self._plans: dict[tuple[BatchPlan, bool], tuple] = {}
        keep_compiled()
        self._train = jax.jit(self._on_devices(self._step), donate_argnums=0)
        self._evaluate = jax.jit(self._on_devices(self._validate))

    def load(self):
        values = [[each.value for each in some] for some in self._variables]
        # Copies, because a step overwrites its arguments.
        copies = jax.tree.map(jnp.copy, values)
        self._state = jax.device_put(copies, self._everywhere)

    def store(self):
        for variable, value in self._with_values(self._state):
            variable.assign(jnp.copy(value))

    def batches(self, split, plan, epoch=None, skip=0):
        for chosen in plan.batches(epoch, skip):
            yield len(chosen), self._packed(split, plan, epoch, chosen)[1]

    def warm_up(self, split, plan):
        seen = set()
        for chosen in itertools.islice(plan.batches(0), FEW_BATCHES):
            shape, batch = self._packed(split, plan, 0, chosen)
            if shape not in seen:
                seen.add(shape)
                self.train((0, batch))

    def _packed(self, split, plan, epoch, chosen):
        """A batch, each device's share after the other, and their common shape."""
        layout, devices = (
            self._objective.model.packed_layout,
            jax.device_count(),
        )
        key = plan, epoch is None
        if key not in self._plans:
            sides, training = split.tokens, epoch is not None
            shapes = plan_shapes(plan, sides, layout, devices, training)
            self._plans[key] = sides, shapes  # the same in all epochs
        sides, shapes = self._plans[key]
        rows, lengths = shares(sides, chosen, devices)
        shape = fitting(lengths, shapes, layout)
        of_devices = [
            lay_out(source, target, labels, layout=layout, shapes=[shape])
            for (source, target), labels in (
                arrays(split, each) for each in rows
            )
        ]
        batch = jax.tree.map(lambda *each: np.concatenate(each), *of_devices)
        return shape, jax.device_put(batch, self._apart)

    def train(self, batch):
        rows, batch = batch
        self._state, sums = self._train(self._state, batch)
        return rows, *sums

    def evaluate(self, batch):
        rows, batch = batch
        return rows, *self._evaluate(self._state, batch)

    def read(self, sums):
        return super().read(jax.device_get(sums))

    def _on_devices(self, function):
        """Each device calls it with all of the state and its share of a batch."""
        return jax.shard_map(
            function,
            mesh=self._apart.mesh,
            in_specs=(PartitionSpec(), self._apart.spec),
            out_specs=PartitionSpec(),
            check_vma=False,
        )

    def _step(self, state, batch):
        weights, others, of_optimizer = state
        inputs, labels = batch

        def objective(weights):
            state = weights, self._seeded(others), of_optimizer
            with self._scope(state) as scope:
                step = self._optimizer.iterations.value
                loss, sums = self._objective.loss(inputs, labels, step, _summed)
                loss = self._optimizer.scale_loss(loss)
            after = [
                scope.get_current_value(each) for each in self._variables[1]
            ]
            return loss, (sums, after)

        gradients, (sums, after) = jax.grad(objective, has_aux=True)(weights)
        gradients, sums = _summed((gradients, sums))
        weights, of_optimizer = self._optimizer.stateless_apply(
            of_optimizer, gradients, weights
        )
        return [weights, self._seeded(after, -1), of_optimizer], sums

    def _seeded(self, others, sign=1):
        """Gives each device a dropout of its own, or takes that back."""
        device = (sign * lax.axis_index(DEVICES)).astype("uint32")
        return [
            value.at[0].add(device) if is_seed else value
            for is_seed, value in zip(self._are_seeds, others, strict=True)
        ]

    def _validate(self, state, batch):
        with self._scope(state):
            return _summed(self._objective.validate(*batch))

    def _scope(self, state):
        """Returns the context in which all variables have these values."""
        return keras.StatelessScope(state_mapping=self._with_values(state))

    def _with_values(self, state):
        chained = map(itertools.chain.from_iterable, (self._variables, state))
        return list(zip(*chained, strict=True))
