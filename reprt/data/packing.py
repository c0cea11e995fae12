"""From padded batches to packed ones, so that little work is done on padding."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from reprt.bucketing import shapes_are_costly
from reprt.constants import PAD_ID, check_choice
from reprt.data.replicas import per_replica
from reprt.layers.layout import Packing, Sides
from reprt.layers.masks import as_ids, check_ids

GROUPS = 4
# Few different shapes, since kernels are prepared, and kept, for each of them.
TOKENS_MULTIPLE, WIDTH_MULTIPLE = 64, 8
# Laying a token out takes as long as this many scores of attention, measured on a CPU.
TOKEN_COST = 32
SIXTEENTHS = 16
MOST_SHAPES = 4
# The shapes are chosen from the batches of this many epochs, but from no more batches.
EPOCHS, MOST_BATCHES = 10, 1000
# The shares of such a sample that fit each shape: the first fits every second batch.
SHARES = 0.5, 0.92, 1.0

EXPECTED = "Expected batches ((source_ids, target_ids), labels), or weights after them."


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
        """Returns the smallest shape they fit; without `sizes`, the cheapest groups."""
        count = len(self.source)
        if sizes is None:
            sizes = _cheapest_sizes(self.keys(layout))
        empty = 0, sum(sizes) - count
        source, target = np.pad(self.source, empty), np.pad(self.target, empty)
        groups = _groups(Lengths(source, target).keys(layout), sizes)
        columns = int(source.max(initial=0)), int(target.max(initial=0))
        tokens = np.array([source.sum(), target.sum()])
        if layout == "sequence":
            tokens = np.append(tokens, tokens.sum())
            widths = [_widths(source + target, groups)]
        else:
            widths = [_widths(source, groups), _widths(target, groups)]
        # One more at least, since slots of padding take a token that fills up.
        tokens = (tokens // TOKENS_MULTIPLE + (count > 0)) * TOKENS_MULTIPLE
        columns = self.columns or columns
        return Shape(sizes, columns, tuple(tokens.tolist()), tuple(widths))


def _cheapest_sizes(keys) -> tuple:
    """How many sentences each group has, the short ones first, to take least time.

    Groups are a few sixteenths of a batch, so that shapes repeat. A sentence in a group
    of width w is reckoned to take the time of w² + 32 w scores.
    """
    ends = np.linspace(0, len(keys), SIXTEENTHS + 1).astype(int)
    widths = _width(np.append(0, np.sort(keys))[ends])
    # A row for each way to cut sixteen sixteenths into groups.
    bounds = _group_bounds()
    sizes = np.diff(ends[bounds])
    group_widths = widths[bounds[:, 1:]]
    costs = sizes * group_widths * (group_widths + TOKEN_COST)
    return tuple(sizes[costs.sum(1).argmin()].tolist())


@functools.cache
def _group_bounds() -> np.ndarray:
    """Returns all bounds of groups, in sixteenths, those of later ends last."""
    inner = itertools.combinations_with_replacement(
        range(SIXTEENTHS + 1), GROUPS - 1
    )
    # Of equally cheap ways, that whose last group is the largest stands first.
    ways = sorted(inner, key=lambda bounds: bounds[::-1])
    edges = np.pad(ways, ((0, 0), (1, 1)))
    edges[:, -1] = SIXTEENTHS
    return edges


def _groups(keys, sizes):
    """The rows of each group, those of small keys first."""
    return np.split(np.argsort(keys, kind="stable"), np.cumsum(sizes)[:-1])


def _widths(lengths, groups) -> tuple:
    """The lengths that groups of sentences are padded to."""
    widths = []
    for group in groups:
        widths.append(_width(int(lengths[group].max(initial=0))))
    return tuple(widths)


def _width(length):
    """The width of a group: more than its longest length, as a row ends in padding."""
    return (length // WIDTH_MULTIPLE + 1) * WIDTH_MULTIPLE


def _numbers(shapes):
    """A row of all numbers of each shape."""
    return np.array(list(map(keras.tree.flatten, shapes)))


def first_fitting_shape(
    batch: Sequence[Lengths],
    shapes: Sequence[Shape],
    layout,
) -> Shape:
    """Returns the first shape that a batch can have, the `Lengths` of each device."""
    for shape in shapes:
        if all(_fits(lengths, shape, layout) for lengths in batch):
            return shape
    sentences = max(len(lengths.source) for lengths in batch)
    raise ValueError(
        "Expected a batch that fits one of the shapes that were chosen for the whole "
        f"text. Received: one of {sentences} sentences, the longest of "
        f"{_longest(batch, layout)} tokens."
    )


def _fits(lengths, shape, layout):
    if len(lengths.source) > sum(shape.sizes):
        return False
    smallest, numbers = _numbers([lengths.shape(layout, shape.sizes), shape])
    return (smallest <= numbers).all()


def choose_shapes(
    batches: Sequence[Sequence[Lengths]],
    layout,
    text: Lengths | None = None,
) -> list[Shape]:
    """Returns at most four shapes for the batches of a text, the smallest first.

    If batches are like one another, half of them fit the first and nine in ten the
    second. If each has sentences of one length, and most lengths are at most half of
    the longest, each shape serves a range of lengths.

    The batches are a sample, each a list of its devices' shares. The last shape holds
    any batch of as many rows of the text; without a text, any of the sample.
    """
    # How often the longest sentence of all is to be halved, to be as long as a batch's.
    longest = np.array([_longest(batch, layout) for batch in batches])
    halvings = np.log2(longest.max() / longest).astype(int)
    halvings = halvings.clip(max=MOST_SHAPES - 1)
    sizes = _sizes(batches)
    numbers = []
    if np.median(halvings) > 0:
        for number in np.unique(halvings)[::-1]:
            similar = list(itertools.compress(batches, halvings == number))
            numbers.append(_largest_numbers(similar, layout, _sizes(similar)))
    else:
        largest = []
        for batch in batches:
            largest.append(_largest_numbers([batch], layout, sizes))
        for share in SHARES:
            numbers.append(_limits_of_share(np.array(largest), share))
    if text is not None:
        last = _numbers([_shape_of_any(text, sizes, layout)])
        numbers = [*numbers[: MOST_SHAPES - 1], last[0]]
    example = batches[0][0].shape(layout)
    shapes = []
    for row in numbers[:MOST_SHAPES]:
        shapes.append(keras.tree.pack_sequence_as(example, row.tolist()))
    return list(dict.fromkeys(shapes))


def _longest(batch, layout):
    return max(lengths.keys(layout).max(initial=1) for lengths in batch)


def _sizes(batches):
    """Sizes of groups: the longest few sentences, the widest, have their own."""
    shares = itertools.chain.from_iterable(batches)
    rows = max(len(lengths.source) for lengths in shares)
    half, quarter, longest = rows // 2, rows // 4, rows // 16
    return rows - half, half - quarter, quarter - longest, longest


def _largest_numbers(batches, layout, sizes):
    """The numbers of a shape that holds all of the batches."""
    shares = itertools.chain.from_iterable(batches)
    shapes = [lengths.shape(layout, sizes) for lengths in shares]
    return _numbers(shapes).max(0)


def _limits_of_share(numbers, share):
    """Numbers that a share of the rows do not exceed, as low as one quantile allows."""
    for quantile in np.linspace(share, 1, 21):
        limits = np.quantile(numbers, quantile, axis=0, method="higher")
        if (numbers <= limits).all(1).mean() >= share:
            break
    return limits


def _shape_of_any(text, sizes, layout) -> Shape:
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
        all_batches = itertools.chain.from_iterable(epochs)
        sample = itertools.islice(all_batches, MOST_BATCHES)
    batches = []
    for indices in sample:
        _, lengths = deal_to_devices(sides, indices, devices)
        batches.append(lengths)
    return choose_shapes(batches, layout, text)


def deal_to_devices(sides, indices, devices):
    """Deals sentences of all lengths to devices: the indices and `Lengths` of each."""
    source, target = sides
    longest = np.maximum(source[indices], target[indices])
    order = indices[np.argsort(longest, kind="stable")]
    rows, lengths = [], []
    for device in range(devices):
        share = order[device::devices]
        rows.append(share)
        lengths.append(Lengths(source[share], target[share]))
    return rows, lengths


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
        shapes: those that the arrays may have, such as `choose_shapes` returns; the
            first that fits is taken. None for the batch's own.

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
    sides = inputs if isinstance(inputs, list | tuple) else [inputs]
    if len(sides) != 2:
        raise ValueError(f"{EXPECTED} Received: {len(sides)} inputs.")
    arrays = list(map(_as_ids_or_tensor, (*sides, labels)))
    # A tensor of TensorFlow that has no value yet belongs to a graph.
    in_graph = hasattr(arrays[-1], "graph")
    if sample_weight is not None:
        arrays.append(sample_weight)
    if in_graph:
        return _pack_in_graph(arrays, layout, shapes)
    return pack_arrays(*map(np.asarray, arrays), layout=layout, shapes=shapes)


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
    import tensorflow as tf

    if not isinstance(batches, tf.data.Dataset):
        raise ValueError(
            "Expected a tf.data.Dataset, such as tf.data.Dataset.from_generator makes "
            f"of batches. Received: a {type(batches).__name__}. For the arrays of one "
            "batch there is reprt.data.pack."
        )
    shapes = (
        _shapes_of_dataset(batches, layout) if shapes_are_costly() else None
    )

    def pack_batch(*batch):
        if len(batch) not in (2, 3):
            raise ValueError(f"{EXPECTED} Received: {batches.element_spec}.")
        return pack(*batch, layout=layout, shapes=shapes)

    def pack_all(batches):
        # Autograph would lengthen the messages of errors.
        return batches.map(tf.autograph.experimental.do_not_convert(pack_batch))

    if strategy is None:
        return pack_all(batches)
    return per_replica(batches, strategy, pack_all)


def _shapes_of_dataset(batches, layout):
    """Reads a dataset once; returns the few shapes of all of its batches."""
    if batches.cardinality() == -1:
        raise ValueError(
            "Expected a finite dataset. Received one without an end."
        )
    sample = []
    for (source, target), labels, *_ in batches:
        sample.append(_lengths(*map(np.asarray, (source, target, labels))))
    source, target, columns = zip(*sample)
    widest = tuple(np.max(columns, axis=0))
    text = Lengths(np.concatenate(source), np.concatenate(target), widest)
    return choose_shapes([[lengths] for lengths in sample], layout, text)


def _as_ids_or_tensor(ids):
    """Returns nested lists as an array, and arrays and tensors as they are."""
    if isinstance(ids, list | tuple):
        return as_ids(ids)
    check_ids(ids)
    # Within TensorFlow's graph `check_ids` leaves the dtype to this.
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if "int" not in dtype:
        raise ValueError(f"Expected integer ids. Received: dtype={dtype}.")
    return ids


def _pack_in_graph(arrays, layout, shapes):
    """Packs by NumPy, in the midst of TensorFlow's graph."""
    import tensorflow as tf

    def flat(*arrays):
        return tf.nest.flatten(
            pack_arrays(*arrays, layout=layout, shapes=shapes)
        )

    # What a batch of one token gives has the same structure, dtypes and ranks.
    ones = []
    for array in arrays:
        shape = [1] * len(array.shape)
        ones.append(np.ones(shape, array.dtype.name))
    example = pack_arrays(*ones, layout=layout)
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


