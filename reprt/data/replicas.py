"""Datasets whose batches the replicas of a strategy share."""


def per_replica(dataset, strategy, change=lambda share: share):
    """Returns a dataset of whose batches each of n replicas gets every n-th row.

    Args:
        dataset: a `tf.data.Dataset` of batches.
        strategy: a `tf.distribute.Strategy` of one worker.
        change: makes of a replica's share, itself a dataset, the one that it reads.
    """
    import tensorflow as tf

    # Each replica has its own dataset, read on the host.
    options = tf.distribute.InputOptions(
        experimental_replication_mode=tf.distribute.InputReplicationMode.PER_REPLICA,
        experimental_fetch_to_device=False,
    )

    def share(context):
        first, step = context.input_pipeline_id, context.num_input_pipelines

        def take(*batch):
            return tf.nest.map_structure(lambda rows: rows[first::step], batch)

        return change(dataset.map(take))

    # The iterators of a distributed dataset tune themselves whatever its options say,
    # and so one that ends may wait for as long as an epoch took.
    return strategy.distribute_datasets_from_function(share, options)
