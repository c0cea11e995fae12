"""How the pieces of WordPiece are learnt from the words of a text.

The vocabulary is exactly that of TensorFlow's learner, which counts all substrings of
all words, and then takes from each the counts of those that it begins. What is left of
a substring's count is how often it stands at the end of a word, so only ends of words
are counted here, in arrays.
"""

from collections.abc import Mapping, Set

import numpy as np

from reprt.constants import RESERVED

# A piece that does not begin a word is written with this before it.
JOINER = "##"
ROUNDS = 4
# The bounds of how often a piece occurs at least.
FEWEST, MOST = 10, 10_000_000
# The share of the pieces that may be missing in the end.
SLACK = 0.05


def learn_pieces(
    counts: Mapping[str, int],
    size: int,
    alphabet: Set[str],
) -> list[str]:
    """Returns at most `size` pieces, the reserved ones and all characters first.

    Args:
        counts: how often each word occurs.
        size: the number of pieces aimed at. A text may give fewer, and a text of many
            characters more.
        alphabet: the characters that have pieces. Words with others are left out.
    """
    ends = _Ends(
        {word: counts[word] for word in counts if alphabet >= set(word)}
    )
    low = max(FEWEST, min(counts.values()))
    high = min(MOST, max(counts.values()))
    while True:
        least = (low + high) // 2
        pieces = ends.learn(least)
        vocabulary = list(dict.fromkeys([*RESERVED, *ends.characters, *pieces]))
        missing = size - len(vocabulary)
        if 0 <= missing <= SLACK * size or low >= high:
            return vocabulary
        if missing < 0:
            low = least + 1
        else:
            high = least - 1


class _Ends:
    """All ends of words, numbered, and which other ends each of them begins with."""

    def __init__(self, words: Mapping[str, int]):
        self.characters = sorted(set().union(*words))
        numbers: dict[str, int] = {}
        for word in words:
            numbers.setdefault(word, len(numbers))
            for start in range(1, len(word)):
                numbers.setdefault(JOINER + word[start:], len(numbers))
        for character in self.characters:
            numbers.setdefault(character, len(numbers))
            numbers.setdefault(JOINER + character, len(numbers))
        # What may be cut from the beginning of each end, the shortest first, and the
        # end that is left. The number after the last stands for nothing.
        cuts: list[int] = []
        rests: list[int] = []
        self._firsts = []
        for end in numbers:
            self._firsts.append(len(cuts))
            start = len(JOINER) if end.startswith(JOINER) else 0
            for stop in range(start + 1, len(end) + 1):
                cut = numbers.get(end[:stop])
                if cut is not None:
                    cuts.append(cut)
                    rests.append(numbers.get(JOINER + end[stop:], len(numbers)))
        self._cuts, self._rests = np.array(cuts), np.array(rests)
        self._names = list(numbers)
        self._words = np.zeros(len(numbers) + 1)
        for word, count in words.items():
            self._words[numbers[word]] = count
        self._is_character = np.zeros(len(numbers), bool)
        for character in self.characters:
            self._is_character[numbers[character]] = True
            self._is_character[numbers[JOINER + character]] = True

    def learn(self, least: int) -> list[str]:
        """Returns the pieces that occur as often at least, the most frequent first."""
        is_piece = self._is_character
        for _ in range(ROUNDS):
            counts = self._count(is_piece)
            is_piece = self._is_character | (counts >= least)
        counts[counts < least] = 1
        pieces = sorted(np.flatnonzero(is_piece), key=self._names.__getitem__)
        pieces.sort(key=lambda piece: -counts[piece])
        return [self._names[piece] for piece in pieces]

    def _count(self, is_piece) -> np.ndarray:
        """Counts the ends of words that begin where one of their pieces does.

        A word is cut into the longest pieces, from its first letter on.
        """
        cuts = np.where(is_piece[self._cuts], np.arange(len(self._cuts)), -1)
        rests = self._rests[np.maximum.reduceat(cuts, self._firsts)]
        ends: np.ndarray = self._words
        counts = np.zeros(len(ends))
        while ends.any():
            counts += ends
            ends = np.bincount(rests, ends[:-1], len(counts))
            ends[-1] = 0
        return counts[:-1]
