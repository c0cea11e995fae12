"""Graphs where the backend has them, and few of them where each is costly."""

import itertools
import logging
from collections.abc import Callable

import keras
from keras import ops

from reprt.files import cache

SHORTEST = 16
# The tokens that there is room for at first, and that room is then made for at least.
FIRST_ROOM = 16
MORE_ROOM = 8
IDS = ((None, None), "int32")  # the signature of ids
_ours: set[str] = (
    set()
)  # the functions that `compiled` was given, by their names


def compiled(
    function: Callable, model, signature=None, often=True, jit_compile=False
) -> Callable:
    """Returns a function of tensors as the backend runs it fastest.

    TensorFlow makes a graph that soon serves every shape. JAX compiles the function for
    each shape. PyTorch runs it as it is, without gradients. Each call uses the values
    that the model's weights have at that time.

    Args:
        signature: shape and dtype of each argument, such as `[IDS]`, if no more is
            known of all calls. It saves TensorFlow extra graphs and warnings.
        often: False for what a short command calls once. TensorFlow then makes the
            graph at the second call, because making it takes longer than a call.
        jit_compile: TensorFlow compiles by XLA too, anew for each shape.
    """
    match keras.backend.backend():
        case "tensorflow":
            import tensorflow as tf

            logging.getLogger("tensorflow").addFilter(_is_news)
            _ours.add(function.__qualname__)
            if jit_compile:
                return tf.function(function, autograph=False, jit_compile=True)
            if signature is not None:
                signature = [tf.TensorSpec(*each) for each in signature]
            graph = tf.function(
                function, signature, autograph=False, reduce_retracing=True
            )
            if often:
                return graph
            calls = itertools.chain([function], itertools.repeat(graph))
            return lambda *arguments: next(calls)(*arguments)
        case "jax":
            import jax

            keep_compiled()

            # JAX would take weights for constants, those of the first call.
            @jax.jit
            def with_weights(weights, *arguments):
                mapping = list(zip(model.variables, weights, strict=True))
                with keras.StatelessScope(state_mapping=mapping):
                    return function(*arguments)

            return lambda *arguments: with_weights(
                [variable.value for variable in model.variables], *arguments
            )
        case "torch":
            import torch

            return torch.no_grad()(function)
    return function


def _is_news(record) -> bool:
    """False for TensorFlow's warning at a graph's fifth shape, which serves all."""
    text = record.getMessage()
    return not (
        "tf.function retracing" in text and any(n in text for n in _ours)
    )


def keep_compiled():
    """Makes JAX keep compiled programs on disk for later processes."""
    import jax

    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        jax.config.update("jax_compilation_cache_dir", str(cache() / "jax"))


def shapes_are_costly() -> bool:
    """Returns whether each new shape of a tensor costs a compilation, as on JAX."""
    return keras.backend.backend() == "jax"


def length_with_room(length: int, most: int) -> int:
    """Returns the next of a few lengths, 2^n or 3 · 2^n, at most the longest known."""
    power = SHORTEST
    while power < length:
        power *= 2
    middle = 3 * power // 4
    room = middle if SHORTEST < power and length <= middle else power
    return max(length, min(room, most))


def with_room(ids, most: int):
    """Returns ids `(batch, length)`, padded to a length that is one of a few."""
    room = length_with_room(ids.shape[1], most) - ids.shape[1]
    return ops.pad(ids, ((0, 0), (0, room))) if room else ids


def more_room(tokens: int, most: int, costly: bool) -> int:
    """Returns how many more tokens there should be room for, after these.

    It is a share of those that there are, so that a long sentence is not copied too
    often: a half where each shape is costly, else an eighth, because every step passes
    over the room. At first there is more, so that a short sentence needs one graph.

    >>> more_room(100, 2048, costly=False)
    12
    """
    least = FIRST_ROOM if costly or not tokens else MORE_ROOM
    share = 2 if costly else 8
    return min(max(least, tokens // share), most - tokens)
