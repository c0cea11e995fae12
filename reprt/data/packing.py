"""From padded batches to packed ones, so that little work is done on padding."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from reprt.compilation import shapes_are_costly
from reprt.constants import PAD_ID, check_choice
from reprt.data.batching import of_replicas
from reprt.layers.layout import Packing, Sides
from reprt.layers.masks import as_ids, ragged_ids

GROUPS = 4
# Few different shapes, since kernels are prepared, and kept, for each of them.
TOKENS_MULTIPLE, WIDTH_MULTIPLE = 64, 8
MOST_SHAPES = 4
# The shapes are chosen from the batches of this many epochs, but from no more batches.
EPOCHS, MOST_BATCHES = 10, 1000
# The shares of such a sample that fit each shape: the first fits nine in ten batches.
SHARES = 0.92, 0.99, 1.0

EXPECTED = (
    "Expected batches ((source_ids, target_ids), labels), or with weights at their "
    "end, and each of ids and labels to be integers, padded, (batch, length)."
)


class Shape(NamedTuple):
    """How large the arrays of a packed batch are.

    Attributes:
        sizes: the number of sentences in each group, empty ones among them.
        columns: the lengths of both sides' padded ids.
        tokens: the packed tokens of each side and, in a sequence, of both.
        widths: for each packing the lengths that its groups are padded to.
    """

    sizes: tuple
    columns: tuple
    tokens: tuple
    widths: tuple


class Lengths(NamedTuple):
    """The sentences of a batch, as far as its shape depends on them.

    Attributes:
        source: integers, the number of tokens of each sentence.
        target: the same of the other side.
        columns: as of a `Shape`; by default the longest sentences'.
    """

    source: Any
    target: Any
    columns: tuple | None = None

    def keys(self, layout):
        """What the sentences are sorted by: similar ones share a group."""
        if layout == "sequence":
            return self.source + self.target
        return np.maximum(self.source, self.target)

    def shape(self, layout, sizes=None) -> Shape:
        """Returns the smallest shape they fit; groups are equal without `sizes`."""
        count = len(self.source)
        if sizes is None:
            size = -(-count // GROUPS)
            starts = size * np.arange(GROUPS)
            sizes = tuple(np.clip(count - starts, 0, size).tolist())
        empty = 0, sum(sizes) - count
        source, target = np.pad(self.source, empty), np.pad(self.target, empty)
        groups = _groups(Lengths(source, target).keys(layout), sizes)
        columns = int(source.max(initial=0)), int(target.max(initial=0))
        tokens = [source.sum(), target.sum()]
        if layout == "sequence":
            tokens.append(sum(tokens))
            widths = [_widths(source + target, groups)]
        else:
            widths = [_widths(source, groups), _widths(target, groups)]
            if count:
                # Slots without a token take one that fills up.
                tokens = np.maximum(tokens, 1)
        multiples = -(-np.array(tokens) // TOKENS_MULTIPLE)
        tokens = (multiples * TOKENS_MULTIPLE).tolist()
        return Shape(
            sizes, self.columns or columns, tuple(tokens), tuple(widths)
        )


def _groups(keys, sizes):
    """The rows of each group, those of small keys first."""
    return np.split(np.argsort(keys, kind="stable"), np.cumsum(sizes)[:-1])


def _widths(lengths, groups) -> tuple:
    """The lengths that groups of sentences are padded to."""
    widths = []
    for group in groups:
        longest = int(lengths[group].max(initial=0))
        # One more than the longest, since a row's last slot is padding.
        widths.append((longest // WIDTH_MULTIPLE + 1) * WIDTH_MULTIPLE)
    return tuple(widths)


def _numbers(shapes):
    """A row of all numbers of each shape."""
    return np.array(list(map(keras.tree.flatten, shapes)))


def fitting(batch: Sequence[Lengths], shapes: Sequence[Shape], layout) -> Shape:
    """Returns the first shape that a batch can have, the `Lengths` of each device."""
    for shape in shapes:
        if all(_fits(lengths, shape, layout) for lengths in batch):
            return shape
    sentences = sum(len(lengths.source) for lengths in batch)
    longest = max(lengths.keys(layout).max(initial=0) for lengths in batch)
    raise ValueError(
        "Expected a batch that fits one of the shapes that were chosen for the whole "
        f"text. Received: {sentences} sentences of up to {longest} tokens."
    )


def _fits(lengths: Lengths, shape: Shape, layout) -> bool:
    if len(lengths.source) > sum(shape.sizes):
        return False
    smallest, numbers = _numbers([lengths.shape(layout, shape.sizes), shape])
    return bool((smallest <= numbers).all())


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
    longest = []
    for batch in batches:
        keys = [lengths.keys(layout).max(initial=1) for lengths in batch]
        longest.append(max(keys))
    # How often the longest of all is to be halved to be no longer than a batch's.
    halvings = np.log2(max(longest) / np.array(longest)).astype(int)
    halvings = halvings.clip(max=MOST_SHAPES - 1)
    numbers = []
    if np.median(halvings) > 0:
        for number in np.unique(halvings)[::-1]:
            similar = list(itertools.compress(batches, halvings == number))
            shapes = _shapes(similar, layout, _sizes(similar))
            numbers.append(_numbers(shapes).max(0))
    else:
        largest = []
        for batch in batches:
            shapes = _shapes([batch], layout, _sizes(batches))
            largest.append(_numbers(shapes).max(0))
        for share in SHARES:
            numbers.append(_covering(np.array(largest), share))
    if text is not None:
        last = _shape_of_any(text, _sizes(batches), layout)
        numbers = [*numbers[: MOST_SHAPES - 1], _numbers([last])[0]]
    example = batches[0][0].shape(layout)
    shapes = []
    for row in numbers[:MOST_SHAPES]:
        shapes.append(keras.tree.pack_sequence_as(example, row.tolist()))
    return list(dict.fromkeys(shapes))


def _sizes(batches: Sequence[Sequence[Lengths]]) -> tuple:
    """Sizes of groups: the longest few sentences, the widest, have their own."""
    rows = 0
    for lengths in itertools.chain.from_iterable(batches):
        rows = max(rows, len(lengths.source))
    half, quarter, few = rows // 2, rows // 4, rows // 16
    return rows - half, half - quarter, quarter - few, few


def _shapes(batches, layout, sizes) -> list[Shape]:
    """The smallest shape of each device's share of each batch."""
    shares = itertools.chain.from_iterable(batches)
    return [lengths.shape(layout, sizes) for lengths in shares]


