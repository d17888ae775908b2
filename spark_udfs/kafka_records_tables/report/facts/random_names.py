"""Finds the parts of names that were generated for one use: random ids, times, and process numbers."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

RANDOM: Final = "*"
"""Replaces such a part in a pattern of names."""
_LEAST_DIGITS: Final = 5
"""The number of digits from which a number is not a version or an index."""
_LEAST_HEX: Final = 6
_LEAST_MIXED: Final = 5
"""The minimum number of letters and digits in a random word. It must also alternate between the two at least twice."""
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_TIME: Final = re.compile(
    r"(?<!\d)20\d\d([-_.]?)[01]\d\1[0-3]\d([-_.T]?[0-2]\d[-_.:]?[0-5]\d([-_.:]?[0-5]\d)?Z?)?(?!\d)"
)
_WORD: Final = re.compile(r"[0-9A-Za-z]+")
_HEX: Final = re.compile(r"(?=.*\d)([0-9a-f]+|[0-9A-F]+)")


def pattern_of(name: str) -> str:
    """The name with RANDOM for each part that was generated for one use: a UUID, a time, a long number, or a word of
    mixed letters and digits. Versions and indexes such as `v2` or `-3` remain."""
    name = _TIME.sub(RANDOM, _UUID.sub(RANDOM, name))
    return _WORD.sub(lambda found: RANDOM if _is_random(found[0]) else found[0], name)


def stem_of(pattern: str) -> str:
    """A pattern without its random parts and the separators around them."""
    return "-".join(filter(None, (part.strip("-_.:") for part in pattern.split(RANDOM))))


def _is_random(word: str) -> bool:
    if word.isdigit():
        return len(word) >= _LEAST_DIGITS
    if len(word) >= _LEAST_HEX and _HEX.fullmatch(word):
        return True
    changes = sum(one.isdigit() != other.isdigit() for one, other in pairwise(word))
    return len(word) >= _LEAST_MIXED and changes >= 2
