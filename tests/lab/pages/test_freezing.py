"""Runs come back as they were, from folders, frozen files and other experiments."""

import pytest
from fake_runs import row

from reprt.data.corpora.embedded import NAME as EMBEDDED
from reprt_lab.command import main
from reprt_lab.pages import write_page
from reprt_lab.pages.freeze import freeze
from reprt_lab.pages.runs import page_settings, read_texts

pytestmark = pytest.mark.usefixtures("figures")
EXAMPLE = {"source": 'o "não", 1 | 2', "reference": "17", "translation": ""}
SCORE = {
    "metric": "chrF",
    "form": "corpus tokens",
    "value": 1e-7,
    "signature": "c|s",
}
METRICS = {
    "parameters_without_tables": 10**6,
    "train_source_tokens": 40_000,
    "train_target_tokens": 12_000,
    "train_flops": 3 * 10**17 + 1,
    "val_prefix_loss_per_token": 1 / 3,
    "test_bleu": 31.25,
    "test_bleu_signature": "BLEU|corpus tokens",
    "test_scores": [SCORE],
    "examples": [EXAMPLE],
}


@pytest.fixture
def experiment(add):
    """A folder of two finished trials and one under way, in which much differs."""
    rows = [row(1, 4.0, 1 / 3, 60.25), row(2, float("nan"), 2e-5)]
    add(
        "repe.text.3",
        rows,
        METRICS,
        EMBEDDED,
        training={"seed": 3, "hours": 10.0},
    )
    add(
        "baseline.text.0",
        rows,
        METRICS,
        EMBEDDED,
        schedule={"dim": 64},
        starts=2,
    )
    folder = add(
        "repe-deep.text.0", rows[:1], None, EMBEDDED, model={"num_blocks": 4}
    )
    (folder / "page.toml").write_text('[models.repe]\nlabel = "ours"')
    (folder / "notes.md").write_text("What a person has to say.\n")
    return folder


def test_a_run_comes_back_as_it_was(experiment, tmp_path_factory):
    out = tmp_path_factory.mktemp("frozen")
    folder, unfinished_runs = freeze(experiment, out)
    assert folder == out and unfinished_runs == ["repe-deep.text.0"]
    names = {path.name for path in out.iterdir()}
    assert names >= {"runs.jsonl", "page.toml", "notes.md", "comparison.md"}
    assert repr(read_texts(out)[0]) == repr(
        read_texts(experiment)[0]
    )  # nan equals nothing
    page = (out / "comparison.md").read_text()
    assert page == write_page(experiment).read_text()
    assert "What a person has" in page
    assert "ours" in {run.label for run in read_texts(out)[0]}
    text = (
        (out / "runs.jsonl").read_text().replace('"seed":3', '"seed":"three"')
    )
    (out / "runs.jsonl").write_text(text)
    with pytest.raises(
        ValueError, match="'settings.training.seed' in line 3 of"
    ):
        read_texts(out)


def test_the_command_names_the_runs_that_are_not_finished(
    experiment, tmp_path, capsys
):
    out = tmp_path / "frozen"
    assert main(["freeze", str(experiment), "--out", str(out)]) == 0
    output = capsys.readouterr()
    assert str(out) in output.out and "repe-deep.text.0" in output.err


def test_texts_are_frozen_together_without_their_sentences(
    add, tmp_path_factory
):
    for text in ("TED-HRLR az_to_en", "az_to_en, tokenised"):
        add(
            "repe",
            [row(1, 4.0, 3.5)],
            METRICS,
            text,
            "az_to_en",
            subfolder=text,
        )
        experiment = add(
            "baseline", [row(1, 4.0, 3.5)], {}, text, "az_to_en", subfolder=text
        )
    (experiment / "page.toml").write_text('name = "readings"')
    out, unfinished_runs = freeze(experiment, tmp_path_factory.mktemp("frozen"))
    assert not unfinished_runs
    assert [len(runs) for runs in read_texts(out)] == [2, 2]
    page = write_page(experiment)
    assert (out / "readings.md").read_text() == page.read_text()
    assert write_page(out, "readings") == out / "readings.md"
    with pytest.raises(
        ValueError, match="frozen .* 'readings'. Received: --name fam"
    ):
        write_page(out, "families")
    assert not (out / "families.md").exists()
    assert not [
        path for path in out.iterdir() if "não".encode() in path.read_bytes()
    ]
    with pytest.raises(ValueError, match="on the same text, .* differ"):
        write_page(experiment, "report")


