import collections
import dataclasses
import doctest
import importlib
import itertools
import random
import re
import subprocess
import sys

import pytest

from reprt.data.corpora import embedded
from reprt.data.corpora.embedded import english, lexicon, portuguese
from reprt.data.corpora.embedded.sampler import Sampler, distinct_pairs
from reprt.data.corpora.embedded.tree import (
    Agreement,
    Clause,
    Company,
    Compound,
    Coordination,
    Existence,
    InterrogativePronoun,
    NounPhrase,
    Place,
    Pronoun,
    ProperName,
    Quality,
    Question,
    Relative,
    Role,
    Statement,
    Tense,
    VerbPhrase,
)

THIS, THAT = lexicon.DEMONSTRATIVES
MY, OUR, HIS, HER, THEIR = lexicon.POSSESSIVES
SOME, MANY, *_, ALL = lexicon.QUANTIFIERS


def word(words, pt):
    """The entry of the lexicon with this Portuguese form."""
    (found,) = [entry for entry in words if entry.pt == pt]
    return found


def adjective(pt):
    return word(lexicon.ADJECTIVES, pt)


def numeral(en):
    (found,) = [entry for entry in lexicon.NUMERALS if entry.en == en]
    return found


def np(pt, determiner=lexicon.THE, plural=False, after=(), **fields):
    """A noun phrase; a noun of both genders counts as masculine."""
    noun = next(noun for noun in lexicon.NOUNS if noun.pt == pt)
    after = tuple(adjective(one) for one in after)
    if "before" in fields:
        fields["before"] = adjective(fields["before"])
    return NounPhrase(noun, determiner, plural, after=after, **fields)


def vp(pt, complement=None, preposition="", control="", **fields):
    verbs = lexicon.VERBS + lexicon.CLAUSAL_VERBS
    if control:
        fields["control"] = word(lexicon.CONTROL_VERBS, control)
    verb = next(v for v in verbs if v.pt == pt and v.preposition == preposition)
    if isinstance(complement, Clause):
        verb = word(lexicon.CLAUSAL_VERBS, pt)
    return VerbPhrase(verb, complement, **fields)


def pronoun(person=3, plural=False, gender="m"):
    return Pronoun(Agreement(person, plural, gender))


def name(pt):
    return ProperName(word(lexicon.NAMES, pt))


I, WE = pronoun(1), pronoun(1, plural=True)
HE, SHE, THEY = pronoun(), pronoun(gender="f"), pronoun(plural=True)
GIRL, BOY, CAT = np("menina"), np("menino"), np("gato")
PAST, FUTURE, HABITUAL = Tense.PAST, Tense.FUTURE, Tense.HABITUAL
YESTERDAY = word(lexicon.TIME_ADVERBS, "ontem")
ALWAYS = word(lexicon.VERB_ADVERBS, "sempre")
TALL = adjective("alto")


def says(clause_or_sentence, pt, en):
    tree = clause_or_sentence
    tree = Statement(tree) if isinstance(tree, Clause) else tree
    mark = "?" if isinstance(tree, Question) else "."
    return pytest.param(tree, f"{pt} {mark}", f"{en} {mark}", id=en)


