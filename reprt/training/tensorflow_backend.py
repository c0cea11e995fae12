"""Training on TensorFlow: packed batches, shared by the replicas of a strategy."""

import contextlib
import functools

import tensorflow as tf

from reprt.data.batching import batches, planned_batches
from reprt.data.packing import pack
from reprt.data.replicas import per_replica
from reprt.optimizers import dense_gradients, several_replicas
from reprt.training.backend import Backend, seed_variables
from reprt.training.objective import Sums
from reprt.training.workers import several_workers


@functools.cache
def mirrored_strategy() -> tf.distribute.Strategy:
    """Returns the strategy over all GPUs, or all logical CPUs where there is no GPU.

    Trainers share it: TensorFlow takes reductions of two strategies for each other's.
    Over several workers of `TF_CONFIG` it has to be made before all else.
    """
    if several_workers():
        return tf.distribute.MultiWorkerMirroredStrategy()
    gpus, cpus = map(tf.config.list_logical_devices, ("GPU", "CPU"))
    return tf.distribute.MirroredStrategy(
        [device.name for device in gpus or cpus]
    )


@contextlib.contextmanager
def naming_lost_workers():
    """Makes the loss of another worker a `ConnectionError`, while it lasts."""
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
        raise ConnectionError(
            "Another worker was lost. Start all workers again: the same commands go on "
            "from the last checkpoint."
        ) from error


class TensorFlowBackend(Backend):
    """Takes a `Trainer`'s steps under a `MirroredStrategy`."""

    def __init__(self, deterministic: bool):
        if deterministic:
            tf.config.experimental.enable_op_determinism()
            # It orders the terms of long sums anew in each process.
            options = {"arithmetic_optimization": False}
            tf.config.optimizer.set_experimental_options(options)
        self._strategy = mirrored_strategy()
        devices = list(self._strategy.extended.worker_devices)
        workers = self._strategy.num_replicas_in_sync // len(devices)
        self.devices = devices * workers
        self.accelerators = []
        for gpu in tf.config.list_physical_devices("GPU"):
            details = tf.config.experimental.get_device_details(gpu)
            self.accelerators.append(details.get("device_name", "GPU"))

    def mean_over_workers(self, number: float) -> float:
        if not several_workers():
            return number
        return float(self._mean(tf.constant(number, tf.float64)))

    @tf.function
    def _mean(self, number):
        numbers = self._strategy.run(lambda: number)
        return self._strategy.reduce("MEAN", numbers, axis=None)

    def scope(self) -> contextlib.AbstractContextManager:
        return self._strategy.scope()

    def compile(self, objective, optimizer, split, parts=1):
        self._objective, self._optimizer = objective, optimizer
        self._parts = parts
        self._seeds = seed_variables(objective.model)
        # `_train` has added up the replicas' gradients.
        inner = getattr(optimizer, "inner_optimizer", optimizer)
        inner._all_reduce_sum_gradients = lambda pairs: pairs
        # One trace serves every batch, whatever its lengths.
        spec = self._share(batches(split, 1)).element_spec
        graph = tf.function(input_signature=[spec], autograph=False)
        self.train = graph(functools.partial(self._add_up, self._train))
        self.evaluate = graph(functools.partial(self._add_up, self._evaluate))

    def batches(self, split, plan, epoch=None, skip=0):
        return self._share(planned_batches(split, plan.batches(epoch, skip)))

    def _share(self, dataset: tf.data.Dataset):
        """A dataset of whose batches each replica gets a share of the rows."""
        if several_workers():
            # TensorFlow parts the rows between the workers.
            return self._strategy.experimental_distribute_dataset(dataset)
        return per_replica(dataset, self._strategy)

    def _add_up(self, function, batch):
        """What a function returns, added up over the replicas' shares of a batch."""
        sums = self._strategy.run(function, args=(batch,))
        return self._strategy.reduce("SUM", sums, axis=None)

    def _pack(self, inputs, labels):
        """A replica's share, packed if the model takes packed inputs."""
        layout = self._objective.model.packed_layout
        if not layout:
            return inputs, labels
        return pack(inputs, labels, layout=layout)

    def _train(self, batch):
        """Takes a replica's step for its share `((source, target), labels)`."""
        counts = _over_replicas(self._objective.counts(*batch))
        if self._parts == 1:
            gradients, sums = self._differentiate(batch, 0, counts)
        else:
            gradients, sums = self._differentiate_parts(batch, counts)
        # An optimizer clips the whole batch's gradients, and not each replica's own.
        gradients = _over_replicas(gradients)
        weights = self._objective.model.trainable_variables
        self._optimizer.apply(gradients, weights)
        return _rows(batch), *sums

    def _differentiate(self, batch, part, counts):
        """Returns the gradients and the sums of a replica's share, or a part of it."""
        self._seed_dropout(part)
        weights = self._objective.model.trainable_variables
        step = self._optimizer.iterations.value
        inputs, labels = self._pack(*batch)
        with tf.GradientTape() as tape:
            loss, sums = self._objective.loss(inputs, labels, step, counts)
            loss = self._optimizer.scale_loss(loss)
        gradients = tape.gradient(
            loss,
            weights,
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        # A batch's gradients of one id are added up before the optimizer squares them.
        return dense_gradients(self._optimizer, gradients), sums

    def _differentiate_parts(self, batch, counts):
        """Returns the same, added up over the parts of a replica's share."""

        def add(part, *totals):
            rows = tf.nest.map_structure(
                lambda ids: ids[part :: self._parts], batch
            )
            more = self._differentiate(rows, part, counts)
            return part + 1, *tf.nest.map_structure(tf.add, totals, more)

        weights = self._objective.model.trainable_variables
        zeros = [tf.zeros(weight.shape) for weight in weights]
        # A loop keeps what one part needs, where a graph of all would keep it all.
        _, gradients, sums = tf.while_loop(
            lambda part, *_: part < self._parts,
            add,
            (0, zeros, Sums(0.0, 0.0, 0.0)),
            parallel_iterations=1,
        )
        return gradients, sums

    def _evaluate(self, batch):
        return _rows(batch), *self._objective.validate(*self._pack(*batch))

    def _seed_dropout(self, part):
        """Makes dropout depend on step, replica and part of a batch.

        Keras' seeds are alike on all replicas.
        """
        replica = tf.distribute.get_replica_context()
        step = tf.cast(self._optimizer.iterations.value, tf.int64)
        number = tf.cast(replica.replica_id_in_sync_group, tf.int64)
        draw = step * replica.num_replicas_in_sync + number
        draw = draw * self._parts + tf.cast(part, tf.int64)
        for seed in self._seeds:
            seed.assign(tf.stack([seed.value[0], tf.cast(draw, seed.dtype)]))


def _over_replicas(numbers):
    """Adds up each replica's numbers, within its step."""
    if not several_replicas():
        return numbers
    replica = tf.distribute.get_replica_context()
    return replica.all_reduce("SUM", numbers)


def _rows(batch):
    return tf.cast(tf.shape(batch[1])[0], tf.float32)
