"""Portuguese: inflection, and a tree said in Portuguese."""

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
    Tense,
    VerbPhrase,
    is_interrogative,
)

_IRREGULAR_PLURALS = {
    "cão": "cães",
    "irmão": "irmãos",
    "alemão": "alemães",
    "país": "países",
    "português": "portugueses",
    "francês": "franceses",
    "juiz": "juízes",
    "lápis": "lápis",
    "ônibus": "ônibus",
    "simples": "simples",
}
_IRREGULAR_FEMININES = {
    "bom": "boa",
    "mau": "má",
    "alemão": "alemã",
    "português": "portuguesa",
    "francês": "francesa",
    "espanhol": "espanhola",
}

# First and third person singular, then plural, by the vowel of the infinitive.
_ENDINGS = {
    Tense.PRESENT: {"a": "o a amos am", "e": "o e emos em", "i": "o e imos em"},
    Tense.PAST: {"a": "ei ou amos aram", "e": "i eu emos eram", "i": "i iu imos iram"},
    Tense.HABITUAL: {
        "a": "ava ava ávamos avam",
        "e": "ia ia íamos iam",
        "i": "ia ia íamos iam",
    },
    Tense.FUTURE: dict.fromkeys("aei", "ei á emos ão"),
}
_IRREGULAR_FORMS = {
    ("ser", Tense.PRESENT): "sou é somos são",
    ("ser", Tense.HABITUAL): "era era éramos eram",
    ("estar", Tense.PRESENT): "estou está estamos estão",
    ("haver", Tense.PRESENT): "hei há havemos hão",
    ("ir", Tense.PRESENT): "vou vai vamos vão",
    ("ir", Tense.PAST): "fui foi fomos foram",
    ("ter", Tense.PRESENT): "tenho tem temos têm",
    ("ter", Tense.PAST): "tive teve tivemos tiveram",
    ("ter", Tense.HABITUAL): "tinha tinha tínhamos tinham",
    ("fazer", Tense.PRESENT): "faço faz fazemos fazem",
    ("fazer", Tense.PAST): "fiz fez fizemos fizeram",
    ("fazer", Tense.FUTURE): "farei fará faremos farão",
    ("trazer", Tense.PRESENT): "trago traz trazemos trazem",
    ("trazer", Tense.PAST): "trouxe trouxe trouxemos trouxeram",
    ("trazer", Tense.FUTURE): "trarei trará traremos trarão",
    ("dizer", Tense.PRESENT): "digo diz dizemos dizem",
    ("dizer", Tense.PAST): "disse disse dissemos disseram",
    ("dizer", Tense.FUTURE): "direi dirá diremos dirão",
    ("dar", Tense.PRESENT): "dou dá damos dão",
    ("dar", Tense.PAST): "dei deu demos deram",
    ("ver", Tense.PRESENT): "vejo vê vemos veem",
    ("ver", Tense.PAST): "vi viu vimos viram",
    ("ler", Tense.PRESENT): "leio lê lemos leem",
    ("rir", Tense.PRESENT): "rio ri rimos riem",
    ("sorrir", Tense.PRESENT): "sorrio sorri sorrimos sorriem",
    ("construir", Tense.PRESENT): "construo constrói construímos constroem",
    ("construir", Tense.PAST): "construí construiu construímos construíram",
    ("construir", Tense.HABITUAL): "construía construía construíamos construíam",
    ("cair", Tense.PRESENT): "caio cai caímos caem",
    ("cair", Tense.PAST): "caí caiu caímos caíram",
    ("cair", Tense.HABITUAL): "caía caía caíamos caíam",
    ("sair", Tense.PRESENT): "saio sai saímos saem",
    ("sair", Tense.PAST): "saí saiu saímos saíram",
    ("sair", Tense.HABITUAL): "saía saía saíamos saíam",
    ("fugir", Tense.PRESENT): "fujo foge fugimos fogem",
    ("ouvir", Tense.PRESENT): "ouço ouve ouvimos ouvem",
    ("perder", Tense.PRESENT): "perco perde perdemos perdem",
    ("dormir", Tense.PRESENT): "durmo dorme dormimos dormem",
    ("descobrir", Tense.PRESENT): "descubro descobre descobrimos descobrem",
    ("mentir", Tense.PRESENT): "minto mente mentimos mentem",
    ("vestir", Tense.PRESENT): "visto veste vestimos vestem",
    ("preferir", Tense.PRESENT): "prefiro prefere preferimos preferem",
    ("seguir", Tense.PRESENT): "sigo segue seguimos seguem",
    ("conseguir", Tense.PRESENT): "consigo consegue conseguimos conseguem",
}

