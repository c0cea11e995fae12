"""What a translator reads of a run folder, as `reprt train` writes it."""

import difflib
from pathlib import Path
from typing import Any

from reprt.data.tokenizers.tokenizer import Tokenizer
from reprt.files import read_json, read_toml


def read_config(folder: Path) -> dict[str, Any]:
    """Returns the tables of a run's `config.toml`: all of its settings.

    A `ValueError` says what the folder is instead, and names a run of a like name.
    """
    path = folder / "config.toml"
    if path.is_file():
        return read_toml(path)
    received = "no config.toml in it" if folder.exists() else "no such folder"
    if inside := _runs(folder):
        received = f"a folder that holds the runs {', '.join(inside)}: name one"
    message = (
        f"Expected {folder} to be a run folder. `reprt train` makes one for each "
        f"model. Received: {received}."
    )
    near = difflib.get_close_matches(folder.name, _runs(folder.parent), n=1)
    if near:
        message += f" Did you mean {folder.with_name(near[0])}?"
    raise ValueError(message)


def read_vocabularies(
    folder: Path,
    kind: type[Tokenizer],
) -> tuple[Tokenizer, Tokenizer]:
    """Reads a run's source and target vocabulary, as the run was begun with them.

    They are compared with the manifest's sha256, unless the folder has no manifest.
    """
    manifest = folder / "manifest.json"
    written = read_json(manifest) if manifest.exists() else {}

    def read(side: str) -> Tokenizer:
        path = folder / f"{side}{kind.ending}"
        tokenizer = kind.read(path)
        received = tokenizer.digest()
        expected = written.get(f"{side}_vocabulary_sha256", received)
        if received != expected:
            raise ValueError(
                f"Expected {path} to be the vocabulary of the run, with sha256 "
                f"{expected[:16]}, as manifest.json says. Received: {received[:16]}."
            )
        return tokenizer

    return read("source"), read("target")


def _runs(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("*/config.toml"))
