"""From padded batches to packed ones, so that little work is done on padding."""

import tensorflow as tf

from reprt.constants import LAYOUTS, PAD_ID
from reprt.layers.packing import Packing, Sides
from reprt.losses import check_weights
from reprt.schema import check_choice

GROUPS = 4
# Few different shapes, since kernels are prepared, and kept, for each of them.
TOKENS_MULTIPLE, WIDTH_MULTIPLE = 64, 8


def pack(inputs, labels, sample_weight=None, *, layout="sides"):
    """Adds to a batch what a model needs to leave out its padding.

    Losses, metrics and gradients are those of the padded batch. For `model.fit` it is
    one line on a dataset of batches, with sample weights or without:

        model.fit(batches.map(reprt.data.pack))

    A model's `packed_layout` is the one it takes: `"sides"` packs sources and targets
    apart, and `"sequence"` packs each target behind its source.

    Args:
        inputs: the pair `(source_ids, target_ids)`, integer tensors `(batch, sources)`
            and `(batch, targets)`, 0 for padding.
        labels: integer tensor `(batch, targets)`, 0 where nothing is scored.
        sample_weight: weights of sentences, `(batch,)` or `(batch, 1)`, or of labels,
            `(batch, targets)`. None for none.
        layout: one of `reprt.constants.LAYOUTS`. Defaults to `"sides"`.

    Returns:
        `(source_ids, target_ids, source_packing, target_packing), labels` or, as a
        sequence, `(source_ids, target_ids, packing, sides), labels`; the labels are
        `(1, packed)`. A little padding fills the last few places, so that `packed` is
        a multiple of 64. With `sample_weight` the weight of each label follows, alike.

    Raises:
        ValueError: for an unknown layout, or weights that do not fit the labels.

    Example:

    >>> import reprt
    >>> source, target, labels = [[5, 6, 3]], [[2, 7, 0]], [[7, 3, 0]]
    >>> inputs, packed = reprt.data.pack((source, target), labels)
    >>> packed[0, :3].numpy().tolist()
    [7, 3, 0]
    """
    check_choice(LAYOUTS, layout=layout)
    source, target = map(tf.convert_to_tensor, inputs)
    labels = tf.convert_to_tensor(labels)
    source_kept = source != PAD_ID
    # A label may stand where its input is padding: it is scored all the same.
    target_kept = (target != PAD_ID) | (labels != PAD_ID)
    laid_out = _of_sides if layout == "sides" else _of_sequence
    packings = laid_out(source, target, source_kept, target_kept)

    def packed(of_labels):
        return _filled_up(tf.boolean_mask(of_labels, target_kept), 0)[None]

    batch = (source, target, *packings), packed(labels)
    if sample_weight is None:
        return batch
    weights = tf.convert_to_tensor(sample_weight)
    check_weights(weights.shape, labels.shape)
    if weights.shape.rank == 1:
        weights = weights[:, None]
    return *batch, packed(tf.broadcast_to(weights, tf.shape(labels)))


def _of_sides(source, target, source_kept, target_kept):
    longest = tf.maximum(_count(source_kept), _count(target_kept))
    order = tf.argsort(longest, stable=True)
    return _packing(source, source_kept, order), _packing(target, target_kept, order)


def _of_sequence(source, target, source_kept, target_kept):
    kept = tf.concat([source_kept, target_kept], 1)
    order = tf.argsort(_count(kept), stable=True)
    packing = _packing(tf.concat([source, target], 1), kept, order)
    sides = tf.concat([tf.zeros_like(source_kept), tf.ones_like(target_kept)], 1)
    of_target = tf.boolean_mask(sides, kept)
    return packing, Sides(_places(~of_target), _places(of_target))


def _places(chosen):
    """Where a mask is True, and -1 in the places that are filled up."""
    return _filled_up(tf.cast(tf.where(chosen)[:, 0], tf.int32), -1)


def _filled_up(of_tokens, filler):
    missing = -tf.size(of_tokens) % TOKENS_MULTIPLE
    filler = tf.cast(filler, of_tokens.dtype)
    return tf.concat([of_tokens, tf.fill([missing], filler)], 0)


def _count(kept):
    return tf.math.count_nonzero(kept, axis=1, dtype=tf.int32)


def _packing(ids, kept, order):
    """The packing of one side; groups are runs of `order`, shortest sentences first."""
    tokens = tf.cast(tf.where(tf.reshape(kept, [-1]))[:, 0], tf.int32)
    row = tokens // tf.shape(ids)[1]  # of each token
    real_tokens = tf.gather(tf.reshape(ids, [-1]), tokens) != PAD_ID
    real_tokens = tf.concat([real_tokens, [False]], 0)  # of a batch that has none
    lengths = _count(kept)
    offsets = tf.cumsum(lengths, exclusive=True)  # of each sentence, once packed
    size = -(-tf.size(order) // GROUPS)
    slots, real, starts, widths, slot = [], [], [], [], 0
    for group in range(GROUPS):
        rows = order[group * size : (group + 1) * size]
        longest = tf.maximum(tf.reduce_max(tf.gather(lengths, rows)), 0)
        # One more than the longest at least: the last slot of every row is padding.
        width = (longest // WIDTH_MULTIPLE + 1) * WIDTH_MULTIPLE
        column = tf.range(width)
        filled = column < tf.gather(lengths, rows)[:, None]
        token = tf.where(filled, tf.gather(offsets, rows)[:, None] + column, -1)
        slots.append(token)
        real.append(filled & tf.gather(real_tokens, tf.maximum(token, 0)))
        starts.append(slot + width * tf.range(tf.size(rows)))
        widths.append(tf.fill([tf.size(rows)], width))
        slot += tf.size(token)

    place = tf.gather(tf.argsort(order), row)  # that of its row in the groups

    def of_tokens(of_rows):
        return tf.gather(tf.concat(of_rows, 0), place)

    width = tf.reduce_max(widths[0])
    columns = tf.range(tf.size(tokens)) - tf.gather(offsets, row)
    # What fills the packed tokens up stands in a slot of padding, the last one of the
    # first row. It gives and gets nothing there.
    return Packing(
        tokens=_filled_up(tokens, 0),
        starts=_filled_up(of_tokens(starts), 0),
        widths=_filled_up(of_tokens(widths), width),
        columns=_filled_up(columns, width - 1),
        slots=tuple(slots),
        real=tuple(real),
    )