def _covering(numbers, share):
    """Numbers that a share of the rows do not exceed, as low as one quantile allows."""
    for quantile in np.linspace(share, 1, 21):
        limits = np.quantile(numbers, quantile, axis=0, method="higher")
        if (numbers <= limits).all(1).mean() >= share:
            break
    return limits


def _shape_of_any(text: Lengths, sizes, layout) -> Shape:
    """A shape that holds any sentences of a text."""
    rows = sum(sizes)
    source, target = np.sort(text.source)[-rows:], np.sort(text.target)[-rows:]
    shape = Lengths(source, target, text.columns).shape(layout, sizes)
    keys = np.sort(text.keys(layout))[-rows:]
    other = 0 * keys if layout == "sequence" else keys
    widest = Lengths(keys, other).shape(layout, sizes)
    return shape._replace(widths=widest.widths)


def plan_shapes(plan, sides, layout, devices=1, training=True) -> list[Shape]:
    """Returns the few shapes of a `BatchPlan`'s batches, the same in all epochs."""
    text: Lengths | None = Lengths(*sides)
    if plan.name == "tokens":
        # Sentences change places with those of the same length, and no others.
        sample, sides, text = plan.batches(), (plan.lengths, plan.lengths), None
    else:
        epochs = map(plan.batches, range(EPOCHS) if training else [None])
        batches = itertools.chain.from_iterable(epochs)
        sample = itertools.islice(batches, MOST_BATCHES)
    batches = []
    for indices in sample:
        _, lengths = zip(*shares(sides, indices, devices))
        batches.append(lengths)
    return few_shapes(batches, layout, text)


