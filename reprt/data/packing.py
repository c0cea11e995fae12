"""From padded batches to packed ones, so that little work is done on padding."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from reprt.bucketing import shapes_are_costly
from reprt.constants import PAD_ID, check_choice
from reprt.data.replicas import per_replica
from reprt.layers.layout import Packing, Sides
from reprt.layers.masks import as_ids, ragged_ids

GROUPS = 4
# Few different shapes, since kernels are prepared, and kept, for each of them.
TOKENS_MULTIPLE, WIDTH_MULTIPLE = 64, 8
MOST_SHAPES = 4
EPOCHS, MOST_BATCHES = 10, 1000  # from which they are chosen
SHARES = (
    0.92,
    0.99,
    1.0,
)  # of a sample, so that nine in ten batches fit the first


EXPECTED = (
    "Expected batches ((source_ids, target_ids), labels), or with weights at their "
    "end, and each of ids and labels to be integers, padded, (batch, length)."
)


class Shape(NamedTuple):
    """How large the arrays of a packed batch are."""

    sizes: tuple  # the number of sentences in each group, empty ones among them
    columns: tuple  # the lengths of both sides' padded ids
    tokens: tuple  # the packed tokens of each side and, in a sequence, of both
    widths: tuple  # for each packing the lengths that its groups are padded to


class Lengths(NamedTuple):
    """The sentences of a batch, as far as its shape depends on them."""

    source: Any  # integers, the number of tokens of each sentence
    target: Any
    columns: tuple | None = (
        None  # as of a `Shape`; by default the longest sentences'
    )

    def keys(self, layout):
        """What the sentences are sorted by: similar ones share a group."""
        combined = np.add if layout == "sequence" else np.maximum
        return combined(self.source, self.target)

    def shape(self, layout, sizes=None) -> Shape:
        """Returns the smallest shape they fit; groups are equal without `sizes`."""
        rows = len(self.source)
        if sizes is None:
            size = -(-rows // GROUPS)
            sizes = tuple(
                int(np.clip(rows - size * i, 0, size)) for i in range(GROUPS)
            )
        keys, source, target = (
            np.pad(each, (0, sum(sizes) - rows))
            for each in (self.keys(layout), self.source, self.target)
        )
        groups = _groups(keys, sizes)
        tokens, sides = [int(source.sum()), int(target.sum())], [source, target]
        if layout == "sequence":
            tokens, sides = [*tokens, sum(tokens)], [source + target]
        elif rows:  # slots without a token take one that fills up
            tokens = [max(1, count) for count in tokens]
        longest = tuple(int(each.max(initial=0)) for each in (source, target))

        def width(lengths):
            # One more than the longest, since a row's last slot is padding.
            return (
                int(lengths.max(initial=0)) // WIDTH_MULTIPLE + 1
            ) * WIDTH_MULTIPLE

        return Shape(
            sizes,
            self.columns or longest,
            tuple(
                -(-count // TOKENS_MULTIPLE) * TOKENS_MULTIPLE
                for count in tokens
            ),
            tuple(
                tuple(width(side[group]) for group in groups) for side in sides
            ),
        )


def fitting(batch: Sequence[Lengths], shapes: Sequence[Shape], layout) -> Shape:
    """Returns the first shape that a batch can have, the `Lengths` of each device."""
    for shape in shapes:
        numbers = _numbers([shape])
        if all(
            len(share.source) <= sum(shape.sizes)
            and np.all(_numbers([share.shape(layout, shape.sizes)]) <= numbers)
            for share in batch
        ):
            return shape
    raise ValueError(
        "Expected a batch that fits one of the shapes that were chosen for the whole "
        f"text. Received: {sum(len(share.source) for share in batch)} sentences of up "
        f"to {max(share.keys(layout).max(initial=0) for share in batch)} tokens."
    )


def few_shapes(
    batches: Sequence[Sequence[Lengths]], layout, text: Lengths | None = None
) -> list[Shape]:
    """Returns at most four shapes for the batches of a text, the smallest first.

    If batches are like one another, nine in ten of them fit the first and all but one
    in a hundred the second. If each has sentences of one length, and most lengths are
    at most half of the longest, each shape serves a range of lengths.

    The batches are a sample, each a list of its devices' shares. The last shape holds
    any batch of as many rows of the text; without a text, any of the sample.
    """

    def halving(batches):
        """Sizes of groups: the longest few sentences, the widest, have their own."""
        rows = max(len(share.source) for batch in batches for share in batch)
        half, quarter, few = rows // 2, rows // 4, rows // 16
        return rows - half, half - quarter, quarter - few, few

    def largest(batches, sizes):
        shapes = [
            share.shape(layout, sizes) for batch in batches for share in batch
        ]
        return _numbers(shapes).max(0)

    sizes, like = halving(batches), batches[0][0].shape(layout)
    longest = np.array(
        [
            max(share.keys(layout).max(initial=1) for share in batch)
            for batch in batches
        ]
    )
    halvings = (
        np.log2(longest.max() / longest).astype(int).clip(max=MOST_SHAPES - 1)
    )
    if np.median(halvings) > 0:
        of_range = [
            list(itertools.compress(batches, halvings == number))
            for number in np.unique(halvings)[::-1]
        ]
        numbers = [largest(each, halving(each)) for each in of_range]
    else:
        each = np.array([largest([batch], sizes) for batch in batches])
        numbers = [_covering(each, share) for share in SHARES]
    last = [] if text is None else [_of_any(text, sizes, layout)]
    numbers = [*numbers[: MOST_SHAPES - len(last)], *last]
    found = (
        keras.tree.pack_sequence_as(like, list(map(int, n))) for n in numbers
    )
    return list(dict.fromkeys(found))


def plan_shapes(plan, sides, layout, devices=1, training=True) -> list[Shape]:
    """Returns the few shapes of a `BatchPlan`'s batches, the same in all epochs."""
    text: Lengths | None = Lengths(*sides)
    if plan.name == "tokens":
        # Sentences change places with those of the same length, and no others.
        sample, sides, text = plan.batches(), (plan.lengths, plan.lengths), None
    else:
        several = map(plan.batches, range(EPOCHS) if training else [None])
        batches = itertools.chain.from_iterable(several)
        sample = itertools.islice(batches, MOST_BATCHES)
    lengths = [
        [own for _, own in shares(sides, each, devices)] for each in sample
    ]
    return few_shapes(lengths, layout, text)


