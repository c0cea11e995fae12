"""The mistakes of docs/mistakes.md, made one by one: each gets the message it shows."""

import re
import subprocess
import sys

import keras
import numpy as np
import pytest
from tiny_run import REPOSITORY, arguments, cache, trained, write_corpus

import reprt
from reprt.cli import main

PAGE = (REPOSITORY / "docs" / "mistakes.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (\d+)\. (.*?)(?=^##|\Z)", PAGE, re.M | re.S))
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


def assert_as_shown(number, message):
    """Each part of what the page shows is there, in its order."""
    [shown] = re.findall(r"```text\n(.*?)```", SECTIONS[str(number)], re.S)
    words = " ".join(message.split())
    for part in shown.split("…"):
        part = " ".join(part.split())
        assert part in words, f"{part!r} is not in {words!r}"
        words = words[words.index(part) + len(part) :]


def model():
    return reprt.models.build("repe", source_vocab_size=30, target_vocab_size=20)


def test_there_are_fifteen():
    assert list(SECTIONS) == [str(number) for number in range(1, 16)]


def test_the_folder_of_all_runs(tiny, told):
    assert_as_shown(1, told("translate", str(tiny / "out"), "uma frase"))


def test_a_run_without_a_model(tiny, told, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.toml").write_bytes((tiny / "out/repe/config.toml").read_bytes())
    assert_as_shown(2, told("translate", str(run), "uma frase"))


def test_a_misspelt_setting(told):
    command = ("train", RECIPE, "--text", "embedded", "--set", "training.epoch=2")
    assert_as_shown(3, told(*command))


def test_no_such_recipe(told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_as_shown(4, told("train", "pt_to_en.toml"))


def test_a_pair_by_another_name(told):
    assert_as_shown(5, told("train", RECIPE, "--pair", "pt-en", "--text", "ted"))


def test_no_ted(told, tmp_path, monkeypatch):
    from reprt.data import search

    def offline(*arguments, **keywords):
        raise OSError("no network")

    monkeypatch.setattr(search, "download", offline)
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path))
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("REPRT_TED", raising=False)
    assert_as_shown(6, told("train", RECIPE, "--text", "ted"))


def test_another_layout(told, tmp_path):
    (tmp_path / "datasets" / "pt_to_en").mkdir(parents=True)
    assert_as_shown(7, told("train", RECIPE, "--text", str(tmp_path)))


def test_lost_alignment(told, tmp_path):
    write_corpus(tmp_path, train=5, dev=2, test=2)
    with (tmp_path / "text/datasets/pt_to_en/pt.train").open("a") as file:
        file.write("mais uma frase .\n")
    assert_as_shown(8, told("train", RECIPE, "--text", str(tmp_path / "text")))


def test_other_settings(tiny, told):
    command = ("train", *arguments(tiny, "--set", "training.epochs=5"))
    assert_as_shown(9, told(*command))


def test_without_the_extras():
    script = f"""
import sys
sys.modules.update(dict.fromkeys("tensorflow_text matplotlib tomli_w".split()))
from reprt.cli import main
sys.exit(main(["train", {RECIPE!r}, "--text", "embedded"]))
"""
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert finished.returncode == 2
    assert_as_shown(10, finished.stderr)


@pytest.mark.parametrize(
    ("number", "mistake"),
    [
        (11, lambda: model()((IDS.astype("float32"), IDS))),
        (12, lambda: model()((IDS + 30, IDS))),
        (13, lambda: fitted(model(), IDS, IDS)),
        (14, lambda: reprt.layers.TokenNorm()(np.ones((1, 3, 4)), np.ones((1, 3)))),
    ],
)
def test_in_python(number, mistake):
    with pytest.raises(ValueError) as caught:
        mistake()
    assert_as_shown(number, str(caught.value))


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
    assert_as_shown(15, finished.stderr)
    assert keras.saving.load_model(path).count_params() == model().count_params()
