"""Compares the models of two run folders on the test split, by sentences.

    python experiments/paired_bootstrap.py runs/…/concat-tokens.high.14 \
        runs/…/rotary-states.high.14

The differences are the first model's minus the other's. Both folders must be on one
text with the same vocabularies. Search is greedy.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from scipy import stats

from reprt.analysis.evaluation import log_probabilities
from reprt.analysis.scores import without_unknown
from reprt.decoding.translator import Translator
from reprt_lab.folder import RunFolder
from reprt_lab.measure import text_of_run

RESAMPLES = 10_000


class Difference(NamedTuple):
    """The first model's number minus the other's, and its 95 % interval."""

    mean: float
    low: float
    high: float


def loss_difference(
    losses: Sequence[float],
    other_losses: Sequence[float],
    tokens: Sequence[int],
) -> Difference:
    """Returns the difference of two losses per token, with a bootstrap's interval.

    Args:
        losses: each sentence's loss by one model, summed over its tokens.
        other_losses: the same by the other model.
        tokens: how many tokens each sentence has.
    """
    gaps = np.subtract(losses, other_losses)

    def per_token(gaps, tokens, axis=-1):
        return np.sum(gaps, axis=axis) / np.sum(tokens, axis=axis)

    interval = stats.bootstrap(
        (gaps, np.asarray(tokens)),
        per_token,
        n_resamples=RESAMPLES,
        batch=100,
        paired=True,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    mean = per_token(gaps, tokens)
    return Difference(float(mean), float(interval.low), float(interval.high))


def bleu_p_value(
    translations: Sequence[str],
    other_translations: Sequence[str],
    references: Sequence[str],
) -> float:
    """Returns the p-value of two models' difference in BLEU, by sacrebleu's bootstrap.

    All are words joined by spaces, as tokenizers decode them. An unknown word is never
    right. It means nothing for models of the same translations.
    """
    test = PairedTest(
        [("other", list(other_translations)), ("model", list(translations))],
        {"BLEU": BLEU(force=True, tokenize="none")},
        [without_unknown(references)],
        test_type="bs",
        n_samples=RESAMPLES,
    )
    _, results = test()
    return float(results["BLEU"][1].p_value)


def main():
    """Reads the command line and prints two lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument(
        "--text", help="where the text is, by default as in training"
    )
    options = parser.parse_args()
    folders = options.run, options.other
    hashes = {RunFolder(folder).manifest().hashes for folder in folders}
    if len(hashes) > 1:
        parser.error(
            f"Expected runs on one text. Received: {folders[0]}, {folders[1]}"
        )
    test = text_of_run(RunFolder(options.run), options.text).test
    losses, translations = [], []
    for folder in folders:
        translator = Translator.load(folder)
        ids = translator.encode(test.source, test.target)
        losses.append(-log_probabilities(translator, ids))
        results = translator.search_all(ids.source)
        best = [hypotheses[0].ids for hypotheses in results]
        translations.append(translator.target_tokenizer.decode(best))
    # The start has no label.
    tokens = [len(row) - 1 for row in ids.target]
    words = translator.target_tokenizer.words(test.target)
    loss = loss_difference(*losses, tokens)
    print(f"prefix loss: {loss.mean:+.3f} [{loss.low:+.3f}, {loss.high:+.3f}]")
    print(f"BLEU: p = {bleu_p_value(*translations, words):.4f}")


if __name__ == "__main__":
    main()