def shares(sides, chosen, devices) -> list[tuple[np.ndarray, Lengths]]:
    """Deals sentences of all lengths to devices: each one's indices and lengths."""
    source, target = sides
    longest = np.maximum(source[chosen], target[chosen])
    ordered = chosen[np.argsort(longest, kind="stable")]
    dealt = [ordered[device::devices] for device in range(devices)]
    return [(rows, Lengths(source[rows], target[rows])) for rows in dealt]


def _numbers(shapes):
    return np.array([keras.tree.flatten(shape) for shape in shapes])


def _covering(numbers, share):
    """Numbers that a share of the rows do not exceed, as low as one quantile allows."""
    for quantile in np.linspace(share, 1, 21):
        found = np.quantile(numbers, quantile, axis=0, method="higher")
        if (numbers <= found).all(1).mean() >= share:
            break
    return found


def _of_any(text, sizes, layout):
    """The numbers of a shape that holds any sentences of a text."""
    rows = sum(sizes)
    keys = np.sort(text.keys(layout))[-rows:]
    other = 0 * keys if layout == "sequence" else keys
    shape = Lengths(keys, other).shape(layout, sizes)
    source, target = (
        np.sort(side)[-rows:] for side in (text.source, text.target)
    )
    own = Lengths(source, target, text.columns).shape(layout, sizes)
    return _numbers([own._replace(widths=shape.widths)])[0]


def pack(inputs, labels, sample_weight=None, *, layout="sides", shapes=None):
    """Adds to a batch what a model needs to leave out its padding.

    Losses, metrics and gradients are those of the padded batch, with two exceptions: a
    label whose input is padding is scored, and positions within attention count it; a
    sentence without a source attends to some other token.

    Args:
        inputs: the pair `(source_ids, target_ids)`, 0 for padding.
        labels: integer tensor `(batch, targets)`, 0 where nothing is scored.
        sample_weight: weights of sentences, `(batch,)` or `(batch, 1)`, or of labels,
            `(batch, targets)`. None for none.
        layout: `"sides"` or `"sequence"`. Defaults to `"sides"`.
        shapes: those that the arrays may have, such as `few_shapes` returns; the first
            that fits is taken. None for the batch's own.

    Returns:
        `(source_ids, target_ids, source_packing, target_packing), labels` or, as a
        sequence, `(source_ids, target_ids, packing, sides), labels`; the labels are
        `(1, packed)`. A little padding fills the last few places, so that `packed` is
        a multiple of 64. With `sample_weight` the weight of each label follows.
        They are NumPy arrays, or tensors within a `tf.data` pipeline.

    Raises:
        ValueError: for an unknown layout, a batch that none of the shapes fits, or the
            backend PyTorch, where Keras has no gradient of packed attention.

    >>> import reprt
    >>> source, target, labels = [[5, 6, 3]], [[2, 7, 0]], [[7, 3, 0]]
    >>> inputs, packed = reprt.data.pack((source, target), labels)
    >>> packed[0, :3].tolist()
    [7, 3, 0]
    """
    check_choice(("sides", "sequence"), layout=layout)
    if keras.backend.backend() == "torch":
        raise ValueError(
            "Expected TensorFlow or JAX: on PyTorch Keras has no gradient of packed "
            "attention, so give padded batches. Received: KERAS_BACKEND=torch."
        )
    inputs = [*inputs] if isinstance(inputs, list | tuple) else [inputs]
    if len(inputs) != 2:
        raise ValueError(f"{EXPECTED} Received: {len(inputs)} inputs.")
    given = [_array(each) for each in (*inputs, labels)]
    received = [_shape(each) for each in given]
    if any(len(shape) != 2 for shape in received):
        raise ValueError(f"{EXPECTED} Received: the shapes {received}.")
    labels = given[-1]
    given += [] if sample_weight is None else [sample_weight]
    if hasattr(labels, "graph"):  # a tensor of TensorFlow that has no value yet
        return _in_graph(given, layout, shapes)
    return lay_out(*map(np.asarray, given), layout=layout, shapes=shapes)


