"""Makes a benchmark's text of a split of a corpus; runs where reprt is installed.

The vocabularies are those of a run, or else they are learnt for the text.
"""

import argparse
from pathlib import Path

from text import Pairs, Text

from reprt.data import search as texts
from reprt.data.encoding import encode
from reprt.data.tokenizers.wordpiece import WordPieceSettings
from reprt.decoding.translator import Translator

MAX_TOKENS = 128


def ids_of(corpus, split, run):
    """Returns the two vocabularies' sizes and the ids of a split."""
    if run is None:
        text = encode(corpus, WordPieceSettings(), MAX_TOKENS, texts.cache())
        sizes = len(text.source_tokenizer), len(text.target_tokenizer)
        ids = getattr(text, split)
        return sizes, Pairs(list(ids.source), list(ids.target))
    translator, sentences = Translator.load(run), getattr(corpus, split)
    source, target = translator.source_tokenizer, translator.target_tokenizer
    # The target has one more, since inputs and labels each drop one.
    pairs = Pairs(
        [ids[:MAX_TOKENS] for ids in source.encode(sentences.source)],
        [ids[: MAX_TOKENS + 1] for ids in target.encode(sentences.target)],
    )
    return (len(source), len(target)), pairs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", help="as `reprt train --text`")
    parser.add_argument("pair", help="e.g. az_to_en")
    parser.add_argument("split", choices=("train", "test"))
    parser.add_argument("out", type=Path, help="the .npz to write")
    parser.add_argument("--run", type=Path, help="folder of a run")
    arguments = parser.parse_args()
    corpus = texts.find(arguments.corpus, arguments.pair)
    sizes, pairs = ids_of(corpus, arguments.split, arguments.run)
    Text(f"{corpus.name}, {arguments.split}", sizes, pairs).save(arguments.out)
