"""The folder of one run: what was asked, on what, with what, and what came out."""

import contextlib
import csv
import dataclasses
import io
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from reprt import files
from reprt.data.corpora.corpus import SPLITS, Corpus
from reprt.data.encoding import EncodedCorpus
from reprt.decoding.run_folder import read_config, read_vocabularies
from reprt.training.checkpoint import newest_step
from reprt.training.settings import TABLES, RunSettings
from reprt_lab.provenance import provenance
from reprt_lab.records import Epoch, Manifest, Metrics, Run, WrittenSettings


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """Reads and writes the files of one run.

    | file | what it holds |
    |---|---|
    | `config.toml` | every setting, resolved |
    | `manifest.json` | text, vocabularies; of each start: versions, devices, commit |
    | `source.vocab`, `target.vocab` | the vocabularies of WordPiece, a piece a line |
    | `source.spm`, `target.spm` | those of BPE, models of sentencepiece |
    | `log.csv` | one row an epoch, written as it ends |
    | `steps.csv` | with `validate_every`, a row at each of these steps |
    | `checkpoints/` | the last two states of the training |
    | `model.keras` | the model after the last finished epoch; with `best`, the best |
    | | one; with `average`, at the end, the mean of its last models |
    | `last.keras` | with `best`, the model after the last finished epoch |
    | `models/` | with `average`, the models that a mean may be of |
    | `tensorboard/` | with `tensorboard`, the same numbers for TensorBoard |
    | `metrics.json` | the results, once the run has finished |
    | `evaluation-*` | what `reprt evaluate` has measured |

    Where `writable` is False it is only read, by workers of a run whose chief writes
    it.
    """

    path: Path
    writable: bool = True

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def model(self) -> Path:
        return self.path / "model.keras"

    def claim(self) -> contextlib.AbstractContextManager[bool]:
        """Keeps the run to this process; False while another works on it."""
        if not self.writable:
            return contextlib.nullcontext(True)
        return files.file_lock(self._lock_path, wait=False)

    def open(self, settings: RunSettings, text: EncodedCorpus):
        """Makes the folder, or checks that it holds this very run and nothing else."""
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
            **_sizes(text),
            sentence_pairs={
                split: len(getattr(text, split)) for split in SPLITS
            },
        )
        config = self.path / "config.toml"
        if config.exists() and not self.manifest().starts:
            # It never began, because a setting was refused.
            shutil.rmtree(self.path)
        if config.exists():
            self._check_same(settings, manifest)
            read_vocabularies(self.path, type(text.source_tokenizer))
            self._remove_leftovers()
            if not self.is_finished(settings):
                (self.path / "metrics.json").unlink(missing_ok=True)
                # Some settings may change when a run goes on.
                self._write("config.toml", tomli_w.dumps(settings.as_table()))
        elif self.path.exists() and any(self.path.iterdir()):
            raise ValueError(
                f"Expected {self.path} to be empty or a run folder. Received a folder "
                "with other files. Choose another --out."
            )
        else:
            self._check_neighbours(manifest)
            self._check_vocabularies(settings.training.start_from, manifest)
            with files.whole_folder(self.path) as unfinished:
                for side in ("source", "target"):
                    tokenizer = getattr(text, f"{side}_tokenizer")
                    tokenizer.write(unfinished / f"{side}{tokenizer.ending}")
                new = RunFolder(unfinished)
                new._write_json("manifest.json", manifest.as_table())
                new._write("config.toml", tomli_w.dumps(settings.as_table()))

    def _remove_leftovers(self):
        # Only training writes these, and only the process that has claimed the run.
        for folder in (self.checkpoints, self.path / "models"):
            files.remove_unfinished(folder)
        files.remove_unfinished(self.path, f"*{self.model.suffix}")

    def holds_another(self, settings: RunSettings, corpus: Corpus) -> bool:
        """Returns whether there is a run with other settings or on another text."""
        if not (self.path / "config.toml").exists():
            return False
        manifest = self.manifest()
        same_text = manifest.text_sha256 == corpus.digest()
        same = same_text and self.settings().identity == settings.identity
        return bool(manifest.starts) and not same

    def _check_neighbours(self, manifest: Manifest):
        # They share a report, which sets their losses side by side.
        for path in sorted(self.path.parent.glob("*/manifest.json")):
            if files.is_unfinished(path.parent):
                continue
            other = RunFolder(path.parent).manifest()
            if other.starts and other.hashes != manifest.hashes:
                raise ValueError(
                    f"{path.parent} holds a run on another text, {other.text}, or with "
                    "other vocabularies. Choose another --out."
                )

    def _check_vocabularies(self, start_from: str | None, manifest: Manifest):
        """Raises a `ValueError` unless the run that this one starts from has them."""
        if start_from is None:
            return
        folder = Path(start_from)
        if folder.suffix == ".keras":
            folder = folder.parent
        # It says what is no run folder.
        read_config(folder)
        if RunFolder(folder).manifest().hashes[1:] != manifest.hashes[1:]:
            raise ValueError(
                f"Expected {folder}, whose weights are to be taken, to have this run's "
                "vocabularies. Received others. Take its own, by from_run = "
                f"'{folder}' in [vocabulary]."
            )

    def _check_same(self, settings: RunSettings, manifest: Manifest):
        saved_manifest, differences = self.manifest(), []
        saved_values, new_values = _values(self.settings()), _values(settings)
        for name in sorted({*saved_values, *new_values}):
            saved, new = saved_values.get(name), new_values.get(name)
            if saved != new:
                differences.append(
                    f"{name}: {saved!r} there, {new!r} asked for"
                )
        if saved_manifest.hashes != manifest.hashes:
            differences.append(
                f"text or vocabularies: {saved_manifest.text} there"
            )
        if differences:
            raise ValueError(
                f"{self.path} holds a run with other settings: "
                f"{'; '.join(differences)}. Choose another --out, or remove the folder."
            )

    def add_start(
        self,
        devices: Sequence[str],
        accelerators: Sequence[str],
        looks_ahead: bool,
        weights_from: Mapping[str, str] | None = None,
    ):
        """Notes in the manifest that the run begins, or goes on, here and now."""
        if not self.writable:
            return
        manifest = self.manifest()
        start = provenance(devices, accelerators)
        start = start.changed(weights_from=weights_from)
        changed = {
            "looks_ahead": looks_ahead,
            "starts": [*manifest.starts, start],
        }
        self._write_json(
            "manifest.json", manifest.changed(**changed).as_table()
        )

    def manifest(self) -> Manifest:
        return self._read(Manifest, "manifest.json")

    def settings(self) -> RunSettings:
        """Returns what was asked of the run; a key of no setting is a `ValueError`."""
        config = self.path / "config.toml"
        return RunSettings.read(read_config(self.path), str(config))

    def write_log(
        self,
        rows: Sequence[Mapping[str, Any]],
        name: str = "log.csv",
    ):
        """Writes one row an epoch, or for some steps."""
        self._write(name, files.csv_text(rows))

    def log(self, name: str = "log.csv") -> list[Epoch]:
        """Returns the rows of the finished epochs, or those of some steps."""
        path = self.path / name
        if not path.exists():
            return []
        rows = []
        for row in csv.DictReader(io.StringIO(files.read_text(path))):
            rows.append(
                {name: float(cell) for name, cell in row.items() if cell}
            )
        return rows

    def metrics(self) -> Metrics | None:
        """Returns the results, or None if the run has not finished."""
        if not (self.path / "metrics.json").exists():
            return None
        return self._read(Metrics, "metrics.json")

    def is_finished(self, settings: RunSettings) -> bool:
        """Returns whether there are results, and no more time for the run than before.

        A run that was out of time goes on if it is given more hours.
        """
        metrics = self.metrics()
        if metrics is None:
            return False
        has_more_time = settings.training.hours > self.settings().training.hours
        return not (metrics.out_of_time and has_more_time)

    def write_metrics(self, metrics: Metrics):
        """Writes the results; from then on the run counts as finished."""
        self._write_json("metrics.json", metrics.as_table())

    @property
    def _lock_path(self) -> Path:
        return self.path.with_name(f".{self.path.name}.lock")

    def record(self) -> Run:
        config = self.path / "config.toml"
        return Run(
            settings=WrittenSettings.read(files.read_toml(config), str(config)),
            manifest=self.manifest(),
            log=self.log(),
            steps=self.log("steps.csv"),
            metrics=self.metrics(),
            # Only a training makes the file.
            lock=self._lock_path if self._lock_path.exists() else None,
            checkpoint_step=newest_step(self.checkpoints),
        )

    def save_model(self, model, name: str = "model.keras"):
        if self.writable:
            with files.whole_file(self.path / name) as file:
                model.save(file.name)

    def write_evaluation(
        self,
        split: str,
        result: Mapping[str, Any],
        table: str,
    ):
        self._write_json(f"evaluation-{split}.json", result)
        self._write(f"evaluation-{split}.md", table + "\n")

    def _read(self, kind, name):
        return kind.read(
            files.read_json(self.path / name), str(self.path / name)
        )

    def _write_json(self, name, content):
        self._write(
            name, json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        )

    def _write(self, name, text):
        if self.writable:
            files.write_text(self.path / name, text)


def _sizes(text: EncodedCorpus) -> dict[str, Any]:
    """How long sentences are, how many are cut, and how many pieces there are."""
    tokens, cut = {}, {}
    for name in SPLITS:
        split = getattr(text, name)
        source, target = split.tokens
        tokens[name] = {
            "source": float(source.mean()),
            "target": float(target.mean()),
        }
        cut[name] = split.cut
    pieces = {
        "source": len(text.source_tokenizer),
        "target": len(text.target_tokenizer),
    }
    return {"tokens": tokens, "cut": cut, "pieces": pieces}


def _values(run: RunSettings) -> dict[str, Any]:
    """Every setting that decides a run, such as `training.seed`, by name."""
    values = {}
    for table in ("model", *TABLES):
        for name, value in getattr(run.identity, table):
            values[f"{table}.{name}"] = value
    return values