def packed(batches, layout="sides", strategy=None):
    """Packs all batches of a dataset for `model.fit`, as `pack` does each of them.

    JAX compiles a step for each new shape of arrays. There the dataset is read once,
    and its batches then have at most four shapes, even if it shuffles anew.

    Args:
        batches: a finite `tf.data.Dataset` of `(inputs, labels)` or `(inputs, labels,
            sample_weight)`, as `pack` takes them.
        layout: as in `pack`: a model's `packed_layout`.
        strategy: the `tf.distribute.MirroredStrategy` that the model was made in, each
            of whose replicas packs its own rows. Defaults to none.

    Raises:
        ValueError: for what is no dataset, or one of other batches.

    >>> import reprt, tensorflow as tf
    >>> source, target, labels = [[5, 6, 3]], [[2, 7, 0]], [[7, 3, 0]]
    >>> batches = tf.data.Dataset.from_tensors(((source, target), labels))
    >>> [(inputs, labels)] = reprt.data.packed(batches)
    >>> labels[0, :3].numpy().tolist()
    [7, 3, 0]
    """
    _check_batches(batches)
    shapes = None
    if shapes_are_costly():
        if batches.cardinality() == -1:
            raise ValueError(
                "Expected a finite dataset. Received one without an end."
            )
        sample = [
            _lengths(*map(np.asarray, (*inputs, labels)))
            for inputs, labels, *_ in batches
        ]
        source, target, columns = zip(*sample)
        widest = tuple(np.max(columns, axis=0))
        text = Lengths(np.concatenate(source), np.concatenate(target), widest)
        shapes = few_shapes([[each] for each in sample], layout, text)

    def pack_all(batches):
        return batches.map(
            lambda *batch: pack(*batch, layout=layout, shapes=shapes)
        )

    if strategy is None:
        return pack_all(batches)
    return per_replica(batches, strategy, pack_all)


def _check_batches(batches):
    """Raises a `ValueError` unless they are a dataset of batches that can be packed."""
    if not hasattr(batches, "element_spec"):
        raise ValueError(
            "Expected a tf.data.Dataset, such as tf.data.Dataset.from_generator makes "
            f"of batches. Received: a {type(batches).__name__}. For the arrays of one "
            "batch there is reprt.data.pack."
        )
    spec = batches.element_spec
    alike = isinstance(spec, tuple) and len(spec) in (2, 3)
    if not alike or not isinstance(spec[0], tuple) or len(spec[0]) != 2:
        raise ValueError(f"{EXPECTED} Received a dataset of: {spec}.")
    if not all(map(_is_of_ids, (*spec[0], spec[1]))):
        raise ValueError(f"{EXPECTED} Received a dataset of: {spec}.")


def _is_of_ids(spec) -> bool:
    """Returns whether a dataset's element may be a tensor of ids."""
    if isinstance(spec, dict) or "Ragged" in type(spec).__name__:
        return False
    return spec.dtype.is_integer and spec.shape.rank in (2, None)


def _array(x):
    """A nested list as an array; tensors and arrays as they are."""
    return x if hasattr(x, "shape") else as_ids(x)


def _shape(x):
    if hasattr(x, "row_lengths"):
        raise ragged_ids()
    return tuple(x.shape)


