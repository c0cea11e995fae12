"""Where the tokens of a batch stand: padded, or packed without padding.

Every layer that has to tell sentences apart asks a layout. Attention runs on groups of
sentences, heads first; a padded batch is one group.

| | `Padded` | `Packed` |
|---|---|---|
| tokens | `(batch, length, …)` | `(1, packed, …)` |
| `take` | leaves padded tokens as they are | packs them |
| `split`, `join` | swap two axes | lay tokens out in groups, and back |
| `masks` | the padding mask, or None | of each group its real slots |
"""

import dataclasses
from typing import Any, NamedTuple

import keras
from keras import ops

from reprt.gradients import custom_gradient
from reprt.layers.dtypes import indices

HEADS_FIRST = (0, 2, 1, 3)


class Padded:
    """The layout of a padded batch, `(batch, length, …)`.

    Attributes:
        mask: boolean tensor `(batch, length)`, True on real tokens; None where all are.
    """

    def __init__(self, mask=None):
        self.mask = mask

    @property
    def masks(self):
        """Of each group of sentences which tokens may be attended to, or None."""
        return (self.mask,)

    def take(self, x):
        """From a padded `(batch, length, …)` to the tokens of this layout."""
        return x

    def split(self, x):
        """From `(batch, length, heads, width)` to groups, heads first."""
        return (ops.transpose(x, HEADS_FIRST),)

    def join(self, groups):
        """From groups to tokens: the inverse of `split`."""
        return ops.transpose(groups[0], HEADS_FIRST)

    def token_places(self, x):
        """Of each token `x`, how many real ones of its sentence stand before it."""
        if self.mask is None:
            return indices(ops.shape(x)[1])[None]
        return places_from_mask(self.mask)

    def group_places(self, x):
        """Of each group the places of its tokens, `(sentences or 1, length)`."""
        return (self.token_places(x),)

    def longest(self, x):
        """The length of the longest sentence as far as it is known, or None."""
        return x.shape[1]


def layout_of(mask):
    """Returns the `Padded` of a padding mask or of None; a `Packed` as it is."""
    return mask if isinstance(mask, Packed) else Padded(mask)


def places_from_mask(mask, offset=0):
    """Returns the place of every token: how many real ones stand before it.

    Padding has the place of the token before it. Places count from `offset`, a scalar
    or integers that broadcast to the mask, `(batch, tokens)`.
    """
    mask = ops.cast(mask, "bool")
    # TensorFlow adds up floats on a GPU, and integers on the CPU.
    real = ops.cumsum(ops.cast(mask, "float32"), axis=1)
    return ops.add(offset, ops.maximum(ops.cast(real, "int32") - 1, 0))


class Packing(NamedTuple):
    """Where the tokens of one side of a padded batch stand once they are packed.

    Work on single tokens (projections, feed-forward, norms, logits) needs no padding.
    It runs on packed tokens, `(1, packed, features)`: the real ones of all sentences,
    one after the other. Attention has to know which of them belong together. For it,
    sentences are laid out in a few groups of similar length, each padded to its own
    longest, on both sides in the same order.

    `reprt.data.pack` makes packings, and the models take them with their ids.

    Attributes:
        tokens: `(packed,)` integers, each packed token's place in the flattened
            padded batch.
        first_slots: `(packed,)` integers, the place of its sentence's first token among
            the slots of all groups, one after the other.
        widths: `(packed,)` integers, the length that its group is padded to.
        columns: `(packed,)` integers, its place in its sentence.
        slots: for each group `(sentences, length)` integers, the packed token in each
            slot; in slots of padding the last one, which only fills up.
        real: for each group `(sentences, length)` booleans, True in slots that may be
            attended to.
    """

    tokens: Any
    first_slots: Any
    widths: Any
    columns: Any
    slots: tuple
    real: tuple

    def take(self, x):
        """From a padded `(batch, length, …)` to `(1, packed, …)`."""
        flat = ops.reshape(x, (-1, *x.shape[2:]))
        packed = _rows_at(flat, self.tokens)
        return ops.expand_dims(packed, 0)

    def layout(self, num_heads):
        """Returns the layout of tokens with several heads, made once for all layers."""
        head = indices(num_heads)
        rows = []
        for group in self.slots:
            # Tokens of one head side by side, as a product of matrices wants them.
            group = ops.expand_dims(group, 1)
            row = group * num_heads + head[:, None]
            rows.append(ops.reshape(row, (-1,)))
        places = ops.expand_dims(self.first_slots * num_heads + self.columns, 1)
        places = places + ops.expand_dims(self.widths, 1) * head
        return Packed(
            packing=self,
            slots=tuple(rows),
            places=ops.reshape(places, (-1,)),
            shapes=tuple(map(ops.shape, self.real)),
        )


