"""How the pieces of WordPiece are learnt from the words of a text.

The vocabulary is exactly that of TensorFlow's learner, which counts all substrings of
all words, and then takes from each the counts of those that it begins. What is left of
a substring's count is how often it stands at the end of a word, so only ends of words
are counted here.
"""

import collections
from collections.abc import Iterable, Mapping

from reprt.constants import RESERVED

# A piece that does not begin a word is written with this before it.
JOINER = "##"
ROUNDS = 4
# Rarer words are left out of longer lists of words.
MOST_WORDS = 5_000_000
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
    known = {
        word: count for word, count in counts.items() if allowed.issuperset(word)
    }
    words = dict(collections.Counter(known).most_common(MOST_WORDS))
    characters = sorted(set().union(*words))
    ends = _ends(words, {word: range(len(word)) for word in words})
    low = max(FEWEST, min(counts.values()))
    high = min(MOST, max(counts.values()))
    while True:
        least = (low + high) // 2
        pieces = _frequent(ends, least, characters)
        for _ in range(ROUNDS - 1):
            starts = {word: _starts(word, pieces) for word in words}
            pieces = _frequent(_ends(words, starts), least, characters)
        by_count = sorted(pieces, key=lambda piece: (-pieces[piece], piece))
        vocabulary = list(dict.fromkeys([*RESERVED, *characters, *by_count]))
        missing = size - len(vocabulary)
        if 0 <= missing <= SLACK * size or low >= high or least <= 1:
            return vocabulary
        if missing < 0:
            low = least + 1
        else:
            high = least - 1


def _ends(
    words: Mapping[str, int], starts: Mapping[str, Iterable[int]]
) -> collections.Counter[str]:
    """Counts the ends of words that begin at their starts."""
    ends: collections.Counter[str] = collections.Counter()
    for word, count in words.items():
        for start in starts[word]:
            end = JOINER + word[start:] if start else word
            ends[end] += count
    return ends


def _frequent(
    counts: Mapping[str, int], least: int, characters: Iterable[str]
) -> dict[str, int]:
    """Returns the pieces that occur often enough, and all characters."""
    pieces = {piece: count for piece, count in counts.items() if count >= least}
    for character in characters:
        pieces.setdefault(character, 1)
        pieces.setdefault(JOINER + character, 1)
    return pieces


def _starts(word: str, pieces: Mapping[str, int]) -> list[int]:
    """Returns where the pieces of a word begin, if each is the longest that fits."""
    starts = []
    start = 0
    while start < len(word):
        starts.append(start)
        joiner = JOINER if start else ""
        end = len(word)
        while joiner + word[start:end] not in pieces:
            end -= 1
        start = end
    return starts
