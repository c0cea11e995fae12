"""What the files of a run say: the keys of each, and the types of their values."""

from pathlib import Path
from typing import Any, NotRequired, TypedDict

from reprt.reading import read_csv, read_json
from reprt.schema import FiniteNumber, check, shown

# Columns of the log that pages ask for; there are more.
OF_EPOCH = (
    "epoch",
    "train_loss",
    "train_loss_per_token",
    "val_loss",
    "val_loss_per_token",
    "train_tokens",
    "train_seconds",
)


class RunFolderError(ValueError):
    """A folder that holds another run, or none; the message says what differs."""


class Start(TypedDict):
    """What a run was begun or continued with."""

    time: str
    command: str
    commit: str | None
    hardware: str
    backend: NotRequired[str]
    python: str
    versions: dict[str, str | None]
    devices: list[str]


class SentencePairs(TypedDict):
    """How many a text has."""

    train: int
    dev: int
    test: int


class Average(TypedDict):
    """The models that a model is the mean of."""

    run: str
    models: list[str]


class Manifest(TypedDict):
    """What a run was made on."""

    text: str
    text_sha256: str
    source_vocabulary_sha256: str
    target_vocabulary_sha256: str
    origin: NotRequired[str]
    official_text: bool
    sentence_pairs: SentencePairs
    unknown: NotRequired[dict[str, dict[str, float]]]
    looks_ahead: NotRequired[bool]
    starts: list[Start]
    average: NotRequired[Average]


class Score(TypedDict):
    """What sacrebleu said of a run's translations."""

    metric: str
    form: str
    value: FiniteNumber
    signature: str


class Metrics(TypedDict):
    """What came out of a run; a loss of its last epoch may be no finite number."""

    parameters: int
    parameters_without_tables: NotRequired[int]
    train_source_tokens: NotRequired[int]
    train_target_tokens: NotRequired[int]
    train_flops: NotRequired[int]
    peak_memory_bytes: NotRequired[int]
    epochs: NotRequired[int]
    out_of_time: NotRequired[bool]
    total_train_seconds: NotRequired[FiniteNumber]
    last_epoch: NotRequired[dict[str, float]]
    averaged_models: NotRequired[list[str]]
    val_loss: NotRequired[FiniteNumber]
    val_loss_per_token: NotRequired[FiniteNumber]
    finished: NotRequired[str]
    val_prefix_loss: NotRequired[FiniteNumber]
    val_prefix_loss_per_token: NotRequired[FiniteNumber]
    val_prefix_seconds: NotRequired[FiniteNumber]
    test_prefix_loss_per_token: NotRequired[FiniteNumber]
    test_bleu: NotRequired[FiniteNumber]
    test_bleu_signature: NotRequired[str]
    test_scores: NotRequired[list[Score]]
    test_seconds: NotRequired[FiniteNumber]
    examples: NotRequired[list[dict[str, str]]]


def read_metrics(path: Path) -> dict[str, Any]:
    """Returns a run's results. Those of older runs call the form of a score its text.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is no JSON of a `Metrics`.
    """
    metrics = read_json(path, dict)
    scores = metrics.get("test_scores")
    for score in scores if isinstance(scores, list) else ():
        if isinstance(score, dict) and "text" in score:
            score["form"] = score.pop("text")
    check(metrics, Metrics, str(path))
    return metrics


def read_log(path: Path) -> list[dict[str, float]]:
    """Returns the rows of the finished epochs.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it lacks a column, or has other than numbers, naming the line.
    """
    return [
        epoch_of(row, f"line {line} of {path}")
        for line, row in enumerate(read_csv(path), 2)
    ]


def epoch_of(row: dict[str, str], where: str) -> dict[str, float]:
    """Returns the numbers of an epoch; those that are empty are left out.

    Args:
        row: its cells by column.
        where: how the row is called in messages.

    Raises:
        ValueError: for a number that is missing or is none.
    """
    numbers = {}
    for name, cell in row.items():
        try:
            if cell:
                numbers[name] = float(cell)
        except ValueError:
            raise ValueError(
                f"Expected {name!r} in {where} to be a number. Received: {shown(cell)}."
            ) from None
    missing = [name for name in OF_EPOCH if name not in numbers]
    if missing:
        raise ValueError(f"Missing in {where}: {', '.join(missing)}.")
    return numbers