def _in_graph(given, layout, shapes):
    """By NumPy, in the midst of TensorFlow's graph."""
    import tensorflow as tf

    # What a batch of one token gives has the same structure, dtypes and ranks.
    of_one = [np.ones([1] * len(each.shape), each.dtype.name) for each in given]
    like = lay_out(*of_one, layout=layout, shapes=None)

    def flat(*arrays):
        return tf.nest.flatten(lay_out(*arrays, layout=layout, shapes=shapes))

    arrays = tf.nest.flatten(like)
    tensors = tf.numpy_function(flat, given, [array.dtype for array in arrays])
    for tensor, array in zip(tensors, arrays, strict=True):
        tensor.set_shape([None] * array.ndim)
    return tf.nest.pack_sequence_as(like, tensors)


def _lengths(source, target, labels):
    if target.shape != labels.shape:
        raise ValueError(
            "Expected labels of the target's shape, its inputs shifted by one. "
            f"Received: {labels.shape} and {target.shape}."
        )
    # A label may stand where its input is padding: it is scored all the same.
    target_kept = (target > PAD_ID) | (labels > PAD_ID)
    columns = source.shape[1], target.shape[1]
    return Lengths((source > PAD_ID).sum(1), target_kept.sum(1), columns)


def lay_out(source, target, labels, weights=None, *, layout, shapes=None):
    """What `pack` returns, of arrays; a `layout` of None fills up ids and labels."""
    lengths = _lengths(source, target, labels)
    shape = (
        fitting([lengths], shapes, layout) if shapes else lengths.shape(layout)
    )
    of_source, of_target = ((sum(shape.sizes), each) for each in shape.columns)
    if weights is not None:
        weights = weights[:, None] if weights.ndim == 1 else weights
        weights = _filled_up(
            np.broadcast_to(weights, labels.shape), 0, of_target
        )
    source = _filled_up(source, 0, of_source)
    target, labels = (
        _filled_up(each, 0, of_target) for each in (target, labels)
    )
    if layout is None:
        return (source, target), labels
    kept = source > PAD_ID, (target > PAD_ID) | (labels > PAD_ID)
    groups = _groups(
        Lengths(*(each.sum(1) for each in kept)).keys(layout), shape.sizes
    )
    packings: tuple
    if layout == "sides":
        each = zip((source, target), kept, shape.tokens, shape.widths)
        packings = tuple(_packing(groups, *side) for side in each)
    else:
        both, of_both = (
            np.concatenate([source, target], 1),
            np.concatenate(kept, 1),
        )
        in_target = np.nonzero(of_both)[1] >= source.shape[1]
        sides = (
            _filled_up(np.flatnonzero(in_target == side), -1, tokens, "int32")
            for side, tokens in enumerate(shape.tokens[:2])
        )
        packing = _packing(
            groups, both, of_both, shape.tokens[2], *shape.widths
        )
        packings = packing, Sides(*sides)
    packed = [
        _filled_up(array[kept[1]], 0, shape.tokens[1])[None]
        for array in (labels, weights)
        if array is not None
    ]
    return (source, target, *packings), *packed


def _filled_up(array, filler, shape, dtype=None):
    filled = np.full(shape, filler, dtype or array.dtype)
    filled[tuple(map(slice, array.shape))] = array
    return filled


def _groups(keys, sizes):
    """The rows of each group, those of small keys first."""
    return np.split(np.argsort(keys, kind="stable"), np.cumsum(sizes)[:-1])


def _packing(groups, ids, kept, packed, widths):
    """The packing of one side, of groups of rows."""
    row, _ = np.nonzero(kept)  # of each token
    tokens = np.flatnonzero(kept)
    real_tokens = np.append(ids.ravel()[tokens] > PAD_ID, False)
    lengths = kept.sum(1)
    offsets = np.cumsum(lengths) - lengths  # of each sentence, once packed
    columns = np.arange(len(tokens)) - offsets[row]
    slots, real, slot = [], [], 0
    start_of_row, width_of_row = np.zeros((2, len(kept)), int)
    for rows, width in zip(groups, widths, strict=True):
        column = np.arange(width)
        filled = column < lengths[rows, None]
        token = np.where(filled, offsets[rows, None] + column, -1).astype(
            "int32"
        )
        slots.append(token)
        real.append(filled & real_tokens[token])
        start_of_row[rows] = slot + width * np.arange(len(rows))
        width_of_row[rows] = width
        slot += token.size
    # What fills the packed tokens up stands in a slot of padding, the last one of the
    # first row. It gives and gets nothing there.
    return Packing(
        tokens=_filled_up(tokens, 0, packed, "int32"),
        first_slots=_filled_up(start_of_row[row], 0, packed, "int32"),
        widths=_filled_up(width_of_row[row], widths[0], packed, "int32"),
        columns=_filled_up(columns, widths[0] - 1, packed, "int32"),
        slots=tuple(slots),
        real=tuple(real),
    )