_ARTICLES = ("o", "a", "os", "as")
_CONTRACTIONS = {
    **{("de", word): "d" + word for word in _ARTICLES},
    **{("em", word): "n" + word for word in _ARTICLES},
    **{("por", word): "pel" + word for word in _ARTICLES},
    **dict(zip((("a", word) for word in _ARTICLES), ("ao", "à", "aos", "às"))),
    **{("em", word): "n" + word for word in ("um", "uma")},
    **{
        (preposition, stem + ending): initial + stem + ending
        for preposition, initial in (("de", "d"), ("em", "n"))
        for stem, endings in (
            ("est", ("e", "a", "es", "as")),
            ("aquel", ("e", "a", "es", "as")),
            ("el", ("e", "a", "es", "as")),
        )
        for ending in endings
    },
    **{("a", "aquel" + ending): "àquel" + ending for ending in ("e", "a", "es", "as")},
    ("com", "mim"): "comigo",
    ("com", "nós"): "conosco",
}


def plural(word: str) -> str:
    """Returns the plural of a noun or adjective.

    >>> [plural(word) for word in ("gato", "leão", "cão", "jornal", "flor", "jardim")]
    ['gatos', 'leões', 'cães', 'jornais', 'flores', 'jardins']
    """
    if word in _IRREGULAR_PLURALS:
        return _IRREGULAR_PLURALS[word]
    if word.endswith("ão"):
        return word[:-2] + "ões"
    if word.endswith(("r", "z")):
        return word + "es"
    if word.endswith("m"):
        return word[:-1] + "ns"
    if word.endswith("l"):
        stem, vowel = word[:-2], word[-2]
        # A written accent elsewhere says that the last syllable is not the stressed
        # one: "difícil", "difíceis", but "hotel", "hotéis".
        if any(letter in "áâéêíóôú" for letter in stem):
            vowel = "e" if vowel in "ei" else vowel
        else:
            vowel = {"e": "é", "o": "ó"}.get(vowel, vowel)
        return stem + vowel + "is"
    return word + "s"


def inflect(adjective: str, agreement: Agreement) -> str:
    """Returns an adjective in the gender and number of what it describes.

    >>> inflect("velho", Agreement(plural=True, gender="f"))
    'velhas'
    """
    word = adjective
    if agreement.gender == "f":
        if word in _IRREGULAR_FEMININES:
            word = _IRREGULAR_FEMININES[word]
        elif word.endswith("o"):
            word = word[:-1] + "a"
    return plural(word) if agreement.plural else word


def conjugate(infinitive: str, tense: Tense, agreement: Agreement) -> str:
    """Returns a verb's form.

    >>> conjugate("comer", Tense.PAST, Agreement(plural=True))
    'comeram'
    """
    if tense is Tense.PROSPECTIVE:
        return f"{conjugate('ir', Tense.PRESENT, agreement)} {infinitive}"
    cell = 2 * agreement.plural + (agreement.person == 3)
    if (infinitive, tense) in _IRREGULAR_FORMS:
        return _IRREGULAR_FORMS[infinitive, tense].split()[cell]
    ending = _ENDINGS[tense][infinitive[-2]].split()[cell]
    if tense is Tense.FUTURE:
        return infinitive + ending
    return _respell(infinitive[:-2], infinitive[-2], ending) + ending


def _respell(stem: str, vowel: str, ending: str) -> str:
    # The stem's last consonant sounds as in the infinitive: conheço, fiquei.
    changes = {}
    if vowel == "a" and ending[0] == "e":
        changes = {"c": "qu", "g": "gu", "ç": "c"}
    elif vowel != "a" and ending[0] == "o":
        changes = {"c": "ç", "g": "j"}
    return stem[:-1] + changes.get(stem[-1:], stem[-1:])


def contract(preposition: str, phrase: str) -> str:
    """Returns a preposition and a phrase, contracted where Portuguese does.

    >>> contract("de", "o gato"), contract("em", "uma casa"), contract("a", "as ilhas")
    ('do gato', 'numa casa', 'às ilhas')
    """
    if not preposition:
        return phrase
    first, _, rest = phrase.partition(" ")
    contracted = _CONTRACTIONS.get((preposition, first), f"{preposition} {first}")
    return _join(contracted, rest)


