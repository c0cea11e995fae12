"""A decoder alone goes through every command, with one vocabulary and its tags."""

import json

import eager
import pytest
import tensorflow as tf
import tiny_run

from reprt.decoding import beam_search
from reprt_command import main

TAGGED = """
[vocabulary]
name = "bpe"
shared = true
tags = true
"""
RECIPE = f"""
{tiny_run.TABLES.replace("[vocabulary]", TAGGED)}
[objective]
name = "translation_and_source"
label_smoothing = 0.1

[models.alone]
preset = "decoder-only"
{tiny_run.MODEL}
"""


@pytest.mark.long
def test_it_is_trained_searched_evaluated_shown_and_exported(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(beam_search, "EXTRA_TOKENS", 2)
    tiny_run.write_corpus(tmp_path, train=33, dev=3, test=1)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    with eager.training():
        briefly = "--set", "training.epochs=1", "--set", "training.bleu=false"
        assert main(["train", *tiny_run.arguments(tmp_path, *briefly)]) == 0
    run = tmp_path / "out" / "alone"
    metrics = json.loads((run / "metrics.json").read_text())
    loss = metrics["last_epoch"]["val_loss_per_token"]

    assert main(["evaluate", str(run), "--split", "dev"]) == 0
    found = json.loads((run / "evaluation-dev.json").read_text())
    for kind in ("teacher_forced", "prefix"):
        assert found[kind]["per_token"] == pytest.approx(loss, rel=1e-5)
    assert main(["audit", str(run)]) == 0
    capsys.readouterr()
    assert main(["attention", str(run), "a casa"]) == 0
    translated = capsys.readouterr().out.splitlines()[0]
    assert '"sequence":[[[' in (run / "attention.html").read_text()

    assert main(["export", str(run)]) == 0
    exported = tf.saved_model.load(str(run / "export" / "saved_model"))
    assert exported(tf.constant(["a casa"]))[0].numpy().decode() == translated