def pack_arrays(source, target, labels, *weights, layout, shapes=None):
    """What `pack` returns, of arrays; a `layout` of None fills up ids and labels."""
    lengths = _lengths(source, target, labels)
    if shapes:
        shape = first_fitting_shape([lengths], shapes, layout)
    else:
        shape = lengths.shape(layout)
    rows = sum(shape.sizes)
    source_columns, target_columns = shape.columns
    target_shape = rows, target_columns
    label_arrays = [_enlarge(labels, target_shape)]
    for weight in weights:
        # A weight of a sentence is that of all of its labels.
        weight = weight[:, None] if weight.ndim == 1 else weight
        weight = np.broadcast_to(weight, labels.shape)
        label_arrays.append(_enlarge(weight, target_shape))
    source = _enlarge(source, (rows, source_columns))
    target = _enlarge(target, target_shape)
    if layout is None:
        return (source, target), *label_arrays
    masks = _masks(source, target, label_arrays[0])
    source_mask, target_mask = masks
    lengths = Lengths(source_mask.sum(1), target_mask.sum(1))
    groups = _groups(lengths.keys(layout), shape.sizes)
    packings: list[Any] = []
    if layout == "sides":
        for side in zip((source, target), masks, shape.tokens, shape.widths):
            packings.append(_packing(groups, *side))
    else:
        ids, mask = np.hstack([source, target]), np.hstack(masks)
        packings.append(
            _packing(groups, ids, mask, shape.tokens[2], shape.widths[0])
        )
        packings.append(_sides_of_sequence(mask, source.shape[1], shape.tokens))
    packed = shape.tokens[1]
    outputs = []
    for array in label_arrays:
        tokens = array[target_mask]
        outputs.append(_enlarge(tokens, packed)[None])
    return (source, target, *packings), *outputs


