import inspect
import re
import tempfile
from functools import partial

import keras
import numpy as np
import pytest
from keras.src import testing
from variants import BEFORE, NORMS

from reprt import layers
from reprt.layers.embedding_norms import EMBEDDING_NORMS
from reprt.layers.positions import POSITIONS
from reprt.models import parts
from reprt.models.presets import preset

STATES = np.linspace(-1, 1, 2 * 5 * 8, dtype="float32").reshape(2, 5, 8)
MEMORY = np.linspace(1, -1, 2 * 6 * 8, dtype="float32").reshape(2, 6, 8)
TOKENS, MEMORY_TOKENS = STATES[..., :4], MEMORY[..., :4]
IDS = np.array([[2, 5, 6, 3, 0], [2, 7, 3, 0, 0]], dtype="int32")
MASK = IDS != 0
MEMORY_MASK = np.ones((2, 6), dtype=bool)
NUMBERS = {"relative": 1, "untied": 2}  # of weights
SIZES = {"num_heads": 2, "key_dim": 3, "feed_forward_dim": 16, "value_dim": 5}
ATTENTION = {"num_heads": 2, "key_dim": 3, "value_dim": 5, "dropout": 0.1}


def embedding(**options):
    return layers.TokenAndPositionEmbedding(
        9,
        4,
        positional=layers.ConcatPositional(dtype=options.get("dtype")),
        token_norm=layers.TokenNorm("prefix", dtype=options.get("dtype")),
        scale="inverse_sqrt",
        dropout=0.1,
        token_dropout=0.1,
        **options,
    )


def positional(method, /, **options):
    """A method of positions as an encoder has it."""
    config = preset("repe", num_heads=2, key_dim=4, position=method)
    return parts.position(config, "encoder", **options)


def make_attention(method, /, **options):
    position = positional(method, dtype=options.get("dtype"))
    return layers.PMHA(
        **{**ATTENTION, "key_dim": 4}, position=position, **options
    )


def norm_case(settings):
    """A norm of embeddings as a decoder has it, and masked if it sees ahead."""
    config = preset("repe", epsilon=1e-5, **settings)
    norm = EMBEDDING_NORMS[config.embedding_norm]

    def make(**options):
        return parts.embedding_norm(config, "decoder", **options)

    layer = make()
    layer.build(STATES.shape)
    call = {} if layer.causal else {"mask": MASK}
    name = f"{norm.__name__}, {config.decoder_statistics}"
    return name, (make, (STATES,), [(2, 5, 8)], len(layer.weights), call)


def make_case(make, *inputs, weights, shapes=((2, 5, 8),), **call):
    return make, inputs, list(shapes), weights, call


def call_layer(layer, inputs, **call):
    """What a layer returns of its inputs: the first by place, the others by name."""
    names = [*inspect.signature(layer.call).parameters]
    keywords = dict(zip(names[1:], inputs[1:]))
    return layer(inputs[0], **keywords, **call)


PMHA = partial(layers.PMHA, **ATTENTION)
SELF_INPUTS = (STATES, STATES, TOKENS)
CROSS_INPUTS = (STATES, MEMORY, MEMORY_TOKENS)
CASES = {
    **dict(
        norm_case(settings)
        for settings in NORMS.values()
        if settings["embedding_norm"] != "none"
    ),
    "AddPositional": make_case(
        partial(layers.AddPositional, "paper", 50), STATES, weights=0
    ),
    "ConcatPositional": make_case(
        partial(layers.ConcatPositional, "paper", 50),
        STATES,
        weights=0,
        shapes=[(2, 5, 16)],
    ),
    "Positional": make_case(layers.Positional, STATES, weights=0),
    **{
        f"{POSITIONS[name].__name__}, in PMHA": make_case(
            partial(make_attention, name),
            *SELF_INPUTS,
            weights=8 + NUMBERS.get(name, 0),
            key_mask=MASK,
        )
        for name, method in POSITIONS.items()
        if not method.on_entry
    },
    "PMHA": make_case(PMHA, *SELF_INPUTS, weights=8),
    "PMHA, queries and keys normed": make_case(
        partial(PMHA, query_key_norm=True), *SELF_INPUTS, weights=9
    ),
    "PMMHA": make_case(
        partial(layers.PMMHA, **ATTENTION),
        *SELF_INPUTS,
        weights=8,
        attention_mask=np.ones((1, 5, 5), dtype=bool),
    ),
    "PMHCA": make_case(
        partial(layers.PMHCA, **ATTENTION),
        *CROSS_INPUTS,
        weights=8,
        key_mask=MEMORY_MASK,
    ),
    "FeedForward": make_case(
        partial(layers.FeedForward, 16, dropout=0.1), STATES, weights=4
    ),
    "TokenAndPositionEmbedding": make_case(
        embedding, IDS, weights=1, shapes=[(2, 5, 4), (2, 5, 8)]
    ),
    "EncoderBlock": make_case(
        partial(layers.EncoderBlock, **SIZES, dropout=0.1),
        STATES,
        TOKENS,
        weights=16,
    ),
    "Encoder": make_case(
        partial(layers.Encoder, 2, **SIZES, **BEFORE, final_norm=True),
        STATES,
        weights=34,
        padding_mask=MASK,
    ),
    "DecoderBlock": make_case(
        partial(layers.DecoderBlock, **SIZES),
        *(STATES, MEMORY, TOKENS, MEMORY_TOKENS),
        weights=26,
    ),
    "Decoder": make_case(
        partial(layers.Decoder, 2, **SIZES),
        STATES,
        MEMORY,
        weights=52,
        padding_mask=MASK,
        memory_padding_mask=MEMORY_MASK,
    ),
    "Decoder, without a memory": make_case(
        partial(
            layers.Decoder,
            1,
            **SIZES,
            dropout=0.1,
            dropout_places=["attention_output"],
        ),
        STATES,
        weights=16,
    ),
}


