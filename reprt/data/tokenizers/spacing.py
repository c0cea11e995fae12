"""Words joined by spaces, as WordPiece leaves them, into text as people write it.

The rules mean the same to Python and to RE2, the regular expressions of TensorFlow, so
that an exported model writes what the package writes. They hold for English, French,
Italian, Portuguese, Chinese and Japanese together. A space stays where the words do not
say whether there was one: `came - he` may have been either. Capitals and accents that
the vocabulary dropped stay lost.
"""

import re

# Chinese and Japanese have no spaces; WordPiece makes a word of each Chinese character.
HAN = "[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003134f]"
# Words that lose their last vowel before the next, of one letter and of more.
LETTERS = "[cdjlmnstv]"
ELIDED = (
    "qu|jusqu|lorsqu|puisqu|quoiqu|quelqu|presqu|entr|"
    "un|nessun|ciascun|qualcun|gl|quegl|ch|all|coll|dall|dell|nell|sull|quell|bell|"
    "quest|sant|grand|buon|tutt|mezz|sott|cent|vent|trent|senz|nient|anch"
)
NEXT = "[aeiouyhàáâãäèéêëìíîïòóôõöùúûüœæ0-9]"
# Parts of words that are hardly ever written apart.
PREFIXES = "anti|co|mid|multi|neo|pre|pseudo|self|socio"
TENS = (
    "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|"
    "vingt|trente|quarante|cinquante|soixante|quatre|dix"
)
ONES = (
    "one|two|three|four|five|six|seven|eight|nine|"
    "deux|trois|quatre|cinq|sept|huit|neuf|dix|onze|douze|quinze|vingt|vingts"
)
# What a number is before that has a comma for its point: 3,5 %, 1,2 milhões.
COUNTED = "%|€|por cento|pour cent|per cento|mil|bil"

# Of a regular expression, and what takes the place of each match. What shares its ends
# with its neighbours is looked for twice: 1 . 2 . 3.
POINT = (r"\b([0-9]{1,3}) \. ([0-9])", r"\1.\2")
THOUSANDS = (r"\b([0-9]{1,3}) , ([0-9]{3})\b", r"\1,\2")
RATIO = (r"\b([0-9]{1,2}) : ([0-9]{1,2})\b", r"\1:\2")
NUMERAL = (rf"\b({TENS}) - ({ONES})\b", r"\1-\2")
TOGETHER = (f"({HAN}) ({HAN})", r"\1\2")
RULES = (
    TOGETHER,
    TOGETHER,
    (f"({HAN}) ([0-9])", r"\1\2"),
    (f"([0-9]) ({HAN})", r"\1\2"),
    POINT,
    POINT,
    THOUSANDS,
    THOUSANDS,
    (rf"\b([0-9]{{1,3}}) , ([0-9]{{1,2}}) ({COUNTED})", r"\1,\2 \3"),
    RATIO,
    RATIO,
    (r"\b(un po) (['’])( |$)", r"\1\2\3"),
    (r"([^ ]) (['’]) (s|t|d|m|re|ve|ll)( |$)", r"\1\2\3\4"),  # it's, isn't
    (r"\b(o|y|ma) (['’]) (clock|all|am)\b", r"\1\2\3"),
    (r"\baujourd (['’]) hui\b", r"aujourd\1hui"),
    (r"\b(com|cos|dov|quand|quant) (['’]) (e|era|erano)\b", r"\1\2\3"),
    (rf"\b({ELIDED}) (['’]) ({NEXT})", r"\1\2\3"),
    (rf"""(^|[ (\["“])({LETTERS}) (['’]) ({NEXT})""", r"\1\2\3\4"),
    (r" - - ", r" -- "),
    NUMERAL,
    NUMERAL,
    (rf"\b({PREFIXES}) - ([a-z])", r"\1-\2"),
    (r"\bwell - (known|being|[a-z]+ed)\b", r"well-\1"),
    (r" - (years?|months?|weeks?|days?|hours?) - (old|long)\b", r"-\1-\2"),
    (r"\b(e|t|x) - (mail|book|shirt|ray)", r"\1-\2"),
    (r"\best - ce\b", r"est-ce"),
    (r"\bc(['’])est - a - dire\b", r"c\1est-a-dire"),
    (r" - t - (ils?|elles?|on)\b", r"-t-\1"),
    (r"\bpeut - etre\b", r"peut-etre"),
    (r"\b(celui|celles?|ceux) - (ci|la)\b", r"\1-\2"),
    (r"\b(moi|toi|soi|lui|elles?|nous|vous|eux) - (memes?)\b", r"\1-\2"),
    (r" - (feiras?|lhes?)\b", r"-\1"),
    (r'(^| )" ([^"]*) "', r'\1"\2"'),
    (r"(\. )?\. \. \.", r"..."),
    (r"([0-9]) %", r"\1%"),
    (r" ([.,;:!?)\]}…”،؛؟۔।])", r"\1"),
    (r"„ ([^„“]*) “", r"„\1“"),
    (r"([(\[{¿¡#“]) ", r"\1"),
    (r"(„[^„“]*“)([^ .,;:!?…)\]}])", r"\1 \2"),
    (r"(^|[^0-9 ] ?)\$ ([0-9])", r"\1$\2"),
)


def detokenize_words(text: str) -> str:
    """Returns words joined by spaces as people write them."""
    for pattern, written in RULES:
        # In RE2 `\\b` knows the letters of ASCII.
        text = re.sub(pattern, written, text, flags=re.ASCII)
    return text
