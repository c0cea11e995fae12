"""Whether two models differ on one split, by drawing its sentences anew for both."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

RESAMPLES = 10_000


class Difference(NamedTuple):
    """The first model's number minus the other's, and its 95 % interval."""

    mean: float
    low: float
    high: float


def loss_difference(
    losses: Sequence[float],
    others: Sequence[float],
    tokens: Sequence[int],
) -> Difference:
    """Returns the difference of two losses per token, with a bootstrap's interval.

    Args:
        losses: each sentence's loss by one model, summed over its tokens, such as
            `-log_probabilities(…)`.
        others: the same by the other model.
        tokens: how many tokens each sentence has.

    >>> loss_difference([2.0, 4.0], [4.0, 8.0], [2, 4])
    Difference(mean=-1.0, low=-1.0, high=-1.0)
    """
    from scipy import stats

    gaps = np.subtract(losses, others)

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
    others: Sequence[str],
    references: Sequence[str],
) -> float:
    """Returns the p-value of two models' difference in BLEU, by sacrebleu's bootstrap.

    All are words joined by spaces, as tokenizers decode them. It means nothing for
    models of the same translations.

    >>> ours, theirs = ["a b c d e"] * 9, ["a b c e d"] * 9
    >>> bleu_p_value(ours, theirs, ours) < 0.01
    True
    """
    from sacrebleu.metrics import BLEU
    from sacrebleu.significance import PairedTest

    test = PairedTest(
        [("other", list(others)), ("model", list(translations))],
        {"BLEU": BLEU(force=True, tokenize="none")},
        [list(references)],
        test_type="bs",
        n_samples=RESAMPLES,
    )
    _, results = test()
    result: Any = results["BLEU"][1]
    return float(result.p_value)
