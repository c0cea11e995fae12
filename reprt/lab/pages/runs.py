"""Runs, live or frozen, as pages read them.

A folder's runs are its run folders, those of its `runs.jsonl`, and those that its
`selection.toml` takes from other folders:

    "../ablation/az_to_en" = ["baseline.text", "repe.text.0"]

names a folder and the beginnings of its runs' names, up to a dot. `page.toml` says how
a page shows the models; what it leaves out is said by that of the other folder.
"""

import statistics
from pathlib import Path

from reprt.files import is_unfinished
from reprt.lab import paper
from reprt.lab.folder import RunFolder
from reprt.lab.pages import SETTINGS
from reprt.lab.recipe import Look, PageSettings, named
from reprt.lab.records import Epoch, Record, RunFolderError, read_records
from reprt.presets import PRESETS
from reprt.reading import read_toml

RUNS, SELECTION, NOTES = "runs.jsonl", "selection.toml", "notes.md"


class Run(Record):
    """A run with its look."""

    look: Look

    @property
    def name(self) -> str:
        """MODEL, or MODEL.SCHEDULE.SEED."""
        return self.settings.name

    @property
    def model(self) -> str:
        """The model's name in its recipe."""
        return self.name.split(".")[0]

    @property
    def schedule(self) -> str:
        return ".".join(self.name.split(".")[1:-1])

    @property
    def seed(self) -> int:
        return self.settings.training.seed

    @property
    def label(self) -> str:
        """What pages call the model."""
        return self.look.label or self.model

    @property
    def finished(self) -> bool:
        return self.metrics is not None

    @property
    def pair(self) -> str:
        return self.settings.text.pair

    @property
    def rate(self) -> str:
        """What its learning rate follows from, in short."""
        if self.settings.schedule_dim is not None:
            return f"m = {self.settings.schedule_dim}"
        return f"{self.settings.schedule.name} from {self.settings.schedule.peak:g}"

    @property
    def paper(self) -> paper.Result | None:
        """The paper's result; None for a variant of its models, or another pair."""
        if self.settings.departures:
            return None
        return paper.TABLE_1.get(self.pair, {}).get(self.settings.preset)

    @property
    def seconds(self) -> list[float]:
        """Those of training, epoch by epoch."""
        return [row["train_seconds"] for row in self.log]

    @property
    def last(self) -> Epoch:
        """The last epoch's row; of a mean of models, with its own validation losses."""
        measured = {"val_loss", "val_loss_per_token"}
        own = self.metrics.model_dump(include=measured) if self.metrics else {}
        return {**self.log[-1], **{n: v for n, v in own.items() if v is not None}}

    @property
    def numbers(self) -> dict[str, float]:
        """What was measured; what was not is left out.

        Losses are those of `last`: as Keras reports them, or per token. The time of an
        epoch is their median, which forgets one in which the machine slept.
        """
        found: dict[str, float] = {}
        if self.metrics:
            found = self.metrics.model_dump(exclude_none=True)
            for score in self.metrics.test_scores:
                if (score.metric, score.form) == ("chrF", "corpus tokens"):
                    found["test_chrf"] = score.value
        if self.log:
            seconds = statistics.median(self.seconds)
            tokens = statistics.median(row["train_tokens"] for row in self.log)
            found |= self.last | {
                "seconds_an_epoch": seconds,
                "tokens_per_second": tokens / seconds,
                "train_seconds": sum(self.seconds),
            }
        return {**found, "epochs": len(self.log)}


def page_settings(folder: Path, name: str | None = None) -> PageSettings:
    """Returns what the `page.toml` in a folder says of its page.

    Args:
        folder: the folder.
        name: the page, instead of the one that the file names. If neither does, trials
            are compared, and other runs are reported on.
    """
    settings = _said(folder)
    name = name or settings.name
    if name is None:
        trials = any("." in run.name for run in read_runs(folder))
        name = "comparison" if trials else "report"
    return settings.changed(name=name)


def read_runs(folder: Path) -> list[Run]:
    """Returns the runs on one text in a folder, the paper's models first.

    Raises:
        RunFolderError: if there is none, or their texts or vocabularies differ: their
            losses cannot be compared then.
    """
    (first, *_), *others = read_texts(folder)
    if others:
        raise RunFolderError(
            f"Expected the runs in {folder} to be on the same text, with the same "
            f"vocabularies. Those of {first.name} and {others[0][0].name} differ."
        )
    return read_texts(folder)[0]


def read_texts(folder: Path) -> list[list[Run]]:
    """Returns the runs in a folder, those on one text together.

    Raises:
        RunFolderError: if there is none.
    """
    found = _own_runs(folder)
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
        found += named(there, beginnings)
    if not found:
        raise RunFolderError(
            f"Expected a folder with run folders in it. Received: {folder}, without "
            f"any, and without the {RUNS} of a frozen experiment."
        )
    presets = list(PRESETS)
    found.sort(
        key=lambda run: (
            -presets.index(run.settings.preset),
            run.name != run.settings.preset,
            run.name,
        )
    )
    texts: dict[tuple, dict[str, Run]] = {}
    for run in found:  # one that is frozen and selected, or linked to, is one
        name = run.manifest.text
        texts.setdefault((name.lower(), name, run.manifest.hashes), {})[run.name] = run
    return [list(texts[text].values()) for text in sorted(texts)]


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
    models = [record.settings.name.split(".")[0] for record in records]
    return [
        Run(**dict(record), look=looks.get(model, Look()))
        for record, model in zip(records, models)
    ]


def _said(folder: Path) -> PageSettings:
    path = folder / SETTINGS
    values = read_toml(path) if path.exists() else {}
    return PageSettings.read(values, str(path))
