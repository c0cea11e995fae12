"""Decoder-only models on one side of a text: losses, leaks, sentences, a whole run."""

import json
import re

import numpy as np
import pytest
from formula import perturb_weights
from oracle import softmax
from tiny import TARGET
from tiny_run import MODEL, arguments, write_corpus

from reprt.analysis import audit
from reprt.analysis.evaluation import prefix_loss, teacher_forced_loss
from reprt.data.encoding import EncodedSplit
from reprt.data.tokenizers.wordpiece import WordPiece
from reprt.decoding import sample
from reprt.losses import MaskedCrossentropy
from reprt.progress import Progress
from reprt_lab.command import main
from reprt_lab.folder import RunFolder
from reprt_lab.recipe import load_recipe
from reprt_lab.work import find_work

LETTERS = WordPiece(["[PAD]", "[UNK]", "[START]", "[END]", *"abcdefg"])
REPE = {"position": "concat", "embedding_norm": "token_norm", "value": "tokens"}


@pytest.mark.parametrize("looks_ahead", [False, True], ids=["plain", "repe"])
def test_its_loss_is_that_of_the_targets_alone(looks_ahead, make_model):
    model = perturb_weights(
        make_model("decoder-only", **(REPE if looks_ahead else {}))
    )
    rows = [row[row != 0] for row in TARGET]
    split = EncodedSplit(rows, rows).of_target()
    forced_losses = teacher_forced_loss(model, split)
    prefix_losses = prefix_loss(model, split)
    pairs = [(np.zeros((1, 0), "int32"), row[None, :-1]) for row in rows]
    losses = [
        MaskedCrossentropy().sum_and_count(row[None, 1:], model(pair))[0]
        for row, pair in zip(rows, pairs)
    ]
    assert abs(forced_losses.total - sum(map(float, losses))) < 1e-3
    assert prefix_losses.tokens == sum(map(len, rows)) - 2
    report = audit(model, length=5)
    assert report.looks_ahead == model.looks_ahead == looks_ahead


def test_drawn_sentences_begin_as_asked_and_repeat_with_their_seed(make_model):
    model = perturb_weights(make_model("decoder-only"))
    prompts = ["a b", "", "c"]
    samples = [sample(model, LETTERS, prompts, seed=seed) for seed in (0, 0, 1)]
    assert samples[0] == samples[1] != samples[2]
    for sentence, prompt in zip(samples[0], prompts, strict=True):
        assert sentence.startswith(prompt)
    _, short_sentence = sample(model, LETTERS, ["a b c d e", ""], max_tokens=3)
    assert len(short_sentence.split()) < 3
    likeliest_samples = [
        sample(model, LETTERS, top_k=1, seed=seed) for seed in (0, 1)
    ]
    assert (
        likeliest_samples[0]
        == likeliest_samples[1]
        == sample(model, LETTERS, temperature=1e-4)
    )
    assert sample(model, LETTERS, "a b", seed=0) == sample(
        model, LETTERS, ["a b"]
    )
    assert sample(model, LETTERS, []) == []
    with pytest.raises(ValueError, match="temperature=0"):
        sample(model, LETTERS, temperature=0)
    with pytest.raises(ValueError, match="max_tokens=0"):
        sample(model, LETTERS, max_tokens=0)
    with pytest.raises(
        ValueError, match="a decoder-only model.* a Transformer"
    ):
        sample(make_model("baseline"), LETTERS)
    long_prompt = " ".join("a" * model.longest_target)
    with pytest.raises(ValueError, match="prompts of at most"):
        sample(model, LETTERS, [long_prompt])
    with pytest.raises(
        ValueError, match="the 11 pieces of the model. Received: 10"
    ):
        sample(model, WordPiece(LETTERS.vocabulary[:10]))


def test_tokens_are_drawn_as_often_as_they_are_likely(make_model):
    model = perturb_weights(make_model("decoder-only"))
    inputs = np.zeros((1, 0), "int32"), np.array([[2, 4]])
    logits = np.array(model(inputs))[0, 0] / 2
    logits[:3] = -np.inf  # padding, what is unknown, the start
    logits[logits < np.sort(logits)[-4]] = -np.inf
    samples = sample(
        model, LETTERS, [""] * 4000, temperature=2, top_k=4, max_tokens=2
    )
    frequencies = [samples.count(piece) / 4000 for piece in ("", *"abcdefg")]
    np.testing.assert_allclose(frequencies, softmax(logits)[3:], atol=0.03)


