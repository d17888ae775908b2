"""Escapes characters in spec texts that would be invisible or misleading in a generated file."""

from __future__ import annotations

import re
from typing import Final

_TURNS: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Marks that change the writing direction. Text after them is shown in a different order than it is read
(CVE-2021-42574)."""

_TURN: Final = re.compile(f"[{_TURNS}]")
_NOT_FOR_SOURCE: Final = re.compile(
    f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff{_TURNS}]",
)
"""These marks, control characters, line separators, lone surrogates and byte order marks. Python cannot read them or
treats them as line ends, or they are displayed as something else."""


def visible(text: str) -> str:
    """`text` with every character that is not allowed in a Python file as a Python escape."""
    return _NOT_FOR_SOURCE.sub(_escape, text)


def with_visible_turns(text: str) -> str:
    """`text` with every mark that changes the writing direction as a Python escape."""
    return _TURN.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return ascii(match.group())[1:-1]
