"""Makes the text of the decoding benchmark of a corpus; runs where reprt is installed.

It is the test sentences, in the vocabularies of a run or else in those learnt for it.
"""

import argparse
from pathlib import Path

from text import Pairs, Text

from reprt.data import search as texts
from reprt.data.encoding import encode
from reprt.data.tokenizers.wordpiece import WordPieceSettings
from reprt.decoding.translator import Translator

MAX_TOKENS = 128


def of_test(corpus, run):
    """Returns the two vocabularies' sizes and the test sentences' ids."""
    if run is None:
        ids = encode(corpus, WordPieceSettings(), MAX_TOKENS, texts.cache())
        sizes = len(ids.source_tokenizer), len(ids.target_tokenizer)
        return sizes, Pairs(list(ids.test.source), list(ids.test.target))
    translator = Translator.load(run)
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    sides = [
        # The target has one more, since inputs and labels each drop one.
        [ids[:longest] for ids in tokenizer.encode(sentences)]
        for tokenizer, sentences, longest in zip(
            tokenizers,
            (corpus.test.source, corpus.test.target),
            (MAX_TOKENS, MAX_TOKENS + 1),
        )
    ]
    return tuple(map(len, tokenizers)), Pairs(*sides)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", help="as `reprt train --text`")
    parser.add_argument("pair", help="e.g. pt_to_en")
    parser.add_argument("out", type=Path, help="the .npz to write")
    parser.add_argument("--run", type=Path, help="folder of a run")
    arguments = parser.parse_args()
    corpus = texts.find(arguments.corpus, arguments.pair)
    sizes, pairs = of_test(corpus, arguments.run)
    Text(f"{corpus.name}, test", sizes, pairs).save(arguments.out)
