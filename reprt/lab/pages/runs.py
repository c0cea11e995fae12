"""Runs, live or frozen, as pages read them.

A folder's runs are its run folders, those of its frozen experiment, and those that its
`selection.toml` takes from other folders:

    "../ablation/az_to_en" = ["baseline.text", "repe.text.0"]

names a folder and the beginnings of its runs' names, up to a dot.
"""

import collections
import dataclasses
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reprt.lab import paper
from reprt.analysis.cost import Cost
from reprt.files import is_unfinished
from reprt.presets import PRESETS
from reprt.reading import read_toml
from reprt.lab.pages.frozen import RUNS, Record, is_frozen, read_frozen
from reprt.lab.recipe import named
from reprt.lab.records import RunFolderError
from reprt.training.settings import RunSettings, flat, usual_settings
from reprt.schema import check

SELECTION = "selection.toml"
MEASURED = (
    "parameters",
    "peak_memory_bytes",
    "val_prefix_loss_per_token",
    "test_prefix_loss_per_token",
    "test_bleu",
)
# Settings that are no departure from the paper, whatever they are.
NO_DEPARTURES = {
    "text.pair",
    "text.source",
    "training.bleu",
    "training.checkpoint_minutes",
    "training.deterministic",
    "training.keep_every",
    "training.seed",
    "training.tensorboard",
}


@dataclasses.dataclass(frozen=True)
class Run(Record):
    """A run, as pages ask of it."""

    @property
    def results(self) -> Mapping[str, Any]:
        """Its metrics; empty while it is unfinished."""
        return self.metrics or {}

    @property
    def preset(self) -> str:
        return self.settings["preset"]

    @property
    def model(self) -> str:
        """The model's name in its recipe; the run's is MODEL.SCHEDULE.SEED."""
        return self.name.split(".")[0]

    @property
    def label(self) -> str:
        """What pages call the model."""
        return self.settings.get("label") or self.model

    @property
    def colour(self) -> str | None:
        """The model's in pictures; None if its recipe gives none."""
        return self.settings.get("colour")

    @property
    def reference(self) -> bool:
        """Whether pages give the other models' differences from this one."""
        return bool(self.settings.get("reference"))

    @property
    def schedule(self) -> str:
        return ".".join(self.name.split(".")[1:-1])

    @property
    def schedule_dim(self) -> int | None:
        """The paper's m, from which the rate follows; None where its peak is given."""
        if "peak" in self.settings["schedule"]:
            return None
        own = self.settings["model"]["embedding_dim"]
        return self.settings["schedule"].get("dim", own)

    @property
    def rate(self) -> str:
        """What its learning rate follows from, in short."""
        if self.schedule_dim is not None:
            return f"m = {self.schedule_dim}"
        schedule = self.settings["schedule"]
        return f"{schedule['name']} from {schedule['peak']:g}"

    @property
    def seed(self) -> int:
        return self.settings["training"]["seed"]

    @property
    def looks_ahead(self) -> bool:
        """Whether its decoder sees words to come, as its model said."""
        return self.manifest["looks_ahead"]

    @property
    def paper(self) -> paper.Result | None:
        """The paper's result; None for a variant of its models, or another pair."""
        if self.departures:
            return None
        return paper.TABLE_1.get(self.settings["text"]["pair"], {}).get(self.preset)

    @property
    def departures(self) -> list[str]:
        """The settings that are not the paper's."""
        usual, here = flat(usual_settings(self.preset)), flat(self.settings)
        # The paper's is as wide as the model's own embedding.
        usual["schedule.dim"] = here["model.embedding_dim"]
        return [
            f"{name} = {value}"
            for name, value in here.items()
            if "." in name and name not in NO_DEPARTURES and value != usual.get(name)
        ]

    @property
    def text_hashes(self) -> list[str]:
        return [value for name, value in self.manifest.items() if "sha256" in name]

    @property
    def seconds(self) -> list[float]:
        return [row["train_seconds"] for row in self.log]

    @property
    def seconds_an_epoch(self) -> float:
        """The median of its epochs, which forgets one in which the machine slept."""
        return statistics.median(self.seconds)

    @property
    def cost(self) -> Cost | None:
        """What its training cost; None if its results do not tell."""
        return Cost.of_results(self.results, sum(self.seconds))

    @property
    def last(self) -> Mapping[str, float]:
        """The last epoch's row; of a mean of models, with its own validation losses."""
        measured = ("val_loss", "val_loss_per_token")
        own = {name: self.results[name] for name in measured if name in self.results}
        return {**self.log[-1], **own}

    @property
    def numbers(self) -> dict[str, float]:
        """What was measured; what was not measured yet is left out.

        Losses are those of `last`: as Keras reports them, or per token.
        """
        found: dict[str, float] = {"epochs": len(self.log)}
        if self.log:
            names = ("train_loss", "val_loss")
            for name in (*names, *(f"{name}_per_token" for name in names)):
                found[name] = self.last[name]
            tokens = statistics.median(row["train_tokens"] for row in self.log)
            found["seconds_an_epoch"] = self.seconds_an_epoch
            found["tokens_per_second"] = tokens / self.seconds_an_epoch
        if self.cost:
            found |= dataclasses.asdict(self.cost)
        for name in MEASURED:
            if name in self.results:
                found[name] = self.results[name]
        for score in self.results.get("test_scores", ()):
            if (score["metric"], score["form"]) == ("chrF", "corpus tokens"):
                found["test_chrf"] = score["value"]
        return found


