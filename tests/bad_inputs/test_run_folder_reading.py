"""Damaged files of runs, live and frozen: each is named, with what is wrong in it."""

import json
import shutil

import keras
import pytest
from fake_runs import row

from reprt.cli import main
from reprt.models.registry import make
from reprt.reports.freeze import freeze
from reprt.reports.runs import own_runs
from reprt.runs.run_folder import RunFolder, RunFolderError

METRICS = {
    "epochs": 2,
    "test_bleu": 1.5,
    "test_scores": [],
    "last_epoch": row(2, 3.0, 2.0),
}
SIGNED = {
    "test_bleu_signature": "BLEU|x",
    "test_scores": [
        {"metric": "BLEU", "form": "words", "value": 1.5, "signature": "BLEU|x"}
    ],
}


@pytest.fixture
def folder(add):
    """A folder with two finished runs."""
    rows = [row(1, 4.0, 3.0), row(2, 3.0, 2.0)]
    add("repe", rows, {**METRICS, **SIGNED})
    return add("baseline", rows, {**METRICS, **SIGNED})


def changed(content, **changes):
    """JSON with some keys changed, or left out where they become None."""
    table = {**json.loads(content), **changes}
    return json.dumps({name: v for name, v in table.items() if v is not None})


def without(content, column):
    head, *lines = content.splitlines()
    place = head.split(",").index(column)
    return "".join(
        ",".join(line.split(",")[:place] + line.split(",")[place + 1 :]) + "\n"
        for line in (head, *lines)
    )


LOG = [
    (lambda text: text.replace(",4.0,", ",four,"), "'train_loss' in line 2 of"),
    (lambda text: text + "1,2\n", "columns of"),
    (lambda text: text.replace("4.0", ""), "Missing in line 2 of"),
    (lambda text: without(text, "train_seconds"), "Missing in line 2 of"),
    (lambda text: text.encode("utf-16"), "to be UTF-8"),
    (lambda text: text.splitlines()[0], "to have 2 epochs, as metrics.json says"),
]
JSON = [
    (lambda text: text[:20], "is not valid JSON"),
    (lambda text: "", "is not valid JSON"),
    (lambda text: "[]", "to be a table"),
    (lambda text: b"\xff" + text.encode(), "to be UTF-8"),
]
MANIFEST = [
    (lambda text: changed(text, text=1), "'text' in"),
    (lambda text: changed(text, text_sha256=None), "Missing in"),
    (lambda text: changed(text, starts=[{}]), "Missing in item 0 of 'starts'"),
]
RESULTS = [
    (lambda text: changed(text, test_bleu=float("nan")), "'test_bleu' in"),
    (lambda text: changed(text, parameters=None), "Missing in"),
    (lambda text: changed(text, parameters=True), "'parameters' in"),
    (lambda text: changed(text, test_scores=[{}]), "Missing in item 0"),
]
CONFIG = [
    (lambda text: text.replace('preset = "repe"', "preset = 1"), "'preset' in"),
    (lambda text: text.replace("format = 2", "format = 3"), "another version"),
    (lambda text: "extra = 1\n" + text, "Unknown key 'extra' in"),
    (lambda text: text.replace("seed = 0", "seed = -1"), "'seed' in [training]"),
    (lambda text: text.replace('name = "repe"', 'name = "../x"'), "name of a run"),
    (lambda text: text + "[", "is not valid TOML"),
]
BROKEN = [
    (file, change, message)
    for file, cases in {
        "log.csv": LOG,
        "manifest.json": JSON + MANIFEST,
        "metrics.json": JSON + RESULTS,
        "config.toml": CONFIG,
    }.items()
    for change, message in cases
]


def spoil(path, change):
    content = change(path.read_bytes().decode())
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize("file, change, message", BROKEN)
def test_a_damaged_file_of_a_run_is_named(folder, capsys, file, change, message):
    path = folder / "repe" / file
    spoil(path, change)
    damaged = path.read_bytes()
    for command in ("report", "freeze"):
        assert main([command, str(folder)]) == 2
        said = capsys.readouterr().err
        assert message in said and str(path) in said and len(said) < 1000
    assert path.read_bytes() == damaged
    assert not (folder.parent / f"{folder.name}-frozen").exists()


def test_an_empty_log_is_that_of_a_run_without_epochs(folder):
    (folder / "repe" / "log.csv").write_text("")
    assert RunFolder(folder / "repe").log() == []


