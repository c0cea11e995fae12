"""The words: what translates what, and what goes with what.

An entry pairs a Portuguese word with its one English translation and says what the
grammar must know to use it sensibly. Inflection is the business of `portuguese` and
`english`. The Portuguese is Brazilian in spelling and usage.
"""

import dataclasses
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True)
class Noun:
    """A common noun of some kind, e.g. food; verbs and adjectives select kinds."""

    pt: str
    en: str
    gender: str
    kind: str
    countable: bool = True


@dataclasses.dataclass(frozen=True)
class Name:
    """A person's name, the same in both languages."""

    pt: str
    gender: str


@dataclasses.dataclass(frozen=True)
class Adjective:
    """An adjective, by the kinds of noun that it describes.

    `copula` is the verb that links it to a subject: `ser` for lasting qualities,
    `estar` for passing states. What is not `gradable` takes no "very" or "more".
    """

    pt: str
    en: str
    kinds: tuple[str, ...]
    copula: str = "ser"
    gradable: bool = True
    prenominal: bool = False


@dataclasses.dataclass(frozen=True)
class Verb:
    """A verb with its frame: the kinds of its subject and object, and its adjuncts.

    The object follows `preposition` if there is one. In English a particle or a
    preposition belongs to the verb: of "look at" only the first word inflects.
    """

    pt: str
    en: str
    preposition: str = ""
    subjects: tuple[str, ...] = ("person",)
    objects: tuple[str, ...] = ()
    adjuncts: tuple[str, ...] = ()
    recipient: bool = False


@dataclasses.dataclass(frozen=True)
class Adverb:
    """An invariable word or phrase; `tenses` are those that it agrees with."""

    pt: str
    en: str
    tenses: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Conjunction:
    """A word that joins two clauses."""

    pt: str
    en: str


@dataclasses.dataclass(frozen=True)
class Determiner:
    """A determiner.

    Args:
        pt: masculine and feminine singular, masculine and feminine plural; `None`
            where there is no such form.
        en: singular and plural.
        kind: `"definite"`, `"indefinite"` or `"interrogative"`.
        numeral: whether a numeral may follow in the plural.
        after: the possessor that Portuguese puts behind the noun.
    """

    pt: tuple[str | None, ...]
    en: tuple[str | None, ...]
    kind: str = "definite"
    numeral: bool = False
    after: str = ""


@dataclasses.dataclass(frozen=True)
class Numeral:
    """A numeral: cardinals count plural nouns, ordinals single out singular ones."""

    pt: tuple[str, str]
    en: str
    ordinal: bool = False


@dataclasses.dataclass(frozen=True)
class Interrogative:
    """A pronoun that asks for an object or a subject."""

    pt: str
    en: str


_ADJUNCTS = {"m": "manner", "p": "place", "c": "company"}
_GROUPS = {
    "being": ("person", "animal"),
    "goods": ("thing", "clothing", "text", "vehicle"),
}


def _rows(table: str) -> Iterator[list[str]]:
    for line in table.strip().splitlines():
        yield [cell.strip() for cell in line.split("|")]


def _kinds(cell: str) -> tuple[str, ...]:
    return tuple(kind for word in cell.split() for kind in _GROUPS.get(word, (word,)))


# Kind by kind: word, gender, translation; `-` marks what is not counted.
_NOUNS = {
    "person": """menino m boy, menina f girl, homem m man, criança f child,
        mãe f mother, irmão m brother, irmã f sister, rei m king, rainha f queen,
        amigo m friend, amiga f friend""",
    "animal": """gato m cat, cão m dog, cavalo m horse, pássaro m bird, vaca f cow,
        rato m mouse, leão m lion""",
    "food": """maçã f apple, laranja f orange, ovo m egg, peixe m fish, pão m bread -,
        queijo m cheese -""",
    "dish": "bolo m cake, biscoito m cookie, salada f salad, sopa f soup -",
    "drink": "água f water -, leite m milk -, café m coffee -, vinho m wine -",
    "text": """livro m book, carta f letter, jornal m newspaper, história f story,
        lição f lesson""",
    "thing": """chave f key, caixa f box, relógio m clock, flor f flower,
        telefone m phone, mapa m map, presente m gift, lápis m pencil,
        guarda-chuva m umbrella, bola f ball""",
    "clothing": "chapéu m hat, sapato m shoe, camisa f shirt, vestido m dress",
    "furniture": "mesa f table, cadeira f chair, cama f bed",
    "opening": "porta f door, janela f window",
    "vehicle": "carro m car, ônibus m bus, trem m train",
    "home": """casa f house, cidade f city, castelo m castle, país m country,
        hotel m hotel""",
    "building": """escola f school, hospital m hospital, museu m museum,
        igreja f church, loja f store, universidade f university""",
    "place": """jardim m garden, mercado m market, rua f street, praia f beach,
        cozinha f kitchen, floresta f forest""",
    "idea": """problema m problem, ideia f idea, pergunta f question, resposta f answer,
        plano m plan, segredo m secret, sonho m dream""",
    "show": "filme m movie, jogo m game, peça f play",
}

