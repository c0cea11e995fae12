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

from reprt.data.encoding import EncodedCorpus
from reprt.data.tokenizers.base import Tokenizer
from reprt.files import (
    is_unfinished,
    lock_file,
    locked,
    whole_file,
    whole_folder,
    write_text,
)
from reprt.reading import read_json, read_toml
from reprt.runs.provenance import provenance
from reprt.runs.records import Manifest, RunFolderError, read_log, read_metrics
from reprt.runs.run_settings import (
    INDIFFERENT,
    SHOWN_AS,
    RunSettings,
    differing,
    flat,
)
from reprt.settings import as_table


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
    | `models/` | those of earlier steps, as many as `keep_models` or `average` says |
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

    @property
    def kept_models(self) -> list[Path]:
        """The models that `[training]` asks to be kept, from the oldest."""
        return sorted((self.path / "models").glob("step-*.keras"))

    def kept_until(self, step: int, count: int) -> list[Path]:
        """Returns so many of the kept models, the newest up to a step."""
        newest = self._kept_model(step)
        return [path for path in self.kept_models if path <= newest][-count:]

    def _kept_model(self, step: int) -> Path:
        return self.path / "models" / f"step-{step:08d}.keras"

    @contextlib.contextmanager
    def claimed(self):
        """Keeps the run to this process while the context lasts.

        Yields:
            False while another process works on the run, else True.
        """
        if not self.writable:
            yield True
            return
        with lock_file(self.path.with_name(f".{self.path.name}.lock")) as file:
            yield locked(file)

    def open(self, settings: RunSettings, text: EncodedCorpus):
        """Makes the folder, or checks that it holds this very run.

        Raises:
            RunFolderError: if the folder holds anything else, naming what differs.
                Nothing is changed then.
        """
        if not self.writable:
            return
        config = settings.as_tables()
        identity = {
            "text": text.corpus.name,
            "text_sha256": text.corpus.digest(),
            "source_vocabulary_sha256": text.source_tokenizer.digest(),
            "target_vocabulary_sha256": text.target_tokenizer.digest(),
        }
        if (self.path / "config.toml").exists():
            self._check_same(config, identity)
        elif self.path.exists() and any(self.path.iterdir()):
            raise RunFolderError(
                f"Expected {self.path} to be empty or a run folder. Received a folder "
                "with other files. Choose another --out."
            )
        else:
            self._check_neighbours(identity)
            with whole_folder(self.path) as unfinished:
                RunFolder(unfinished)._fill(config, identity, text)

    def _check_neighbours(self, identity):
        # They share a report, which sets their losses side by side.
        for manifest in sorted(self.path.parent.glob("*/manifest.json")):
            if is_unfinished(manifest.parent):
                continue
            other = RunFolder(manifest.parent).manifest()
            if any(other.get(name) != value for name, value in identity.items()):
                raise RunFolderError(
                    f"{manifest.parent} holds a run on another text, {other['text']}, "
                    "or with other vocabularies. Choose another --out."
                )

    def _fill(self, config, identity, text: EncodedCorpus):
        splits = ("train", "dev", "test")
        for side in ("source", "target"):
            tokenizer = getattr(text, f"{side}_tokenizer")
            tokenizer.write(self.path / f"{side}{tokenizer.ending}")
        self._write_json(
            "manifest.json",
            {
                **identity,
                "origin": text.corpus.origin,
                "official_text": text.corpus.official,
                "sentence_pairs": {name: len(getattr(text, name)) for name in splits},
                "unknown": text.unknown,
                "starts": [],
            },
        )
        self._write("config.toml", tomli_w.dumps(config))

    def _check_same(self, config, identity):
        saved = flat(self.settings())
        manifest = self.manifest()
        saved |= {name: manifest.get(name) for name in identity}
        asked = flat(config) | identity
        told = [
            f"{name}: {saved.get(name)!r} there, {asked.get(name)!r} asked for"
            for name in differing(saved, asked, INDIFFERENT)
        ]
        if told:
            raise RunFolderError(
                f"{self.path} holds a run with other settings: {'; '.join(told)}. "
                "Choose another --out, or remove the folder."
            )
        if any(saved.get(name) != asked.get(name) for name in SHOWN_AS):
            self._write("config.toml", tomli_w.dumps(config))

    def add_start(
        self,
        devices: Sequence[str],
        accelerators: Sequence[str] = (),
        looks_ahead: bool | None = None,
    ):
        """Notes in the manifest that the run begins, or goes on, here and now.

        Args:
            devices: one for each replica.
            accelerators: the names of the GPUs among them.
            looks_ahead: whether the model says so of itself; None if it was not asked.
        """
        if not self.writable:
            return
        manifest, start = self.manifest(), provenance(self.command)
        start["hardware"] = ", ".join([start["hardware"], *accelerators])
        if looks_ahead is not None:
            manifest["looks_ahead"] = looks_ahead
        manifest["starts"].append({**start, "devices": list(devices)})
        self._write_json("manifest.json", manifest)

    def manifest(self) -> dict[str, Any]:
        """Returns on what the run was made.

        Raises:
            RunFolderError: if that cannot be read.
        """
        manifest = self.read(read_json, "manifest.json", Manifest)
        if "looks_ahead" not in manifest:
            # Older manifests lack it; their models are the paper's two and variants.
            model = self.settings()["model"]
            normed = model.get("embedding_norm") == "token_norm"
            of_all = model.get("decoder_statistics") == "sequence"
            manifest["looks_ahead"] = normed and of_all
        return manifest

    def run(self) -> RunSettings:
        """Returns what was asked for, in the present format, defaults filled in.

        Raises:
            RunFolderError: if this is no run folder, or its settings cannot be read.
        """
        path = self.path / "config.toml"
        try:
            return RunSettings.from_tables(read_toml(path), str(path))
        except OSError as error:
            raise RunFolderError(
                f"Expected {self.path} to be a run folder. `reprt train` makes one for "
                f"each model. Received {self._what_it_is()}."
            ) from error
        except ValueError as error:
            raise RunFolderError(str(error)) from error

    def settings(self) -> dict[str, Any]:
        """Returns the same as tables."""
        return self.run().as_tables()

    def _what_it_is(self) -> str:
        """Says what stands in the place of a run folder."""
        if not self.path.exists():
            return "a path that does not exist"
        if not self.path.is_dir():
            return "a file"
        inside = sorted(path.parent.name for path in self.path.glob("*/config.toml"))
        if inside:
            return f"a folder that holds the run folders {', '.join(inside)}: name one"
        return "a folder without a readable config.toml"

    def write_log(self, rows: Sequence[Mapping[str, Any]]):
        """Writes one row an epoch."""
        text = io.StringIO()
        if rows:
            writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        self._write("log.csv", text.getvalue())

    def log(self) -> list[dict[str, float]]:
        """Returns the rows of the finished epochs.

        Raises:
            RunFolderError: if they cannot be read.
        """
        if not (self.path / "log.csv").exists():
            return []
        return self.read(read_log, "log.csv")

    def save_model(self, model):
        """Saves the model, whole or not at all."""
        if not self.writable:
            return
        with whole_file(self.model) as file:
            model.save(file.name)

    def keep_model(self, model, step: int, kept: int):
        """Saves the model of a step, and drops all but so many of the newest.

        Those of later steps are dropped too: they were kept before a kill, and will be
        made again.
        """
        if not self.writable:
            return
        with whole_file(self._kept_model(step)) as file:
            model.save(file.name)
        for path in set(self.kept_models) - set(self.kept_until(step, kept)):
            path.unlink()

    def load_model(self, path: Path | None = None):
        """Returns a model of the run.

        Args:
            path: one of `kept_models`; None for the model after the last finished
                epoch.

        Raises:
            RunFolderError: if there is none, its file cannot be read, or holds another
                model than the run's.
        """
        # Pages read runs without Keras, which takes seconds to load.
        from reprt.models.base import TranslationModel
        from reprt.models.saving import load_model

        settings = self.run().model
        if path is None and not self.model.exists():
            raise RunFolderError(
                f"Expected {self.path} to hold model.keras. A run has it after its "
                "first epoch. Train it further."
            )
        path = path or self.model
        model = self.read(load_model, path.relative_to(self.path))
        if not isinstance(model, TranslationModel):
            raise RunFolderError(
                f"Expected {path} to be a model of this package. Received: "
                f"{type(model).__name__} {model.name!r}."
            )
        expected, received = as_table(settings), as_table(model.config)
        others = [
            f"{name}: {received.get(name)!r} there, {expected.get(name)!r} in the run"
            for name in differing(expected, received)
        ]
        if others:
            raise RunFolderError(
                f"{path} holds a model with other settings than config.toml: "
                f"{'; '.join(others)}."
            )
        return model

    def write_copy(self, out: Path, model, **notes):
        """Makes a folder of the same run, on the same text, with another model.

        Args:
            out: a new folder, or an empty one.
            model: the model.
            **notes: what joins the manifest.

        Raises:
            RunFolderError: if the folder's own files cannot be read.
        """
        manifest = {**self.manifest(), **notes}
        with whole_folder(out) as unfinished:
            copy = RunFolder(unfinished)
            ending = self.run().vocabulary.tokenizer.ending
            for name in ("config.toml", f"source{ending}", f"target{ending}"):
                shutil.copyfile(self.path / name, copy.path / name)
            copy._write_json("manifest.json", manifest)
            copy.save_model(model)

    def tokenizer(self, side: str, size: int) -> Tokenizer:
        """Returns the tokenizer of one side.

        Args:
            side: `"source"` or `"target"`.
            size: how many pieces the model has.

        Raises:
            RunFolderError: if the file is missing, or is not the vocabulary that the
                run was begun with.
        """
        kind = self.run().vocabulary.tokenizer
        name = f"{side}{kind.ending}"
        tokenizer = self.read(kind.read, name)
        expected = size, self.manifest()[f"{side}_vocabulary_sha256"]
        received = len(tokenizer), tokenizer.digest()
        if received != expected:
            raise RunFolderError(
                f"Expected {self.path / name} to have the {size} pieces of "
                f"the run's model, with the sha256 {expected[1][:16]}. "
                f"Received: {received[0]}, with {received[1][:16]}."
            )
        return tokenizer

    def write_metrics(self, metrics: Mapping[str, Any]):
        """Writes the results; from then on the run counts as finished."""
        self._write_json("metrics.json", metrics)

    def write_evaluation(self, split: str, result: Mapping[str, Any], table: str):
        """Writes what `reprt evaluate` found, for programs and for people."""
        self._write_json(f"evaluation-{split}.json", result)
        self._write(f"evaluation-{split}.md", table + "\n")

    def metrics(self) -> dict[str, Any] | None:
        """Returns the results, or None if the run has not finished.

        Raises:
            RunFolderError: if they cannot be read.
        """
        if not (self.path / "metrics.json").exists():
            return None
        return self.read(read_metrics, "metrics.json")

    def read(self, read, name, *arguments):
        """Returns what `read(path, *arguments)` makes of a file of the folder.

        Raises:
            RunFolderError: if it cannot be read, or is not what it should be.
        """
        try:
            return read(self.path / name, *arguments)
        except (OSError, ValueError) as error:
            raise RunFolderError(str(error)) from error

    def _write_json(self, name, content):
        self._write(name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def _write(self, name, text):
        if self.writable:
            write_text(self.path / name, text)