class Sides(NamedTuple):
    """Which packed tokens are of the source, where both sides are one sequence.

    Attributes:
        source, target: integers, the places of each side's tokens among the packed
            ones, and -1 in places that are filled up.
    """

    source: Any
    target: Any

    def split(self, x):
        """From `(1, packed, …)` of both sides to the pair; zeros where filled up."""

        def side(places):
            has_token = places >= 0
            # As many axes as the rows have.
            while len(has_token.shape) < len(x.shape) - 1:
                has_token = ops.expand_dims(has_token, -1)
            rows = _rows_at(x[0], ops.maximum(places, 0))
            rows = ops.where(has_token, rows, 0)
            return ops.expand_dims(rows, 0)

        return side(self.source), side(self.target)


@dataclasses.dataclass(frozen=True)
class Packed:
    """The layout of packed tokens, `(1, packed, …)`, made by `Packing.layout`.

    It is not a tuple, because Keras takes no tuples that mix tensors and numbers.

    Attributes:
        packing: the `Packing` that it is made of.
        slots: for each group `(slots of all heads,)` integers, the row of the packed
            tokens' heads that stands in each slot.
        places: `(packed · heads,)` integers, the slot of each of those rows.
        shapes: of each group its number of sentences and their length, integers or
            scalar tensors.
    """

    packing: Packing
    slots: tuple
    places: Any
    shapes: tuple

    @property
    def masks(self):
        """Of each group of sentences which tokens may be attended to."""
        return self.packing.real

    def take(self, x):
        """From a padded `(batch, length, …)` to `(1, packed, …)`."""
        return self.packing.take(x)

    def token_places(self, x):
        """Of each token, how many of its sentence stand before it."""
        return self.packing.columns[None]

    def group_places(self, x):
        """Of each group the places of its tokens, `(sentences, length)`.

        No place is beyond that of the last real token of the group.
        """
        places = []
        for real in self.packing.real:
            slots = indices(ops.shape(real)[1])[None]
            # Slots of padding may lie beyond a table of positions.
            real_slots = ops.where(real, slots, 0)
            last = ops.max(real_slots, initial=0)
            places.append(ops.minimum(slots, last))
        return tuple(places)

    def longest(self, x):
        """None: the length of a group is not that of a sentence."""
        return None

    # As matrices, splitting and joining are each other's transposes, and so each is
    # the other's gradient. By itself the gradient of a gather is a sum over segments,
    # which takes several times as long.

    def split(self, x):
        """From `(1, packed, heads, width)` to `(sentences, heads, length, width)`.

        Slots of padding hold a token that fills up, and must not be attended to.
        """
        heads, width = x.shape[2:]

        @custom_gradient
        def split(rows):
            def gradient(*upstream):
                # Slots of padding get zeros, because nothing attends to them.
                return self._gather_rows(keras.tree.flatten(upstream))

            return self._groups(rows, heads), gradient

        return split(ops.reshape(x, (-1, width)))

    def join(self, groups):
        """From groups to `(1, packed, heads, width)`: the inverse of `split`."""
        _, heads, _, width = groups[0].shape

        @custom_gradient
        def join(*groups):
            def gradient(upstream):
                # Slots of padding get zeros, the gradient of what fills up.
                return self._groups(upstream, heads)

            return self._gather_rows(groups), gradient

        rows = join(*groups)
        return ops.reshape(rows, (1, -1, heads, width))

    def _groups(self, rows, heads):
        width = rows.shape[1]
        groups = []
        # XLA would copy slices of what one gather makes.
        for slots, (sentences, length) in zip(self.slots, self.shapes):
            shape = sentences, heads, length, width
            groups.append(ops.reshape(_rows_at(rows, slots), shape))
        return tuple(groups)

    def _gather_rows(self, groups):
        width = groups[0].shape[3]
        rows = [ops.reshape(group, (-1, width)) for group in groups]
        rows = ops.concatenate(rows)
        return _rows_at(rows, self.places)


def _rows_at(x, places):
    """The rows of a tensor at places, all of which it has.

    Keras' `take` looks on JAX whether it has them, in a pass over all that it took.
    """
    if keras.backend.backend() != "jax":
        return ops.take(x, places, axis=0)
    from jax import numpy as jnp

    return jnp.take(x, places, axis=0, mode="clip")
