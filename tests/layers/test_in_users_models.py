"""Layers that are given to others come back from files with the models around them."""

import keras
import numpy as np
import pytest
from tiny import TINY

from reprt import layers
from reprt.analysis.evaluation import prefix_loss, teacher_forced_loss
from reprt.data.encoding import EncodedSplit
from reprt.layers.positions import POSITIONS
from reprt.models import build

IDS = np.array([[2, 5, 6, 3, 0], [2, 7, 3, 0, 0]], dtype="int32")
POSITIONAL = {
    "none": lambda: None,
    "added": layers.AddPositional,
    "learned": lambda: layers.AddPositional("learned", 16),
    "beside, learned": lambda: layers.ConcatPositional("learned", 16),
}
NORMS = {
    "none": lambda: None,
    "tokens": layers.TokenNorm,
    "rms": layers.RMSNorm,
}


class FadingPositional(layers.Positional):
    def __init__(self, *, rate=0.1, slope=2, dropout=0.0, dtype=None, **kwargs):
        super().__init__(dtype=dtype, **kwargs)
        self.rate, self._slope, self.kwargs = rate, slope, kwargs
        self.dropout = keras.layers.Dropout(dropout)  # in its argument's place


def test_arguments_that_have_only_names_or_are_kept_under_others_come_back():
    layer = FadingPositional(
        rate=0.7, slope=3, dropout=0.4, dtype="mixed_bfloat16"
    )
    config = layer.get_config()
    copy = FadingPositional.from_config(config)
    assert (copy.rate, copy._slope) == (0.7, 3) and "kwargs" not in config
    assert copy.dropout.rate == 0.4 and copy.compute_dtype == "bfloat16"


class DistancePositional(layers.Positional):
    def bias(self, queries, keys):
        distances = abs(queries[:, None, :, None] - keys[:, None, None])
        return keras.ops.cast(distances, self.compute_dtype)


def test_a_method_of_ones_own_acts_where_its_hooks_are(monkeypatch):
    monkeypatch.setitem(POSITIONS, "half", DistancePositional)
    model = build("repe-causal", 9, 9, **TINY, position="half")
    assert isinstance(
        model.encoder.blocks[0].self_attention.position, DistancePositional
    )


class PreviousPositional(layers.Positional):
    """Adds half of the token before to each token."""

    def call(self, x, offset=0, mask=None):
        return x + keras.ops.pad(x[:, :-1], ((0, 0), (1, 0), (0, 0))) / 2


@pytest.mark.parametrize("name", ["repe-causal", "decoder-only"])
def test_positions_that_look_back_are_decoded_without_a_cache(
    name, monkeypatch
):
    monkeypatch.setitem(POSITIONS, "half", PreviousPositional)
    model = build(name, 9, 9, **TINY, position="half", dropout=0.0)
    assert not model.looks_ahead
    split = EncodedSplit([IDS[0, :4], IDS[1, :3]], [IDS[0, :4], IDS[1, :3]])
    losses = teacher_forced_loss(model, split), prefix_loss(model, split)
    assert losses[0].total == pytest.approx(losses[1].total, rel=1e-5)


class WideningPositional(layers.Positional):
    def call(self, x, offset=0, mask=None):
        return keras.ops.concatenate([x, x[..., :4]], axis=-1)


def test_states_that_ones_own_positions_widen_are_known_to_be_so():
    embedding = layers.TokenAndPositionEmbedding(9, 8, WideningPositional())
    assert embedding(keras.Input((None,), dtype="int32"))[1].shape == (
        None,
        None,
        12,
    )


def test_a_bias_in_half_precision_joins_the_scores():
    half = {"dtype": "mixed_bfloat16"}
    attention = layers.PMHA(2, 4, position=DistancePositional(**half), **half)
    states = np.ones((1, 3, 8), "float32")
    assert attention(states, key=states).dtype == "bfloat16"


def test_positions_on_entry_are_refused_within_attention():
    with pytest.raises(
        ValueError, match="ConcatPositional, which acts on tokens"
    ):
        layers.PMHA(2, 4, position=layers.ConcatPositional())


def make_functional(positional, norm, is_shared):
    """Three embeddings of their own parts, or of the same."""
    positional, norm = POSITIONAL[positional], NORMS[norm]
    ids, outputs = [], []
    parts = [positional(), norm(), None]
    for _ in range(3):
        ids.append(keras.Input((None,), dtype="int32"))
        layer = layers.TokenAndPositionEmbedding(
            9, 4, *parts[:2], embedding=parts[2]
        )
        outputs += layer(ids[-1])
        parts = [positional(), norm(), None]
        if is_shared:
            parts = [layer.positional, layer.token_norm, layer.embedding]
    return keras.Model(ids, outputs)


def check_file(model, inputs, path, weights):
    assert len(model.weights) == weights
    generator = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(generator.normal(size=weight.shape))
    for _ in range(2):  # what came back comes back again
        model.save(path)
        expected, model = model(inputs), keras.saving.load_model(path)
        assert len(model.weights) == weights
        outputs = keras.tree.flatten(expected)
        loaded_outputs = keras.tree.flatten(model(inputs))
        for output, loaded_output in zip(outputs, loaded_outputs, strict=True):
            np.testing.assert_array_equal(output, loaded_output)


@pytest.mark.parametrize(
    "positional, norm",
    [
        ("none", "none"),
        ("added", "tokens"),
        ("learned", "rms"),
        ("beside, learned", "none"),
    ],
)
def test_embeddings_come_back_with_what_they_were_given(
    positional, norm, tmp_path
):
    path = tmp_path / "model.keras"
    has_table, has_gains = "learned" in positional, norm == "rms"
    count = 1 + has_table + has_gains
    check_file(
        make_functional(positional, norm, is_shared=True),
        [IDS] * 3,
        path,
        count,
    )
    check_file(
        make_functional(positional, norm, is_shared=False),
        [IDS] * 3,
        path,
        3 * count,
    )


def test_a_table_that_makes_the_logits_as_well_comes_back(tmp_path):
    table = keras.layers.ReversibleEmbedding(9, 4)
    embedding = layers.TokenAndPositionEmbedding(9, 4, None, embedding=table)
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, table(embedding(ids)[1], reverse=True))
    check_file(model, IDS, tmp_path / "model.keras", 1)
    with pytest.raises(
        ValueError, match=r"`embedding_dim`. Received: \(9, 4\)"
    ):
        layers.TokenAndPositionEmbedding(9, 8, None, embedding=table)


def test_an_embedding_normalises_by_the_real_tokens():
    embedding = layers.TokenAndPositionEmbedding(
        9, 4, None, token_norm=layers.TokenNorm()
    )
    padded_states, states = (
        embedding(np.array([ids]))[0] for ids in ([2, 5, 3, 0], [2, 5, 3])
    )
    np.testing.assert_allclose(padded_states[:, :3], states, rtol=1e-5)


@keras.saving.register_keras_serializable(package="tests")
class MaskedModel(keras.Model):
    """A user's own model that is called on states and their mask."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.block = layers.EncoderBlock(
            num_heads=2, key_dim=3, feed_forward_dim=8
        )

    def call(self, inputs):
        states, mask = inputs
        return self.block(states, padding_mask=mask)


def test_a_model_that_takes_a_mask_comes_back(tmp_path):
    states = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    model = MaskedModel()
    model((states, IDS != 0))
    check_file(model, (states, IDS != 0), tmp_path / "model.keras", 16)
    time_distributed = keras.layers.TimeDistributed(model.block)
    assert time_distributed(keras.Input((3, 5, 4))).shape == (None, 3, 5, 4)
