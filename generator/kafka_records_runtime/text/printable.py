"""Makes text from files safe for a terminal.

File names, group ids and metadata may contain any characters: line breaks, terminal escape sequences, marks that change
the writing direction, and bytes that are not UTF-8.
"""

from __future__ import annotations

from collections.abc import Sequence

_TWO_UNITS = 0x10000
_MOST_NAMED = 3

_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and a symbol that are invisible: the Hangul fillers, and the Braille pattern without dots."""


def printable(text: str) -> str:
    r"""`text` with every unprintable character as a Python escape: `\n`, `\x1b`, `\u202e`, `\udcff`.

    `str.isprintable` determines which characters are printable: letters, digits, marks and symbols of every script are
    unchanged, and so is the space. Invisible letters and symbols are escaped too, because a name that consists of them
    would look empty.
    """
    return text if _is_printable(text) else "".join(map(_escaped, text))


def is_utf_8(text: str) -> bool:
    """Whether a path or an argument is UTF-8. Other bytes are surrogates in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def some_names(names: Sequence[str]) -> str:
    """The first few names, made safe for a terminal, and the number of the others: `a, b, c and 57 more`."""
    first = ", ".join(map(printable, names[:_MOST_NAMED]))
    return first if len(names) <= _MOST_NAMED else f"{first} and {len(names) - _MOST_NAMED} more"


def _is_printable(text: str) -> bool:
    return text.isprintable() and (text.isascii() or _BLANKS.isdisjoint(text))


def _escaped(character: str) -> str:
    return character if _is_printable(character) else character.encode("unicode_escape").decode("ascii")


def json_printable(text: str) -> str:
    r"""The same JSON in printable characters; all others become `\uXXXX`.

    The JSON must have no line breaks between its tokens. Unprintable characters then occur only inside strings, where
    the escape has the same meaning.
    """
    return text if _is_printable(text) else "".join(map(_json_escaped, text))


def _json_escaped(character: str) -> str:
    if _is_printable(character):
        return character
    number = ord(character)
    if number < _TWO_UNITS:
        return f"\\u{number:04X}"
    number -= _TWO_UNITS
    return f"\\u{0xD800 + (number >> 10):04X}\\u{0xDC00 + (number & 0x3FF):04X}"