GOLDEN = [
    # Agreement, numerals, negation, contraction.
    says(
        Clause(
            np("menina", plural=True, after=["velho"], numeral=numeral("two")),
            vp("ver", CAT),
            PAST,
            negative=True,
            adjuncts=(Place(np("jardim")),),
        ),
        "as duas meninas velhas não viram o gato no jardim",
        "the two old girls did not see the cat in the garden",
    ),
    says(
        Clause(
            np("cão", plural=True, numeral=numeral("two")),
            Quality(adjective("alemão")),
        ),
        "os dois cães são alemães",
        "the two dogs are german",
    ),
    says(
        Clause(
            np("lição", lexicon.BARE, True, after=["fácil"]),
            Quality(adjective("útil"), word(lexicon.DEGREE_ADVERBS, "muito")),
        ),
        "lições fáceis são muito úteis",
        "easy lessons are very useful",
    ),
    # Determiners.
    says(
        Clause(np("menino", lexicon.A), vp("comer", np("maçã", lexicon.A))),
        "um menino come uma maçã",
        "a boy eats an apple",
    ),
    says(
        Clause(
            np("homem", lexicon.A, after=["honesto"]),
            vp("visitar", np("universidade", lexicon.A)),
            PAST,
        ),
        "um homem honesto visitou uma universidade",
        "an honest man visited a university",
    ),
    says(
        Clause(SHE, vp("beber", np("leite", lexicon.MASS)), negative=True),
        "ela não bebe leite",
        "she does not drink milk",
    ),
    says(
        Clause(np("criança", THIS, True), vp("gostar", np("flor", ALL, True), "de")),
        "estas crianças gostam de todas as flores",
        "these children like all the flowers",
    ),
    says(
        Clause(
            np("irmã", MY),
            vp("perder", np("chave", HIS, True, after=["novo"])),
            PAST,
        ),
        "a minha irmã perdeu as chaves novas dele",
        "my sister lost his new keys",
    ),
    says(
        Clause(np("cão", lexicon.EACH), vp("olhar", np("menino", MANY, True), "para")),
        "cada cão olha para muitos meninos",
        "each dog looks at many boys",
    ),
    # Order of adjectives.
    says(
        Clause(
            np("casa", before="grande", after=["antigo"]),
            Quality(adjective("vazio")),
            PAST,
        ),
        "a grande casa antiga estava vazia",
        "the big ancient house was empty",
    ),
    says(
        Clause(
            np("aluno", before="bom", plural=True),
            vp("ler", np("livro", numeral=numeral("first"), after=["longo"])),
        ),
        "os bons alunos leem o primeiro livro longo",
        "the good students read the first long book",
    ),
    says(
        Clause(np("rainha", before="mau"), vp("mentir"), PAST),
        "a má rainha mentiu",
        "the bad queen lied",
    ),
    # Tenses.
    says(Clause(I, vp("dormir")), "eu durmo", "i sleep"),
    says(
        Clause(WE, vp("fazer", np("bolo")), PAST),
        "nós fizemos o bolo",
        "we made the cake",
    ),
    says(
        Clause(THEY, vp("nadar"), HABITUAL),
        "eles nadavam",
        "they used to swim",
    ),
    says(
        Clause(THEY, vp("nadar"), HABITUAL, negative=True),
        "eles não nadavam",
        "they did not use to swim",
    ),
    says(
        Clause(SHE, vp("trazer", np("carta", plural=True)), FUTURE, negative=True),
        "ela não trará as cartas",
        "she will not bring the letters",
    ),
    says(
        Clause(I, vp("abrir", np("porta")), Tense.PROSPECTIVE),
        "eu vou abrir a porta",
        "i am going to open the door",
    ),
    # Questions.
    says(
        Question(Clause(GIRL, vp("comer", np("pão")), PAST)),
        "a menina comeu o pão",
        "did the girl eat the bread",
    ),
    says(
        Question(Clause(np("homem", plural=True), Role(lexicon.PROFESSIONS[1]))),
        "os homens são médicos",
        "are the men doctors",
    ),
    says(
        Question(Clause(InterrogativePronoun(lexicon.WHO), vp("fechar", np("janela")))),
        "quem fecha a janela",
        "who closes the window",
    ),
    says(
        Question(
            Clause(BOY, vp("comprar", InterrogativePronoun(lexicon.WHAT)), FUTURE)
        ),
        "o que o menino comprará",
        "what will the boy buy",
    ),
    says(
        Question(Clause(SHE, vp("ler", np("livro", lexicon.HOW_MANY, True)), PAST)),
        "quantos livros ela leu",
        "how many books did she read",
    ),
    says(
        Question(Clause(np("juiz", lexicon.WHICH, True), vp("chegar"), PAST)),
        "quais juízes chegaram",
        "which judges arrived",
    ),
    says(
        Question(Clause(GIRL, vp("trabalhar")), lexicon.WHERE),
        "onde a menina trabalha",
        "where does the girl work",
    ),
    says(
        Question(Clause(SHE, vp("chorar"), Tense.PROSPECTIVE, True), lexicon.WHY),
        "por que ela não vai chorar",
        "why is she not going to cry",
    ),
    # Prepositions and their contractions.
    says(
        Clause(SHE, vp("gostar", HE, "de"), PAST, negative=True),
        "ela não gostou dele",
        "she did not like him",
    ),
    says(
        Clause(np("aluno", OUR), vp("ir", np("escola"), "a"), PAST),
        "o nosso aluno foi à escola",
        "our student went to the school",
    ),
    says(
        Clause(WE, vp("passar", np("igreja", plural=True), "por"), FUTURE),
        "nós passaremos pelas igrejas",
        "we will pass by the churches",
    ),
    says(
        Clause(I, vp("confiar", np("amigo", THAT, True), "em")),
        "eu confio naqueles amigos",
        "i trust those friends",
    ),
    says(
        Clause(
            name("ana"),
            vp("jantar"),
            PAST,
            adjuncts=(Company(I), YESTERDAY),
        ),
        "ana jantou comigo ontem",
        "ana had dinner with me yesterday",
    ),
    says(
        Clause(GIRL, vp("dar", np("flor", SOME, True), recipient=BOY)),
        "a menina dá algumas flores ao menino",
        "the girl gives some flowers to the boy",
    ),
    says(
        Clause(np("peixe"), Place(np("mesa", lexicon.A))),
        "o peixe está numa mesa",
        "the fish is on a table",
    ),
    says(
        Clause(
            SHE, vp("cuidar", Coordination(np("rato"), np("vaca")), preposition="de")
        ),
        "ela cuida do rato e da vaca",
        "she takes care of the mouse and the cow",
    ),
    says(
        Clause(np("cão", owner=name("maria")), vp("fugir"), PAST, opening=YESTERDAY),
        "ontem o cão de maria fugiu",
        "yesterday the dog of maria escaped",
    ),
    # Relative clauses.
    says(
        Clause(
            np("menina", relative=Relative(Clause(None, vp("cantar")))),
            vp("sorrir", I, "para"),
        ),
        "a menina que canta sorri para mim",
        "the girl who sings smiles at me",
    ),
    says(
        Clause(
            np("pão", relative=Relative(Clause(BOY, vp("comprar"), PAST))),
            Quality(adjective("fresco")),
        ),
        "o pão que o menino comprou está fresco",
        "the bread that the boy bought is fresh",
    ),
    says(
        Clause(
            I,
            vp(
                "visitar",
                np("casa", relative=Relative(Clause(SHE, vp("trabalhar")), True)),
            ),
            PAST,
        ),
        "eu visitei a casa onde ela trabalha",
        "i visited the house where she works",
    ),
    # Coordination, reported speech, infinitives, subordinate clauses.
    says(
        Clause(Coordination(name("pedro"), I), Quality(adjective("cansado"))),
        "pedro e eu estamos cansados",
        "pedro and i are tired",
    ),
    says(
        Clause(Coordination(GIRL, BOY), Quality(TALL, than=np("mãe", HER)), FUTURE),
        "a menina e o menino serão mais altos do que a mãe dela",
        "the girl and the boy will be taller than her mother",
    ),
    says(
        Clause(BOY, vp("dizer", Clause(GIRL, vp("dormir"), PAST)), PAST),
        "o menino disse que a menina dormiu",
        "the boy said that the girl slept",
    ),
    says(
        Clause(
            SHE, vp("comprar", np("relógio", THAT), control="tentar"), adverb=ALWAYS
        ),
        "ela sempre tenta comprar aquele relógio",
        "she always tries to buy that clock",
    ),
    says(
        Clause(SHE, Role(lexicon.PROFESSIONS[0]), FUTURE, adverb=ALWAYS),
        "ela sempre será professora",
        "she will always be a teacher",
    ),
    says(
        Clause(
            None,
            Existence(np("gato", lexicon.BARE, True, numeral=numeral("three"))),
            PAST,
            adjuncts=(Place(np("praia", THEIR)),),
        ),
        "havia três gatos na praia deles",
        "there were three cats on their beach",
    ),
    says(
        Compound(
            Clause(GIRL, vp("acordar"), PAST),
            lexicon.WHEN_CLAUSE,
            Clause(np("trem"), vp("chegar"), PAST),
            fronted=True,
        ),
        "quando o trem chegou , a menina acordou",
        "when the train arrived , the girl woke up",
    ),
    says(
        Compound(
            Clause(I, vp("descansar")),
            lexicon.BECAUSE,
            Clause(I, Quality(adjective("doente"))),
        ),
        "eu descanso porque eu estou doente",
        "i rest because i am sick",
    ),
    says(
        Compound(
            Clause(CAT, vp("dormir"), PAST),
            lexicon.BUT,
            Clause(np("rato", plural=True), vp("correr"), PAST),
        ),
        "o gato dormiu , mas os ratos correram",
        "the cat slept , but the mice ran",
    ),
]