def test_a_loss_that_is_no_number_is_still_shown(folder):
    """So it may be after the last step of an epoch; the next one complains."""
    spoil(folder / "repe" / "log.csv", lambda text: text.replace(",2.0,", ",nan,"))
    assert str(RunFolder(folder / "repe").log()[1]["val_loss"]) == "nan"


FROZEN = [
    ("runs.csv", lambda text: text.splitlines()[0] + "\nx\n", "columns of"),
    ("runs.csv", lambda text: text + text.splitlines()[1] + "\n", "once. Received it"),
    ("runs.csv", lambda text: text.replace(",baseline,", ",other,"), "to name one of"),
    ("runs.csv", lambda text: text.replace("1234567", "many"), "'parameters' in"),
    ("runs.csv", lambda text: without(text, "run"), "Missing in"),
    ("epochs.csv", lambda text: text.replace(",4,", ",x,"), "'train_loss' in epoch 1"),
    ("epochs.csv", lambda text: text.splitlines()[0], "to have 2 epochs of the"),
    ("recipe.toml", lambda text: "[", "is not valid TOML"),
    ("provenance.json", lambda text: changed(text, starts=None), "Missing in"),
    ("provenance.json", lambda text: text[:20], "is not valid JSON"),
]


@pytest.fixture
def frozen(folder, tmp_path):
    return freeze(folder, tmp_path / "frozen")[0]


def test_a_run_that_a_link_leads_to_once_more_counts_once(add):
    folder = add("baseline", [row(1, 5.0, 6.0)])
    (folder / "another").symlink_to(folder / "baseline")
    (run,) = own_runs(folder, "*/config.toml")
    assert run.name == "baseline"


def test_a_damaged_file_of_frozen_runs_is_named(frozen, capsys):
    whole = {path.name: path.read_bytes() for path in frozen.iterdir()}
    for file, change, message in FROZEN:
        spoil(frozen / file, change)
        assert (frozen / file).read_bytes() != whole[file], (file, message)
        assert main(["report", str(frozen)]) == 2, (file, message)
        said = capsys.readouterr().err
        assert message in said and "frozen" in said and len(said) < 2000
        (frozen / file).write_bytes(whole[file])
    assert main(["report", str(frozen)]) == 0


@pytest.mark.parametrize("name", ["recipe.toml", "provenance.json"])
def test_a_lacking_file_of_frozen_runs_is_named(frozen, capsys, name):
    (frozen / name).unlink()
    assert main(["report", str(frozen)]) == 2
    assert name in capsys.readouterr().err


@pytest.mark.parametrize("content", ["[", "x = 1", "x = [1]"])
def test_a_damaged_selection_is_named(folder, capsys, content):
    (folder / "selection.toml").write_text(content)
    assert main(["report", str(folder)]) == 2
    assert "selection.toml" in capsys.readouterr().err


@pytest.fixture
def translated(text, settings, tmp_path):
    """A function that makes the folder of a run whose model was not trained."""

    def translated(name):
        run = settings(name)
        files = RunFolder(tmp_path / "models" / name)
        files.open(run, text)
        sizes = len(text.source_tokenizer), len(text.target_tokenizer)
        files.save_model(make(run.model, *sizes, name=name))
        return files

    return translated


def test_a_model_of_another_run_is_refused(translated, capsys):
    ours, other = translated("repe"), translated("baseline")
    assert ours.load_model().config == ours.run().model
    shutil.copy(other.model, ours.model)
    message = "position: 'add' there, 'concat' in the run"
    with pytest.raises(RunFolderError, match=message):
        ours.load_model()
    for command in ("translate", "export", "audit"):
        assert main([command, str(ours.path)]) == 2
        assert message in capsys.readouterr().err


def test_a_model_that_is_not_ours_is_refused(translated):
    ours = translated("repe")
    keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)]).save(ours.model)
    with pytest.raises(RunFolderError, match="a model of this package. Received: Seq"):
        ours.load_model()
    for content in (b"", b"mine", ours.model.read_bytes()[:-100]):
        ours.model.write_bytes(content)
        with pytest.raises(RunFolderError, match="cannot be read as a Keras model"):
            ours.load_model()


@pytest.mark.parametrize("side", ["source", "target"])
def test_pieces_in_another_order_are_refused(translated, side):
    ours = translated("repe")
    path = ours.path / f"{side}.vocab"
    *reserved, one, other = path.read_text().splitlines()
    assert len(ours.tokenizer(side, len(reserved) + 2)) == len(reserved) + 2
    path.write_text("\n".join([*reserved, other, one, ""]))
    with pytest.raises(RunFolderError, match=f"{side}.vocab.* with the sha256"):
        ours.tokenizer(side, len(reserved) + 2)
