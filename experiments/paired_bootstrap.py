"""Compares the models of two run folders on the test split, by sentences.

    python experiments/paired_bootstrap.py runs/…/concat-tokens.high.14 \
        runs/…/rotary-states.high.14

The differences are the first model's minus the other's. Both folders must be on one
text with the same vocabularies. Search is greedy.
"""

import argparse
from pathlib import Path

from reprt.analysis.evaluation import log_probabilities
from reprt.analysis.significance import bleu_p_value, loss_difference
from reprt.decoding.translator import Translator
from reprt_lab.folder import RunFolder
from reprt_lab.measure import text_of_run


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
        found = translator.search_all(ids.source)
        best = [hypotheses[0].ids for hypotheses in found]
        translations.append(translator.target_tokenizer.decode(best))
    tokens = [len(row) - 1 for row in ids.target]  # the start has no label
    words = translator.target_tokenizer.words(test.target)
    loss = loss_difference(*losses, tokens)
    print(f"prefix loss: {loss.mean:+.3f} [{loss.low:+.3f}, {loss.high:+.3f}]")
    print(f"BLEU: p = {bleu_p_value(*translations, words):.4f}")


if __name__ == "__main__":
    main()
