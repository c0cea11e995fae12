import json
import re
import types
from pathlib import Path

import numpy as np
import pytest
import tiny
import tiny_run
import toy_family
from tiny import Lines, settings

from reprt.data.tokenizers.wordpiece import WordPieceSettings
from reprt.training.trainer import Trainer
from reprt_lab import train
from reprt_lab.command import main
from reprt_lab.folder import RunFolder

TABLES = tiny_run.TABLES.replace("size = 33", "size = 4")
RECIPE = (
    TABLES.replace("epochs = 2", "epochs = 1")
    + """
[text]
max_tokens = 24
[trials]
seeds = [0, 1]
[models.repe]
preset = "bag"
[models.diverges]
preset = "bag"
schedule.warmup_steps = 1
"""
)


@pytest.mark.usefixtures("briefly", "in_process")
def test_two_files_become_a_translator(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    corpus = tiny.corpus(train=60)
    paths = [str(tmp_path / name) for name in ("corpus.pt", "corpus.en")]
    for path, side in zip(paths, (corpus.train.source, corpus.train.target)):
        Path(path).write_text("\n".join(side) + "\n", "utf-8")
    sizes = [f"model.{name}={size}" for name, size in tiny.TINY.items()]
    changes = ["training.steps=2", "schedule.warmup_steps=1", *sizes]
    overrides = [f"--set={change}" for change in changes]
    command = ["train", "translate", "--train", *paths, *overrides]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    assert "Settings: those of [small_text]" in capsys.readouterr().err
    run = RunFolder(tmp_path / "out" / "repe-causal").settings()
    assert run.model.dropout == 0.2 and run.training.validate_every == 100
    assert run.text.pair == "pt_to_en" and run.vocabulary.name == "bpe"
    assert "corpus.pt" in (tmp_path / "out" / "translation.md").read_text()


def read_page(folder):
    return re.sub(" +", " ", (folder / "comparison.md").read_text())


@pytest.mark.long
@pytest.mark.usefixtures("briefly", "in_process")
def test_trials_are_trained_and_compared(tmp_path, monkeypatch, capsys):
    # Its arithmetic takes no time.
    toy_family.register(monkeypatch)
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    tiny_run.write_corpus(tmp_path, train=12, dev=6, test=5)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    train_normally = Trainer.train_epoch

    def train_epoch(self, *arguments):
        if self.name.startswith("diverges"):
            raise ArithmeticError("The loss is nan.")
        train_normally(self, *arguments)

    monkeypatch.setattr(Trainer, "train_epoch", train_epoch)
    out = tmp_path / "out"
    command = ["train", *tiny_run.arguments(tmp_path)]
    with RunFolder(out / "repe.1").claim():
        assert main(command) == 2
    messages = capsys.readouterr().err.splitlines()[-2:]
    assert messages == [
        "reprt: diverges.0: The loss is nan.",
        "diverges.1: The loss is nan.",
    ]
    page = read_page(out)
    assert "| repe | no | 1 |" in page
    assert "Not finished: diverges.0, diverges.1." in page
    # Another process had claimed it.
    assert not (out / "repe.1").exists()
    assert main(command) == 2
    assert "| repe | no | 2 |" in read_page(out)
    # The same batches, of which there are two, and so the same mean of them.
    metrics = json.loads((out / "repe.0" / "metrics.json").read_text())
    assert main(["evaluate", str(out / "repe.0"), "--split", "dev"]) == 0
    path = out / "repe.0" / "evaluation-dev.json"
    losses = json.loads(path.read_text())["prefix"]
    assert losses["mean_of_batches"] == pytest.approx(
        metrics["val_prefix_loss"]
    )
    assert losses["per_token"] == pytest.approx(
        metrics["val_prefix_loss_per_token"]
    )
    assert main(["evaluate", str(out / "repe.0"), "--split", "test"]) == 0
    evaluation = json.loads(
        (out / "repe.0" / "evaluation-test.json").read_text()
    )
    losses = evaluation["prefix"]
    expected = metrics["test_prefix_loss_per_token"]
    assert losses["per_token"] == pytest.approx(expected)
    # TensorFlow alone takes more.
    assert metrics["peak_memory_bytes"] > 100 * 2**20
    assert losses["per_token"] != pytest.approx(losses["mean_of_batches"])
    scores = [
        score for score in evaluation["scores"] if score["metric"] != "TER"
    ]
    assert len(scores) == 4 and scores == metrics["test_scores"]


@pytest.mark.parametrize("size, is_smaller", [(7, False), (8_000, True)])
def test_what_is_lost_of_a_text_is_said(size, is_smaller):
    split, progress = types.SimpleNamespace(cut=0.02), Lines()
    text = types.SimpleNamespace(
        source_tokenizer=range(7),
        target_tokenizer=range(9),
        train=split,
        dev=types.SimpleNamespace(cut=0.0, share_in=lambda train: 0.01),
        test=types.SimpleNamespace(cut=0.0, share_in=lambda train: 0.02),
        unknown={
            "train": {"source": 0, "target": 5e-3},
            "test": {"source": 0.25},
        },
        lost_words=0.03,
    )
    train._say_what_is_lost(progress, text, WordPieceSettings(size=size))
    sizes, words, lengths, pieces, shared = progress.messages
    assert sizes.startswith("Vocabularies: 7 and 9 pieces")
    assert ("fewer than the 8,000 asked for" in sizes) == is_smaller
    assert "3.00% of the target's words do not come back" in words
    assert 'vocabulary.name = "bpe"' in words
    assert "2.0% of the train pairs are longer than 'max_tokens'" in lengths
    assert "25.0% of the pieces of the test source are [UNK]" in pieces
    assert "2.0% of the test pairs are training pairs, too" in shared


def test_samples_are_compared_with_their_own_references(text, monkeypatch):
    short_text = text.trained_to(int(np.median(text.dev.lengths)))
    token_ids, source_ids = [], []

    def translation_scores(translator, sources, references, **options):
        token_ids.extend(short_text.target_tokenizer.encode(references))
        source_ids.extend(sources)
        score = {"metric": "BLEU", "form": "corpus tokens", "value": 0.0}
        return [], [types.SimpleNamespace(**score)]

    monkeypatch.setattr(
        train.evaluation, "translation_scores", translation_scores
    )
    monkeypatch.setattr(train, "Translator", lambda *arguments: None)
    run = settings(bleu_sentences=2, validate_every=1)
    train._bleu_of_samples(run, short_text)(None)
    expected = [*short_text.train.target[:2], *short_text.dev.target[:2]]
    assert list(map(list, token_ids)) == list(map(list, expected))
    expected = [*short_text.train.source[:2], *short_text.dev.source[:2]]
    assert list(map(list, source_ids)) == list(map(list, expected))


def test_results_by_length_are_parts_of_those_of_the_whole_split(text):
    run = settings(text={"train_tokens": 8, "max_tokens": 24})
    losses, counts = np.arange(1.0, len(text.test) + 1), text.test.tokens[1]
    words = text.target_tokenizer.words(text.corpus.test.target)
    # As references have it.
    words = [sentence.replace("[UNK]", "\ufffd") for sentence in words]
    test = types.SimpleNamespace(losses=losses, translations=words)
    parts = train._results_by_length(run, text, test)
    sizes = [part["sentences"] for part in parts]
    assert len(parts) > 1 and sum(sizes) == len(text.test)
    # Sentences of fewer than four words have no BLEU.
    assert [part["bleu"] for part in parts] == pytest.approx([0, 100])
    for part in parts:
        shortest = {8: 1, 16: 9, None: 17}[part["longest"]]
        rows = text.test.between(shortest, part["longest"] or 24)
        expected = losses[rows].sum() / counts[rows].sum()
        assert part["prefix_loss_per_token"] == pytest.approx(expected)
