"""Runs, live or frozen, as pages read them.

A folder's runs are its run folders, those of its `runs.jsonl`, and those that its
`selection.toml` takes from other folders:

    "../ablation/az_to_en" = ["baseline.text", "repe.text.0"]

names a folder and the beginnings of its runs' names, up to a dot. `page.toml` says how
a page shows the models; what it leaves out is said by that of the other folder.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path

from reprt.files import is_unfinished, read_text, read_toml
from reprt.lab.folder import RunFolder
from reprt.lab.pages import SETTINGS
from reprt.lab.recipe import Look, PageSettings, named
from reprt.lab.records import Record, RunFolderError, read_records
from reprt.presets import PRESETS

RUNS, SELECTION, NOTES = "runs.jsonl", "selection.toml", "notes.md"


class Run(Record):
    """A run with its look."""

    look: Look

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def model(self) -> str:
        """The model's name in its recipe."""
        return self.name.split(".")[0]

    @property
    def schedule(self) -> str:
        return ".".join(self.name.split(".")[1:-1])

    @property
    def label(self) -> str:
        """What pages call the model."""
        return self.look.label or self.model

    @property
    def seed(self) -> int:
        return self.settings.training.seed

    @property
    def pair(self) -> str:
        return self.settings.text.pair

    @property
    def text(self) -> str:
        return self.manifest.text

    @property
    def looks_ahead(self) -> bool:
        """Whether its decoder sees words to come."""
        return self.manifest.looks_ahead

    @property
    def finished(self) -> bool:
        return bool(self.metrics and self.log)

    @property
    def departures(self) -> str:
        return ", ".join(self.settings.departures)

    @property
    def rate(self) -> str:
        """What its learning rate follows from, in short."""
        if self.settings.schedule_dim is not None:
            return f"m = {self.settings.schedule_dim}"
        return f"{self.settings.schedule.name} from {self.settings.schedule.peak:g}"

    @property
    def numbers(self) -> dict[str, float]:
        """What was measured; what was not is left out.

        Losses are the last epoch's; those of a mean of models are its own. The time of
        an epoch is the median, which forgets one in which the machine slept.
        """
        found: dict[str, float] = {}
        if self.log:
            seconds = [row["train_seconds"] for row in self.log]
            tokens = statistics.median(row["train_tokens"] for row in self.log)
            found = self.log[-1] | {
                "train_seconds": sum(seconds),
                "seconds_an_epoch": statistics.median(seconds),
                "tokens_per_second": tokens / statistics.median(seconds),
            }
        if self.metrics:
            found |= self.metrics.model_dump(exclude_none=True)
            for score in self.metrics.test_scores:
                if (score.metric, score.form) == ("chrF", "corpus tokens"):
                    found["test_chrf"] = score.value
        return found | {"epochs": len(self.log)}


def page_settings(
    folder: Path, texts: Sequence[Sequence[Run]], name: str | None = None
) -> PageSettings:
    """Returns what the `page.toml` in a folder says of its page.

    The name of the page comes first from the argument, then from the file, then from
    the runs.
    """
    settings = _said(folder)
    name = name or settings.name
    if name is None:
        runs, *others = texts
        trials = any("." in run.name for run in runs)
        name = "families" if others else "comparison" if trials else "report"
    return settings.changed(name=name)


def read_texts(folder: Path) -> list[list[Run]]:
    """Returns the runs in a folder, those on one text together, the paper's first."""
    runs = _own_runs(folder)
    path = folder / SELECTION
    selection = read_toml(path) if path.exists() else {}
    for other, beginnings in selection.items():
        there = _own_runs(folder / other, _said(folder))
        for each in beginnings:
            if not named(there, [each]):
                raise RunFolderError(
                    f"Expected the runs of {path} to be in {folder / other}. Received: "
                    f"{each!r}, which is not."
                )
        runs += named(there, beginnings)
    if not runs:
        raise RunFolderError(
            f"Expected a folder with run folders in it. Received: {folder}, without "
            f"any, and without the {RUNS} of a frozen experiment."
        )
    presets = list(PRESETS)
    texts: dict[tuple, dict[tuple, Run]] = {}
    for run in runs:  # one that is frozen and selected, or linked to, is one
        text = run.text.lower(), run.text, run.manifest.hashes
        preset = run.settings.preset
        identity = str(run.settings.identity)
        order = -presets.index(preset), run.name != preset, run.name, identity
        texts.setdefault(text, {})[order] = run
    return [
        [found[order] for order in sorted(found)] for _, found in sorted(texts.items())
    ]


def _own_runs(folder: Path, first: PageSettings = PageSettings()) -> list[Run]:
    """The runs that a folder itself holds, or its folders of texts."""
    records = [
        RunFolder(path.parent).record()
        for pattern in ("*/config.toml", "*/*/config.toml")
        for path in sorted(folder.glob(pattern))
        if not is_unfinished(path.parent)
    ]
    if (folder / RUNS).exists():
        records += read_records(folder / RUNS)
    looks = _said(folder).models | first.models
    return [
        Run(**dict(each), look=looks.get(each.settings.name.split(".")[0], Look()))
        for each in records
    ]


def _said(folder: Path) -> PageSettings:
    path = folder / SETTINGS
    return PageSettings.read(read_toml(path) if path.exists() else {}, str(path))


def notes(folder: Path) -> str:
    """Returns the folder's `notes.md`, or nothing."""
    path = folder / NOTES
    return read_text(path).strip() if path.exists() else ""
