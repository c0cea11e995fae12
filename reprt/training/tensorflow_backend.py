"""Training on TensorFlow: packed batches, shared by the replicas of a strategy."""

import contextlib
import functools

import tensorflow as tf

from reprt.data.batching import batches, of_replicas, planned_batches
from reprt.data.packing import GROUPS, pack
from reprt.optimizers import added_up, several_replicas
from reprt.training.backend import Backend
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
def together():
    """Makes the loss of another worker a `ConnectionError`, while it lasts."""
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
        raise ConnectionError(
            "Another worker was lost. Start all workers again: the same commands go on "
            "from the last checkpoint."
        ) from error


class OnTensorFlow(Backend):
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
        details = tf.config.experimental.get_device_details
        gpus = tf.config.list_physical_devices("GPU")
        self.accelerators = [
            details(gpu).get("device_name", "GPU") for gpu in gpus
        ]

    def agreed(self, number: float) -> float:
        if not several_workers():
            return number
        return float(self._mean(tf.constant(number, tf.float64)))

    @tf.function
    def _mean(self, number):
        each = self._strategy.run(lambda: number)
        return self._strategy.reduce(
            tf.distribute.ReduceOp.MEAN, each, axis=None
        )

    def scope(self) -> contextlib.AbstractContextManager:
        return self._strategy.scope()

    def compile(self, objective, optimizer, split):
        self._objective, self._optimizer = objective, optimizer
        # `_train` has added up the replicas' gradients.
        inner = getattr(optimizer, "inner_optimizer", optimizer)
        inner._all_reduce_sum_gradients = lambda pairs: pairs
        model = objective.model
        weights = {id(weight) for weight in model.weights}
        self._seeds = [
            seed for seed in model.variables if id(seed) not in weights
        ]
        # One trace serves every batch, whatever its lengths.
        spec = [shared(batches(split, 1), self._strategy).element_spec]
        graph = functools.partial(
            tf.function, input_signature=spec, autograph=False
        )
        self.train = graph(functools.partial(self._on_replicas, self._train))
        self.evaluate = graph(
            functools.partial(self._on_replicas, self._evaluate)
        )

    def batches(self, split, plan, epoch=None, skip=0):
        return shared(
            planned_batches(split, plan.batches(epoch, skip)), self._strategy
        )

    def _on_replicas(self, function, batch):
        """Sums over a distributed batch `((source, target), labels)`."""
        sums = self._strategy.run(function, args=(batch,))
        return self._strategy.reduce(
            tf.distribute.ReduceOp.SUM, sums, axis=None
        )

    def _packed(self, inputs, labels):
        """A replica's share, packed if the model takes packed inputs."""
        layout = self._objective.model.packed_layout
        return (
            pack(inputs, labels, layout=layout) if layout else (inputs, labels)
        )

    def _train(self, batch):
        replica = tf.distribute.get_replica_context()
        self._seed_dropout(replica)
        weights = self._objective.model.trainable_variables
        step = self._optimizer.iterations.value
        inputs, labels = self._packed(*batch)

        def total(number):
            return (
                replica.all_reduce("SUM", number)
                if several_replicas()
                else number
            )

        with tf.GradientTape() as tape:
            loss, sums = self._objective.loss(inputs, labels, step, total)
            loss = self._optimizer.scale_loss(loss)
        self._optimizer.apply(
            *self._summed(tape.gradient(loss, weights), weights)
        )
        return _rows(batch), *sums

    def _summed(self, gradients, weights):
        """Returns the whole batch's gradients, and the weights that have one.

        An optimizer clips these, and not each replica's own. The gradients of an id
        that a batch has several times are added up as well, before an optimizer squares
        them.
        """
        pairs = [
            pair for pair in zip(gradients, weights) if pair[0] is not None
        ]
        gradients, weights = zip(*pairs)
        gradients = added_up(self._optimizer, gradients)
        if several_replicas():
            replica = tf.distribute.get_replica_context()
            gradients = replica.all_reduce("SUM", list(gradients))
        return gradients, weights

    def _evaluate(self, batch):
        return _rows(batch), *self._objective.validate(*self._packed(*batch))

    def _seed_dropout(self, replica):
        """Makes dropout depend on step and replica: Keras' seeds are alike on all."""
        step = tf.cast(self._optimizer.iterations.value, tf.int64)
        number = tf.cast(replica.replica_id_in_sync_group, tf.int64)
        # Every group of sentences makes its own draw for attention.
        draw = (step * replica.num_replicas_in_sync + number) * GROUPS
        for seed in self._seeds:
            seed.assign(tf.stack([seed.value[0], tf.cast(draw, seed.dtype)]))


def shared(dataset: tf.data.Dataset, strategy: tf.distribute.Strategy):
    """Returns a dataset of whose batches each of n replicas gets every n-th row."""
    if several_workers():
        return strategy.experimental_distribute_dataset(dataset)
    return of_replicas(dataset, strategy)


def _rows(batch):
    return tf.cast(tf.shape(batch[1])[0], tf.float32)