# Men and women of a profession, which is also said of them: "ela é médica".
_PROFESSIONS = """professor professora teacher, médico médica doctor,
    cozinheiro cozinheira cook, escritor escritora writer, cantor cantora singer,
    engenheiro engenheira engineer, aluno aluna student, juiz juíza judge,
    artista artista artist, motorista motorista driver"""

PROFESSIONS = tuple(
    {
        "m": Noun(masculine, en, "m", "person"),
        "f": Noun(feminine, en, "f", "person"),
    }
    for masculine, feminine, en in map(str.split, _PROFESSIONS.split(","))
)
NOUNS = tuple(
    Noun(pt, en, gender, kind, not uncounted)
    for kind, entries in _NOUNS.items()
    for pt, gender, en, *uncounted in map(str.split, entries.split(","))
) + tuple(noun for both in PROFESSIONS for noun in both.values())

NAMES = tuple(
    Name(name, gender)
    for gender, names in {
        "m": "pedro carlos paulo miguel lucas",
        "f": "maria ana sofia helena clara",
    }.items()
    for name in names.split()
)

# Portuguese | English | class | kinds of noun. Lasting qualities are `ser`, passing
# states `estar`, those without degrees `absolute` (with `ser`) and `result` (with
# `estar`); `before` stand before the noun, where their meaning is the one given.
_ADJECTIVES = """
grande       | big         | before   | animal thing vehicle home building place
pequeno      | small       | before   | animal thing vehicle home building place
bom          | good        | before   | person dish text idea show
mau          | bad         | before   | person idea
belo         | beautiful   | before   | home building place text
jovem        | young       | before   | person
alto         | tall        | ser      | person building
velho        | old         | ser      | being thing clothing vehicle furniture
rico         | rich        | ser      | person
pobre        | poor        | ser      | person
inteligente  | intelligent | ser      | being
triste       | sad         | estar    | person
feliz        | happy       | estar    | person
cansado      | tired       | estar    | being
doente       | sick        | estar    | being
forte        | strong      | ser      | being
honesto      | honest      | ser      | person
preguiçoso   | lazy        | ser      | being
rápido       | fast        | ser      | animal vehicle
selvagem     | wild        | absolute | animal
brasileiro   | brazilian   | absolute | person text show
português    | portuguese  | absolute | person text show
francês      | french      | absolute | person text show
alemão       | german      | absolute | person text vehicle
espanhol     | spanish     | absolute | person text show
vermelho     | red         | absolute | thing clothing vehicle furniture opening
azul         | blue        | absolute | thing clothing vehicle furniture opening
branco       | white       | absolute | animal thing clothing vehicle opening
preto        | black       | absolute | animal thing clothing vehicle opening
novo         | new         | ser      | building idea goods
caro         | expensive   | ser      | thing clothing vehicle furniture food
pesado       | heavy       | ser      | thing furniture opening
quebrado     | broken      | result   | thing vehicle furniture opening
limpo        | clean       | estar    | clothing home building place
vazio        | empty       | result   | home building place vehicle
antigo       | ancient     | ser      | home building
perigoso     | dangerous   | ser      | animal place idea
fresco       | fresh       | estar    | food
quente       | hot         | estar    | dish drink
frio         | cold        | estar    | dish drink
interessante | interesting | ser      | text idea show
difícil      | difficult   | ser      | text idea
fácil        | easy        | ser      | text idea
importante   | important   | ser      | text idea
longo        | long        | ser      | text show
simples      | simple      | ser      | idea text dish
útil         | useful      | ser      | thing text idea
impossível   | impossible  | absolute | idea
"""

ADJECTIVES = tuple(
    Adjective(
        pt,
        en,
        _kinds(kinds),
        copula="estar" if group in ("estar", "result") else "ser",
        gradable=group in ("ser", "estar"),
        prenominal=group == "before",
    )
    for pt, en, group, kinds in _rows(_ADJECTIVES)
)