def sentence(tree: Sentence) -> str:
    """Returns the sentence in Portuguese, lower-cased and tokenized."""
    if isinstance(tree, Compound):
        first, second = _clause(tree.first), _clause(tree.second)
        if tree.fronted:
            return _join(tree.conjunction.pt, second, ",", first, ".")
        return _join(first, tree.conjunction.pt, second, ".")
    if isinstance(tree, Question):
        asked = tree.adverb.pt if tree.adverb else ""
        return _join(asked, _clause(tree.clause), "?")
    return _join(_clause(tree.clause), ".")


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _clause(clause: Clause, antecedent: NounPhrase | None = None) -> str:
    subject = clause.subject or antecedent
    agreement = subject.agreement if subject else Agreement()
    predicate = clause.predicate
    asked = ""
    if isinstance(predicate, VerbPhrase) and is_interrogative(predicate.complement):
        asked = _complement("", predicate.complement)
    return _join(
        clause.opening.pt if clause.opening else "",
        asked,
        nominal(clause.subject) if clause.subject else "",
        "não" if clause.negative else "",
        clause.adverb.pt if clause.adverb else "",
        _predicate(clause, agreement),
        *(_adjunct(adjunct) for adjunct in clause.adjuncts),
    )


def _predicate(clause: Clause, agreement: Agreement) -> str:
    predicate = clause.predicate
    if isinstance(predicate, VerbPhrase):
        return _verb_phrase(predicate, clause.tense, agreement)
    # In the past, a state is told in the imperfect: "era", not "foi".
    tense = Tense.HABITUAL if clause.tense is Tense.PAST else clause.tense
    if isinstance(predicate, Existence):
        return _join(conjugate("haver", tense, agreement), nominal(predicate.phrase))
    if isinstance(predicate, Place):
        return _join(conjugate("estar", tense, agreement), _adjunct(predicate))
    if isinstance(predicate, Role):
        # A profession takes no article.
        noun = predicate.nouns[agreement.gender].pt
        noun = plural(noun) if agreement.plural else noun
        return _join(conjugate("ser", tense, agreement), noun)
    return _join(
        conjugate(predicate.adjective.copula, tense, agreement),
        _quality(predicate, agreement),
    )


def _quality(quality: Quality, agreement: Agreement) -> str:
    adjective = inflect(quality.adjective.pt, agreement)
    if quality.than:
        return _join("mais", adjective, "do que", nominal(quality.than))
    return _join(quality.degree.pt if quality.degree else "", adjective)


def _verb_phrase(phrase: VerbPhrase, tense: Tense, agreement: Agreement) -> str:
    verb = phrase.verb
    if phrase.control:
        finite = conjugate(phrase.control.pt, tense, agreement)
        words = _join(finite, phrase.control.preposition, verb.pt)
    else:
        words = conjugate(verb.pt, tense, agreement)
    if not is_interrogative(phrase.complement):
        words = _join(words, _complement(verb.preposition, phrase.complement))
    return _join(words, _complement("a", phrase.recipient))


def _complement(preposition: str, complement: Nominal | Clause | None) -> str:
    if complement is None:
        return ""
    if isinstance(complement, Clause):
        return _join("que", _clause(complement))
    if not preposition:
        return nominal(complement)
    if isinstance(complement, Coordination):
        # "do menino e da menina": each is contracted with the preposition.
        return _join(
            _complement(preposition, complement.first),
            "e",
            _complement(preposition, complement.second),
        )
    words = nominal(complement)
    return contract(preposition, "mim" if words == "eu" else words)


def _adjunct(adjunct) -> str:
    if isinstance(adjunct, Place):
        return _complement("em", adjunct.phrase)
    if isinstance(adjunct, Company):
        return _complement("com", adjunct.phrase)
    return adjunct.pt


def nominal(phrase: Nominal) -> str:
    """Returns a noun phrase or what stands for one."""
    if isinstance(phrase, Pronoun):
        person, many, gender = phrase.agreement
        if person == 1:
            return "nós" if many else "eu"
        return ("el" + ("e" if gender == "m" else "a")) + ("s" if many else "")
    if isinstance(phrase, ProperName):
        return phrase.name.pt
    if isinstance(phrase, InterrogativePronoun):
        return phrase.word.pt
    if isinstance(phrase, Coordination):
        return _join(nominal(phrase.first), "e", nominal(phrase.second))
    return _noun_phrase(phrase)


def _noun_phrase(phrase: NounPhrase) -> str:
    agreement = phrase.agreement
    feminine = agreement.gender == "f"
    determiner = phrase.determiner.pt[2 * phrase.plural + feminine]
    assert determiner is not None, f"{phrase.determiner} has no such form"
    return _join(
        determiner,
        phrase.numeral.pt[feminine] if phrase.numeral else "",
        inflect(phrase.before.pt, agreement) if phrase.before else "",
        plural(phrase.noun.pt) if phrase.plural else phrase.noun.pt,
        " e ".join(inflect(adjective.pt, agreement) for adjective in phrase.after),
        phrase.determiner.after,
        _complement("de", phrase.owner),
        _relative(phrase.relative, phrase) if phrase.relative else "",
    )


def _relative(relative: Relative, antecedent: NounPhrase) -> str:
    word = "onde" if relative.place else "que"
    return _join(word, _clause(relative.clause, antecedent))
