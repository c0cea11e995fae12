"""Ids in rows of unequal lengths, and ids that no vocabulary has."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from tiny import LABELS, SOURCE, TARGET

from reprt.constants import END_ID, RESERVED, START_ID
from reprt.data.tokenizers.bpe import BPE, learn_model
from reprt.data.tokenizers.wordpiece import WordPiece
from reprt.decoding.beam_search import BeamSearch
from reprt.layers import AddPositional, TokenAndPositionEmbedding, padding_mask
from reprt.losses import MaskedCrossentropy
from reprt.models import build
from reprt.models.presets import preset
from reprt.models.registry import make

LISTS = [[2, 5, 3], [2, 3]]
UNEQUAL_ROWS = [LISTS, tf.ragged.constant(LISTS, dtype="int32")]


@pytest.fixture(scope="module")
def model():
    sizes = {"num_blocks": 1, "embedding_dim": 8, "feed_forward_dim": 8}
    model = build("repe", 10, 10, num_heads=1, key_dim=4, value_dim=4, **sizes)
    model.compile("adam", MaskedCrossentropy())
    return model


CALLS = {
    "call": lambda model, source, target, labels: model((source, target)),
    "predict": lambda model, source, target, labels: model.predict(
        (source, target)
    ),
    "fit": lambda model, source, target, labels: model.fit(
        (source, target), labels
    ),
    "evaluate": lambda model, source, target, labels: model.evaluate(
        (source, target), labels
    ),
    "search": lambda model, source, *_: BeamSearch(model, START_ID, END_ID)(
        source
    ),
    "embedding": lambda model, source, *_: model.source_embedding(
        source if hasattr(source, "shape") else padding_mask(source)
    ),
    "mask": lambda model, source, *_: padding_mask(source),
}


@pytest.mark.parametrize("ids", UNEQUAL_ROWS, ids=["lists", "ragged"])
@pytest.mark.parametrize("call", CALLS)
def test_rows_of_unequal_lengths_are_told_and_how_to_pad_them(call, ids, model):
    with pytest.raises(ValueError, match="unequal lengths.*to_tensor"):
        CALLS[call](model, ids, ids, ids)


def test_labels_of_unequal_lengths_are_told():
    with pytest.raises(ValueError, match="unequal lengths.*to_tensor"):
        MaskedCrossentropy()(UNEQUAL_ROWS[1], np.zeros((2, 3, 10)))


def test_nested_lists_of_equal_lengths_are_ids(model):
    logits = model((SOURCE.tolist(), TARGET.tolist()))
    np.testing.assert_allclose(logits, model((SOURCE, TARGET)), atol=1e-6)
    mixed = model((SOURCE, TARGET.tolist()))
    np.testing.assert_allclose(mixed, logits, atol=1e-6)
    predicted = model.predict((SOURCE.tolist(), TARGET.tolist()), verbose=0)
    np.testing.assert_allclose(predicted, logits, atol=1e-5)
    lists = (SOURCE.tolist(), TARGET.tolist()), LABELS.tolist()
    assert model.evaluate(*lists, verbose=0) > 0


@pytest.mark.parametrize("count", [0, 3])
def test_another_number_of_inputs_is_told(count, model):
    message = f"pair .source_ids, target_ids.* Received: {count} inputs."
    with pytest.raises(ValueError, match=message):
        model((SOURCE,) * count)


@pytest.mark.parametrize("number", [10, -1])
@pytest.mark.parametrize(
    "call", ["call", "predict", "fit", "evaluate", "search"]
)
def test_an_id_beyond_the_vocabulary_is_told_with_its_size(call, number, model):
    source = np.where(SOURCE == 9, number, SOURCE)
    with pytest.raises(
        ValueError, match=f"vocabulary has 10. Received: {number}."
    ):
        CALLS[call](model, source, TARGET, LABELS)


def test_labels_beyond_the_vocabulary_are_told_and_those_below_0_are_padding(
    model,
):
    with pytest.raises(ValueError, match="`labels` .*has 10. Received: 13."):
        model.evaluate((SOURCE, TARGET), LABELS + 5)
    for labels in ((LABELS + 5).tolist(), ops.convert_to_tensor(LABELS + 5)):
        with pytest.raises(ValueError, match="`labels` .*Received: 13."):
            model.fit((SOURCE, TARGET), labels)
    with pytest.raises(ValueError, match="`labels` .*Received: 13."):
        inputs = SOURCE.tolist(), TARGET.tolist()
        validation = inputs, (LABELS + 5).tolist()
        model.fit((SOURCE, TARGET), LABELS, validation_data=validation)
    padded_labels = np.where(LABELS == 0, -100, LABELS)
    losses = [
        model.evaluate((SOURCE, TARGET), labels, verbose=0)
        for labels in (LABELS, padded_labels)
    ]
    assert losses[0] == pytest.approx(losses[1])


@pytest.mark.parametrize("number", [20, -1])
def test_ids_without_a_piece_are_told(number):
    tokenizers = WordPiece([*RESERVED, "a"]), BPE(learn_model(["a casa"], 12))
    for tokenizer in tokenizers:
        for read in (lambda ids: tokenizer.decode([ids]), tokenizer.pieces):
            message = f"has {len(tokenizer)} pieces. Received: {number}."
            with pytest.raises(ValueError, match=message):
                read([4, number])


@pytest.mark.parametrize(
    "name, settings, message",
    [
        ("RePE", {}, "The nearest is 'repe'"),
        ("repe_causal", {}, "The nearest is 'repe-causal'"),
        ("Transformer-Base", {}, "The nearest is 'transformer-base'"),
        ("repe", {"num_layers": 2}, "nearest known one is 'num_blocks'"),
        ("recurrent", {"num_blocks": 2}, "nearest known one is 'num_layers'"),
        ("repe", {"d_model": 8}, "nearest known one is 'embedding_dim'"),
        ("repe", {"dropout_rate": 0.1}, "nearest known one is 'dropout'"),
        ("repe", {"NUM_HEADS": 8}, "nearest known one is 'num_heads'"),
        ("repe", {"position": "Concat"}, "'concat'"),
    ],
)
def test_the_nearest_preset_and_setting_are_named(name, settings, message):
    with pytest.raises(ValueError, match=message):
        build(name, 9, 9, **settings)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_ids_that_a_graph_has_as_floats_stay_themselves(policy):
    # No half precision has all of these numbers. An `Input` is float32 by default.
    array = np.array([[2, 257, 2049, 4001, 3]])
    ids = keras.Input((None,))
    layer = TokenAndPositionEmbedding(5000, 8, AddPositional(), dtype=policy)
    embedding = keras.Model(ids, layer(ids)[1])
    states = embedding.predict(array, verbose=0)
    np.testing.assert_array_equal(states, np.asarray(layer(array)[1]))
    model = make(preset("decoder-only-tiny"), 5000, 5000, dtype=policy)
    floats = array.astype("float32")
    logits = model.predict((floats, floats), verbose=0)
    np.testing.assert_array_equal(
        logits, model.predict((array, array), verbose=0)
    )


def test_weights_of_classes_are_refused(model):
    with pytest.raises(ValueError, match="Give `sample_weight`"):
        model.fit((SOURCE, TARGET), LABELS, class_weight={5: 2.0})
