"""Bad command lines: one line that names the culprit, status 2, and nothing written."""

import pytest
from tiny_run import RECIPE

from reprt_command import main

# Stand for what the fixture makes; {missing} is made by nobody.
SEARCHING = {
    "translate": "translate {run} word",
    "evaluate": "evaluate {run}",
    "attention": "attention {run} word",
    "export": "export {run}",
}
WRONG_NUMBERS = {
    "--beam": "0 1001 1.5 two",
    "--max-tokens": "0 0.5",
    "--length-penalty": "-1 10.1 nan much",
}
RUNS = [
    (f"{command} {path}{more}", culprit)
    for command, more in (
        ("translate", " word"),
        ("evaluate", ""),
        ("attention", " word"),
        ("export", ""),
    )
    for path, culprit in (
        ("{missing}", "{missing}"),
        ("{file}", "{file}"),
        ("{empty}", "{empty}"),
        ("{above}", "{above}"),
        ("''", "argument RUN: Expected a name"),
    )
]
PAGES = [
    (f"{command} {path}", path)
    for command in ("report", "figure3", "table1", "readings", "freeze")
    for path in ("{missing}", "{file}", "{empty}")
]
NUMBERS = [
    (f"{command} {option} {value}", f"argument {option}: ")
    for command in SEARCHING.values()
    for option, values in WRONG_NUMBERS.items()
    for value in values.split()
]
OTHERS = [
    ("train {missing}", "{missing}"),
    ("train {empty}", "{empty}"),
    ("train ''", "argument RECIPE"),
    ("train {recipe} --text {missing}", "{missing}"),
    ("train {recipe} --text {empty}", "{empty}"),
    ("train {recipe} --text {file}", "{file}"),
    ("train {recipe} --text ''", "argument --text"),
    ("train {recipe} --pair ''", "argument --pair"),
    ("train {recipe} --pair no_pair", "no_pair"),
    ("train {recipe} --only ''", "argument --only"),
    ("train {recipe} --only nobody", "nobody"),
    ("train {recipe} --set ''", "argument --set"),
    ("train {recipe} --set training.epochs=many", "epochs"),
    ("train {recipe} --out ''", "argument --out"),
    ("train {recipe} --out {file}", "{file}"),
    ("train {recipe} --ray ''", "argument --ray"),
    ("train {recipe} --ray here --cpus 0", "argument --cpus"),
    ("train {recipe} --cpus 2", "--ray with --cpus"),
    ("train {recipe} --plan --ray", "--plan or --ray"),
    ("translate {run} --file {missing}", "{missing}"),
    ("translate {run} --file {empty}", "{empty}"),
    ("translate {run} --file ''", "argument --file"),
    ("translate {run} word --file {file}", "sentences or --file"),
    ("translate {run} word --n-best 0", "argument --n-best"),
    ("translate {run} word --n-best 5", "--n-best"),
    ("translate {run} word --beam 1 --length-penalty 1", "--length-penalty"),
    ("evaluate {run} --split train", "argument --split"),
    ("evaluate {run} --text ''", "argument --text"),
    ("evaluate {run} --length-penalty 1", "--length-penalty"),
    ("attention {run} word --out {file}", "argument --out"),
    ("attention {run} word --length-penalty 1", "--length-penalty"),
    ("export {run} --out {file}", "argument --out"),
    ("export {run} --out ''", "argument --out"),
    ("freeze {empty} --out {file}", "argument --out"),
    ("audit {missing}", "{missing}"),
    ("audit {file}", "{file}"),
    ("audit {empty}", "{empty}"),
    ("audit ''", "argument MODEL_OR_RUN"),
    ("audit {file} --module {missing}", "{missing}"),
    ("audit {file} --module ''", "argument --module"),
    *(
        (f"audit {{file}} {option} {value}", f"argument {option}")
        for option, values in {
            "--source-vocab": "0 nan",
            "--target-vocab": "-1",
            "--length": "2",
            "--seed": "-1 0.5",
        }.items()
        for value in values.split()
    ),
]


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Paths by name: a recipe, a file, an empty folder, a run without a model."""
    monkeypatch.setenv("REPRT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("REPRT_TED", raising=False)
    names = ("missing", "new", "empty", "file", "recipe", "above", "run")
    found = {name: tmp_path / name for name in names}
    found["empty"].mkdir()
    found["file"].write_text("no such thing\n")
    found["recipe"].write_text(RECIPE)
    found["run"] = found["above"] / "run"
    found["run"].mkdir(parents=True)
    (found["run"] / "config.toml").write_text("")
    return found


def contents(folder):
    """What is in a folder, but for the cache."""
    return {
        path: path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if "cache" not in path.parts
    }


def with_places(words, places):
    return words.replace("''", "").format(**places)


@pytest.mark.parametrize("line, culprit", [*OTHERS, *RUNS, *PAGES, *NUMBERS])
def test_a_bad_command_line_is_one_line(places, tmp_path, capsys, line, culprit):
    before = contents(tmp_path)
    assert main([with_places(word, places) for word in line.split()]) == 2
    output = capsys.readouterr()
    (told,) = output.err.splitlines()
    assert told.startswith("reprt: ") and culprit.format(**places) in told
    assert output.out == "" and contents(tmp_path) == before


@pytest.mark.parametrize(
    "backend, told",
    [
        ("theano", "one of tensorflow, jax, torch, numpy, openvino. Received: 'th"),
        ("a.b", "Received: 'a.b'"),
        ("torch", "KERAS_BACKEND=torch to be installed"),
    ],
)
def test_a_backend_that_is_not_there_is_told_first(
    places, capsys, monkeypatch, backend, told
):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("KERAS_BACKEND", backend)
    for command in ("translate", "train", "export", "audit"):
        assert main([command, str(places["missing"])]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert told in line
