"""English: inflection, and a tree said in English."""

import re

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
    is_interrogative,
)

_IRREGULAR_PLURALS = {
    "man": "men",
    "child": "children",
    "mouse": "mice",
    "fish": "fish",
}
_IRREGULAR_PASTS = {
    "bring": "brought",
    "build": "built",
    "buy": "bought",
    "dream": "dreamed",
    "drink": "drank",
    "drive": "drove",
    "eat": "ate",
    "fall": "fell",
    "find": "found",
    "forget": "forgot",
    "give": "gave",
    "go": "went",
    "have": "had",
    "hear": "heard",
    "hide": "hid",
    "lose": "lost",
    "make": "made",
    "prefer": "preferred",
    "read": "read",
    "run": "ran",
    "say": "said",
    "see": "saw",
    "send": "sent",
    "sing": "sang",
    "sleep": "slept",
    "swim": "swam",
    "take": "took",
    "think": "thought",
    "understand": "understood",
    "wake": "woke",
    "write": "wrote",
}
_PRONOUNS = {"i": "me", "we": "us", "he": "him", "she": "her", "they": "them"}
# Where "in" is not the preposition of place.
_PLACES = {
    **dict.fromkeys("street beach table chair bed".split(), "on"),
    **dict.fromkeys("school hospital university hotel".split(), "at"),
}


def plural(noun: str) -> str:
    """Returns the plural of a noun.

    >>> [plural(noun) for noun in ("cat", "box", "city", "boy", "child")]
    ['cats', 'boxes', 'cities', 'boys', 'children']
    """
    return _IRREGULAR_PLURALS.get(noun) or _add_s(noun)


def third_person(verb: str) -> str:
    """Returns the form of the present after "he" or "she".

    >>> [third_person(verb) for verb in ("eat", "go", "carry", "have", "wake up")]
    ['eats', 'goes', 'carries', 'has', 'wakes up']
    """
    word, _, particle = verb.partition(" ")
    if word == "have":
        form = "has"
    else:
        form = word + "es" if word.endswith("o") else _add_s(word)
    return _join(form, particle)


def past(verb: str) -> str:
    """Returns the simple past.

    >>> [past(verb) for verb in ("open", "carry", "obey", "dance", "wake up")]
    ['opened', 'carried', 'obeyed', 'danced', 'woke up']
    """
    word, _, particle = verb.partition(" ")
    if word in _IRREGULAR_PASTS:
        form = _IRREGULAR_PASTS[word]
    elif word.endswith("e"):
        form = word + "d"
    elif _is_consonant_y(word):
        form = word[:-1] + "ied"
    else:
        form = word + "ed"
    return _join(form, particle)


def comparative(adjective: str) -> str:
    """Returns the comparative.

    >>> [comparative(word) for word in ("tall", "sad", "happy", "famous")]
    ['taller', 'sadder', 'happier', 'more famous']
    """
    if _is_consonant_y(adjective):
        return adjective[:-1] + "ier" if len(adjective) > 3 else adjective + "er"
    if _syllables(adjective) > 1:
        return f"more {adjective}"
    if adjective.endswith("e"):
        return adjective + "r"
    # "sad", "sadder", but "cheap", "cheaper" and "new", "newer".
    doubled = re.search("[^aeiou][aeiou][^aeiouwxy]$", adjective)
    return adjective + (adjective[-1] if doubled else "") + "er"


def _add_s(word: str) -> str:
    if _is_consonant_y(word):
        return word[:-1] + "ies"
    return word + "es" if word.endswith(("s", "x", "z", "ch", "sh")) else word + "s"


def _is_consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeiou"


def _syllables(word: str) -> int:
    # Groups of vowels; a final "e" is silent.
    vowels = "".join(letter if letter in "aeiouy" else " " for letter in word[:-1])
    return len(vowels.split()) + (word[-1] in "aiouy" and vowels[-1] == " ")


def sentence(tree: Sentence) -> str:
    """Returns the sentence in English, lower-cased and tokenized."""
    if isinstance(tree, Compound):
        first, second = _clause(tree.first), _clause(tree.second)
        if tree.fronted:
            return _join(tree.conjunction.en, second, ",", first, ".")
        return _join(first, tree.conjunction.en, second, ".")
    if isinstance(tree, Statement):
        return _join(_clause(tree.clause), ".")
    return _join(_question(tree), "?")


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _question(tree: Question) -> str:
    clause = tree.clause
    if is_interrogative(clause.subject):
        # "who ate the bread": in the place of the subject nothing is inverted.
        return _clause(clause)
    asked = tree.adverb.en if tree.adverb else ""
    if isinstance(clause.predicate, VerbPhrase):
        if is_interrogative(clause.predicate.complement):
            asked = _complement(clause.predicate.complement)
    return _join(asked, _clause(clause, inverted=True))


