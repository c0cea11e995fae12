"""Graphs where the backend has them, and few of them where each is costly."""

import functools
import itertools
import logging
from collections.abc import Callable

import keras

from reprt.files import cache

# The signature of ids.
IDS = ((None, None), "int32")
# The names of the functions that were compiled here.
_compiled_names: set[str] = set()


def compiled(
    function: Callable,
    model,
    signature=None,
    eager_first_call=False,
    jit_compile=False,
) -> Callable:
    """Returns a function of tensors as the backend runs it fastest.

    TensorFlow makes a graph that soon serves every shape. JAX compiles the function for
    each shape. PyTorch runs it as it is, without gradients. Each call uses the values
    that the model's weights have at that time.

    Args:
        signature: shape and dtype of each argument, such as `[IDS]`, if no more is
            known of all calls. It saves TensorFlow extra graphs and warnings.
        eager_first_call: whether TensorFlow runs the first call without a graph, and
            makes the graph at the second: for functions that a short command calls
            once.
        jit_compile: TensorFlow compiles by XLA too, anew for each shape.
    """
    match keras.backend.backend():
        case "tensorflow":
            import tensorflow as tf

            logging.getLogger("tensorflow").addFilter(_is_no_retracing_warning)
            _compiled_names.add(function.__qualname__)
            if signature is not None:
                signature = [tf.TensorSpec(*spec) for spec in signature]
            if jit_compile:
                options = {"jit_compile": True}
            else:
                options = {
                    "input_signature": signature,
                    "reduce_retracing": True,
                }
            graph = _graph_of_present_variables(
                model,
                functools.partial(
                    tf.function, function, autograph=False, **options
                ),
            )
            if jit_compile or not eager_first_call:
                return graph
            calls = itertools.chain([function], itertools.repeat(graph))
            return lambda *arguments: next(calls)(*arguments)
        case "jax":
            import jax

            enable_compilation_cache()

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


def _graph_of_present_variables(model, make_graph) -> Callable:
    """Returns a function that makes a graph anew once the model has other variables.

    A graph of TensorFlow holds the variables of its first call, and LoRA adds some.
    """

    # Its bookkeeping bears several threads.
    @functools.lru_cache(maxsize=1)
    def graph_of(variables):
        return make_graph()

    return lambda *arguments: graph_of(tuple(map(id, model.variables)))(
        *arguments
    )


def _is_no_retracing_warning(record) -> bool:
    """Returns False for the warning that a function compiled here was retraced.

    TensorFlow gives it at the fifth shape, after which one graph serves all.
    """
    text = record.getMessage()
    compiled_here = any(name in text for name in _compiled_names)
    return not ("tf.function retracing" in text and compiled_here)


def enable_compilation_cache():
    """Makes JAX keep compiled programs on disk for later processes."""
    import jax

    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        jax.config.update("jax_compilation_cache_dir", str(cache() / "jax"))
