"""How fast synthetic pairs as long as WMT'14's are cleaned, read and tokenised.

    python experiments/benchmark/wmt14_rates.py [PAIRS]

prints CPU seconds and microseconds a pair of each step that docs/guides/wmt14.md plans
with. Words follow Zipf's law and are made of random syllables.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from reprt.data import encoding
from reprt.data.corpora import wmt14
from reprt.data.corpora.corpus import Corpus, Split
from reprt.data.corpora.lines import Lines
from reprt.data.tokenizers.bpe import BPESettings

WORDS, LONGEST = 50_000, 240
MEAN_WORDS = (25, 29)  # of English and of French


def main(pairs: int):
    part = wmt14.TRAIN[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, part, pairs)
        paths = [folder / f"train.{side}" for side in wmt14.LANGUAGES]
        files = [path.open("wb") for path in paths]
        timed("clean and join", pairs, lambda: wmt14._append(part, folder, files))
        text = timed("lines", pairs, lambda: Split(*map(Lines.read, paths)))
        few = Split(["a"], ["b"])
        corpus = Corpus("synthetic", "en_to_fr", False, "", text, few, few)
        timed("digest", pairs, corpus.digest)
        for how in ("first", "again"):
            timed(
                f"BPE and ids, {how}",
                pairs,
                lambda: encoding.encode(
                    corpus, BPESettings(size=37_000, shared=True), 256, folder / "cache"
                ),
            )


def write(folder: Path, part: wmt14.Part, pairs: int):
    """Writes the members of a part; sentences of a pair have like lengths."""
    rng = np.random.default_rng(0)
    syllables = [a + b for a in "bcdfglmnprstvé" for b in "a e i o u an er ion".split()]
    words = ["".join(rng.choice(syllables, rng.integers(1, 5))) for _ in range(WORDS)]
    zipf = 1 / np.arange(1, WORDS + 1)
    lengths = rng.gamma(2, 1 / 2, pairs)
    for member, mean in zip(part.members, MEAN_WORDS):
        counts = (lengths * mean).astype(int).clip(1, LONGEST)
        drawn = rng.choice(words, counts.sum(), p=zipf / zipf.sum())
        path = folder / member
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            for sentence in np.split(drawn, counts.cumsum()[:-1]):
                file.write(" ".join(sentence).capitalize() + " .\n")


def timed(what: str, pairs: int, function):
    begun = time.process_time()
    result = function()
    seconds = time.process_time() - begun
    print(f"{what}: {seconds:.2f} s, {1e6 * seconds / pairs:.1f} µs a pair", flush=True)
    return result


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 100_000)