def _check_by_keras(make, inputs, output_shapes, weights, call):
    """What Keras asks of its own layers: config, shapes, weights, mixed precision."""
    names = inspect.signature(make().build).parameters
    shapes = {name: array.shape for name, array in zip(names, inputs)}
    dtypes = {name: array.dtype.name for name, array in zip(names, inputs)}
    if len(inputs) == 1:
        (shapes,), (dtypes,) = shapes.values(), dtypes.values()
    testing.TestCase().run_layer_test(
        make,
        init_kwargs={"name": "given_name"},
        input_shape=shapes,
        input_dtype=dtypes,
        call_kwargs=call,
        expected_output_shape=(
            output_shapes[0]
            if len(output_shapes) == 1
            else tuple(output_shapes)
        ),
        expected_num_trainable_weights=weights,
        expected_num_non_trainable_weights=0,
        # It trains on one input, without masks; the next check trains on all.
        run_training_check=False,
    )
    layer = make()
    serialized = keras.saving.serialize_keras_object(layer)
    assert serialized["registered_name"] == f"reprt>{serialized['class_name']}"
    # What can be asked for is in the config; else a model would come back without it.
    named_kinds = (
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    )
    for kind in type(layer).__mro__:
        if kind.__module__.startswith("reprt") and "__init__" in vars(kind):
            parameters = inspect.signature(kind.__init__).parameters.values()
            names = {
                parameter.name
                for parameter in parameters
                if parameter.kind in named_kinds
            }
            assert names - {"self"} <= layer.get_config().keys()


def _check_compiled_step(make, inputs, call):
    """One step of `fit`, compiled by XLA, which finds Python that needs values."""

    class Wrapper(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = make()
            self.scale = self.add_weight(shape=(), initializer="ones")

        def call(self, arrays):
            outputs = keras.tree.flatten(call_layer(self.layer, arrays, **call))
            means = [keras.ops.mean(output, axis=(1, 2)) for output in outputs]
            return self.scale * sum(means)

    model = Wrapper()
    model.compile("sgd", "mse", jit_compile=True)
    arrays = [np.asarray(array) for array in inputs]
    history = model.fit(arrays, np.ones(len(arrays[0])), verbose=0)
    assert np.isfinite(history.history["loss"]).all()


def _check_saving(make, inputs, call):
    arguments = [
        keras.Input(array.shape[1:], dtype=np.asarray(array).dtype.name)
        for array in inputs
    ]
    model = keras.Model(arguments, call_layer(make(), arguments, **call))
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        loaded_model = keras.saving.load_model(f"{folder}/model.keras")
    for expected, outputs in zip(
        keras.tree.flatten(model(list(inputs))),
        keras.tree.flatten(loaded_model(list(inputs))),
        strict=True,
    ):
        np.testing.assert_array_equal(expected, outputs)


def _check_policy(make, inputs, call, policy):
    layer = make(dtype=policy)
    outputs = keras.tree.flatten(call_layer(layer, inputs, **call))
    for output in outputs:
        dtype = keras.backend.standardize_dtype(output.dtype)
        assert dtype == layer.compute_dtype
        assert np.isfinite(np.asarray(output, dtype="float32")).all()
    assert all(weight.dtype == "float32" for weight in layer.weights)
    for sublayer in layer._flatten_layers():
        assert sublayer.dtype_policy.name == policy, sublayer.name


@pytest.mark.parametrize("name", CASES)
def test_layer_keeps_the_contract(name):
    make, inputs, output_shapes, weights, call = CASES[name]
    _check_by_keras(make, inputs, output_shapes, weights, call)
    _check_compiled_step(make, inputs, call)
    _check_saving(make, inputs, call)
    for policy in ("float32", "mixed_bfloat16", "mixed_float16"):
        _check_policy(make, inputs, call, policy)


PUBLIC_LAYERS = [
    name
    for name in layers.__all__
    if isinstance(getattr(layers, name), type)
    and issubclass(getattr(layers, name), keras.layers.Layer)
]


def section(kind, title):
    """The arguments that a docstring's own section names, in their order."""
    _, separator, rest = inspect.getdoc(kind).partition(f"\n{title}:\n")
    assert separator, f"{kind.__name__} has no {title}"
    arguments = []
    for line in rest.split("\n\n")[0].splitlines():
        if re.match(r"    \S", line):
            names, _, _ = line.partition(":")
            arguments += [name.strip() for name in names.split(",")]
    return arguments


@pytest.mark.parametrize("name", PUBLIC_LAYERS)
def test_each_argument_is_told_where_it_is_asked_for(name):
    kind = getattr(layers, name)
    functions = {"Args": kind.__init__, "Call arguments": kind.call}
    if issubclass(kind, layers.Positional) and not kind.on_entry:
        # Attention calls its other hooks.
        del functions["Call arguments"]
    for title, function in functions.items():
        parameters = {*inspect.signature(function).parameters} - {"self"}
        names = {name.strip("*") for name in section(kind, title)}
        # Cross attention alone has queries elsewhere than keys.
        assert parameters - names <= (
            {"query_layout"} if name == "PMMHA" else set()
        )
        assert names <= parameters


def test_every_public_layer_is_held_against_the_contract():
    assert set(PUBLIC_LAYERS) == {name.partition(",")[0] for name in CASES}
