"""The only place where masks are made. Everywhere, True means "attend here"."""

import keras
from keras import ops
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

from reprt.constants import PAD_ID
from reprt.layers.precision import indices, widened

# A score whose exponential is 0.
FORBIDDEN = -1e9


def check_ids(ids):
    """Raises a `ValueError` unless `ids` is an integer `(batch, length)` tensor."""
    dtype = keras.backend.standardize_dtype(ids.dtype)
    # When Keras loads a subclassed model, it traces it without knowing the dtypes. No
    # public function tells so.
    integer = "int" in dtype or in_symbolic_scope()
    if len(ids.shape) != 2 or not integer:
        raise ValueError(
            "Expected ids to be an integer tensor of shape (batch, length), with "
            f"{PAD_ID} for padding, as a tokenizer returns. Received: "
            f"shape={tuple(ids.shape)}, dtype={dtype}."
        )


def padding_mask(ids):
    """Returns which tokens are real.

    Args:
        ids: integer tensor `(batch, length)`, 0 for padding.

    Returns:
        Boolean tensor `(batch, length)`, True on real tokens.

    Raises:
        ValueError: if `ids` is not an integer tensor of rank 2.

    >>> import keras, reprt
    >>> ids = keras.ops.array([[5, 7, 0]])
    >>> keras.ops.convert_to_numpy(reprt.layers.padding_mask(ids)).tolist()
    [[True, True, False]]
    """
    ids = ops.convert_to_tensor(ids)
    check_ids(ids)
    return ops.greater(ids, PAD_ID)


def causal_mask(length):
    """Returns the mask M of eq. 13: position i attends to positions j <= i.

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


def check_mask(layer, name, mask, shape):
    """Raises a `ValueError` unless a mask is boolean, with the axes of `shape`."""
    if mask is None:
        return
    dtype = keras.backend.standardize_dtype(mask.dtype)
    boolean = dtype == "bool" or in_symbolic_scope()  # as in check_ids
    if len(mask.shape) != len(shape.split()) or not boolean:
        example = "causal_mask(length)" if "targets" in shape else "padding_mask(ids)"
        raise ValueError(
            f"{type(layer).__name__} expects `{name}` to be a boolean tensor that "
            f"broadcasts to ({shape}), True on what counts, such as "
            f"reprt.layers.{example}; one that all sentences share needs a first axis, "
            f"mask[None]. Received: shape={tuple(mask.shape)}, dtype={dtype}."
        )


def for_softmax(scores, mask):
    """Returns scores in float32 at least, which get no weight where a mask is False."""
    scores = widened(scores)
    return scores if mask is None else ops.where(mask, scores, FORBIDDEN)
