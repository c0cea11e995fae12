import json
import subprocess
import sys

import pytest

import reprt
from reprt.cli import main
from reprt.data import embedded

TINY = """
num_blocks = 1
embedding_dim = 8
num_heads = 2
key_dim = 4
value_dim = 4
feed_forward_dim = 16
"""
RECIPE = f"""
[text]
vocab_size = 150
[training]
epochs = 2
batch_size = 16
warmup_steps = 4
[models.baseline]
preset = "baseline"
{TINY}
[models.repe]
preset = "repe"
{TINY}
"""


@pytest.fixture(scope="module", autouse=True)
def places(tmp_path_factory):
    """Keeps the command away from the user's own folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRT_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.delenv("REPRT_TED", raising=False)
        yield


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folders of a recipe, a text, and what the command made of them."""
    folder = tmp_path_factory.mktemp("work")
    corpus = embedded.load(train=33, dev=5, test=6)
    place = folder / "text" / "datasets" / "pt_to_en"
    place.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        sentences = getattr(corpus, split)
        for side, lines in (("pt", sentences.source), ("en", sentences.target)):
            (place / f"{side}.{split}").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "tiny.toml").write_text(RECIPE)
    assert main(["train", *arguments(folder)]) == 0
    return folder


def arguments(folder, *more):
    text, out = str(folder / "text"), str(folder / "out")
    return [str(folder / "tiny.toml"), "--text", text, "--out", out, *more]


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files}


@pytest.mark.slow
def test_training_ends_with_a_report_that_names_its_text(finished):
    out = finished / "out"
    assert (out / "report.png").read_bytes().startswith(b"\x89PNG")
    report = (out / "report.md").read_text(encoding="utf-8")
    title = report.splitlines()[0]
    assert title.startswith("# ") and title.endswith("not comparable with the paper")
    name = "pt_to_en from text (not the official TED-HRLR split)"
    assert name in title and f"| repe | ours, {name} |" in report
    for model in ("baseline", "repe"):
        metrics = json.loads((out / model / "metrics.json").read_text())
        assert metrics["epochs"] == 2 and not metrics["out_of_time"]
        assert metrics["last_epoch"]["epoch"] == 2
        assert metrics["total_train_seconds"] > metrics["last_epoch"]["train_seconds"]
        assert 0 <= metrics["test_bleu"] <= 100
        assert len(metrics["examples"]) == 5


@pytest.mark.slow
def test_what_has_finished_is_not_done_again(finished, capsys):
    before = contents(finished / "out")
    assert main(["train", *arguments(finished)]) == 0
    output = capsys.readouterr()
    assert output.out.strip() == str(finished / "out" / "report.md")
    for model in ("baseline", "repe"):
        assert f"{model}: finished before, in " in output.err
    assert contents(finished / "out") == before


@pytest.mark.slow
def test_the_report_can_be_written_again(finished, capsys):
    page = finished / "out" / "report.md"
    before = page.read_bytes()
    page.unlink()
    assert main(["report", str(finished / "out")]) == 0
    assert capsys.readouterr().out.strip() == str(page)
    assert page.read_bytes() == before


@pytest.mark.slow
def test_a_changed_setting_is_refused_and_named(finished, capsys):
    before = contents(finished / "out")
    assert main(["train", *arguments(finished, "--set", "training.seed=1")]) == 1
    assert "training.seed: 0 there, 1 asked for" in told(capsys)
    assert contents(finished / "out") == before


@pytest.mark.slow
def test_a_model_on_other_vocabularies_does_not_join_the_report(finished, capsys):
    before = contents(finished / "out")
    (finished / "more.toml").write_text(RECIPE.replace("[models.", "[models.other-"))
    more = [str(finished / "more.toml"), *arguments(finished)[1:]]
    assert main(["train", *more, "--set", "text.vocab_size=60"]) == 1
    assert "holds a run on another text" in told(capsys)
    assert contents(finished / "out") == before


@pytest.mark.slow
def test_a_folder_with_other_files_is_refused(finished, tmp_path, capsys):
    (tmp_path / "repe").mkdir()
    (tmp_path / "repe" / "thesis.txt").write_text("years of work")
    out = ["--out", str(tmp_path), "--only", "repe"]
    assert main(["train", *arguments(finished), *out]) == 1
    assert "other files. Choose another --out" in told(capsys)
    assert list(contents(tmp_path).values()) == [b"years of work"]


@pytest.mark.slow
def test_out_of_time_is_reported_and_final(finished, tmp_path, capsys):
    command = ["train", *arguments(finished, "--only", "repe")]
    command += ["--out", str(tmp_path / "short"), "--set", "training.hours=1e-9"]
    assert main(command) == 0
    metrics = json.loads((tmp_path / "short/repe/metrics.json").read_text())
    assert metrics["out_of_time"] and metrics["epochs"] == 0
    assert "repe: out of time" in capsys.readouterr().err
    report = (tmp_path / "short" / "report.md").read_text()
    assert "not run" in report and "training.hours = 1e-09" in report
    assert main(command) == 0
    assert "repe: finished before" in capsys.readouterr().err


def told(capsys):
    """What the command says of a mistake, without what it said of its progress."""
    output = capsys.readouterr()
    assert output.out == "" and "Traceback" not in output.err
    *progress, last = output.err.splitlines()
    assert last.startswith("reprt: ")
    assert not any(line.startswith("reprt: ") for line in progress)
    return last


@pytest.mark.parametrize(
    "more, message",
    [
        (["--only", "rope"], "has the models baseline, repe. Asked for: rope."),
        (["--pair", "xx_to_yy"], "xx_to_yy"),
        (["--set", "training.epoch=1"], "nearest known one is 'epochs'"),
        (["--set", "trainig.epochs=1"], "nearest known one is [training]"),
        (["--set", "epochs"], "Expected an override such as training.epochs=2"),
        (["--text", "2024"], "2024, given as the text"),  # a name, not a number
        (["--text", "/no/such/folder"], "there is no such folder or archive"),
    ],
)
def test_a_mistake_is_one_line_and_status_1(recipe, capsys, more, message):
    assert main(["train", str(recipe), *more]) == 1
    output = capsys.readouterr()
    (line,) = output.err.splitlines()
    assert line.startswith("reprt: ") and message in line and output.out == ""


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "Cannot read the recipe"),
        ("[training", "is not valid TOML"),
        ("[modles.repe]", "Unknown table [modles]"),
        ("", "has the models none"),
    ],
)
def test_a_bad_recipe_is_one_line_and_status_1(tmp_path, capsys, content, message):
    path = tmp_path / "bad.toml"
    if content is not None:
        path.write_text(content)
    assert main(["train", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("reprt: ") and message in line


def test_a_report_on_nothing_is_one_line_and_status_1(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("reprt: Expected a folder with run folders in it.")


def test_an_interruption_is_status_130(recipe, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("reprt.training.recipe.load_recipe", interrupted)
    assert main(["train", str(recipe)]) == 130
    assert "goes on from the last checkpoint" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["train"], ["predict"], ["train", "a", "b"]])
def test_a_wrong_usage_is_status_2(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("usage: reprt")


@pytest.mark.parametrize(
    "arguments, start",
    [
        (["--version"], f"reprt {reprt.__version__}\n"),
        (["--help"], "usage: reprt [-h] [--version] COMMAND ...\n"),
        (["train", "--help"], "usage: reprt train [-h] "),
    ],
)
def test_the_package_is_the_command(arguments, start):
    command = [sys.executable, "-m", "reprt", *arguments]
    assert subprocess.check_output(command, text=True).startswith(start)