RECIPE = f"""
objective.name = "language_model"
text.side = "target"
text.train_tokens = 10
vocabulary.size = 150
schedule.warmup_steps = 4
training.steps = 3
page.name = "language_model"
[models.plain]
preset = "decoder-only"
{MODEL}
"""


def test_a_recipe_trains_and_reports_one(
    tmp_path, briefly, capsys, monkeypatch
):
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    write_corpus(tmp_path, train=400, dev=30, test=100)
    recipe, out = tmp_path / "tiny.toml", tmp_path / "out"
    recipe.write_text(RECIPE)
    assert main(["train", *arguments(tmp_path)]) == 0
    output = "".join(capsys.readouterr())
    assert (
        "rises at the end, step 3: [schedule] has 4 steps of warm-up\n"
        in output
    )
    loss = re.search(
        r"prefix loss (\S+) on the validation split, perplexity", output
    )[1]
    assert f" {loss} |" in (out / "language_model.md").read_text("utf-8")
    assert main(["evaluate", str(out / "plain"), "--split", "dev"]) == 0
    page = capsys.readouterr().out
    exact_loss = re.search(r"prefix loss, nats .*?\| +(\S+) \|", page)[1]
    assert float(exact_loss) == pytest.approx(float(loss), abs=1e-3)
    perplexity = re.search(r"prefix perplexity a token *\| +(\S+) \|", page)[1]
    assert float(perplexity) == pytest.approx(
        np.exp(float(exact_loss)), rel=1e-3
    )
    assert "BLEU" not in page
    # The test has a loss for each length. Validation has no long sentences.
    # It reads one side only.
    unknown = RunFolder(out / "plain").manifest().unknown
    assert unknown["train"] == {"target": 0.0}
    metrics = RunFolder(out / "plain").metrics()
    assert [part.longest for part in metrics.test_by_length] == [10, 20, None]
    assert sum(part.sentences for part in metrics.test_by_length) == 100
    evaluation = json.loads((out / "plain/evaluation-dev.json").read_text())
    expected = pytest.approx(metrics.val_prefix_loss_per_token, rel=1e-4)
    assert evaluation["prefix"]["per_token"] == expected
    assert main(["page", str(out), "--name", "positions"]) == 0

    # A text of one side is one file, and gives the same vocabulary and ids.
    folder = tmp_path / "text" / "datasets" / "pt_to_en"
    paths = [str(folder / f"en.{split}") for split in ("train", "dev", "test")]
    files = {"train": paths[:1], "dev": paths[1:2], "test": paths[2:]}
    one_sided_recipe = load_recipe(recipe, files=files)
    [work] = find_work(one_sided_recipe, [], None, Progress())
    text = work.encode(Progress())
    manifest = RunFolder(out / "plain").manifest()
    assert text.target_tokenizer.digest() == manifest.target_vocabulary_sha256
    assert text.unknown == manifest.unknown and work.corpus.name == "en.train"
    capsys.readouterr()
    assert main(["score", str(out / "plain"), paths[2]]) == 0
    scores = capsys.readouterr().out.splitlines()
    assert main(["evaluate", str(out / "plain"), paths[2]]) == 0
    result = json.loads((out / "plain/evaluation-en.test.json").read_text())
    assert result["sentences"] == len(scores) == 100
    total = pytest.approx(-result["prefix"]["total"], rel=1e-4)
    assert sum(map(float, scores)) == total
    capsys.readouterr()
    for command in (["translate", "a"], ["attention", "a"], ["export"]):
        assert main([command[0], str(out / "plain"), *command[1:]]) == 2
        assert "plain, a language model" in capsys.readouterr().err
    recipe.write_text(RECIPE.replace('text.side = "target"', ""))
    assert main(["train", *arguments(tmp_path)]) == 2
    assert "go together" in capsys.readouterr().err