@pytest.mark.parametrize("tree, pt, en", GOLDEN)
def test_both_languages_say_the_tree(tree, pt, en):
    assert portuguese.sentence(tree) == pt
    assert english.sentence(tree) == en


@pytest.mark.parametrize(
    "module", ["", ".lexicon", ".tree", ".portuguese", ".english", ".sampler"]
)
def test_the_examples_hold(module):
    module = importlib.import_module(f"reprt.data.corpora.embedded{module}")
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    "singular, plural",
    [
        ("irmão", "irmãos"),
        ("avião", "aviões"),
        ("mãe", "mães"),
        ("hotel", "hotéis"),
        ("hospital", "hospitais"),
        ("espanhol", "espanhóis"),
        ("azul", "azuis"),
        ("difícil", "difíceis"),
        ("impossível", "impossíveis"),
        ("selvagem", "selvagens"),
        ("juiz", "juízes"),
        ("feliz", "felizes"),
        ("país", "países"),
        ("lápis", "lápis"),
        ("francês", "franceses"),
    ],
)
def test_portuguese_plurals(singular, plural):
    assert portuguese.plural(singular) == plural


@pytest.mark.parametrize(
    "masculine, forms",
    [
        ("bom", "boa bons boas"),
        ("mau", "má maus más"),
        ("grande", "grande grandes grandes"),
        ("português", "portuguesa portugueses portuguesas"),
        ("espanhol", "espanhola espanhóis espanholas"),
        ("alemão", "alemã alemães alemãs"),
        ("simples", "simples simples simples"),
        ("preguiçoso", "preguiçosa preguiçosos preguiçosas"),
    ],
)
def test_adjectives_agree(masculine, forms):
    agreements = [
        Agreement(plural=plural, gender=gender) for plural in (0, 1) for gender in "mf"
    ]
    inflected = [portuguese.inflect(masculine, one) for one in agreements]
    assert " ".join(inflected) == f"{masculine} {forms}"


