"""Tiny models, the settings and the log of its run, a progress that remembers."""

import dataclasses

import numpy as np

from reprt.data.corpora import embedded
from reprt.data.corpora.corpus import Split
from reprt.data.encoding import EncodedSplit
from reprt.data.tokenizers.wordpiece import WordPieceSettings
from reprt.models.presets import preset
from reprt.training.settings import RunSettings
from reprt.training.trainer import Trainer
from reprt_lab.folder import RunFolder

TINY = {
    "num_blocks": 1,
    "embedding_dim": 8,
    "num_heads": 2,
    "key_dim": 4,
    "value_dim": 4,
    "feed_forward_dim": 16,
}
VOCABULARY = WordPieceSettings(size=150)
RECURRENT = {"num_layers": 2, "embedding_dim": 8, "hidden_dim": 6}
# Two sentences of each side, the second one padded.
SOURCE = np.array([[2, 9, 5, 7, 4, 3], [2, 6, 8, 3, 0, 0]], dtype="int32")
TARGET = np.array([[2, 4, 7, 5, 6], [2, 8, 5, 0, 0]], dtype="int32")
LABELS = np.array([[4, 7, 5, 6, 3], [8, 5, 3, 0, 0]], dtype="int32")
# Few steps are taken, so the learning rate has to rise at once.
DEFAULTS = {
    "batching": {"size": 16},
    "optimizer": {},
    "schedule": {"warmup_steps": 4},
    "objective": {},
}


def corpus(train, dev=500, test=500):
    """The first pairs of the embedded corpus, of which `dev` has the first ones."""
    whole = embedded.load()
    source = [*whole.dev.source, *whole.test.source, *whole.train.source]
    target = [*whole.dev.target, *whole.test.target, *whole.train.target]

    def split(start, end):
        return Split(source[start:end], target[start:end])

    return dataclasses.replace(
        whole,
        dev=split(0, dev),
        test=split(dev, dev + test),
        train=split(dev + test, dev + test + train),
    )


class Lines:
    """A `Progress` that remembers."""

    def __init__(self):
        self.status_lines, self.messages = [], []
        self.show, self.say = self.status_lines.append, self.messages.append


def train_to_end(trainer):
    """Trains all that is left, and returns the trainer."""
    while not trainer.finished:
        trainer.train_epoch()
    return trainer


def variables(trainer):
    """Copies of all that a checkpoint holds of a trainer."""
    return [variable.numpy() for variable in trainer._variables.values()]


def assert_same(arrays, expected, tolerance=0.0):
    """Compares lists of arrays, bit for bit or nearly so."""
    for array, value in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(array, value, rtol=0, atol=tolerance)


def losses(run):
    """The log of a run folder without the times, which no two runs share."""
    return [
        {name: value for name, value in row.items() if "seconds" not in name}
        for row in run.log()
    ]


def make_trainer(path, run, text):
    """A trainer in a folder, where it goes on from what is there."""
    text = one_vocabulary(text) if run.model.shared_embedding else text
    files = RunFolder(path)
    files.open(run, text)
    trainer = Trainer(run, text, files, Lines())
    trainer.write_start()
    return trainer


def one_vocabulary(text):
    """An encoded text whose target stands on both sides, for models of one table."""
    return dataclasses.replace(
        text,
        source_tokenizer=text.target_tokenizer,
        train=EncodedSplit(text.train.target, text.train.target),
        dev=EncodedSplit(text.dev.target, text.dev.target),
    )


def settings(name="repe", model=None, **changes):
    """The settings of a run; what names no table is a setting of training."""
    tables = {
        table: {**defaults, **changes.pop(table, {})}
        for table, defaults in DEFAULTS.items()
    }
    sizes = RECURRENT if name == "recurrent" else TINY
    for table in ("vocabulary", "text"):
        if table in changes:
            tables[table] = changes.pop(table)
    tables["training"] = {"epochs": 2, "bleu": False, **changes}
    shared_embedding = getattr(preset(name), "shared_embedding", False)
    if "vocabulary" not in tables and (
        shared_embedding or (model or {}).get("shared_embedding")
    ):
        tables["vocabulary"] = {"name": "bpe", "shared": True}
    run = {
        "name": name,
        "preset": name,
        "model": {**sizes, **(model or {})},
        **tables,
    }
    return RunSettings.read(run, name)


def contents(folder):
    """The bytes of each file in a folder, and None for each folder."""
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }
