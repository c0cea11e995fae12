"""Everything public is saved and comes back in a fresh process."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest

from reprt.losses import MaskedCrossentropy
from reprt.metrics import TokenAccuracy
from reprt.schedules import WarmupSchedule

# Nothing but the import, and no custom_objects.
LOAD = """
import json, sys
import keras, numpy as np, reprt
folder, names = sys.argv[1], sys.argv[2:]
arrays = np.load(f"{folder}/arrays.npz")
inputs = (arrays["source"], arrays["target"])
for name in names:
    model = keras.saving.load_model(f"{folder}/{name}.keras")
    np.testing.assert_array_equal(model(inputs), arrays[name])
    assert int(model.optimizer.iterations) == 2
    model.fit(inputs, arrays["target"], verbose=0)
    assert type(model.loss).__name__ == "MaskedCrossentropy"
print(json.dumps(sorted(names)))
"""


@pytest.mark.slow
def test_models_come_back_in_a_fresh_process(tiny, ids, tmp_path):
    variants = {
        "repe": tiny("repe"),
        "baseline": tiny("baseline"),
        "prefix": tiny("repe", decoder_statistics="prefix"),
    }
    arrays = dict(zip(("source", "target"), ids))
    for name, model in variants.items():
        model.compile(
            keras.optimizers.Adam(WarmupSchedule(8, warmup_steps=10)),
            MaskedCrossentropy(),
            metrics=[TokenAccuracy()],
        )
        model.fit(ids, ids[1], epochs=2, verbose=0)
        model.save(tmp_path / f"{name}.keras")
        arrays[name] = np.asarray(model(ids))
    np.savez(tmp_path / "arrays.npz", **arrays)
    finished = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path), *variants],
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout.splitlines()[-1]) == sorted(variants)


@pytest.mark.parametrize(
    "thing", [MaskedCrossentropy(), TokenAccuracy(), WarmupSchedule(64, 300)]
)
def test_losses_metrics_and_schedules_round_trip(thing):
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(thing)))
    assert config["registered_name"] == f"reprt>{type(thing).__name__}"
    again = keras.saving.deserialize_keras_object(config)
    assert again.get_config() == thing.get_config()
