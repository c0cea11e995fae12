"""Random sentences of the grammar, and how many there are at least."""

import dataclasses
import functools
import random
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from reprt.data.corpora.embedded import lexicon, portuguese
from reprt.data.corpora.embedded.lexicon import (
    Adjective,
    Adverb,
    Determiner,
    Noun,
    Verb,
)
from reprt.data.corpora.embedded.tree import (
    Agreement,
    Clause,
    Company,
    Compound,
    Coordination,
    Existence,
    InterrogativePronoun,
    Nominal,
    NounPhrase,
    Place,
    Pronoun,
    ProperName,
    Quality,
    Question,
    Relative,
    Role,
    Sentence,
    Statement,
    Tense,
    VerbPhrase,
)

T = TypeVar("T")

BEINGS = ("person", "animal")
PLACES = ("home", "building", "place")
# What can belong to somebody.
OWNED = ("animal", "text", "thing", "clothing", "vehicle", "idea")
TENSES = {
    Tense.PRESENT: 0.4,
    Tense.PAST: 0.4,
    Tense.HABITUAL: 0.03,
    Tense.FUTURE: 0.07,
    Tense.PROSPECTIVE: 0.1,
}
# A state is not habitual: its past is told in the imperfect already.
STATE_TENSES = {Tense.PRESENT: 0.6, Tense.PAST: 0.3, Tense.FUTURE: 0.1}
PAST_TENSES = {Tense.PAST: 0.7, Tense.HABITUAL: 0.3}
WHEN_TENSES = {Tense.PAST: 0.5, Tense.FUTURE: 0.25, Tense.PROSPECTIVE: 0.25}
RELATIVE_TENSES = {Tense.PRESENT: 0.35, Tense.PAST: 0.5, Tense.HABITUAL: 0.15}
DETERMINERS: dict[tuple[Determiner, ...], float] = {
    (lexicon.THE,): 10,
    (lexicon.A,): 4,
    (lexicon.BARE,): 2,
    lexicon.DEMONSTRATIVES: 2.5,
    lexicon.POSSESSIVES: 3,
    lexicon.QUANTIFIERS: 2.5,
    (lexicon.EACH,): 0.4,
}

_CARDINALS = [numeral for numeral in lexicon.NUMERALS if not numeral.ordinal]
_ORDINALS = [numeral for numeral in lexicon.NUMERALS if numeral.ordinal]
_PRENOMINAL = [adjective for adjective in lexicon.ADJECTIVES if adjective.prenominal]
_POSTNOMINAL = [word for word in lexicon.ADJECTIVES if not word.prenominal]
_TRANSITIVE = [verb for verb in lexicon.VERBS if verb.objects and not verb.preposition]
_LOCATED = [verb for verb in lexicon.VERBS if "place" in verb.adjuncts]


@functools.cache
def _nouns(kinds: tuple[str, ...]) -> list[Noun]:
    return [noun for noun in lexicon.NOUNS if noun.kind in kinds]


@functools.cache
def _describing(kind: str, prenominal: bool) -> list[Adjective]:
    adjectives = _PRENOMINAL if prenominal else _POSTNOMINAL
    return [adjective for adjective in adjectives if kind in adjective.kinds]


def _at_tense(adverbs: Sequence[Adverb], tense: Tense) -> list[Adverb]:
    return [adverb for adverb in adverbs if tense.value in adverb.tenses]


def distinct_pairs() -> int:
    """Returns a lower bound of the number of distinct pairs.

    It counts one type of sentence: a noun phrase of a definite determiner and a noun,
    a verb in one of five tenses, affirmed or denied, and another such noun phrase as
    its object, e.g. "estas meninas não abrirão aquela porta .". All slots are filled
    independently and each shows in the Portuguese words.

    >>> distinct_pairs() > 1_000_000
    True
    """
    determiners = (lexicon.THE, *lexicon.DEMONSTRATIVES, *lexicon.POSSESSIVES)

    def noun_phrases(kinds):
        return len(determiners) * sum(1 + noun.countable for noun in _nouns(kinds))

    return sum(
        noun_phrases(verb.subjects) * len(TENSES) * 2 * noun_phrases(verb.objects)
        for verb in _TRANSITIVE
        if not verb.recipient
    )


