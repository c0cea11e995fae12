"""The abstract syntax: what a sentence says, before either language says it.

`portuguese` and `english` each turn the same tree into words, so a pair is aligned
by construction.
"""

import dataclasses
import enum
from typing import Literal, NamedTuple, TypeAlias

from reprt.data.corpora.embedded.lexicon import (
    Adjective,
    Adverb,
    Conjunction,
    Determiner,
    Interrogative,
    Name,
    Noun,
    Numeral,
    Verb,
)


class Tense(enum.Enum):
    """The tenses, each with one form in Portuguese and one in English."""

    PRESENT = "present"  # come, eats
    PAST = "past"  # comeu, ate
    HABITUAL = "habitual"  # comia, used to eat
    FUTURE = "future"  # comerá, will eat
    PROSPECTIVE = "prospective"  # vai comer, is going to eat


class Agreement(NamedTuple):
    """What a noun phrase imposes on verbs and adjectives."""

    person: Literal[1, 3] = 3
    plural: bool = False
    gender: str = "m"


@dataclasses.dataclass(frozen=True)
class Pronoun:
    """A personal pronoun, which is nothing but its agreement."""

    agreement: Agreement


@dataclasses.dataclass(frozen=True)
class ProperName:
    """A person by name."""

    name: Name

    @property
    def agreement(self) -> Agreement:
        return Agreement(gender=self.name.gender)


@dataclasses.dataclass(frozen=True)
class InterrogativePronoun:
    """Who or what."""

    word: Interrogative
    agreement: Agreement = Agreement()


@dataclasses.dataclass(frozen=True)
class NounPhrase:
    """A noun with all that depends on it.

    Args:
        noun: the head.
        determiner: its determiner.
        plural: its number.
        numeral: a cardinal if plural, an ordinal if singular.
        before: the adjective that Portuguese puts before the noun.
        after: the adjectives, at most two, that Portuguese puts after it.
        owner: whose it is: "of the girl".
        relative: a relative clause.
    """

    noun: Noun
    determiner: Determiner
    plural: bool = False
    numeral: Numeral | None = None
    before: Adjective | None = None
    after: tuple[Adjective, ...] = ()
    owner: "Nominal | None" = None
    relative: "Relative | None" = None

    @property
    def agreement(self) -> Agreement:
        return Agreement(plural=self.plural, gender=self.noun.gender)


@dataclasses.dataclass(frozen=True)
class Coordination:
    """Two joined by "and": plural, and masculine unless both are feminine."""

    first: "Nominal"
    second: "Nominal"

    @property
    def agreement(self) -> Agreement:
        one, other = self.first.agreement, self.second.agreement
        return Agreement(
            person=min(one.person, other.person),
            plural=True,
            gender="f" if one.gender == other.gender == "f" else "m",
        )


Nominal: TypeAlias = (
    Pronoun | ProperName | InterrogativePronoun | NounPhrase | Coordination
)


@dataclasses.dataclass(frozen=True)
class VerbPhrase:
    """A verb with its complements.

    Args:
        verb: the verb with the meaning.
        complement: its object or the clause that it reports; `None` if intransitive or
            if the object is the gap of a relative clause.
        recipient: who receives the object.
        control: the verb that governs it in the infinitive: "tries to eat".
    """

    verb: Verb
    complement: "Nominal | Clause | None" = None
    recipient: Nominal | None = None
    control: Verb | None = None


@dataclasses.dataclass(frozen=True)
class Quality:
    """The predicate "is tall", "is very tall" or "is taller than the boy"."""

    adjective: Adjective
    degree: Adverb | None = None
    than: Nominal | None = None


@dataclasses.dataclass(frozen=True)
class Role:
    """The predicate "is a doctor", by the nouns for men and for women."""

    nouns: dict[str, Noun]


@dataclasses.dataclass(frozen=True)
class Place:
    """Where: the predicate "is in the garden" or an adjunct."""

    phrase: NounPhrase


@dataclasses.dataclass(frozen=True)
class Company:
    """With whom: an adjunct."""

    phrase: Nominal


@dataclasses.dataclass(frozen=True)
class Existence:
    """The predicate of "there is"."""

    phrase: NounPhrase


Predicate: TypeAlias = VerbPhrase | Quality | Role | Place | Existence


@dataclasses.dataclass(frozen=True)
class Clause:
    """A subject and a predicate.

    Args:
        subject: `None` if it is the gap of a relative clause, or if there is none.
        predicate: what is said of it.
        tense: when.
        negative: whether it is denied.
        adverb: an adverb beside the verb.
        adjuncts: what follows the complements.
        opening: an adverb before everything else.
    """

    subject: Nominal | None
    predicate: Predicate
    tense: Tense = Tense.PRESENT
    negative: bool = False
    adverb: Adverb | None = None
    adjuncts: tuple[Adverb | Place | Company, ...] = ()
    opening: Adverb | None = None


@dataclasses.dataclass(frozen=True)
class Relative:
    """A relative clause; its gap is the subject or object it lacks, or the place."""

    clause: Clause
    place: bool = False


@dataclasses.dataclass(frozen=True)
class Statement:
    """One clause."""

    clause: Clause


@dataclasses.dataclass(frozen=True)
class Question:
    """A question: by an adverb, by an interrogative in the clause, or yes or no."""

    clause: Clause
    adverb: Adverb | None = None


@dataclasses.dataclass(frozen=True)
class Compound:
    """Two joined clauses; `fronted` puts the second, subordinate one first."""

    first: Clause
    conjunction: Conjunction
    second: Clause
    fronted: bool = False


Sentence: TypeAlias = Statement | Question | Compound


def is_interrogative(nominal: "Nominal | Clause | None") -> bool:
    """Whether a question asks for this part of the clause."""
    if isinstance(nominal, NounPhrase):
        return nominal.determiner.kind == "interrogative"
    return isinstance(nominal, InterrogativePronoun)
