"""Who looks ahead is found and named, and nobody else is accused."""

import keras
import numpy as np
import pytest
from keras import layers, ops
from tiny import TINY

from reprt import models
from reprt.analysis.lookahead import METHODS, audit
from reprt.layers import (
    AddPositional,
    Decoder,
    TokenAndPositionEmbedding,
    TokenNorm,
)
from reprt.models.presets import preset
from reprt.models.registry import make

VOCAB = 24
SIZES = {"source_vocab_size": VOCAB, "target_vocab_size": VOCAB, "length": 7}


@pytest.fixture(autouse=True)
def random_seed():
    keras.utils.set_random_seed(1)


def attention(looks_ahead, source_length=None, target_length=None):
    """A translation model as a user would write it."""
    source = keras.Input((source_length,), dtype="int32", name="z_source")
    target = keras.Input((target_length,), dtype="int32", name="a_target")
    memory = layers.Embedding(VOCAB, 8, mask_zero=True)(source)
    x = layers.Embedding(VOCAB, 8, mask_zero=True)(target)
    self_attention = layers.MultiHeadAttention(2, 4)
    x = x + self_attention(x, x, use_causal_mask=not looks_ahead)
    x = x + layers.MultiHeadAttention(2, 4)(x, memory)
    x = layers.LayerNormalization()(x)
    return keras.Model([source, target], layers.Dense(VOCAB)(x), name="user")


class CustomModel(keras.Model):
    """Each position sees its own token and the source; subclasses add to that."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(VOCAB, 8, name="embedding")
        self.dense = layers.Dense(VOCAB)

    def call(self, inputs):
        source, target = inputs
        memory = ops.mean(self.embedding(source), axis=1, keepdims=True)
        states = self.states(memory + self.embedding(target))
        return self.logits(states, target)

    def states(self, states):
        return states

    def logits(self, states, target):
        return self.dense(states)


class SubtleModel(CustomModel):
    """Position 5 sees a little of token 6, counted from 1."""

    weight = 1e-3

    def states(self, states):
        length = states.shape[1]
        link = np.zeros((length, length), "float32")
        if length > 5:
            link[4, 5] = self.weight
        return states + ops.matmul(link, states)


class WeaklyMaskedModel(CustomModel):
    """Attention that subtracts too little from the scores of later tokens."""

    def states(self, states):
        scores = ops.matmul(states, ops.transpose(states, (0, 2, 1)))
        mask = np.triu(np.ones(scores.shape[1:], "float32"), 1)
        weights = ops.softmax(scores - 9.0 * mask)
        return states + ops.matmul(weights, states)


class TiedModel(CustomModel):
    """The embedding is the output's weights too, and says where a token stands."""

    def states(self, states):
        # A row of the table for each position, in every sentence of the batch.
        positions = ops.tile(
            ops.arange(states.shape[1]), (ops.shape(states)[0], 1)
        )
        return states + ops.cumsum(self.embedding(positions), axis=1)

    def logits(self, states, target):
        logits = ops.matmul(states, ops.transpose(self.embedding.embeddings))
        return self.dense(ops.log_softmax(logits, axis=-1))


class CountingModel(CustomModel):
    """Sees nothing of later tokens but how many there are."""

    def states(self, states):
        return states * states.shape[1]


class ModelWithoutTables(keras.Model):
    """Looks tokens up by hand, and sees the next one."""

    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(VOCAB)

    def call(self, inputs):
        states = ops.one_hot(inputs[1], VOCAB)
        return self.dense(states + ops.roll(states, -1, axis=1))


def above_diagonal(matrix):
    return matrix[np.triu_indices(len(matrix), 1)]


def test_a_functional_model_may_know_its_vocabularies():
    model = attention(True)
    model.source_vocab_size = model.target_vocab_size = VOCAB
    assert audit(model).looks_ahead