def test_a_frozen_experiment_loses_no_finished_run(
    experiment, add, tmp_path_factory
):
    out, _ = freeze(experiment, tmp_path_factory.mktemp("frozen"))
    add(
        "repe-deep.text.1",
        [row(1, 4.0, 3.0)],
        {},
        EMBEDDED,
        training={"seed": 1},
    )
    freeze(experiment, out)
    assert len(read_texts(out)[0]) == 4
    content = (out / "runs.jsonl").read_bytes()
    (experiment / "repe.text.3" / "metrics.json").unlink()
    config = experiment / "baseline.text.0" / "config.toml"
    config.write_text(config.read_text().replace("seed = 0", "seed = 4"))
    with pytest.raises(
        ValueError, match="finished: baseline.text.0, repe.text.3"
    ):
        freeze(experiment, out)
    assert (out / "runs.jsonl").read_bytes() == content
    (out / "runs.jsonl").rename(out / "mine")
    with pytest.raises(ValueError, match="with other files. Choose another"):
        freeze(experiment, out)


def test_a_selection_takes_runs_with_their_look(experiment, tmp_path_factory):
    frozen_folder, _ = freeze(experiment, tmp_path_factory.mktemp("frozen"))
    folder = tmp_path_factory.mktemp("page")
    for source in (experiment, frozen_folder):
        names = '["repe", "repe.text.3", "baseline.text.0"]'
        (folder / "selection.toml").write_text(f'"{source}" = {names}\n')
        labels = {run.name: run.label for run in read_texts(folder)[0]}
        assert labels == {"baseline.text.0": "baseline", "repe.text.3": "ours"}
    (folder / "page.toml").write_text('[models.repe]\nlabel = "mine"')
    assert [run.label for run in read_texts(folder)[0]] == ["baseline", "mine"]
    config = experiment / "repe.text.3" / "config.toml"
    config.write_text(config.read_text().replace("epochs = 10", "epochs = 4"))
    selection = f'"{experiment}" = ["repe"]\n"{frozen_folder}" = ["repe"]\n'
    (folder / "selection.toml").write_text(selection)
    epochs = [run.settings.training.epochs for run in read_texts(folder)[0]]
    # Two runs of one name are not the same run.
    assert sorted(epochs) == [4, 10]
    (folder / "selection.toml").write_text(f'"{frozen_folder}" = ["rep"]\n')
    with pytest.raises(
        ValueError, match="selection.toml, .* has the runs .*: rep\\."
    ):
        read_texts(folder)


def test_a_folder_without_runs_is_refused(add):
    folder = add("repe", [row(1, 3.0, 2.0)])
    (folder / "repe").rename(folder / ".reprt-0123456789ab")  # it is being made
    with pytest.raises(ValueError, match="with run folders in it"):
        freeze(folder)


def test_trials_are_compared_and_other_runs_reported_on(add):
    def page(folder, name=None):
        return page_settings(folder, read_texts(folder), name).name

    runs = add("repe", subfolder="a") / "a"
    trials = add("repe.0", subfolder="b") / "b"
    assert page(runs) == "report" and page(trials) == "comparison"
    assert page(trials, "table1") == "table1"
    add("repe.0", text="another", subfolder="b/another")
    assert page(trials) == "families"
    (trials / "page.toml").write_text('name = "figure3"')
    assert page(trials) == "figure3"
    with pytest.raises(ValueError, match="^Expected 'name' in .*: 'figure4'.$"):
        page(trials, "figure4")
