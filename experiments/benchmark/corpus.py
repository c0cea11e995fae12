"""Makes the benchmark's text of a corpus; runs where reprt is installed."""

import argparse
from pathlib import Path

from text import Pairs, Text

from reprt.data import search as texts
from reprt.data.encoding import encode
from reprt.data.tokenizers.wordpiece import WordPieceSettings

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", help="as `reprt train --text`")
    parser.add_argument("pair", help="e.g. az_to_en")
    parser.add_argument("out", type=Path, help="the .npz to write")
    arguments = parser.parse_args()
    corpus = texts.find(arguments.corpus, arguments.pair)
    ids = encode(corpus, WordPieceSettings(), max_tokens=128, cache=texts.cache())
    Text(
        corpus.name,
        (len(ids.source_tokenizer), len(ids.target_tokenizer)),
        Pairs(list(ids.train.source), list(ids.train.target)),
    ).save(arguments.out)