def test_the_published_model_looks_ahead():
    report = audit(models.build("repe", VOCAB, VOCAB, **TINY))
    assert report.looks_ahead
    assert report.first_offending["perturbation"] == ((0, 1), (0, 2), (0, 3))
    dependence = above_diagonal(report.perturbation)
    assert dependence.min() > report.tolerance["perturbation"]
    assert report.first_offending["truncation"] == ((0, 1), (1, 2), (2, 3))
    message = str(report)
    assert "repe looks ahead" in message
    assert "not what search will see" in message
    assert message.count("position 1 depends on token 2") == len(METHODS)
    assert "and 63 more" in message


@pytest.mark.parametrize(
    "name, overrides",
    [("repe", {"decoder_statistics": "prefix"}), ("baseline", {})],
    ids=["repe, prefix", "baseline"],
)
@pytest.mark.parametrize(
    "policy", ["float32", "mixed_float16", "mixed_bfloat16"]
)
def test_models_that_do_not(name, overrides, policy):
    settings = preset(name, **TINY, **overrides)
    model = make(settings, VOCAB, VOCAB, name=name, dtype=policy)
    report = audit(model, length=6)
    assert not report.looks_ahead
    assert report.first_offending == {method: () for method in METHODS}
    assert f"{name} does not look ahead" in str(report)


@pytest.mark.parametrize("looks_ahead", [True, False])
def test_a_users_functional_model(looks_ahead, tmp_path):
    path = tmp_path / "model.keras"
    attention(looks_ahead).save(path)
    model = keras.saving.load_model(path)
    report = audit(model, source_vocab_size=VOCAB)
    assert not report.unavailable and report.looks_ahead == looks_ahead
    first_pairs = {pairs[:1] for pairs in report.first_offending.values()}
    assert first_pairs == {((0, 1),) if looks_ahead else ()}


@pytest.mark.parametrize("length", [None, 9])
@pytest.mark.parametrize("norm", [None, TokenNorm])
def test_a_language_model_has_one_input(norm, length):
    ids = keras.Input((length,), dtype="int32")
    embedding = TokenAndPositionEmbedding(
        20, 8, AddPositional(), norm and norm()
    )
    decoder = Decoder(num_blocks=1, num_heads=2, key_dim=4, feed_forward_dim=8)
    states = decoder(embedding(ids)[1])
    model = keras.Model(ids, layers.Dense(20)(states))
    report = audit(model)
    assert report.looks_ahead == bool(norm)
    assert len(report.perturbation) == (length or 12)


@pytest.mark.parametrize("weight", [1e-3, 1e-1])
def test_one_subtle_link_is_named(weight):
    model = SubtleModel()
    model.weight = weight
    report = audit(model, **SIZES)
    assert report.first_offending["perturbation"] == ((4, 5),)
    assert "position 5 depends on token 6 (by " in str(report)
    if weight > 1e-2:
        assert report.first_offending["truncation"] == ((4, 5),)


@pytest.mark.parametrize("base", [CustomModel, SubtleModel])
@pytest.mark.parametrize("constant", [-1e5, np.finfo("float32").min])
def test_a_mask_on_some_logits_hides_no_dependence(base, constant):
    class ModelWithoutPadding(base):
        def logits(self, states, target):
            mask = constant * (np.arange(VOCAB) == 0)
            return super().logits(states, target) + mask.astype("float32")

    report = audit(ModelWithoutPadding(), **SIZES)
    assert report.largest_logit < 100
    expected = ((4, 5),) if base is SubtleModel else ()
    assert report.first_offending["perturbation"] == expected
    assert report.looks_ahead == bool(expected)


def test_a_mask_that_hides_too_little_is_noticed():
    report = audit(WeaklyMaskedModel(), **SIZES)
    assert report.first_offending["perturbation"]
    assert report.looks_ahead


def test_tables_that_do_more_than_look_tokens_up_accuse_nobody():
    report = audit(TiedModel(), **SIZES)
    assert not report.looks_ahead
    assert not report.unavailable
    assert not above_diagonal(report.perturbation).any()


def test_a_model_that_sees_only_how_much_follows():
    report = audit(CountingModel(), **SIZES)
    assert report.looks_ahead
    assert not report.first_offending["perturbation"]
    assert report.first_offending["truncation"] == ((0, 1), (1, 2), (2, 3))
    assert "position 1 depends on token 2 or later" in str(report)


