"""From two files to the first training step: time and memory, by the size of the text.

    python scale.py --pairs 50000 200000 --vocabularies bpe wordpiece

The text is generated: 60,000 forms a side by Zipf's law, in sentences of TED's lengths.
Each stage is a process of its own, with TensorFlow loaded before the clock starts, and
finds in the cache what the stages before it have made. `cold` is all of them in one
process with an empty cache, `warm` the same once more. A line of results is added as
soon as its stage ends, and a stage that has one is not measured again.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "experiments" / "results" / "benchmark" / "scale.jsonl"
PAIRS = 50_000, 200_000, 800_000, 2_000_000
VOCABULARIES = "bpe", "wordpiece"
FORMS = 60_000
# The words of a sentence of TED, on average, and the deviation of their logarithm.
MEAN_WORDS, SPREAD = 20, 0.62
# How many sentences are written at once.
SENTENCES = 10_000
LANGUAGES = "de", "en"
STAGES = "reading", "learning", "encoding", "first_step", "cold", "warm"


def write_text(folder: Path, pairs: int):
    """Writes two files, unless they are there."""
    if (folder / "text.en").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    for language in LANGUAGES:
        words = _words(random)
        with open(folder / "unfinished", "w") as file:
            for start in range(0, pairs, SENTENCES):
                count = min(SENTENCES, pairs - start)
                file.writelines(_sentences(random, words, count))
        (folder / "unfinished").rename(folder / f"text.{language}")


def _words(random) -> np.ndarray:
    """Draws the forms of a language, the most frequent first."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    forms = set()
    while len(forms) < FORMS:
        length = random.integers(2, 14)
        forms.add("".join(random.choice(letters, length)))
    words = np.array(sorted(forms))
    random.shuffle(words)
    return words


def _sentences(random, words: np.ndarray, count: int) -> Iterator[str]:
    """Draws lines of text."""
    mean = np.log(MEAN_WORDS) - SPREAD**2 / 2
    lengths = random.lognormal(mean, SPREAD, count)
    for length in lengths.round().clip(1, 100).astype(int):
        ranks = FORMS ** random.random(length)
        line = " ".join(words[ranks.astype(int) - 1])
        yield f"{line.capitalize()} .\n"


class Stages:
    """What a process measures, by the names of the stages."""

    def __init__(self, folder: Path, vocabulary: str):
        from reprt.data.tokenizers.registry import VOCABULARIES

        self.folder = folder
        kinds = {kind().name: kind for kind in VOCABULARIES}
        self.vocabulary = kinds[vocabulary]()

    def reading(self):
        from reprt.data.corpora import own

        files = [
            str(self.folder / f"text.{language}") for language in LANGUAGES
        ]
        corpus = own.load("de_to_en", files)
        corpus.digest()
        return corpus

    def learning(self):
        from reprt.files import cache

        self.vocabulary.learn(self.corpus, cache() / "vocabularies")

    def encoding(self):
        from reprt.data.encoding import encode
        from reprt.files import cache

        return encode(self.corpus, self.vocabulary, 128, cache())

    def first_step(self):
        """Makes the model, and takes one step; all else is as `reprt train` does it."""
        from reprt.progress import Progress
        from reprt.training import trainer
        from reprt.training.settings import RunSettings
        from reprt_lab.folder import RunFolder

        settings = RunSettings.read(
            {
                "name": "repe-causal",
                "preset": "repe-causal",
                "model": {},
                "vocabulary": dict(self.vocabulary),
            },
            "scale.py",
        )
        run = RunFolder(self.folder / "run")
        shutil.rmtree(run.path, ignore_errors=True)
        run.open(settings, self.text)
        trainer.CALIBRATION_STEPS = 0
        trainer.Trainer(settings, self.text, run, Progress()).calibrate()

    def measure(self, stage: str) -> dict[str, float]:
        """Returns the seconds of a stage and the most memory of this process."""
        import tensorflow  # noqa: F401
        import tensorflow_text  # noqa: F401

        # This keeps TensorFlow quiet.
        import reprt  # noqa: F401

        if stage in ("learning", "encoding", "first_step"):
            self.corpus = self.reading()
        if stage == "first_step":
            self.text = self.encoding()
        start = time.perf_counter()
        if stage in ("cold", "warm"):
            self.corpus = self.reading()
            self.text = self.encoding()
            self.first_step()
        else:
            getattr(self, stage)()
        seconds = time.perf_counter() - start
        # Linux counts in KiB.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {"seconds": round(seconds, 2), "peak_memory_bytes": peak}


def measure_stage(folder: Path, vocabulary: str, stage: str) -> dict:
    """Measures a stage in a process of its own."""
    cache = folder / f"cache-{vocabulary}"
    if stage == "cold":
        cache = folder / "cache-cold"
    if stage in ("reading", "cold"):
        shutil.rmtree(cache, ignore_errors=True)
    if stage == "warm" and not (cache / "ids").exists():
        measure_stage(folder, vocabulary, "encoding")
    command = [sys.executable, __file__, "--stage", stage, "--folder", folder]
    command += ["--vocabularies", vocabulary]
    environment = os.environ | {
        "REPRT_CACHE": str(cache),
        "PYTHONPATH": str(REPOSITORY),
    }
    output = subprocess.check_output(command, env=environment, text=True)
    if stage == "cold":
        shutil.rmtree(cache)
    return json.loads(output.splitlines()[-1])


def read_results(path: Path) -> dict[tuple, dict]:
    """Returns the lines of results, by size, vocabulary and stage."""
    rows = {}
    if path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            rows[row["pairs"], row["vocabulary"], row["stage"]] = row
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pairs", nargs="+", type=int, default=PAIRS)
    parser.add_argument("--vocabularies", nargs="+", default=VOCABULARIES)
    parser.add_argument("--stages", nargs="+", default=STAGES)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--folder", type=Path, default=REPOSITORY / "runs" / "scale"
    )
    parser.add_argument("--stage", help="what a process does for this script")
    options = parser.parse_args()
    if options.stage:
        [vocabulary] = options.vocabularies
        stages = Stages(options.folder, vocabulary)
        print(json.dumps(stages.measure(options.stage)))
        return
    sys.path.insert(0, str(REPOSITORY))
    from reprt_lab.provenance import provenance

    origin = provenance().as_table()
    facts = ("commit", "hardware", "python", "versions")
    for pairs in options.pairs:
        folder = options.folder / str(pairs)
        write_text(folder, pairs)
        for vocabulary in options.vocabularies:
            for stage in options.stages:
                if (pairs, vocabulary, stage) in read_results(options.out):
                    continue
                row = {
                    "pairs": pairs,
                    "vocabulary": vocabulary,
                    "stage": stage,
                    **measure_stage(folder, vocabulary, stage),
                }
                for name in facts:
                    row[name] = origin[name]
                print(pairs, vocabulary, stage, row["seconds"], file=sys.stderr)
                with options.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
