"""Formats pages in black's style, mostly without calling black.

black is slow, and in a generated page, it only has to break the few lines that are too long. So a template may promise
that its page is in black's style except for such lines. Then only these lines are passed to black, each statement
separately. Tests check that the result is the same as from black for the whole page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Final

import black
from black.mode import TargetVersion
from black.parsing import InvalidInput

LINE_LENGTH: Final = 110

_MODE: Final = black.Mode(line_length=LINE_LENGTH, target_versions={TargetVersion.PY311})
_QUOTES: Final = '"""'


def in_style(page: str) -> str:
    """`page` as black formats it."""
    return black.format_str(page, mode=_MODE)


def with_long_lines_in_style(page: str) -> str:
    """Formats a page as black does, if it is already in black's style except for lines that are too long or contain a
    single quote.

    Each of these lines must be a statement or the first line of one. If a line is neither (it ends with a comma, or
    black cannot parse it), the whole page is passed to black.
    """
    try:
        return "\n".join(_pieces(page.splitlines())) + "\n"
    except InvalidInput:
        return in_style(page)


def _pieces(lines: list[str]) -> Iterator[str]:
    """The page in pieces of one or more lines: statements split by black, whole texts, and unchanged lines."""
    head = ""
    waiting = iter(lines)
    for line in waiting:
        if line.lstrip().startswith(_QUOTES):
            text = "\n".join([line, *_rest_of_text(line, waiting)])
            yield _document(text) if head.lstrip().startswith("class ") else text
        elif len(line) > LINE_LENGTH or "'" in line:
            yield _statement(line)
        else:
            yield line
        head = line


def _rest_of_text(line: str, waiting: Iterator[str]) -> Iterator[str]:
    """The lines up to the end of the text that starts in `line`."""
    if _QUOTES not in line.lstrip().removeprefix(_QUOTES):
        for following in waiting:
            yield following
            if _QUOTES in following:
                break


@cache
def _statement(line: str) -> str:
    """A statement, or the head of one, split by black at its indentation. Raises InvalidInput for anything else."""
    code = line.lstrip()
    indent = line[: len(line) - len(code)]
    if code.endswith(","):
        raise InvalidInput(f"part of a statement: {code}")
    is_head = code.endswith(":")
    mode = replace(_MODE, line_length=LINE_LENGTH - len(indent))
    done = black.format_str(f"{code}\n    pass\n" if is_head else f"{code}\n", mode=mode).splitlines()
    return "\n".join(indent + each for each in (done[:-1] if is_head else done))


def _document(text: str) -> str:
    """The docstring of a class at the top of a page. black trims and indents its lines."""
    return in_style(f"class _:\n{text}\n").partition("\n")[2].rstrip("\n")