@pytest.mark.parametrize(
    "tense, verb, forms",
    [
        (Tense.PRESENT, "falar", "falo fala falamos falam"),
        (Tense.PRESENT, "agradecer", "agradeço agradece agradecemos agradecem"),
        (Tense.PRESENT, "dirigir", "dirijo dirige dirigimos dirigem"),
        (Tense.PRESENT, "proteger", "protejo protege protegemos protegem"),
        (Tense.PRESENT, "sair", "saio sai saímos saem"),
        (Tense.PRESENT, "ter", "tenho tem temos têm"),
        (Tense.PAST, "explicar", "expliquei explicou explicamos explicaram"),
        (Tense.PAST, "chegar", "cheguei chegou chegamos chegaram"),
        (Tense.PAST, "dançar", "dancei dançou dançamos dançaram"),
        (Tense.PAST, "ler", "li leu lemos leram"),
        (Tense.PAST, "rir", "ri riu rimos riram"),
        (Tense.PAST, "ir", "fui foi fomos foram"),
        (Tense.PAST, "dar", "dei deu demos deram"),
        (Tense.HABITUAL, "ir", "ia ia íamos iam"),
        (Tense.HABITUAL, "cantar", "cantava cantava cantávamos cantavam"),
        (Tense.HABITUAL, "construir", "construía construía construíamos construíam"),
        (Tense.FUTURE, "fazer", "farei fará faremos farão"),
        (Tense.FUTURE, "abrir", "abrirei abrirá abriremos abrirão"),
        (Tense.PROSPECTIVE, "ver", "vou ver vai ver vamos ver vão ver"),
    ],
)
def test_conjugation(tense, verb, forms):
    agreements = [Agreement(person, plural) for plural in (0, 1) for person in (1, 3)]
    conjugated = [portuguese.conjugate(verb, tense, one) for one in agreements]
    assert " ".join(conjugated) == forms


