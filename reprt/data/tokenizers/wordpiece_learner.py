"""Learns the vocabulary that tensorflow-text's WordPiece learner gives, in arrays.

tensorflow-text counts, in dictionaries of strings, each substring of each word from
some starts, and takes from a substring's count those of its extensions. What is left
is the number of words that end with the substring: its pieces are ends of words. So
only the ends of words are counted here. Which ends occur within which words does not
change while the learner looks for a threshold, and is found once.
"""

import collections
import dataclasses
from array import array
from collections.abc import Mapping, Sequence

import numpy as np

JOINER = "##"
ROUNDS = 4
MOST_WORDS = 5_000_000
THRESHOLDS = 10, 10**7  # the lowest and the highest
SLACK = 0.05  # of the size, by which a vocabulary may be smaller


def learn(
    counts: Mapping[str, int],
    size: int,
    reserved: Sequence[str],
    longest_word: int,
    most_characters: int,
) -> list[str]:
    """Returns the vocabulary that is nearest to a size from below.

    A piece is in the vocabulary if its count reaches a threshold, which is found by
    bisection. The pieces of the first round are all ends of words; in later ones an end
    is counted only where a word, cut into the longest pieces of the round before, has a
    cut.

    Args:
        counts: how often each word occurs.
        size: the most pieces.
        reserved: the first pieces, such as `[PAD]`.
        longest_word: longer words are left out.
        most_characters: words with a character that is none of this many most frequent
            ones are left out.
    """
    lowest, highest = THRESHOLDS
    lower = max(min(counts.values()), lowest)
    upper = min(max(counts.values()), highest)
    words = {
        word: count
        for word, count in counts.items()
        if len(word) <= longest_word and word not in reserved
    }
    ends = _Ends.of(_usual(words, most_characters))
    while True:
        threshold = (lower + upper) // 2
        pieces = ends.pieces(threshold)
        vocabulary = len(reserved) + len(pieces)
        fits = (1 - SLACK) * size <= vocabulary <= size
        if fits or lower >= upper or threshold <= 1:
            break
        if vocabulary > size:
            lower = threshold + 1
        else:
            upper = threshold - 1
    characters = sorted(ends.characters)
    ranked = sorted(pieces, key=lambda piece: (-pieces[piece], piece))
    return list(dict.fromkeys([*reserved, *characters, *ranked]))


def _usual(words: Mapping[str, int], most_characters: int) -> dict[str, int]:
    """Returns the words of frequent characters, the most frequent words first."""
    characters: collections.Counter[str] = collections.Counter()
    for word, count in words.items():
        for character in word:
            characters[character] += count
    ranked = sorted(characters, key=lambda one: (-characters[one], one))
    frequent = set(ranked[:most_characters])
    usual: dict[str, int] = {}
    for word in sorted(words, key=lambda word: -words[word]):
        if len(usual) == MOST_WORDS:
            break
        if frequent.issuperset(word):
            usual[word] = words[word]
    return usual


@dataclasses.dataclass
class _Ends:
    """The ends of words, and where they occur within words.

    Places are the characters of all words, one word after the other. A candidate is an
    end of any word that occurs at a place; those of a place follow one another, the
    shortest first, which is a single character.

    Attributes:
        texts: each end as a piece, with `##` unless it is a whole word.
        characters: those of all words.
        is_character: whether each end is a single character.
        end: for each place the end that begins there.
        counts: for each place how often its word occurs.
        starts: the first place of each word.
        stops: for each place the place after the last of its word.
        candidates: ends, place by place.
        lengths: the number of characters of each candidate.
        first_candidates: for each place the index of its first candidate.
    """

    texts: list[str]
    characters: set[str]
    is_character: np.ndarray
    end: np.ndarray
    counts: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    candidates: np.ndarray
    lengths: np.ndarray
    first_candidates: np.ndarray

    @classmethod
    def of(cls, words: Mapping[str, int]) -> "_Ends":
        characters = set().union(*words)
        whole = _numbered([*words, *sorted(characters)], 0)
        inner_ends = [word[at:] for word in words for at in range(1, len(word))]
        inner = _numbered(inner_ends + sorted(characters), len(whole))
        end, candidates, lengths = array("i"), array("i"), array("b")
        first_candidates = array("q")
        for word in words:
            for start in range(len(word)):
                ends = inner if start else whole
                end.append(ends[word[start:]])
                first_candidates.append(len(candidates))
                for stop in range(start + 1, len(word) + 1):
                    candidate = ends.get(word[start:stop])
                    if candidate is not None:
                        candidates.append(candidate)
                        lengths.append(stop - start)
        is_character = [len(text) == 1 for text in [*whole, *inner]]
        sizes = np.fromiter(map(len, words), "int64", len(words))
        after = np.cumsum(sizes)
        times = np.fromiter(words.values(), "int64", len(words))
        return cls(
            texts=[*whole, *(JOINER + text for text in inner)],
            characters=characters,
            is_character=np.asarray(is_character),
            end=np.asarray(end),
            counts=np.repeat(times, sizes),
            starts=after - sizes,
            stops=np.repeat(after, sizes),
            candidates=np.asarray(candidates),
            lengths=np.asarray(lengths),
            first_candidates=np.asarray(first_candidates),
        )

    def pieces(self, threshold: int) -> dict[str, int]:
        """Returns the pieces of the last round and their counts.

        Characters are pieces whatever their count; below the threshold it is 1.
        """
        places = np.arange(len(self.end))
        for _ in range(ROUNDS):
            counts = np.bincount(
                self.end[places], self.counts[places], len(self.texts)
            )
            frequent = counts >= threshold
            places = self._cuts(frequent | self.is_character)
        counts = np.where(frequent, counts, 1).astype("int64")
        numbers = np.flatnonzero(frequent | self.is_character)
        return {self.texts[number]: int(counts[number]) for number in numbers}

    def _cuts(self, is_piece: np.ndarray) -> np.ndarray:
        """Returns the places at which words are cut into the longest pieces."""
        lengths = np.where(is_piece[self.candidates], self.lengths, 0)
        longest = np.maximum.reduceat(lengths, self.first_candidates)
        cuts = []
        places = self.starts
        while len(places):
            cuts.append(places)
            following = places + longest[places]
            places = following[following < self.stops[places]]
        return np.concatenate(cuts)


def _numbered(texts: Sequence[str], first: int) -> dict[str, int]:
    """Numbers different texts in their order."""
    return {text: first + n for n, text in enumerate(dict.fromkeys(texts))}
