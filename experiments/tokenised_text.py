"""Makes a copy of a pair in the form of the official archive: lower-cased, tokenised.

    python experiments/tokenised_text.py path/to/ted az_to_en path/to/copy

needs `pip install nltk`. English is split as the Penn Treebank is ("did n't"), other
languages at punctuation; it is close to the archive's form, not the archive itself.
"""

import argparse
import re
import unicodedata
from pathlib import Path

from nltk.tokenize import NLTKWordTokenizer

from reprt.data.corpora import ted


def main():
    """Reads the command line and writes the copy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "text", type=Path, help="folder laid out as the official one"
    )
    parser.add_argument("pair", help="such as az_to_en")
    parser.add_argument("copy", type=Path, help="where the copy goes")
    options = parser.parse_args()
    corpus, pair = (
        ted.read(options.text, options.pair),
        ted.find_pair(options.pair),
    )
    folder = options.copy / "datasets" / pair.folder
    folder.mkdir(parents=True)
    (options.copy / ted.FORM).write_text("lower-cased and tokenised\n", "utf-8")
    for split in ted.SPLITS:
        sentences = getattr(corpus, split)
        sides = zip(pair.files(split), (sentences.source, sentences.target))
        for (name, side), language in zip(sides, (pair.source[0], pair.target)):
            lines = (tokenised(sentence, language) for sentence in side)
            (folder / name).write_text(
                "".join(f"{line}\n" for line in lines), "utf-8"
            )


def tokenised(sentence: str, language: str) -> str:
    """Returns a sentence as the archive would have it."""
    sentence = unicodedata.normalize("NFC", sentence).lower()
    if language == "en":
        tokens = NLTKWordTokenizer().tokenize(
            sentence, convert_parentheses=False
        )
        # The Treebank writes quotation marks as two signs.
        return " ".join(tokens).replace("``", '"').replace("''", '"')
    # Marks that are written over a letter belong to it: the dot of a lower-cased İ.
    return " ".join(re.findall(r"[\w\u0300-\u036f]+|[^\w\s]", sentence))


if __name__ == "__main__":
    main()