@pytest.mark.parametrize(
    "function, words, forms",
    [
        ("plural", "man child mouse fish watch", "men children mice fish watches"),
        ("past", "cry agree travel prefer lie", "cried agreed traveled preferred lied"),
        ("third_person", "watch try obey wash", "watches tries obeys washes"),
        ("comparative", "fat shy large cheap", "fatter shyer larger cheaper"),
        ("comparative", "lazy busy quiet new", "lazier busier quieter newer"),
    ],
)
def test_english_inflection(function, words, forms):
    inflected = [getattr(english, function)(one) for one in words.split()]
    assert " ".join(inflected).startswith(forms)


# What random sentences are like.


@pytest.fixture(scope="module")
def trees():
    sampler = Sampler(random.Random(0))
    return [sampler.sentence() for _ in range(50_000)]


@pytest.fixture(scope="module")
def pairs(trees):
    return [(portuguese.sentence(tree), english.sentence(tree)) for tree in trees]


@pytest.fixture(scope="module")
def corpus():
    return embedded.load()


def lexical(tree):
    """The entries of the lexicon in a tree."""
    return (part for part in parts(tree) if type(part).__module__ == lexicon.__name__)


def parts(tree):
    """All dataclasses inside a tree."""
    if isinstance(tree, dict):  # Both genders of a profession.
        tree = tuple(tree.values())
    if isinstance(tree, tuple):
        yield from itertools.chain.from_iterable(map(parts, tree))
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        yield tree
        for field in dataclasses.fields(tree):
            yield from parts(getattr(tree, field.name))


def test_the_lexicon_is_large_and_all_of_it_is_used(trees):
    lexemes = set(itertools.chain.from_iterable(map(parts, vars(lexicon).values())))
    assert len(lexemes) >= 220
    uses = collections.Counter(
        part for tree in trees[:20_000] for part in lexical(tree)
    )
    assert set(uses) == lexemes
    assert min(uses.values()) >= 10


def test_no_portuguese_sentence_has_two_translations(pairs):
    assert len(set(pairs)) == len({source for source, _ in pairs})


def test_nearly_all_draws_differ(pairs):
    assert len(set(pairs)) > 0.9 * len(pairs)


def test_more_than_a_million_pairs():
    assert distinct_pairs() > 1_000_000


