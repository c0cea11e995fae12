import re
import shutil
from pathlib import Path

import pytest
import tiny_run

from reprt.data.batching import BatchPlan
from reprt.data.corpora import embedded, ted
from reprt.data.corpora.find import NothingFound, TextUnavailable
from reprt.progress import Progress
from reprt_lab.command import main
from reprt_lab.folder import RunFolder
from reprt_lab.plan import make_plan
from reprt_lab.recipe import load_recipe
from reprt_lab.work import find_work

RECIPE = (
    tiny_run.TABLES.replace("epochs = 2", "epochs = 1").replace(
        "size = 33", "size = 16"
    )
    + f"""
[models.baseline]
preset = "baseline"
{tiny_run.MODEL}
[models.repe]
preset = "repe"
{tiny_run.MODEL}
[text]
max_tokens = 12
[trials]
pairs = ["gl_to_en", "pt_to_en", "de_to_en"]
"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A text of two pairs, one of which nobody has heard of, and a recipe on three."""
    folder = tmp_path_factory.mktemp("pairs")
    tiny_run.write_corpus(folder, train=33, dev=2, test=2)
    other = folder / "text" / "datasets" / "de_to_en"
    shutil.copytree(other.with_name("pt_to_en"), other)
    for split in ted.SPLITS:
        (other / f"pt.{split}").rename(other / f"de.{split}")
    # A longer text, so that its epoch has more steps.
    for side in ("de", "en"):
        file = other / f"{side}.train"
        file.write_text(file.read_text() * 2)
    (folder / "tiny.toml").write_text('page.name = "table1"\n' + RECIPE)
    return folder


@pytest.fixture
def train(folder, monkeypatch):
    """A function that runs `reprt train` on the recipe and returns its exit status."""
    monkeypatch.setenv("REPRT_CACHE", str(folder / "cache"))
    return lambda *options: main(
        ["train", *tiny_run.arguments(folder, *options)]
    )


def read_plan(output):
    """State and steps of a plan, by run."""
    pattern = r"^(\S+_to_\S+) +(\S+) +(.+?)  +([\d,]+)  "
    rows = re.findall(pattern, output, re.MULTILINE)
    return {f"{pair} {run}": tuple(cells) for pair, run, *cells in rows}


def table_rows(folder, pair):
    """Cells of a pair's rows in Table 1, without the pair."""
    page = (folder / "out" / "table1.md").read_text()
    lines = re.findall(rf"^\| {pair} +\|(.*)\|$", page, re.MULTILINE)
    rows = []
    for line in lines:
        rows.append([cell.strip() for cell in line.split("|")])
    return rows


@pytest.mark.long
@pytest.mark.usefixtures("briefly", "in_process")
def test_the_whole_table_is_planned_trained_and_written(folder, train, capsys):
    assert train("--plan") == 0
    output = capsys.readouterr().err
    expected = {
        "pt_to_en baseline": ("to do", "3"),
        "pt_to_en repe": ("to do", "3"),
        "de_to_en baseline": ("to do", "5"),
        "de_to_en repe": ("to do", "5"),
    }
    assert read_plan(output) == expected
    assert "Together 16 steps: about 0.0 minutes" in output
    assert re.search(
        "gl_to_en: not run, its text is missing. .*cannot be used", output
    )
    # A plan leaves nothing behind.
    assert not (folder / "out").exists()

    # One pair alone, and no code of ours has heard of it.
    assert train("--pair", "de_to_en") == 0
    assert [row[2] for row in table_rows(folder, "de_to_en")] == ["66", "66"]
    pair_folder = next((folder / "out").glob("de_to_en*"))
    assert main(["page", str(pair_folder), "--name", "report"]) == 0
    assert "| paper" not in (pair_folder / "report.md").read_text()

    # The rest; what is finished stays as it is.
    capsys.readouterr()
    metrics_file = pair_folder / "repe" / "metrics.json"
    written_at = metrics_file.stat().st_mtime_ns
    assert train() == 0
    finished_rows = dict.fromkeys(
        ("de_to_en baseline", "de_to_en repe"), ("finished", "0")
    )
    assert read_plan(capsys.readouterr().err) == {**expected, **finished_rows}
    assert metrics_file.stat().st_mtime_ns == written_at
    assert train("--plan", "--set", "training.seed=8") == 0
    plan = read_plan(capsys.readouterr().err)
    assert {state for state, _ in plan.values()} == {
        "a run with other settings"
    }
    labels = [row[1] for row in table_rows(folder, "pt_to_en")]
    assert labels[0] == labels[2] == "paper"
    assert "on pt_to_en from text" in labels[1]


AZ_AND_GL = ("az_to_en", "gl_to_en")


def plan_work(
    monkeypatch, tmp_path, error, missing, overrides=(), pairs=AZ_AND_GL
):
    """What is run of a recipe on these pairs, if the text of some is missing."""
    text = embedded.load()

    def find(source, pair):
        if source in ("auto", "ted") and pair in missing:
            raise error(f"{pair} is missing.")
        return text

    monkeypatch.setattr("reprt_lab.work.find", find)
    settings = ["text.source=auto", "training.epochs=4", *overrides]
    recipe = load_recipe(Path("pt_to_en"), settings, pairs)
    return find_work(recipe, [], tmp_path, Progress())


@pytest.mark.parametrize("missing", [["az_to_en", "gl_to_en"], ["az_to_en"]])
def test_the_fallback_is_run_where_no_pair_was_found(
    tmp_path, monkeypatch, missing
):
    (work,) = plan_work(monkeypatch, tmp_path, NothingFound, missing)
    fallback = len(missing) == 2
    name = "pt_to_en_embedded" if fallback else "pt_to_en"
    assert work.recipe.models == load_recipe(Path(name)).models
    for run in work.runs:
        assert run.training.epochs == 4
        # The fallback has a pair of its own, whatever was asked for.
        assert run.text.pair == ("pt_to_en" if fallback else "gl_to_en")


def test_the_fallback_does_not_take_a_pair_that_was_set(tmp_path, monkeypatch):
    overrides = ["text.pair=az_to_en"]
    (work,) = plan_work(
        monkeypatch, tmp_path, NothingFound, ["az_to_en"], overrides, pairs=()
    )
    assert {run.text.pair for run in work.runs} == {"pt_to_en"}


@pytest.mark.parametrize(
    "name, source", [("pt_to_en", "embedded"), ("pt_to_en_embedded", None)]
)
def test_the_embedded_text_has_one_set_of_runs(monkeypatch, name, source):
    def find(source, pair):
        if source == "embedded":
            return embedded.load()
        raise NothingFound("No TED.")

    monkeypatch.setattr("reprt_lab.work.find", find)
    (default_work,) = find_work(
        load_recipe(Path("pt_to_en")), [], None, Progress()
    )
    recipe = load_recipe(Path(name), pairs=["pt_to_en"], source=source)
    (work,) = find_work(recipe, [], None, Progress())
    assert (
        work.folder
        == default_work.folder
        == Path("runs/pt_to_en_embedded/embedded-corpus")
    )
    assert work.runs == default_work.runs


def test_a_text_that_is_named_stays(tmp_path, monkeypatch):
    pairs = ["az_to_en", "gl_to_en"]
    with pytest.raises(TextUnavailable, match="az_to_en is missing"):
        plan_work(monkeypatch, tmp_path, TextUnavailable, pairs)
    # The fallback's schedule has no `dim`, which matters only where it is run.
    keywords = {"overrides": ["schedule.dim=64"]}
    (work,) = plan_work(
        monkeypatch, tmp_path, NothingFound, pairs[:1], **keywords
    )
    assert {run.schedule.dim for run in work.runs} == {64}
    match = "of pt_to_en_embedded with .*: Unknown key 'dim'"
    with pytest.raises(ValueError, match=match):
        plan_work(monkeypatch, tmp_path, NothingFound, pairs, **keywords)


TOKEN_OVERRIDES = [
    "training.steps=50",
    "batching.name='tokens'",
    "batching.size=40",
]


@pytest.mark.parametrize("overrides", [["training.epochs=4"], TOKEN_OVERRIDES])
def test_plans_go_by_a_runs_steps(folder, tmp_path, monkeypatch, overrides):
    monkeypatch.setenv("REPRT_CACHE", str(folder / "cache"))
    source = [f"text.source='{folder / 'text'}'", "trials.pairs=['pt_to_en']"]
    recipe = load_recipe(folder / "tiny.toml", [*overrides, *source])
    work = find_work(recipe, ["repe"], tmp_path, Progress())
    run = RunFolder(work[0].folder / "repe")
    run.checkpoints.mkdir(parents=True)
    step, steps = 3, 12
    if overrides is TOKEN_OVERRIDES:
        lengths = work[0].encode(Progress()).train.lengths
        steps = 50
        # The first epoch has ended, whose steps are more than those of sentences.
        step = BatchPlan(lengths, 40, "tokens").steps
        assert 5 < step < 33
    (run.checkpoints / f"step-{step:08d}.npz").touch()
    expected = f"at step {step} of {steps}", f"{steps - step}"
    plan = make_plan(work)
    assert read_plan(plan) == {"pt_to_en repe": expected}
    assert f"Together {expected[1]} steps: about" in plan


def test_a_schedule_that_does_not_fit_is_named_by_the_plan(
    folder, tmp_path, monkeypatch
):
    monkeypatch.setenv("REPRT_CACHE", str(folder / "cache"))
    overrides = [
        f"text.source='{folder / 'text'}'",
        "trials.pairs=['pt_to_en']",
        "schedule.name='cosine'",
        "schedule.warmup_steps=800",
    ]
    recipe = load_recipe(folder / "tiny.toml", overrides)
    work = find_work(recipe, ["repe"], tmp_path, Progress())
    with pytest.raises(ValueError, match="Set fewer `warmup_steps`"):
        make_plan(work)