def _enlarge(array, shape, filler=0):
    """Returns an array of a larger shape, with a filler after the array's numbers."""
    larger = np.full(shape, filler, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


def _sides_of_sequence(mask, source_columns, tokens) -> Sides:
    """Which tokens of a packed sequence are of either side."""
    _, columns = np.nonzero(mask)
    in_target = columns >= source_columns
    source = np.flatnonzero(~in_target).astype("int32")
    target = np.flatnonzero(in_target).astype("int32")
    return Sides(
        _enlarge(source, tokens[0], -1), _enlarge(target, tokens[1], -1)
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
    # Nothing attends to what fills up.
    is_attended = _enlarge(ids.ravel()[tokens] > PAD_ID, packed, False)
    lengths = mask.sum(1)
    # Where each sentence begins among the packed tokens.
    offsets = np.cumsum(lengths) - lengths
    columns = np.arange(len(tokens)) - offsets[rows]
    starts, row_widths = np.zeros((2, len(mask)), int)
    slots, real_slots, start = [], [], 0
    for group, width in zip(groups, widths, strict=True):
        column = np.arange(width)
        is_token = column < lengths[group, None]
        token = np.where(is_token, offsets[group, None] + column, packed - 1)
        slots.append(token.astype("int32"))
        real_slots.append(is_attended[token])
        starts[group] = start + width * np.arange(len(group))
        row_widths[group] = width
        start += token.size

    def packed_numbers(numbers, filler):
        return _enlarge(numbers.astype("int32"), packed, filler)

    # What fills the packed tokens up stands in a slot of padding, the last one of the
    # last row. It gives and gets nothing there.
    last = starts.max(initial=0)
    width = start - last
    return Packing(
        tokens=packed_numbers(tokens, 0),
        first_slots=packed_numbers(starts[rows], last),
        widths=packed_numbers(row_widths[rows], width),
        columns=packed_numbers(columns, width - 1),
        slots=tuple(slots),
        real=tuple(real_slots),
    )