# Portuguese, with the object's preposition | English | subjects | adjuncts | objects.
# The adjuncts are of manner, place and company.
_VERBS = """
dormir        | sleep        | being          | p   |
correr        | run          | being          | mp  |
cantar        | sing         | person         | mpc |
dançar        | dance        | person         | mpc |
nadar         | swim         | person         | mc  |
trabalhar     | work         | person         | mpc |
descansar     | rest         | person         | p   |
jantar        | have dinner  | person         | pc  |
chorar        | cry          | person         | p   |
rir           | laugh        | person         | c   |
fugir         | escape       | being          |     |
cair          | fall         | being          | p   |
acordar       | wake up      | being          |     |
chegar        | arrive       | person vehicle |     |
mentir        | lie          | person         |     |
funcionar     | work         | vehicle        |     |
começar       | start        | show           |     |
comer         | eat          | being          | mp  | food dish
beber         | drink        | person         | mpc | drink
comprar       | buy          | person         | pc  | food goods
ler           | read         | person         | mp  | text
escrever      | write        | person         | mp  | text
abrir         | open         | person         | m   | opening
fechar        | close        | person         | m   | opening
ver           | see          | being          | p   | being thing vehicle
ouvir         | hear         | being          | p   | being
amar          | love         | person         |     | being
encontrar     | find         | person         | p   | thing animal
perder        | lose         | person         | p   | thing clothing
procurar      | look for     | person         | mp  | thing animal
ajudar        | help         | person         | p   | being
visitar       | visit        | person         | c   | person building home
fazer         | make         | person         | mpc | dish
lavar         | wash         | person         | mp  | clothing vehicle
limpar        | clean        | person         | mc  | furniture building home
quebrar       | break        | person         |     | thing opening
dirigir       | drive        | person         | m   | vehicle
esquecer      | forget       | person         |     | idea thing text
explicar      | explain      | person         | m   | idea
entender      | understand   | person         |     | idea text
descobrir     | discover     | person         |     | idea
trazer        | bring        | person         |     | dish drink thing text
esconder      | hide         | person         | mp  | thing text
seguir        | follow       | being          | m   | being vehicle
chamar        | call         | person         |     | being
construir     | build        | person         | c   | building
proteger      | protect      | being          |     | being home
estudar       | study        | person         | mpc | text idea
ter           | have         | person         |     | animal thing text vehicle
assustar      | scare        | animal         |     | being
gostar de     | like         | person         |     | being food dish drink show
falar com     | talk to      | person         | mp  | person
falar sobre   | talk about   | person         | p   | idea show
olhar para    | look at      | being          |     | being thing
pensar em     | think about  | person         |     | person idea
ir a          | go to        | person         | c   | building place
morar em      | live in      | person         | c   | home
entrar em     | enter        | being          |     | building home
passar por    | pass by      | being vehicle  |     | building
esperar por   | wait for     | person         | p   | person vehicle
confiar em    | trust        | person         |     | person
cuidar de     | take care of | person         |     | being
sonhar com    | dream about  | person         |     | being home
beijar        | kiss         | person         |     | being
sorrir para   | smile at     | person         |     | being
assistir a    | watch        | person         | c   | show
"""
# These take an object and someone who receives it.
_DITRANSITIVE_VERBS = """
dar           | give         | person         |     | food thing clothing text
mostrar       | show         | person         |     | thing clothing text
enviar        | send         | person         |     | thing text
"""
# These take a clause, "ela diz que ...", and these an infinitive, "ela decide ler".
_CLAUSAL_VERBS = """
dizer         | say          | person         |     |
achar         | think        | person         |     |
explicar      | explain      | person         |     |
descobrir     | discover     | person         |     |
notar         | notice       | person         |     |
"""
_CONTROL_VERBS = """
tentar        | try          | being          |     |
decidir       | decide       | person         |     |
prometer      | promise      | person         |     |
preferir      | prefer       | being          |     |
conseguir     | manage       | being          |     |
precisar de   | need         | being          |     |
gostar de     | like         | being          |     |
"""


def _verbs(table: str, recipient: bool = False) -> tuple[Verb, ...]:
    verbs = []
    for pt, en, subjects, adjuncts, objects in _rows(table):
        infinitive, _, preposition = pt.partition(" ")
        verbs.append(
            Verb(
                infinitive,
                en,
                preposition,
                _kinds(subjects),
                _kinds(objects),
                tuple(_ADJUNCTS[letter] for letter in adjuncts),
                recipient,
            )
        )
    return tuple(verbs)


VERBS = _verbs(_VERBS) + _verbs(_DITRANSITIVE_VERBS, recipient=True)
CLAUSAL_VERBS = _verbs(_CLAUSAL_VERBS)
CONTROL_VERBS = _verbs(_CONTROL_VERBS)

