"""The messages of docs/troubleshooting.md are those that a user gets."""

import ast
import re
import subprocess
import sys

import keras
import numpy as np
import pytest
from tiny_run import REPOSITORY, arguments, cache, trained, write_corpus

import reprt
from reprt_command import main

PAGE = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^### `(.+)`$", PAGE, re.M)  # `…` is left open
RECIPE = str(REPOSITORY / "experiments" / "pt_to_en.toml")
IDS = np.array([[2, 5, 3]], "int32")


@pytest.fixture
def tiny(tmp_path_factory, monkeypatch):
    """The folder of a recipe and of what has been trained of it."""
    base = tmp_path_factory.getbasetemp()
    folder = trained(base)
    monkeypatch.setenv("REPRT_CACHE", str(cache(base)))
    return folder


@pytest.fixture
def told(capsys):
    """A function that runs a command which fails, and returns what it says."""

    def run(*command):
        capsys.readouterr()
        assert main(command) == 2
        return capsys.readouterr().err

    return run


def assert_shown(message):
    """One heading of the page has the message's words, in their order."""
    fits = [".*".join(map(re.escape, heading.split("…"))) for heading in SHOWN]
    message = " ".join(message.split())
    assert sum(bool(re.search(each, message)) for each in fits) == 1, message


def test_headings_are_messages_of_the_package():
    strings = [
        node.value
        for path in (REPOSITORY / "reprt").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    for part in "…".join(SHOWN).split("…"):
        of_keras = part == "Could not locate class 'Transformer'."
        assert of_keras or any(part.strip() in string for string in strings), part


def model():
    return reprt.models.build("repe", source_vocab_size=30, target_vocab_size=20)


def test_the_folder_of_all_runs(tiny, told):
    assert_shown(told("translate", str(tiny / "out"), "uma frase"))


def test_a_run_without_a_model(tiny, told, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.toml").write_bytes((tiny / "out/repe/config.toml").read_bytes())
    assert_shown(told("translate", str(run), "uma frase"))


def test_a_model_that_ctranslate2_cannot_run(tiny, told):
    assert_shown(told("export", str(tiny / "out/repe"), "--to", "ctranslate2"))


def test_a_misspelt_setting(told):
    command = ("train", RECIPE, "--text", "embedded", "--set", "training.epoch=2")
    assert_shown(told(*command))


def test_no_such_recipe(told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_shown(told("train", "pt_to_en.toml"))


def test_a_pair_by_another_name(told):
    assert_shown(told("train", RECIPE, "--pair", "pt-en", "--text", "ted"))


def test_no_ted(told, tmp_path, monkeypatch):
    from reprt.data import search

    def offline(*arguments, **keywords):
        raise OSError("no network")

    monkeypatch.setattr(search, "download", offline)
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path))
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("REPRT_TED", raising=False)
    assert_shown(told("train", RECIPE, "--text", "ted"))


def test_another_layout(told, tmp_path):
    (tmp_path / "datasets" / "pt_to_en").mkdir(parents=True)
    assert_shown(told("train", RECIPE, "--text", str(tmp_path)))


def test_lost_alignment(told, tmp_path):
    write_corpus(tmp_path, train=5, dev=2, test=2)
    with (tmp_path / "text/datasets/pt_to_en/pt.train").open("a") as file:
        file.write("mais uma frase .\n")
    assert_shown(told("train", RECIPE, "--text", str(tmp_path / "text")))


def test_other_settings(tiny, told):
    command = ("train", *arguments(tiny, "--set", "training.epochs=5"))
    assert_shown(told(*command))


def test_without_the_extras():
    script = f"""
import sys
sys.modules.update(dict.fromkeys("tensorflow_text matplotlib tomli_w".split()))
from reprt_command import main
sys.exit(main(["train", {RECIPE!r}, "--text", "embedded"]))
"""
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert finished.returncode == 2
    assert_shown(finished.stderr)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: model()((IDS.astype("float32"), IDS)),
        lambda: model()((IDS + 30, IDS)),
        lambda: fitted(model(), IDS, IDS),
        lambda: reprt.layers.TokenNorm()(np.ones((1, 3, 4)), np.ones((1, 3))),
    ],
)
def test_in_python(mistake):
    with pytest.raises(ValueError) as caught:
        mistake()
    assert_shown(str(caught.value))


def fitted(model, *batch):
    model.compile("adam", reprt.losses.MaskedCrossentropy())
    return model.fit(*batch, verbose=0)


def test_a_model_without_the_package(tmp_path):
    path = tmp_path / "repe.keras"
    model().save(path)
    script = f"import keras; keras.saving.load_model({str(path)!r})"
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert finished.returncode == 1
    assert_shown(finished.stderr)
    assert keras.saving.load_model(path).count_params() == model().count_params()