def _clause(
    clause: Clause, antecedent: NounPhrase | None = None, inverted: bool = False
) -> str:
    predicate = clause.predicate
    if isinstance(predicate, Existence):
        subject, agreement = "there", predicate.phrase.agreement
    else:
        subject = nominal(clause.subject) if clause.subject else ""
        agreed = clause.subject or antecedent
        agreement = agreed.agreement if agreed else Agreement()
    support = inverted or clause.negative
    if isinstance(predicate, VerbPhrase):
        governor = predicate.control or predicate.verb
        auxiliary, verb = _verb_group(governor.en, clause.tense, agreement, support)
    else:
        auxiliary, verb = _copula(clause.tense, agreement)
    return _join(
        clause.opening.en if clause.opening else "",
        *((auxiliary, subject) if inverted else (subject, auxiliary)),
        "not" if clause.negative else "",
        clause.adverb.en if clause.adverb else "",
        verb,
        _complements(predicate, agreement),
        *(_adjunct(adjunct) for adjunct in clause.adjuncts),
    )


def _be(agreement: Agreement, tense: Tense) -> str:
    # A state has only one past: "was" renders "era".
    if tense in (Tense.PAST, Tense.HABITUAL):
        return "were" if agreement.plural else "was"
    if agreement.plural:
        return "are"
    return "am" if agreement.person == 1 else "is"


def _copula(tense: Tense, agreement: Agreement) -> tuple[str, str]:
    if tense is Tense.FUTURE:
        return "will", "be"
    if tense is Tense.PROSPECTIVE:
        return _be(agreement, Tense.PRESENT), "going to be"
    return _be(agreement, tense), ""


def _verb_group(
    verb: str, tense: Tense, agreement: Agreement, support: bool
) -> tuple[str, str]:
    """Returns the auxiliary and the rest.

    Without another auxiliary, negation and inversion call for the support of "do".
    """
    third = agreement.person == 3 and not agreement.plural
    if tense is Tense.FUTURE:
        return "will", verb
    if tense is Tense.PROSPECTIVE:
        return _be(agreement, Tense.PRESENT), f"going to {verb}"
    if tense is Tense.PRESENT:
        if support:
            return "does" if third else "do", verb
        return "", third_person(verb) if third else verb
    if tense is Tense.HABITUAL:
        return ("did", f"use to {verb}") if support else ("", f"used to {verb}")
    return ("did", verb) if support else ("", past(verb))


def _complements(predicate, agreement: Agreement) -> str:
    if isinstance(predicate, VerbPhrase):
        complement, recipient = predicate.complement, predicate.recipient
        return _join(
            f"to {predicate.verb.en}" if predicate.control else "",
            "" if is_interrogative(complement) else _complement(complement),
            _join("to", _complement(recipient)) if recipient else "",
        )
    if isinstance(predicate, Existence):
        return nominal(predicate.phrase)
    if isinstance(predicate, Place):
        return _adjunct(predicate)
    if isinstance(predicate, Role):
        noun = predicate.nouns[agreement.gender].en
        return plural(noun) if agreement.plural else _indefinite(noun)
    return _quality(predicate)


def _quality(quality: Quality) -> str:
    adjective = quality.adjective.en
    if quality.than:
        return _join(comparative(adjective), "than", _complement(quality.than))
    return _join(quality.degree.en if quality.degree else "", adjective)


def _complement(complement: Nominal | Clause | None) -> str:
    if complement is None:
        return ""
    if isinstance(complement, Clause):
        return _join("that", _clause(complement))
    if isinstance(complement, Coordination):
        return _join(
            _complement(complement.first), "and", _complement(complement.second)
        )
    words = nominal(complement)
    return _PRONOUNS.get(words, words)


def _adjunct(adjunct) -> str:
    if isinstance(adjunct, Place):
        phrase = adjunct.phrase
        return _join(_PLACES.get(phrase.noun.en, "in"), nominal(phrase))
    if isinstance(adjunct, Company):
        return _join("with", _complement(adjunct.phrase))
    return adjunct.en


def nominal(phrase: Nominal) -> str:
    """Returns a noun phrase or what stands for one, as a subject."""
    if isinstance(phrase, Pronoun):
        person, many, gender = phrase.agreement
        if person == 1:
            return "we" if many else "i"
        if many:
            return "they"
        return "he" if gender == "m" else "she"
    if isinstance(phrase, ProperName):
        return phrase.name.pt
    if isinstance(phrase, InterrogativePronoun):
        return phrase.word.en
    if isinstance(phrase, Coordination):
        return _join(nominal(phrase.first), "and", nominal(phrase.second))
    return _noun_phrase(phrase)


def _noun_phrase(phrase: NounPhrase) -> str:
    determiner = phrase.determiner.en[phrase.plural]
    assert determiner is not None, f"{phrase.determiner} has no such form"
    words = _join(
        phrase.numeral.en if phrase.numeral else "",
        phrase.before.en if phrase.before else "",
        " and ".join(adjective.en for adjective in phrase.after),
        plural(phrase.noun.en) if phrase.plural else phrase.noun.en,
    )
    return _join(
        _indefinite(words) if determiner == "a" else _join(determiner, words),
        _join("of", _complement(phrase.owner)) if phrase.owner else "",
        _relative(phrase.relative, phrase) if phrase.relative else "",
    )


def _indefinite(words: str) -> str:
    # It is the sound that counts: "a university", "a useful book", "an honest man".
    vowel = words[0] in "aeiou" and not words.startswith(("uni", "use"))
    return f"an {words}" if vowel or words.startswith("hon") else f"a {words}"


def _relative(relative: Relative, antecedent: NounPhrase) -> str:
    person = antecedent.noun.kind == "person"
    word = "where" if relative.place else "who" if person else "that"
    return _join(word, _clause(relative.clause, antecedent))
