"""How the pieces of WordPiece are learnt from the words of a text.

The vocabulary is exactly that of TensorFlow's learner, which counts all substrings of
all words, and then takes from each the counts of those that it begins. What is left of
a substring's count is how often it stands at the end of a word, so only ends of words
are counted here.
"""

import collections
from collections.abc import Mapping

from reprt.constants import RESERVED

# A piece that does not begin a word is written with this before it.
JOINER = "##"
ROUNDS = 4
# The bounds of how often a piece occurs at least.
FEWEST, MOST = 10, 10_000_000
# The share of the pieces that may be missing in the end.
SLACK = 0.05


def learn_pieces(
    counts: Mapping[str, int], size: int, most_characters: int
) -> list[str]:
    """Returns at most `size` pieces, the reserved ones and all characters first.

    Args:
        counts: how often each word occurs.
        size: the number of pieces aimed at. A text may give fewer, and a text of many
            characters more.
        most_characters: words with rarer characters than this many are left out.
    """
    occurrences: collections.Counter[str] = collections.Counter()
    for word, count in counts.items():
        for character in word:
            occurrences[character] += count
    by_count = sorted(occurrences, key=lambda one: (-occurrences[one], one))
    allowed = set(by_count[:most_characters])
    words = {
        word: count
        for word, count in counts.items()
        if allowed.issuperset(word)
    }
    characters = sorted(set().union(*words))
    all_ends: collections.Counter[str] = collections.Counter(words)
    for word, count in words.items():
        for start in range(1, len(word)):
            all_ends[JOINER + word[start:]] += count
    low = max(FEWEST, min(counts.values()))
    high = min(MOST, max(counts.values()))
    while True:
        least = (low + high) // 2
        pieces = _frequent(all_ends, least, characters)
        for _ in range(ROUNDS - 1):
            pieces = _frequent(_ends(words, pieces), least, characters)
        by_count = sorted(pieces, key=lambda piece: (-pieces[piece], piece))
        vocabulary = list(dict.fromkeys([*RESERVED, *characters, *by_count]))
        missing = size - len(vocabulary)
        if 0 <= missing <= SLACK * size or low >= high:
            return vocabulary
        if missing < 0:
            low = least + 1
        else:
            high = least - 1


def _ends(words, pieces) -> collections.Counter[str]:
    """Counts the ends of words that begin where one of their pieces does.

    A word is cut into the longest known pieces, from its first letter on.
    """
    ends: collections.Counter[str] = collections.Counter()
    while words:
        rests: collections.Counter[str] = collections.Counter()
        for word, count in words.items():
            ends[word] += count
            size = len(word)
            while word[:size] not in pieces:
                size -= 1
            if size < len(word):
                rests[JOINER + word[size:]] += count
        words = rests
    return ends


def _frequent(counts, least, characters) -> dict[str, int]:
    """Returns the pieces that occur often enough, and all characters."""
    pieces = {piece: count for piece, count in counts.items() if count >= least}
    for character in characters:
        pieces.setdefault(character, 1)
        pieces.setdefault(JOINER + character, 1)
    return pieces
