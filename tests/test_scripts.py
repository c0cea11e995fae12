"""Texts in scripts unlike ours: trained and evaluated."""

import itertools
import json

import pytest
import tiny_run

from reprt_command import main

PARTS = ["the dog", "the cat", "a friend"], ["sees", "knows", "calls"], ["me", "us"]
# Parts of sentences, what stands between them and at the end, the table of the
# vocabulary, and how sacrebleu splits the text.
SCRIPTS = {
    "zh": (
        (["狗", "猫", "朋友"], ["看见", "认识", "叫"], ["我", "我们"]),
        "",
        "。",
        'name = "wordpiece"\nsize = 150',
        "tok:zh",
    ),
    "ar": (
        (["الكلب", "القط", "صديق"], ["يرى", "يعرف", "ينادي"], ["لي", "لنا"]),
        " ",
        "؟",
        'name = "bpe"\nsize = 60',
        "tok:13a",
    ),
}


def sentences(parts, between, end):
    return [between.join(words) + end for words in itertools.product(*parts)]


def write_text(folder, language, texts):
    """Writes a text whose test split ends with signs that no other has."""
    place = folder / "datasets" / f"en_to_{language}"
    place.mkdir(parents=True)
    splits = {"train": slice(0, 14), "dev": slice(14, 16), "test": slice(14, 18)}
    for side, lines in (("en", sentences(PARTS, " ", ".")), (language, texts)):
        for split, which in splits.items():
            unseen = ["Ψ Ω"] if split == "test" else []
            content = "\n".join([*lines[which], *unseen])
            (place / f"{side}.{split}").write_text(content + "\n", "utf-8")


@pytest.mark.parametrize("language", SCRIPTS)
def test_a_text_goes_all_the_way(tmp_path, monkeypatch, capsys, briefly, language):
    parts, between, end, vocabulary, split_by = SCRIPTS[language]
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    texts = sentences(parts, between, end)
    write_text(tmp_path / "text", language, texts)
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(
        f'[models.baseline]\npreset = "baseline"\n{tiny_run.MODEL}\n[vocabulary]\n'
        f"{vocabulary}\n[training]\nepochs = 1\nbleu = false\n[text]\nmax_tokens = 16\n"
    )
    where = ["--text", str(tmp_path / "text"), "--out", str(tmp_path / "out")]
    assert main(["train", str(recipe), "--pair", f"en_to_{language}", *where]) == 0
    told = capsys.readouterr().err
    assert "Unknown: 0.00% of the source's pieces, 0.00% of the target's" in told
    for side in ("source", "target"):
        (warning,) = (line for line in told.splitlines() if f"the test {side}" in line)
        assert ("BPE" in warning) == ("wordpiece" in vocabulary)
    run = tmp_path / "out" / "baseline"
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    assert manifest["unknown"]["train"] == {"source": 0, "target": 0}
    assert manifest["unknown"]["test"]["target"] > 0.01

    assert main(["evaluate", str(run)]) == 0
    assert split_by in capsys.readouterr().out
    scores = json.loads((run / "evaluation-test.json").read_text("utf-8"))["scores"]
    named = [split_by in score["signature"] for score in scores]
    assert named == [not between, False, True, False]
