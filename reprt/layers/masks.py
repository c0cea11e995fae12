"""Masks of padding and of later tokens, and checks of ids; True is "attend here"."""

import keras
import numpy as np
from keras import ops

from reprt.constants import PAD_ID
from reprt.layers.dtypes import at_least_float32, indices

# A score whose exponential is 0.
FORBIDDEN = -1e9


def check_ids(ids):
    """Raises a `ValueError` unless `ids` is an integer `(batch, length)` tensor."""
    # TensorFlow's tensor of rows of any lengths.
    if hasattr(ids, "row_lengths"):
        raise ragged_ids()
    dtype = keras.backend.standardize_dtype(ids.dtype)
    integer = "int" in dtype or not _has_values(ids)
    if len(ids.shape) != 2 or not integer:
        raise ValueError(
            "Expected ids to be an integer tensor of shape (batch, length), with "
            f"{PAD_ID} for padding, as a tokenizer returns. Received: "
            f"shape={tuple(ids.shape)}, dtype={dtype}."
        )


def _has_values(x):
    """Whether a tensor is more than a place in a graph.

    When Keras loads a subclassed model, it traces it without knowing the dtypes.
    """
    # Keras traces on PyTorch's device "meta".
    if getattr(x, "is_meta", False):
        return False
    if isinstance(x, np.ndarray) or hasattr(x, "numpy"):
        return True
    if keras.backend.backend() != "jax":
        return False
    import jax

    return isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer)


def ragged_ids():
    """Returns the error for rows of unequal lengths."""
    return ValueError(
        "Expected ids to be an integer tensor of shape (batch, length). Received: rows "
        f"of unequal lengths. Pad them with {PAD_ID}, such as by ids.to_tensor() or "
        "keras.utils.pad_sequences(ids, padding='post')."
    )


def as_ids(ids):
    """Returns ids as a tensor; rows of unequal lengths are a `ValueError`.

    >>> import reprt
    >>> tuple(reprt.layers.masks.as_ids([[2, 5], [2, 0]]).shape)
    (2, 2)
    """
    if isinstance(ids, list | tuple):
        try:
            ids = np.asarray(ids)
        except ValueError:
            raise ragged_ids() from None
    ids = ops.convert_to_tensor(ids)
    check_ids(ids)
    return ids


def check_vocabulary(name, ids, vocab_size):
    """Raises a `ValueError` if an id is none of a vocabulary's.

    Only ids with values are checked: NumPy's arrays, and tensors outside of graphs.

    Args:
        name: what the error calls the ids.
        ids: integers of any shape.
        vocab_size: the number of ids, padding included.

    >>> import numpy as np, reprt
    >>> reprt.layers.masks.check_vocabulary("ids", np.array([8]), 9)
    """
    if not _has_values(ids) or 0 in ids.shape:
        return
    array = ops.convert_to_numpy(ids)
    for extreme in (array.min(), array.max()):
        if not 0 <= extreme < vocab_size:
            raise ValueError(
                f"Expected `{name}` to be ids from 0 to {vocab_size - 1}, as the "
                f"vocabulary has {vocab_size}. Received: {extreme}."
            )


def padding_mask(ids):
    """Returns which tokens are real.

    Args:
        ids: integer tensor `(batch, length)`, 0 for padding.

    Returns:
        Boolean tensor `(batch, length)`, True on real tokens.

    Raises:
        ValueError: if `ids` is not an integer tensor of rank 2, or is ragged.

    >>> import keras, reprt
    >>> ids = keras.ops.array([[5, 7, 0]])
    >>> keras.ops.convert_to_numpy(reprt.layers.padding_mask(ids)).tolist()
    [[True, True, False]]
    """
    return ops.greater(as_ids(ids), PAD_ID)


def causal_mask(length):
    """Returns the mask M of eq. 30: position i attends to positions j <= i.

    The paper prints +∞ where j > i; the −∞ that it must mean is a False here.

    Args:
        length: number of positions, an integer or a scalar tensor.

    Returns:
        Boolean tensor `(1, length, length)`, True where attention is allowed.

    >>> import keras, reprt
    >>> keras.ops.convert_to_numpy(reprt.layers.causal_mask(2)).tolist()
    [[[True, False], [True, True]]]
    """
    position = indices(length)
    return ops.greater_equal(position[:, None], position[None, :])[None]


def first_real(x, mask):
    """Returns the first real token of each sequence, zeros where there is none.

    Args:
        x: tensor `(batch, tokens, features)`.
        mask: boolean tensor `(batch, tokens)`, True on real tokens.

    Returns:
        Tensor `(batch, 1, features)`.

    >>> import keras, reprt
    >>> x, mask = keras.ops.array([[[7.0], [8.0]]]), keras.ops.array([[False, True]])
    >>> first = reprt.layers.masks.first_real(x, mask)
    >>> keras.ops.convert_to_numpy(first).tolist()
    [[[8.0]]]
    """
    # TensorFlow compares floats on a GPU, and integers on the CPU.
    count = ops.cumsum(ops.cast(mask, "float32"), axis=1)
    is_first = ops.logical_and(mask, ops.equal(count, 1.0))
    # A sum of one number, where an index would need a token to point to.
    first = ops.where(is_first[..., None], x, ops.zeros((), x.dtype))
    return ops.sum(first, axis=1, keepdims=True)


def check_mask(layer, name, mask, shape):
    """Returns a mask; a `ValueError` unless it is boolean, with the axes of `shape`.

    Graphs may have masks of other types, where what is not 0 means True.
    """
    if mask is None:
        return None
    dtype = keras.backend.standardize_dtype(mask.dtype)
    boolean = dtype == "bool" or not _has_values(mask)
    if len(mask.shape) != len(shape.split()) or not boolean:
        example = (
            "causal_mask(length)" if "targets" in shape else "padding_mask(ids)"
        )
        raise ValueError(
            f"{type(layer).__name__} expects `{name}` to be a boolean tensor that "
            f"broadcasts to ({shape}), True on what counts, such as "
            f"reprt.layers.{example}; one that all sentences share needs a first axis, "
            f"mask[None]. Received: shape={tuple(mask.shape)}, dtype={dtype}."
        )
    return ops.cast(mask, "bool")


def for_softmax(scores, mask):
    """Returns scores in float32 at least, which get no weight where a mask is False."""
    scores = at_least_float32(scores)
    # Masks are smaller than scores, and a sum's gradient takes no time.
    if mask is None:
        return scores
    forbidden = ops.cast(ops.logical_not(mask), scores.dtype)
    return scores + FORBIDDEN * forbidden
