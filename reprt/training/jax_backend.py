"""Training on JAX: packed batches of a few shapes, on one device or several."""

import ctypes
import itertools
import sys

import jax
import keras
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from reprt.compilation import enable_compilation_cache
from reprt.data.batching import BatchPlan, padded_batch
from reprt.data.packing import (
    deal_to_devices,
    first_fitting_shape,
    pack_arrays,
    plan_shapes,
)
from reprt.training.backend import Backend, seed_variables
from reprt.training.objective import Sums

# The shapes of this many batches are compiled in advance. Others are rare.
WARM_UP_BATCHES = 200
# Keras calls the mesh's axis so.
DEVICES = "batch"
# Two of glibc's `mallopt`.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


def _over_devices(numbers):
    if jax.device_count() == 1:
        return numbers
    return lax.psum(numbers, DEVICES)


def keep_memory():
    """Makes steps on a CPU use the memory of the step before, where glibc manages it.

    XLA takes a step's memory as one piece. One as large goes back to the system after
    each step, and the next step waits until it gets each of its pages again. Only what
    the main thread frees can be held back, so steps run there.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda *option: None)
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


class JaxBackend(Backend):
    """Where and how a `Trainer` takes its steps: by functions of all state.

    JAX compiles anew for each shape, so each device packs its rows to one of a few that
    are chosen once for a text. With `padding_in_statistics=True` more padding counts
    than on TensorFlow. The variables lag behind: `store` brings them up to date.
    """

    def __init__(self):
        keep_memory()
        devices = jax.devices()
        self.devices = [str(device) for device in devices]
        self.accelerators = [
            device.device_kind for device in devices if device.platform != "cpu"
        ]
        distribution = keras.distribution.DataParallel()
        if jax.device_count() > 1:
            keras.distribution.set_distribution(distribution)
        # Weights are on every device, and each has its share of a batch.
        mesh = distribution.device_mesh.backend_mesh
        self._replicated = NamedSharding(mesh, PartitionSpec())
        self._sharded = NamedSharding(mesh, PartitionSpec(DEVICES))

    def compile(self, objective, optimizer, split, parts=1):
        self._objective, self._optimizer = objective, optimizer
        self._parts = parts
        model = objective.model
        self._variables = [
            model.trainable_variables,
            model.non_trainable_variables,
            optimizer.variables,
        ]
        seed_ids = {id(seed) for seed in seed_variables(model)}
        self._are_seeds = [
            id(variable) in seed_ids
            for variable in model.non_trainable_variables
        ]
        # The lengths of a text and the shapes of its batches, the same in all epochs.
        self._shapes: dict[tuple[BatchPlan, bool], tuple] = {}
        enable_compilation_cache()
        self._train = jax.jit(self._on_devices(self._step), donate_argnums=0)
        self._evaluate = jax.jit(self._on_devices(self._validate))

    def load(self):
        values = keras.tree.map_structure(
            lambda variable: variable.value, self._variables
        )
        # Copies, because a step overwrites its arguments.
        copies = jax.tree.map(jnp.copy, values)
        self._state = jax.device_put(copies, self._replicated)

    def store(self):
        for variable, value in self._with_values(self._state):
            variable.assign(jnp.copy(value))

    def batches(self, split, plan, epoch=None, skip=0):
        for indices in plan.batches(epoch, skip):
            yield len(indices), self._pack(split, plan, epoch, indices)[1]

    def warm_up(self, split, plan):
        compiled = set()
        for indices in itertools.islice(plan.batches(0), WARM_UP_BATCHES):
            shape, batch = self._pack(split, plan, 0, indices)
            if shape not in compiled:
                compiled.add(shape)
                self.train((0, batch))

    def _pack(self, split, plan, epoch, indices):
        """The shape of a part of a device's share, and all parts of all shares."""
        layout = self._objective.model.packed_layout
        count, training = jax.device_count(), epoch is not None
        if training:
            count *= self._parts
        key = plan, training
        if key not in self._shapes:
            sides = split.tokens
            shapes = plan_shapes(plan, sides, layout, count, training)
            self._shapes[key] = sides, shapes
        sides, shapes = self._shapes[key]
        rows, lengths = deal_to_devices(sides, indices, count)
        shape = first_fitting_shape(lengths, shapes, layout)
        parts = []
        for share in rows:
            (source, target), labels = padded_batch(split, share)
            parts.append(
                pack_arrays(
                    source, target, labels, layout=layout, shapes=[shape]
                )
            )
        batch = jax.tree.map(lambda *part: np.concatenate(part), *parts)
        return shape, jax.device_put(batch, self._sharded)

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
            mesh=self._sharded.mesh,
            in_specs=(PartitionSpec(), self._sharded.spec),
            out_specs=PartitionSpec(),
            check_vma=False,
        )

    def _step(self, state, batch):
        weights, others, slots = state
        # Each part of the device's share has as many rows of each array.
        parts = jax.tree.map(
            lambda rows: rows.reshape(self._parts, -1, *rows.shape[1:]), batch
        )
        counts = [
            _over_devices(number.sum())
            for number in jax.vmap(self._objective.counts)(*parts)
        ]

        def objective(weights, others, part):
            with self._scope((weights, others, slots)) as scope:
                step = self._optimizer.iterations.value
                loss, sums = self._objective.loss(*part, step, counts)
                loss = self._optimizer.scale_loss(loss)
            values = [
                scope.get_current_value(variable)
                for variable in self._variables[1]
            ]
            return loss, (sums, values)

        differentiate = jax.grad(objective, has_aux=True)

        def add(totals, part):
            others, *numbers = totals
            gradients, (sums, others) = differentiate(weights, others, part)
            numbers = jax.tree.map(jnp.add, numbers, [gradients, sums])
            return (others, *numbers), None

        others = self._shift_seeds(others)
        if self._parts == 1:
            gradients, (sums, others) = differentiate(weights, others, batch)
        else:
            zeros = jax.tree.map(jnp.zeros_like, weights)
            nothing = others, zeros, Sums(*jnp.zeros(3))
            (others, gradients, sums), _ = lax.scan(add, nothing, parts)
        gradients, sums = _over_devices((gradients, sums))
        weights, slots = self._optimizer.stateless_apply(
            slots, gradients, weights
        )
        return [weights, self._shift_seeds(others, -1), slots], sums

    def _shift_seeds(self, others, sign=1):
        """Gives each device a dropout of its own, or takes that back."""
        device = (sign * lax.axis_index(DEVICES)).astype("uint32")
        return [
            value.at[0].add(device) if is_seed else value
            for is_seed, value in zip(self._are_seeds, others, strict=True)
        ]

    def _validate(self, state, batch):
        with self._scope(state):
            return _over_devices(self._objective.validate(*batch))

    def _scope(self, state):
        """Returns the context in which all variables have these values."""
        return keras.StatelessScope(state_mapping=self._with_values(state))

    def _with_values(self, state):
        variables = itertools.chain.from_iterable(self._variables)
        values = itertools.chain.from_iterable(state)
        return list(zip(variables, values, strict=True))
