"""Folders of runs that no training has made."""

import json

import pytest
import tomli_w

from reprt.training.settings import RunSettings
from reprt_lab.folder import RunFolder
from reprt_lab.pages import pictures
from reprt_lab.records import Manifest, Metrics

START = {
    "time": "2026-11-21 14:09:26 +0000",
    "command": "reprt train mine.toml",
    "commit": "0123456789ab",
    "hardware": "a machine",
    "python": "3.11.7",
    "versions": {"keras": "3.15.1", "jax": None},
    "devices": ["CPU:0"],
}
SIZES = {"train": 33, "dev": 10, "test": 4}


@pytest.fixture
def add(tmp_path):
    """A function that writes the folder of a run; returns that of all runs."""

    def add(
        name,
        rows=(),
        metrics=None,
        text="TED-HRLR pt_to_en",
        pair="pt_to_en",
        subfolder=".",
        starts=1,
        **tables,
    ):
        path = tmp_path / subfolder / name
        path.mkdir(parents=True)
        preset = name.partition(".")[0].partition("-")[0]
        tables.setdefault("model", {})
        settings = RunSettings.read(
            {"name": name, "preset": preset, "text": {"pair": pair}, **tables},
            name,
        )
        manifest = Manifest(
            text=text,
            text_sha256=text.encode().hex(),
            source_vocabulary_sha256="s",
            target_vocabulary_sha256="t",
            official_text=text == f"TED-HRLR {pair}",
            sentence_pairs=SIZES,
            looks_ahead=(
                preset == "repe"
                and settings.model.decoder_statistics == "sequence"
            ),
            starts=[START] * starts,
        )
        (path / "config.toml").write_text(tomli_w.dumps(settings.as_table()))
        (path / "manifest.json").write_text(json.dumps(manifest.as_table()))
        folder = RunFolder(path)
        folder.write_log(rows)
        if metrics is not None:
            results = {
                "parameters": 1234567,
                "epochs": len(rows),
                "finished": "now",
            }
            folder.write_metrics(Metrics(**results | metrics))
        return tmp_path

    return add


@pytest.fixture
def figures(monkeypatch):
    """The figures that were saved, which are not drawn, for that takes most time."""
    figures = []
    monkeypatch.setattr(
        pictures, "save_figure", lambda figure, path: figures.append(figure)
    )
    return figures