# Articles, demonstratives, possessives and quantifiers.
THE = Determiner(("o", "a", "os", "as"), ("the", "the"), numeral=True)
A = Determiner(("um", "uma", None, None), ("a", None), "indefinite")
BARE = Determiner((None, None, "", ""), (None, ""), "indefinite", numeral=True)
# "a menina bebe água": what is not counted does without an article.
MASS = Determiner(("", "", None, None), ("", None), "indefinite")
DEMONSTRATIVES = (
    Determiner(("este", "esta", "estes", "estas"), ("this", "these"), numeral=True),
    Determiner(
        ("aquele", "aquela", "aqueles", "aquelas"), ("that", "those"), numeral=True
    ),
)
POSSESSIVES = (
    *(
        Determiner(tuple(pt.split(", ")), (en, en), numeral=True)
        for pt, en in (
            ("o meu, a minha, os meus, as minhas", "my"),
            ("o nosso, a nossa, os nossos, as nossas", "our"),
        )
    ),
    *(
        Determiner(THE.pt, (en, en), numeral=True, after=pt)
        for pt, en in (("dele", "his"), ("dela", "her"), ("deles", "their"))
    ),
)
INDEFINITE_QUANTIFIERS = (
    Determiner((None, None, "alguns", "algumas"), (None, "some"), "indefinite"),
    Determiner((None, None, "muitos", "muitas"), (None, "many"), "indefinite"),
    Determiner((None, None, "poucos", "poucas"), (None, "few"), "indefinite"),
    Determiner((None, None, "vários", "várias"), (None, "several"), "indefinite"),
)
QUANTIFIERS = (
    *INDEFINITE_QUANTIFIERS,
    Determiner((None, None, "todos os", "todas as"), (None, "all the")),
)
EACH = Determiner(("cada", "cada", None, None), ("each", None), "indefinite")
WHICH = Determiner(("qual", "qual", "quais", "quais"), ("which",) * 2, "interrogative")
HOW_MANY = Determiner(
    (None, None, "quantos", "quantas"), (None, "how many"), "interrogative"
)

NUMERALS = (
    Numeral(("dois", "duas"), "two"),
    *(
        Numeral((pt, pt), en)
        for pt, en in (
            ("três", "three"),
            ("quatro", "four"),
            ("cinco", "five"),
            ("seis", "six"),
            ("sete", "seven"),
            ("oito", "eight"),
            ("nove", "nine"),
            ("dez", "ten"),
        )
    ),
    Numeral(("primeiro", "primeira"), "first", ordinal=True),
    Numeral(("segundo", "segunda"), "second", ordinal=True),
    Numeral(("terceiro", "terceira"), "third", ordinal=True),
    Numeral(("último", "última"), "last", ordinal=True),
)

WHO = Interrogative("quem", "who")
WHAT = Interrogative("o que", "what")
WHERE = Adverb("onde", "where")
WHEN = Adverb("quando", "when")
WHY = Adverb("por que", "why")

# Adverbs beside the verb, then of manner, of degree and of time.
VERB_ADVERBS = (
    Adverb("sempre", "always", ("present", "past", "habitual", "future")),
    Adverb("nunca", "never", ("present", "past", "habitual", "future")),
    Adverb("raramente", "rarely", ("present", "habitual")),
    Adverb("frequentemente", "often", ("present", "habitual")),
    Adverb("também", "also", ("present", "past", "habitual", "future", "prospective")),
)
MANNER_ADVERBS = (
    Adverb("rapidamente", "quickly"),
    Adverb("lentamente", "slowly"),
    Adverb("cuidadosamente", "carefully"),
    Adverb("calmamente", "calmly"),
    Adverb("em silêncio", "in silence"),
)
DEGREE_ADVERBS = (Adverb("muito", "very"), Adverb("tão", "so"))
TIME_ADVERBS = (
    Adverb("hoje", "today", ("present", "past", "future", "prospective")),
    Adverb("todos os dias", "every day", ("present", "habitual")),
    Adverb("todas as noites", "every night", ("present", "habitual")),
    Adverb("antigamente", "in the past", ("habitual",)),
    Adverb("ontem", "yesterday", ("past",)),
    Adverb("na semana passada", "last week", ("past",)),
    Adverb("no ano passado", "last year", ("past",)),
    Adverb("amanhã", "tomorrow", ("future", "prospective")),
    Adverb("na próxima semana", "next week", ("future", "prospective")),
    Adverb("em breve", "soon", ("future", "prospective")),
)

AND = Conjunction("e", "and")
BUT = Conjunction(", mas", ", but")
BECAUSE = Conjunction("porque", "because")
WHEN_CLAUSE = Conjunction("quando", "when")
