"""The folder of one run: what was asked, on what, with what, and what came out."""

import contextlib
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from reprt.data.encoding import EncodedCorpus
from reprt.files import (
    file_lock,
    is_unfinished,
    whole_file,
    whole_folder,
    write_text,
)
from reprt.lab.provenance import provenance
from reprt.lab.records import (
    Epoch,
    Manifest,
    Metrics,
    Record,
    RunFolderError,
    SentencePairs,
    log_text,
    read_log,
)
from reprt.reading import read_json
from reprt.training.settings import TABLES, RunSettings, settings_of


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """Reads and writes the files of one run.

    | file | what it holds |
    |---|---|
    | `config.toml` | every setting, resolved |
    | `manifest.json` | text, vocabularies; of each start: versions, devices, commit |
    | `source.vocab`, `target.vocab` | the vocabularies, one piece a line; of BPE |
    | or `source.spm`, `target.spm` | models of sentencepiece |
    | `log.csv` | one row an epoch, written as it ends |
    | `checkpoints/` | the last two states of the training |
    | `model.keras` | the model after the last finished epoch; once the run has |
    | | finished, with `average`, the mean of its last models |
    | `models/` | those of earlier steps, as many as `average` says |
    | `metrics.json` | the results, once the run has finished |

    Args:
        path: the folder.
        writable: False in workers that train a run whose folder another one writes;
            they only read it.
        command: the command line that a start notes; None for this process's.
    """

    path: Path
    writable: bool = True
    command: str | None = None

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def model(self) -> Path:
        return self.path / "model.keras"

    @contextlib.contextmanager
    def claimed(self):
        """Keeps the run to this process while the context lasts.

        Yields:
            False while another process works on the run, else True.
        """
        if not self.writable:
            yield True
            return
        lock = self.path.with_name(f".{self.path.name}.lock")
        with file_lock(lock, wait=False) as mine:
            yield mine

    def open(self, settings: RunSettings, text: EncodedCorpus):
        """Makes the folder, or checks that it holds this very run.

        Raises:
            RunFolderError: if the folder holds anything else, naming what differs.
                Nothing is changed then.
        """
        if not self.writable:
            return
        manifest = Manifest(
            text=text.corpus.name,
            text_sha256=text.corpus.digest(),
            source_vocabulary_sha256=text.source_tokenizer.digest(),
            target_vocabulary_sha256=text.target_tokenizer.digest(),
            origin=text.corpus.origin,
            official_text=text.corpus.official,
            unknown=text.unknown,
            sentence_pairs=SentencePairs(
                train=len(text.train), dev=len(text.dev), test=len(text.test)
            ),
        )
        if (self.path / "config.toml").exists():
            self._check_same(settings, manifest)
            if self.metrics() is None:  # some settings may change when a run goes on
                self._write("config.toml", tomli_w.dumps(settings.as_table()))
        elif self.path.exists() and any(self.path.iterdir()):
            raise RunFolderError(
                f"Expected {self.path} to be empty or a run folder. Received a folder "
                "with other files. Choose another --out."
            )
        else:
            self._check_neighbours(manifest)
            with whole_folder(self.path) as unfinished:
                RunFolder(unfinished)._fill(settings, manifest, text)

    def _check_neighbours(self, manifest: Manifest):
        # They share a report, which sets their losses side by side.
        for path in sorted(self.path.parent.glob("*/manifest.json")):
            if is_unfinished(path.parent):
                continue
            other = RunFolder(path.parent).manifest()
            if other.hashes != manifest.hashes:
                raise RunFolderError(
                    f"{path.parent} holds a run on another text, {other.text}, or with "
                    "other vocabularies. Choose another --out."
                )

    def _fill(self, settings, manifest, text: EncodedCorpus):
        for side in ("source", "target"):
            tokenizer = getattr(text, f"{side}_tokenizer")
            tokenizer.write(self.path / f"{side}{tokenizer.ending}")
        self._write_json("manifest.json", manifest.as_table())
        self._write("config.toml", tomli_w.dumps(settings.as_table()))

    def _check_same(self, settings: RunSettings, manifest: Manifest):
        saved, there = self.settings().identity, self.manifest()
        asked = settings.identity
        told = [
            f"{name}: {_value(saved, name)!r} there, {_value(asked, name)!r} asked for"
            for name in _names(saved, asked)
            if _value(saved, name) != _value(asked, name)
        ]
        if there.hashes != manifest.hashes:
            told.append(f"text or vocabularies: {there.text} there")
        if told:
            raise RunFolderError(
                f"{self.path} holds a run with other settings: {'; '.join(told)}. "
                "Choose another --out, or remove the folder."
            )

    def add_start(
        self, devices: Sequence[str], accelerators: Sequence[str], looks_ahead: bool
    ):
        """Notes in the manifest that the run begins, or goes on, here and now.

        Args:
            devices: one for each replica.
            accelerators: the names of the GPUs among them.
            looks_ahead: what the model says of itself.
        """
        if not self.writable:
            return
        manifest = self.manifest()
        start = provenance(self.command, devices, accelerators)
        changed = {"looks_ahead": looks_ahead, "starts": [*manifest.starts, start]}
        self._write_json("manifest.json", manifest.changed(**changed).as_table())

    def manifest(self) -> Manifest:
        """Returns on what the run was made; a `RunFolderError` says what is wrong."""
        return self._read(Manifest, read_json, "manifest.json")

    def settings(self) -> RunSettings:
        """Returns what was asked for; a `RunFolderError` says what is wrong."""
        try:
            return settings_of(self.path)
        except (OSError, ValueError) as error:
            raise RunFolderError(str(error)) from error

    def write_log(self, rows: Sequence[Mapping[str, Any]]):
        """Writes one row an epoch."""
        self._write("log.csv", log_text(rows))

    def log(self) -> list[Epoch]:
        """Returns the rows of the finished epochs."""
        return read_log(self.path / "log.csv")

    def metrics(self) -> Metrics | None:
        """Returns the results, or None if the run has not finished."""
        if not (self.path / "metrics.json").exists():
            return None
        return self._read(Metrics, read_json, "metrics.json")

    def write_metrics(self, metrics: Metrics):
        """Writes the results; from then on the run counts as finished."""
        self._write_json("metrics.json", metrics.as_table())

    def record(self) -> Record:
        """Returns all that pages ask of the run."""
        return Record(
            settings=self.settings(),
            manifest=self.manifest(),
            log=self.log(),
            metrics=self.metrics(),
        )

    def save_model(self, model, name: str = "model.keras"):
        """Saves a model, whole or not at all."""
        if self.writable:
            with whole_file(self.path / name) as file:
                model.save(file.name)

    def write_evaluation(self, split: str, result: Mapping[str, Any], table: str):
        """Writes what `reprt evaluate` found, for programs and for people."""
        self._write_json(f"evaluation-{split}.json", result)
        self._write(f"evaluation-{split}.md", table + "\n")

    def _read(self, kind, read, name):
        path = self.path / name
        try:
            return kind.read(read(path), str(path))
        except (OSError, ValueError) as error:
            raise RunFolderError(str(error)) from error

    def _write_json(self, name, content):
        self._write(name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def _write(self, name, text):
        if self.writable:
            write_text(self.path / name, text)


def _names(*runs: RunSettings) -> list[str]:
    """Every setting of some runs, such as `training.seed`."""
    return sorted(
        {
            f"{table}.{name}"
            for run in runs
            for table in ("model", *TABLES)
            for name in type(getattr(run, table)).model_fields
        }
    )


def _value(run: RunSettings, name: str):
    table, key = name.split(".")
    return getattr(getattr(run, table), key, None)