class Sampler:
    """Draws trees at random.

    Args:
        rng: the source of randomness.

    Example:

    >>> sampler = Sampler(random.Random(0))
    >>> portuguese.sentence(sampler.sentence())[-1] in ".?"
    True
    """

    def __init__(self, rng: random.Random):
        self._rng = rng

    def sentence(self) -> Sentence:
        """Returns a sentence."""
        kinds: dict[Callable[[], Sentence], float] = {
            self._statement: 60,
            self._yes_no_question: 9,
            self._pronoun_question: 5,
            self._determiner_question: 5,
            self._adverb_question: 5,
            self._compound: 16,
        }
        return self._weighted(kinds)()

    # Choices.

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _pick(self, options: Sequence[T]) -> T:
        # As in any text a few words are most of what is said: odds fall faster than
        # with 1/k for the k-th option, whose logarithm would be drawn evenly.
        return options[int((len(options) + 1) ** self._rng.random() ** 1.6) - 1]

    def _weighted(self, weights: dict[T, float]) -> T:
        return self._rng.choices(list(weights), list(weights.values()))[0]

    # Sentences.

    def _statement(self) -> Statement:
        draw = self._rng.random()
        if draw < 0.06:
            return Statement(self._existential())
        if draw < 0.14:
            return Statement(self._report())
        clause = self._clause(rich=True)
        *others, last = clause.adjuncts or (None,)
        if last in lexicon.TIME_ADVERBS and self._chance(0.4):
            clause = dataclasses.replace(clause, adjuncts=tuple(others), opening=last)
        return Statement(clause)

    def _yes_no_question(self) -> Question:
        return Question(self._existential() if self._chance(0.1) else self._clause())

    def _pronoun_question(self) -> Question:
        who, what = map(InterrogativePronoun, (lexicon.WHO, lexicon.WHAT))
        if self._chance(0.5):
            verb = self._pick([v for v in lexicon.VERBS if "person" in v.subjects])
            return Question(self._verbal(verb, subject=who))
        verb = self._pick(_TRANSITIVE)
        asked = who if "person" in verb.objects else what
        return Question(self._verbal(verb, complement=asked))

    def _determiner_question(self) -> Question:
        verb = self._pick(_TRANSITIVE)
        of_subject = self._chance(0.5)
        noun = self._pick(_nouns(verb.subjects if of_subject else verb.objects))
        plural = noun.countable and self._chance(0.65)
        how_many = plural and self._chance(0.7)
        determiner = lexicon.HOW_MANY if how_many else lexicon.WHICH
        asked = NounPhrase(noun, determiner, plural)
        if of_subject:
            return Question(self._verbal(verb, subject=asked))
        return Question(self._verbal(verb, complement=asked))

    def _adverb_question(self) -> Question:
        adverb = self._pick((lexicon.WHERE, lexicon.WHEN, lexicon.WHY))
        verbs = _LOCATED if adverb is lexicon.WHERE else lexicon.VERBS
        tenses = WHEN_TENSES if adverb is lexicon.WHEN else TENSES
        clause = self._verbal(self._pick(verbs), tenses=tenses)
        negative = clause.negative and adverb is lexicon.WHY
        clause = dataclasses.replace(
            clause, negative=negative, adverb=None, adjuncts=()
        )
        return Question(clause, adverb)

    def _compound(self) -> Compound:
        first = self._clause()
        conjunction = self._pick(
            (lexicon.AND, lexicon.BUT, lexicon.BECAUSE, lexicon.WHEN_CLAUSE)
        )
        tenses = {first.tense: 1.0}
        if first.tense in (Tense.FUTURE, Tense.PROSPECTIVE):
            if conjunction is lexicon.WHEN_CLAUSE:
                # "when" would call for the future subjunctive.
                conjunction = lexicon.BECAUSE
            if conjunction is lexicon.BECAUSE:
                tenses = {Tense.PRESENT: 1.0}
        second = self._clause(tenses)
        fronted = conjunction is lexicon.WHEN_CLAUSE and self._chance(0.5)
        return Compound(first, conjunction, second, fronted)

    # Clauses. A `rich` one may have owners and relative clauses.

    def _clause(
        self, tenses: dict[Tense, float] | None = None, rich: bool = False
    ) -> Clause:
        if self._chance(0.2):
            return self._state(tenses or STATE_TENSES, rich)
        verb = self._pick(lexicon.VERBS)
        return self._verbal(verb, tenses=tenses or TENSES, rich=rich)

    def _verbal(
        self,
        verb: Verb,
        subject: Nominal | None = None,
        complement: Nominal | None = None,
        gap: str = "",
        tenses: dict[Tense, float] = TENSES,
        rich: bool = False,
    ) -> Clause:
        """Returns a clause with this verb, whatever is not given drawn at random.

        The `gap` of a relative clause is its `"subject"`, its `"object"` or, with
        both in their places, its `"place"`.
        """
        if subject is None and gap != "subject":
            subject = self._subject(verb.subjects, rich)
        if verb.objects and complement is None and gap != "object":
            # What follows a relative clause would seem to belong to it.
            complement = self._object(verb, subject, rich and not verb.recipient)
        recipient = self._person(subject, True) if verb.recipient else None
        control = None
        if "manner" in verb.adjuncts and self._chance(0.12):
            governors = [
                governor
                for governor in lexicon.CONTROL_VERBS
                if set(verb.subjects) <= set(governor.subjects)
            ]
            control = self._pick(governors)
        tense = self._tense((control or verb).pt, subject, tenses)
        phrase = VerbPhrase(verb, complement, recipient, control)
        clause = self._modified(Clause(subject, phrase, tense))
        if isinstance(complement, NounPhrase) and complement.relative:
            return clause
        return dataclasses.replace(clause, adjuncts=self._adjuncts(clause))

    def _tense(
        self, verb: str, subject: Nominal | None, tenses: dict[Tense, float]
    ) -> Tense:
        tense = self._weighted(tenses)
        if tense is Tense.PROSPECTIVE and verb == "ir":
            return Tense.FUTURE  # "vai ir" is avoided.
        if tense is Tense.PAST and subject:
            # "nós abrimos" is present and past: it is kept for the present.
            present, past = (
                portuguese.conjugate(verb, tense, subject.agreement)
                for tense in (Tense.PRESENT, Tense.PAST)
            )
            return Tense.HABITUAL if present == past else Tense.PAST
        return tense

    def _modified(self, clause: Clause) -> Clause:
        if self._chance(0.18):
            return dataclasses.replace(clause, negative=True)
        if self._chance(0.12):
            adverb = self._pick(_at_tense(lexicon.VERB_ADVERBS, clause.tense))
            return dataclasses.replace(clause, adverb=adverb)
        return clause

    def _adjuncts(self, clause: Clause) -> tuple[Adverb | Place | Company, ...]:
        assert isinstance(clause.predicate, VerbPhrase)
        possible = clause.predicate.verb.adjuncts
        adjuncts: list[Adverb | Place | Company] = []
        if "manner" in possible and self._chance(0.15):
            adjuncts.append(self._pick(lexicon.MANNER_ADVERBS))
        elif "company" in possible and self._chance(0.2):
            adjuncts.append(Company(self._person(clause.subject)))
        elif "place" in possible and self._chance(0.3):
            adjuncts.append(Place(self._noun_phrase(PLACES)))
        # One adverb of time or frequency is enough.
        if not clause.adverb and self._chance(0.22):
            adjuncts.append(self._pick(_at_tense(lexicon.TIME_ADVERBS, clause.tense)))
        return tuple(adjuncts)

    def _report(self) -> Clause:
        verb = self._pick(lexicon.CLAUSAL_VERBS)
        subject = self._subject(verb.subjects)
        tense = self._tense(verb.pt, subject, STATE_TENSES)
        # What was said was about the past, too.
        reported = self._clause(PAST_TENSES if tense in PAST_TENSES else None)
        return Clause(subject, VerbPhrase(verb, reported), tense)

    def _existential(self) -> Clause:
        noun = self._pick(_nouns(("person", "animal", "thing", "furniture", "drink")))
        plural = noun.countable and self._chance(0.7)
        if plural:
            determiner = self._pick((lexicon.BARE, *lexicon.INDEFINITE_QUANTIFIERS))
        else:
            determiner = lexicon.A if noun.countable else lexicon.MASS
        phrase = self._modify(NounPhrase(noun, determiner, plural))
        place = Place(self._noun_phrase(PLACES))
        tense = self._weighted(STATE_TENSES)
        return Clause(None, Existence(phrase), tense, adjuncts=(place,))

    def _state(self, tenses: dict[Tense, float], rich: bool) -> Clause:
        draw = self._rng.random()
        predicate: Role | Place | Quality
        if draw < 0.12:
            kind = "person"
            predicate = Role(self._pick(lexicon.PROFESSIONS))
        elif draw < 0.3:
            kind = self._pick(("person", "animal", "thing", "clothing", "text"))
            surfaces = () if kind == "person" else ("furniture",)
            predicate = Place(self._noun_phrase((*PLACES, *surfaces)))
        else:
            adjective = self._pick(_POSTNOMINAL)
            kind = self._pick(adjective.kinds)
            predicate = Quality(adjective)
            if adjective.gradable and self._chance(0.25):
                predicate = Quality(adjective, self._pick(lexicon.DEGREE_ADVERBS))
            elif adjective.gradable and self._chance(0.3):
                predicate = Quality(adjective, than=self._noun_phrase((kind,)))
        subject = self._subject((kind,), rich)
        return self._modified(Clause(subject, predicate, self._weighted(tenses)))

    # Noun phrases.

    def _subject(self, kinds: Sequence[str], rich: bool = False) -> Nominal:
        if "person" in kinds:
            draw = self._rng.random()
            if draw < 0.24:
                person: Literal[1, 3] = 1 if self._chance(0.5) else 3
                return self._pronoun(person)
            if draw < 0.32:
                return self._name()
            if draw < 0.37:
                return self._couple()
        return self._noun_phrase(kinds, rich)

    def _object(self, verb: Verb, subject: Nominal | None, rich: bool) -> Nominal:
        # Without a preposition, Portuguese would need clitic pronouns.
        if verb.preposition and "person" in verb.objects and self._chance(0.5):
            return self._person(subject, recipient=verb.preposition == "a")
        return self._noun_phrase(verb.objects, rich)

    def _person(self, subject: Nominal | None, recipient: bool = False) -> Nominal:
        """Returns someone else than the subject."""
        draw = self._rng.random()
        if draw < 0.2:
            # "a mim" would be "me" before the verb.
            third = recipient or (subject and subject.agreement.person == 1)
            return self._pronoun(3 if third or self._chance(0.5) else 1)
        if draw < 0.35 and not isinstance(subject, ProperName):
            return self._name()
        return self._noun_phrase(("person",))

    def _pronoun(self, person: Literal[1, 3]) -> Pronoun:
        return Pronoun(Agreement(person, self._chance(0.4), self._pick("mf")))

    def _name(self) -> ProperName:
        return ProperName(self._pick(lexicon.NAMES))

    def _couple(self) -> Coordination:
        first = self._name() if self._chance(0.5) else self._the_person()
        if self._chance(0.2):
            return Coordination(first, Pronoun(Agreement(1, False, self._pick("mf"))))
        return Coordination(first, self._the_person())

    def _the_person(self) -> NounPhrase:
        return NounPhrase(self._pick(_nouns(("person",))), lexicon.THE)

    def _noun_phrase(self, kinds: Sequence[str], rich: bool = False) -> NounPhrase:
        noun = self._pick(_nouns(tuple(kinds)))
        plural = noun.countable and self._chance(0.15 if noun.kind in PLACES else 0.35)
        determiner = self._determiner(noun, plural)
        phrase = self._modify(NounPhrase(noun, determiner, plural))
        if not rich:
            return phrase
        if determiner is lexicon.THE and noun.kind in OWNED and self._chance(0.15):
            return dataclasses.replace(phrase, owner=self._owner())
        if determiner is not lexicon.MASS and self._chance(0.14):
            return dataclasses.replace(phrase, relative=self._relative(noun))
        return phrase

    def _determiner(self, noun: Noun, plural: bool) -> Determiner:
        while True:
            determiners = self._weighted(DETERMINERS)
            determiner = self._pick(determiners)
            if not noun.countable and determiner.kind != "definite":
                return lexicon.MASS
            if determiner.en[plural] is not None:
                return determiner

    def _modify(self, phrase: NounPhrase) -> NounPhrase:
        numeral = before = None
        after: list[Adjective] = []
        if phrase.plural:
            if phrase.determiner.numeral and self._chance(0.35):
                numeral = self._pick(_CARDINALS)
        elif phrase.determiner is lexicon.THE and phrase.noun.countable:
            if self._chance(0.08):
                numeral = self._pick(_ORDINALS)
        prenominal = _describing(phrase.noun.kind, prenominal=True)
        postnominal = _describing(phrase.noun.kind, prenominal=False)
        if prenominal and self._chance(0.12):
            before = self._pick(prenominal)
        elif postnominal and self._chance(0.25):
            after = [self._pick(postnominal)]
            others = [word for word in postnominal if word.gradable]
            if len(others) > 1 and after[0] in others and self._chance(0.2):
                after.append(self._pick([word for word in others if word != after[0]]))
        return dataclasses.replace(
            phrase, numeral=numeral, before=before, after=tuple(after)
        )

    def _owner(self) -> Nominal:
        return self._name() if self._chance(0.3) else self._noun_phrase(("person",))

    def _relative(self, noun: Noun) -> Relative | None:
        doing = [verb for verb in lexicon.VERBS if noun.kind in verb.subjects]
        if noun.kind not in BEINGS:
            doing = [verb for verb in doing if verb.objects]
        taking = [verb for verb in _TRANSITIVE if noun.kind in verb.objects]
        gaps = ["subject"] * bool(doing) + ["object"] * bool(taking)
        gaps += ["place"] * (noun.kind in PLACES)
        if not gaps:
            return None
        gap = self._pick(gaps)
        verbs = {"subject": doing, "object": taking, "place": _LOCATED}[gap]
        clause = self._verbal(self._pick(verbs), gap=gap, tenses=RELATIVE_TENSES)
        return Relative(dataclasses.replace(clause, adjuncts=()), gap == "place")