def test_the_counted_slots_all_show():
    determiners = [lexicon.THE, *lexicon.DEMONSTRATIVES, *lexicon.POSSESSIVES]
    verbs = [word(lexicon.VERBS, pt) for pt in ("ver", "seguir")]
    nouns = [
        noun
        for noun in lexicon.NOUNS
        if noun.pt in ("artista", "gato", "ônibus", "trem") and noun.kind != "thing"
    ]
    phrases = [
        NounPhrase(noun, determiner, plural)
        for noun in nouns
        for determiner in determiners
        for plural in (False, True)
    ]
    subjects = [one for one in phrases if one.noun.kind in verbs[0].subjects]
    sentences = [
        portuguese.sentence(Statement(Clause(subject, VerbPhrase(verb, one), *rest)))
        for subject in subjects
        for verb in verbs
        for one in phrases
        for rest in itertools.product(Tense, (False, True))
    ]
    assert len(sentences) == 3 * 16 * 2 * 5 * 16 * 5 * 2
    assert len(set(sentences)) == len(sentences)


def test_tokens(corpus):
    for split in (corpus.train, corpus.dev, corpus.test):
        for sentence in (*split.source, *split.target):
            *words, mark = sentence.split(" ")
            assert mark in ".?"
            assert all(re.fullmatch(r"[a-zà-ÿ]+(-[a-z]+)?|,", one) for one in words)


def test_lengths(corpus):
    for side in (corpus.train.source, corpus.train.target):
        lengths = [len(sentence.split()) for sentence in side]
        assert 6 <= sum(lengths) / len(lengths) <= 9
        assert max(lengths) <= embedded.MAX_TOKENS


def test_surface_agreement(pairs):
    # What articles and nouns look like must agree wherever they meet.
    nouns = {noun.pt: noun.gender for noun in lexicon.NOUNS}
    both = {noun.pt for noun in lexicon.NOUNS if nouns[noun.pt] != noun.gender}
    articles = {"o": "m", "um": "m", "do": "m", "no": "m", "ao": "m", "pelo": "m"}
    articles |= {"uma": "f", "da": "f", "na": "f", "à": "f", "pela": "f", "esta": "f"}
    checked = 0
    for source, _ in pairs:
        for first, second in itertools.pairwise(source.split()):
            if first in articles and second in nouns and second not in both:
                assert articles[first] == nouns[second], source
                checked += 1
    assert checked > 10_000


def test_english_articles(pairs):
    for _, target in pairs:
        for first, second in itertools.pairwise(target.split()):
            if first in ("a", "an"):
                vowel = second[0] in "aeiou" and second not in ("university", "useful")
                assert (first == "an") == (vowel or second == "honest"), target


# The corpus.


def test_default_sizes_and_labels(corpus):
    assert list(map(len, (corpus.train, corpus.dev, corpus.test))) == [12_000, 500, 500]
    assert corpus.name == "embedded corpus (generated, not TED)"
    assert corpus.pair == "pt_to_en"
    assert corpus.official is False
    assert corpus.origin == "generated by reprt.data.corpora.embedded, seed 0"


def test_no_source_sentence_occurs_twice(corpus):
    sources = [*corpus.train.source, *corpus.dev.source, *corpus.test.source]
    assert len(set(sources)) == len(sources)


def test_nothing_but_the_seed_decides():
    one, same, other = (embedded.load(200, 20, 20, seed) for seed in (1, 1, 2))
    assert one == same
    assert one.digest() != other.digest()
    assert "seed 2" in other.origin


def test_another_process_generates_the_same(corpus):
    code = "from reprt.data import embedded as e; print(e.load(200, 20, 20).digest())"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {embedded.load(200, 20, 20).digest()}


def test_evaluation_text_does_not_depend_on_the_training_size(corpus):
    small = embedded.load(train=100)
    assert (small.dev, small.test) == (corpus.dev, corpus.test)
    assert small.train.source == corpus.train.source[:100]


@pytest.mark.parametrize("sizes", [(-1, 10, 10), (10, 0, 10), (10, 10, -5)])
def test_sizes_must_be_positive(sizes):
    with pytest.raises(ValueError, match=f"Expected a positive.*train={sizes[0]}, "):
        embedded.load(*sizes)


def test_the_grammar_is_finite():
    with pytest.raises(ValueError, match="Expected at most.*train=1000000000000, "):
        embedded.load(train=10**12)