def shares(sides, indices, devices) -> list[tuple[np.ndarray, Lengths]]:
    """Deals sentences of all lengths to devices: each one's indices and lengths."""
    source, target = sides
    longest = np.maximum(source[indices], target[indices])
    ordered = indices[np.argsort(longest, kind="stable")]
    dealt = []
    for device in range(devices):
        rows = ordered[device::devices]
        dealt.append((rows, Lengths(source[rows], target[rows])))
    return dealt


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
    inputs = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    if len(inputs) != 2:
        raise ValueError(f"{EXPECTED} Received: {len(inputs)} inputs.")
    arrays = list(map(_array, (*inputs, labels)))
    dimensions = [tuple(array.shape) for array in arrays]
    if set(map(len, dimensions)) != {2}:
        raise ValueError(f"{EXPECTED} Received: the shapes {dimensions}.")
    # A tensor of TensorFlow that has no value yet belongs to a graph.
    in_graph = hasattr(arrays[-1], "graph")
    if sample_weight is not None:
        arrays.append(sample_weight)
    if in_graph:
        return _in_graph(arrays, layout, shapes)
    return lay_out(*map(np.asarray, arrays), layout=layout, shapes=shapes)


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
        shapes = _shapes_of_dataset(batches, layout)

    def pack_batch(*batch):
        return pack(*batch, layout=layout, shapes=shapes)

    def pack_all(batches):
        return batches.map(pack_batch)

    if strategy is None:
        return pack_all(batches)
    return of_replicas(batches, strategy, pack_all)


def _shapes_of_dataset(batches, layout) -> list[Shape]:
    """Reads a dataset once; returns the few shapes of all of its batches."""
    sample = []
    for (source, target), labels, *_ in batches:
        sample.append(_lengths(*map(np.asarray, (source, target, labels))))
    source, target, columns = zip(*sample)
    widest = tuple(np.max(columns, axis=0))
    text = Lengths(np.concatenate(source), np.concatenate(target), widest)
    return few_shapes([[lengths] for lengths in sample], layout, text)


def _check_batches(batches):
    """Raises a `ValueError` unless they are a dataset of batches that can be packed."""
    if not hasattr(batches, "element_spec"):
        raise ValueError(
            "Expected a tf.data.Dataset, such as tf.data.Dataset.from_generator makes "
            f"of batches. Received: a {type(batches).__name__}. For the arrays of one "
            "batch there is reprt.data.pack."
        )
    match batches.element_spec:
        case ((source, target), labels) | ((source, target), labels, _):
            ids = all(map(_is_of_ids, (source, target, labels)))
        case _:
            ids = False
    if not ids:
        raise ValueError(
            f"{EXPECTED} Received a dataset of: {batches.element_spec}."
        )


def _is_of_ids(spec) -> bool:
    """Returns whether a dataset's element may be a tensor of ids."""
    if isinstance(spec, dict) or "Ragged" in type(spec).__name__:
        return False
    return spec.dtype.is_integer and spec.shape.rank in (2, None)


def _array(x):
    """A nested list as an array; tensors and arrays as they are."""
    if hasattr(x, "row_lengths"):
        raise ragged_ids()
    return x if hasattr(x, "shape") else as_ids(x)


def _in_graph(arrays, layout, shapes):
    """Packs by NumPy, in the midst of TensorFlow's graph."""
    import tensorflow as tf

    def flat(*arrays):
        return tf.nest.flatten(lay_out(*arrays, layout=layout, shapes=shapes))

    # What a batch of one token gives has the same structure, dtypes and ranks.
    single = []
    for array in arrays:
        ranks = [1] * len(array.shape)
        single.append(np.ones(ranks, array.dtype.name))
    example = lay_out(*single, layout=layout)
    examples = tf.nest.flatten(example)
    dtypes = [array.dtype for array in examples]
    tensors = tf.numpy_function(flat, arrays, dtypes)
    for tensor, array in zip(tensors, examples, strict=True):
        tensor.set_shape([None] * array.ndim)
    return tf.nest.pack_sequence_as(example, tensors)


def _lengths(source, target, labels) -> Lengths:
    if target.shape != labels.shape:
        raise ValueError(
            "Expected labels of the target's shape, its inputs shifted by one. "
            f"Received: {labels.shape} and {target.shape}."
        )
    source_mask, target_mask = _masks(source, target, labels)
    columns = source.shape[1], target.shape[1]
    return Lengths(source_mask.sum(1), target_mask.sum(1), columns)


