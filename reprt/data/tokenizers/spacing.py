"""Words joined by spaces, as WordPiece leaves them, into text as people write it.

The few rules mean the same to Python and to RE2, the regular expressions of
TensorFlow, so that an exported model writes what the package writes. Capitals and
accents that the vocabulary dropped stay lost.
"""

import re

# What shares its ends with its neighbours is looked for twice: 1 . 2 . 3, a - b - c.
NUMBER = (r"([0-9]) ([.,:]) ([0-9])", r"\1\2\3")
HYPHEN = (r"([^ ]) - ([^ ])", r"\1-\2")
# Of a regular expression, and what takes the place of each match.
RULES = (
    NUMBER,
    NUMBER,
    (r"([^ ]) ' (s|t|d|m|re|ve|ll)( |$)", r"\1'\2\3"),  # it's, isn't
    (r" - - ", r" -- "),
    HYPHEN,
    HYPHEN,
    (r'(^| )" ([^"]*) "', r'\1"\2"'),
    (r"(\. )?\. \. \.", r"..."),
    (r" ([.,;:!?%)\]}…])", r"\1"),
    (r"([(\[{¿¡$#]) ", r"\1"),
)


def detokenised(text: str) -> str:
    """Returns words joined by spaces as people write them.

    >>> detokenised('it \\' s 9 : 30 , he said : " isn \\' t it ? "')
    'it\\'s 9:30, he said: "isn\\'t it?"'
    """
    for pattern, written in RULES:
        text = re.sub(pattern, written, text)
    return text
