"""What of TOML is refused before it is decoded, as decoding it takes time or memory without bound.

A key of n dotted parts costs the decoder n tables of up to n names, brackets cost it a call each,
and a number of n digits n squared steps.
"""

import re
from typing import Final

# A profile has settings.NAME.value, and no list of lists.
MAX_DEPTH: Final = 8
# No name of a variable is longer, and no number that is of use.
MAX_WORD_CHARS: Final = 128
# What makes it deep, apart from what stands in texts and comments.
_TOKEN = re.compile(
    r'''
    (?P<text> """ (?:[^\\]|\\.)*? """ (?!") | \'\'\' .*? \'\'\' (?!\')
            | (?!""") " (?:[^"\\\n]|\\[^\n])*+ " | (?!\'\'\') ' [^'\n]*+ ' )
    | (?P<endless> ["'] )
    | \# [^\n]*+
    | (?P<open> [\[{] ) | (?P<close> [\]}] ) | (?P<dot> \. ) | (?P<end> [=,\n] )
    | (?P<word> [A-Za-z0-9_+-]++ )
    ''',
    re.DOTALL | re.VERBOSE,
)


def excess(text: str) -> tuple[int, str] | None:
    """The line on which ``text`` goes too far, and with what; ``None`` if it does not.

    It is exact for as far as ``text`` is TOML, and a decoder reads no further.
    """
    depth = dots = 0
    for token in _TOKEN.finditer(text):
        what = None
        match token.lastgroup:
            case "endless":
                return None  # the decoder has the better message
            case "open":
                depth, dots = depth + 1, 0
            case "close":
                depth, dots = max(depth - 1, 0), 0
            case "dot":
                dots += 1
            case "end":
                dots = 0
            case "word" if len(token[0]) > MAX_WORD_CHARS:
                what = f"a word or number of more than {MAX_WORD_CHARS} characters"
        if max(depth, dots + 1) > MAX_DEPTH:
            what = f"tables more than {MAX_DEPTH} deep"
        if what:
            return text.count("\n", 0, token.start()) + 1, what
    return None