def _masks(source, target, labels):
    """Which tokens of both sides are packed."""
    # A label may stand where its input is padding: it is scored all the same.
    return source > PAD_ID, (target > PAD_ID) | (labels > PAD_ID)


def lay_out(source, target, labels, weights=None, *, layout, shapes=None):
    """What `pack` returns, of arrays; a `layout` of None fills up ids and labels."""
    lengths = _lengths(source, target, labels)
    if shapes:
        shape = fitting([lengths], shapes, layout)
    else:
        shape = lengths.shape(layout)
    rows = sum(shape.sizes)
    source_columns, target_columns = shape.columns
    labelled = labels.shape
    source = _filled_up(source, (rows, source_columns))
    target = _filled_up(target, (rows, target_columns))
    labels = _filled_up(labels, (rows, target_columns))
    if layout is None:
        return (source, target), labels
    masks = _masks(source, target, labels)
    lengths = Lengths(masks[0].sum(1), masks[1].sum(1))
    groups = _groups(lengths.keys(layout), shape.sizes)
    if layout == "sides":
        packings = []
        for side in zip((source, target), masks, shape.tokens, shape.widths):
            packings.append(_packing(groups, *side))
    else:
        ids, mask = np.hstack([source, target]), np.hstack(masks)
        packing = _packing(groups, ids, mask, shape.tokens[2], shape.widths[0])
        packings = [packing, _sides(mask, source_columns, shape.tokens)]
    target_mask, packed = masks[1], shape.tokens[1]
    outputs = [_filled_up(labels[target_mask], packed)[None]]
    if weights is not None:
        if weights.ndim == 1:
            weights = weights[:, None]
        weights = np.broadcast_to(weights, labelled)
        weights = _filled_up(weights, target_mask.shape)
        outputs.append(_filled_up(weights[target_mask], packed)[None])
    return (source, target, *packings), *outputs


def _filled_up(array, shape, filler=0):
    """Returns an array of a larger shape, with a filler after the array's numbers."""
    larger = np.full(shape, filler, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


def _sides(mask, source_columns, tokens) -> Sides:
    """Which tokens of a packed sequence are of either side."""
    _, columns = np.nonzero(mask)
    in_target = columns >= source_columns
    source = np.flatnonzero(~in_target).astype("int32")
    target = np.flatnonzero(in_target).astype("int32")
    return Sides(
        _filled_up(source, tokens[0], -1), _filled_up(target, tokens[1], -1)
    )


def _packing(groups, ids, mask, packed, widths) -> Packing:
    """The packing of one side.

    Args:
        groups: the rows of each group of sentences.
        ids: `(batch, length)`, padded.
        mask: of the same shape, True where a token is packed.
        packed: the number of packed tokens, those that fill up among them.
        widths: the length that each group is padded to.
    """
    rows, _ = np.nonzero(mask)
    tokens = np.flatnonzero(mask)
    # The last one, which is no token, is that of slots of padding, -1.
    attended = np.append(ids.ravel()[tokens] > PAD_ID, False)
    lengths = mask.sum(1)
    # Where each sentence begins among the packed tokens.
    offsets = np.cumsum(lengths) - lengths
    columns = np.arange(len(tokens)) - offsets[rows]
    starts, row_widths = np.zeros((2, len(mask)), int)
    slots, real, start = [], [], 0
    for group, width in zip(groups, widths, strict=True):
        column = np.arange(width)
        filled = column < lengths[group, None]
        token = np.where(filled, offsets[group, None] + column, -1)
        slots.append(token.astype("int32"))
        real.append(filled & attended[token])
        starts[group] = start + width * np.arange(len(group))
        row_widths[group] = width
        start += token.size

    def packed_numbers(numbers, filler):
        return _filled_up(numbers.astype("int32"), packed, filler)

    # What fills the packed tokens up stands in a slot of padding, the last one of the
    # first row. It gives and gets nothing there.
    return Packing(
        tokens=packed_numbers(tokens, 0),
        starts=packed_numbers(starts[rows], 0),
        widths=packed_numbers(row_widths[rows], widths[0]),
        columns=packed_numbers(columns, widths[0] - 1),
        slots=tuple(slots),
        real=tuple(real),
    )