def test_a_model_without_tables_is_audited():
    report = audit(ModelWithoutTables(), **SIZES)
    # What rolls over the end comes round: position 7 sees token 1, as it may.
    assert report.first_offending["perturbation"] == ((0, 1), (1, 2), (2, 3))


def test_a_model_of_fixed_lengths_is_asked_at_those():
    model = attention(True, source_length=9, target_length=8)
    report = audit(model, source_vocab_size=VOCAB)
    assert report.perturbation.shape == (8, 8)
    assert report.truncation is None
    assert "takes no shorter target (ValueError: Input 1" in str(report)
    assert report.looks_ahead
    with pytest.raises(ValueError, match=r"shapes \(1, 14\) and \(1, 12\)"):
        audit(model, source_vocab_size=VOCAB, length=12)


@pytest.mark.parametrize("name", ["repe", "baseline", "decoder-only"])
def test_a_model_of_short_sentences_is_asked_for_no_longer_ones(name):
    model = models.build(name, VOCAB, VOCAB, **{**TINY, "max_length": 10})
    assert audit(model).looks_ahead == model.looks_ahead


class RandomModel(CustomModel):
    def states(self, states):
        return states + keras.random.normal(states.shape)


def model_of_a_dictionary():
    source = keras.Input((None,), name="a")
    target = keras.Input((None,), name="b")
    states = layers.Embedding(VOCAB, 8)(target)
    logits = layers.Dense(VOCAB)(states)
    return keras.Model({"a": source, "b": target}, logits, name="d")


def model_of_one_input():
    class OneInput(keras.Model):
        def call(self, inputs):
            source, target = inputs[:1]
            return ops.one_hot(target, VOCAB)

    return OneInput()


def model_of_segments():
    ids = keras.Input((12,), name="ids", dtype="int32")
    segments = keras.Input((12,), name="segments", dtype="int32")
    states = layers.Embedding(VOCAB, 8)(ids)
    states = layers.Attention()([states, states])
    states = states + layers.Embedding(VOCAB, 8)(segments)
    return keras.Model([ids, segments], layers.Dense(VOCAB)(states))


def model_of_swapped_inputs():
    model = attention(False)
    return keras.Model(model.inputs[::-1], model.output)


def model_of_zeros():
    model = models.build("baseline", VOCAB, VOCAB, **TINY)
    for weight in model.output_dense.weights:
        weight.assign(ops.zeros_like(weight))
    return model


def model_of_nans():
    model = model_of_zeros()
    model.output_dense.bias.assign(np.full(VOCAB, np.nan))
    return model


@pytest.mark.parametrize(
    "make_model, options, message",
    [
        (
            lambda: "runs/repe",
            {},
            "Expected a Keras model.*'runs/repe', of type str",
        ),
        (model_of_a_dictionary, {}, "Received 'd', which for shapes"),
        # What Keras says in its second line.
        (
            model_of_one_input,
            {},
            r"call\(\). not enough values to unpack.*`call`",
        ),
        # Nothing tells its second input from a target.
        (
            model_of_segments,
            {"vocab_size": VOCAB, "source_vocab_size": None, "length": None},
            "`call` for a language model.*inputs ids and segments",
        ),
        (
            model_of_swapped_inputs,
            {},
            r"shape \(1, 7, vocabulary\).*shape=\(1, 9, 24\)",
        ),
        (RandomModel, {}, "same finite logits.*random"),
        (model_of_nans, {}, "same finite logits.*differ by inf"),
        (model_of_zeros, {}, "depend on the target.*weights of zero"),
        (
            CustomModel,
            {"source_vocab_size": None},
            "`source_vocab_size`.*argument",
        ),
        (
            CustomModel,
            {"precision": "bf16"},
            "`precision` to be one of.*'bfloat16'",
        ),
        (CustomModel, {"length": 2}, "at least 3 tokens.* Received: length=2"),
        (
            CustomModel,
            {"target_vocab_size": 8},
            "one to put in their place.*size=8",
        ),
    ],
)
def test_bad_input_is_named(make_model, options, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        audit(make_model(), **{**SIZES, "target_vocab_size": None, **options})