def read_texts(folder: Path) -> list[list[Run]]:
    """Reads the runs of several texts, or of one; those of a text stand together.

    Args:
        folder: a folder with runs, or with a folder of them for each text.

    Raises:
        RunFolderError: if there is no run.
    """
    texts: dict[tuple, list[Run]] = {}
    for run in _read(folder, "*/config.toml", "*/*/config.toml"):
        name = run.manifest["text"]
        texts.setdefault((name.lower(), name, *run.text_hashes), []).append(run)
    return [texts[text] for text in sorted(texts)]


def read_runs(folder: Path) -> list[Run]:
    """Reads every run in a folder, the paper's models first.

    Raises:
        RunFolderError: if there is none, or their texts or vocabularies differ: their
            losses cannot be compared then.
    """
    runs = _read(folder, "*/config.toml")
    for run in runs[1:]:
        if run.text_hashes != runs[0].text_hashes:
            raise RunFolderError(
                f"Expected the runs in {folder} to be on the same text, with the same "
                f"vocabularies. Those of {runs[0].name} and {run.name} differ."
            )
    return runs


def _read(folder: Path, *configs: str) -> list[Run]:
    runs = own_runs(folder, *configs)
    path = folder / SELECTION
    if path.exists():
        selection = read_toml(path)
        check(selection, dict[str, list[str]], str(path))
        for other, names in selection.items():
            there = own_runs(folder / other, *configs)
            for name in names:
                found = named(there, [name])
                if not found:
                    raise RunFolderError(
                        f"Expected the runs of {path} to be in {folder / other}. "
                        f"Received: {name!r}, which is not."
                    )
                runs += found
    if not runs:
        raise RunFolderError(
            f"Expected a folder with run folders in it. Received: {folder}, without "
            "any, and without the runs.csv of a frozen experiment."
        )
    counts = collections.Counter(
        (run.manifest["text"], *run.text_hashes, run.name) for run in runs
    )
    twice = sorted(names[-1] for names, count in counts.items() if count > 1)
    if twice:
        raise RunFolderError(
            f"Expected each run of {folder} once. Received {', '.join(twice)} more "
            f"often: see its run folders, {RUNS} and {SELECTION}."
        )
    presets = list(PRESETS)
    return sorted(
        runs,
        key=lambda run: (-presets.index(run.preset), run.name != run.preset, run.name),
    )


def own_runs(folder: Path, *configs: str) -> list[Run]:
    """Returns the runs that a folder itself holds.

    Args:
        folder: the folder.
        *configs: patterns of the `config.toml` of its run folders.

    Raises:
        RunFolderError: if the log of one has not the epochs that its results say.
    """
    from reprt.lab.folder import RunFolder  # which needs tomli-w

    runs = []
    found = [path for each in configs for path in folder.glob(each)]
    # A link may lead to a run once more.
    for config in sorted({path.resolve(): path for path in found}.values()):
        live = RunFolder(config.parent)
        if is_unfinished(live.path):
            continue
        run = Run(live.settings(), live.manifest(), live.log(), live.metrics())
        epochs = run.results.get("epochs", len(run.log))
        if epochs != len(run.log):
            raise RunFolderError(
                f"Expected {live.path / 'log.csv'} to have {epochs} epochs, as "
                f"metrics.json says. Received: {len(run.log)}."
            )
        runs.append(run)
    if is_frozen(folder):
        for record in read_frozen(folder):
            settings = RunSettings.from_tables(record.settings, str(folder)).as_tables()
            runs.append(Run(**{**vars(record), "settings": settings}))
    return runs
