"""A family that the package does not know goes through all that it offers.

So do the recurrent one, and a decoder-only one with one vocabulary and its tags.
"""

import json

import eager
import pytest
import tensorflow as tf
import tiny_run
import toy_family

from reprt.decoding import beam_search
from reprt.training.trainer import Trainer
from reprt_lab.command import main
from reprt_lab.folder import RunFolder

RECIPE = (
    tiny_run.TABLES
    + """
[models.bag]
preset = "bag"

[models.bag-that-sees-all]
preset = "bag"
sees_all = true
"""
)
RECURRENT = """
[models.family]
preset = "recurrent"
num_layers = 1
embedding_dim = 8
hidden_dim = 6
"""
ONE_SEQUENCE = f"""
[objective]
name = "translation_and_source"
label_smoothing = 0.1

[models.family]
preset = "decoder-only"
{tiny_run.MODEL}
"""
TAGGED_TABLES = tiny_run.TABLES.replace(
    "[vocabulary]", '[vocabulary]\nname = "bpe"\nshared = true\ntags = true'
)


def test_training_and_what_follows_take_a_new_family(
    tmp_path, monkeypatch, capsys
):
    toy_family.register(monkeypatch)
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    tiny_run.write_corpus(tmp_path, train=33, dev=5, test=6)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    command = ["train", *tiny_run.arguments(tmp_path)]
    end_epoch = Trainer._end_epoch

    def interrupt_first_epoch(trainer):
        end_epoch(trainer)
        if trainer.state.epoch == 1:
            raise KeyboardInterrupt

    with eager.training(), monkeypatch.context() as patch:
        # Each model's first epoch ends with an interruption.
        patch.setattr(Trainer, "_end_epoch", interrupt_first_epoch)
        assert [main(command) for _ in range(2)] == [130, 130]
    assert main(command) == 0
    assert "from epoch 2, step 1" in capsys.readouterr().err
    out = tmp_path / "out"
    assert len(RunFolder(out / "bag").manifest().starts) == 3
    assert "| bag-that-sees-all |" in (out / "report.md").read_text()
    assert_complete(out / "bag", tmp_path / "exported", capsys)
    assert main(["audit", str(out / "bag-that-sees-all")]) == 3
    assert main(["attention", str(out / "bag"), "a casa"]) == 2
    assert "'bag', a Bag, has no weights to show" in capsys.readouterr().err


def assert_complete(run, out, capsys):
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["epochs"] == 2 and metrics["test_bleu"] >= 0
    assert main(["translate", str(run), "a casa", "--beam", "2"]) == 0
    *_, translation = capsys.readouterr().out.splitlines()
    assert main(["evaluate", str(run), "--split", "dev"]) == 0
    evaluation = json.loads((run / "evaluation-dev.json").read_text())
    forced_loss, prefix_loss = (
        evaluation[kind]["per_token"] for kind in ("teacher_forced", "prefix")
    )
    assert forced_loss == pytest.approx(prefix_loss, rel=1e-5)
    assert prefix_loss == pytest.approx(
        metrics["val_prefix_loss_per_token"], rel=1e-5
    )

    assert main(["audit", str(run)]) == 0
    assert main(["export", str(run), "--beam", "2", "--out", str(out)]) == 0
    module = tf.saved_model.load(str(out / "saved_model"))
    assert module(tf.constant(["a casa"]))[0].numpy().decode() == translation


@pytest.mark.long
@pytest.mark.parametrize(
    "recipe, weights",
    [
        (tiny_run.TABLES + RECURRENT, "cross"),
        (TAGGED_TABLES + ONE_SEQUENCE, "sequence"),
    ],
    ids=["recurrent", "one sequence"],
)
def test_other_families_go_through_all(
    recipe, weights, tmp_path, monkeypatch, eagerly, capsys
):
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(beam_search, "EXTRA_TOKENS", 2)
    tiny_run.write_corpus(tmp_path, train=33, dev=5, test=6)
    (tmp_path / "tiny.toml").write_text(recipe)
    assert main(["train", *tiny_run.arguments(tmp_path)]) == 0
    run = tmp_path / "out" / "family"
    assert_complete(run, tmp_path / "exported", capsys)
    assert main(["attention", str(run), "a casa"]) == 0
    assert f'"{weights}":[[[' in (run / "attention.html").read_text()
