"""Everything public is saved and comes back in a fresh process."""

import itertools

import h5py
import keras
import numpy as np
import pytest
from elsewhere import python
from variants import COMPARED, FAMILY

from reprt.losses import MaskedCrossentropy
from reprt.metrics import TokenAccuracy
from reprt.schedules import WarmupSchedule

OTHER_VARIANTS = [
    (
        "decoder-only",
        {"table": "learned", "norm_place": "after", "max_length": 6},
    ),
    ("recurrent", {"attention": "multiplicative"}),
]
# Nothing but the import, and no custom_objects.
LOAD = """
import sys
import keras, numpy as np, reprt
folder, names = sys.argv[1], sys.argv[2:]
arrays = np.load(f"{folder}/arrays.npz")
inputs = (arrays["source"], arrays["target"])
for name in names:
    model = keras.saving.load_model(f"{folder}/{name}.keras")
    np.testing.assert_array_equal(model(inputs), arrays[name])
    assert int(model.optimizer.iterations) == 1
    model.run_eagerly = True
    model.fit(inputs, arrays["target"], verbose=0)
    assert type(model.loss).__name__ == "MaskedCrossentropy"
print(*names)
"""


@pytest.mark.long
def test_models_come_back_in_a_fresh_process(make_model, ids, tmp_path):
    variants = {
        name: make_model(preset, blocks=2, **overrides)
        for name, (preset, overrides, training) in COMPARED.items()
        if not training
    }
    arrays = dict(zip(("source", "target"), ids))
    for name, model in variants.items():
        model.compile(
            keras.optimizers.Adam(WarmupSchedule(8, warmup_steps=10)),
            MaskedCrossentropy(),
            metrics=[TokenAccuracy()],
            run_eagerly=True,
        )
        model.fit(ids, ids[1], verbose=0)
        model.save(tmp_path / f"{name}.keras")
        arrays[name] = np.asarray(model(ids))
    np.savez(tmp_path / "arrays.npz", **arrays)
    assert python(LOAD, tmp_path, *variants).split() == [*variants]


@pytest.mark.parametrize("name, overrides", [*FAMILY.values(), *OTHER_VARIANTS])
def test_every_variant_comes_back(name, overrides, make_model, ids, tmp_path):
    model = make_model(name, blocks=2, **overrides)
    model.save(tmp_path / "model.keras")
    loaded_model = keras.saving.load_model(tmp_path / "model.keras")
    # Once more, as for a summary.
    loaded_model.build(((None, None), (None, None)))
    assert loaded_model.config == model.config
    np.testing.assert_array_equal(loaded_model(ids), model(ids))


@pytest.mark.long
def test_a_model_is_not_quantised_in_place_nor_within_another(make_model, ids):
    model = make_model("repe")
    inputs = [keras.Input((None,), dtype="int32") for _ in range(2)]
    outer_model = keras.Model(inputs, model(tuple(inputs)))
    with pytest.raises(
        ValueError, match="'repe' to keep .*Received: quantize.'int8'"
    ):
        model.quantize("int8")
    with (
        pytest.warns(UserWarning),
        pytest.raises(ValueError, match="'repe' to keep"),
    ):
        outer_model.quantize("int8")
        outer_model(list(ids))


def test_weights_are_saved_where_older_files_have_them(make_model, tmp_path):
    make_model("repe", blocks=2).save_weights(tmp_path / "model.weights.h5")
    paths: list[str] = []
    with h5py.File(tmp_path / "model.weights.h5") as file:
        file.visit(paths.append)
    saved_paths = {
        path.removesuffix("/vars/0")
        for path in paths
        if path.endswith("/vars/0")
    }
    attention = ("query_dense", "key_dense", "value_dense", "output_dense")
    norms = {
        "encoder": ("attention_norm",),
        "decoder": ("self_norm", "cross_norm"),
    }
    attentions = {"encoder": ("self_attention",)}
    attentions["decoder"] = ("self_attention", "cross_attention")
    block_paths = set()
    for side, number in itertools.product(norms, ("", "_1")):
        block = f"{side}/blocks/{side}_block{number}"
        layers = [
            "feed_forward/hidden",
            "feed_forward/output_dense",
            "feed_forward_norm",
            *norms[side],
        ]
        for layer, dense in itertools.product(attentions[side], attention):
            layers.append(f"{layer}/{dense}")
        block_paths |= {f"{block}/{layer}" for layer in layers}
    embedding = "layers/token_and_position_embedding"
    tables = {f"{embedding}/embedding", f"{embedding}_1/embedding"}
    assert saved_paths == block_paths | tables | {"layers/dense"}
