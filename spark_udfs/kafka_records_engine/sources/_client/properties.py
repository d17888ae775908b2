"""Reads configuration in Java's formats: `.properties` files, and the JAAS line with user and password."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE: Final = re.compile(r"[ \t\f]*((?:\\.|[^\\:= \t\f])*)[ \t\f]*[:=]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_OPTION: Final = re.compile(r"""\s*([\w.]+)\s*=\s*("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^\s;"']+)""", re.DOTALL)
_MODULE: Final = re.compile(r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b", re.IGNORECASE)


_LARGEST_FILE: Final = 16 << 20
"""The maximum size of a properties file or certificate store in bytes. Device files have no end."""


def read_file(path: str) -> bytes:
    """The bytes of a small file or of a pipe. Raises OSError, and ValueError for a large one."""
    with Path(path).open("rb") as file:
        data = file.read(_LARGEST_FILE + 1)
    if len(data) > _LARGEST_FILE:
        raise ValueError(f"it has more than {_LARGEST_FILE >> 20} MiB: give another file")
    return data


def read_properties(data: bytes) -> dict[str, str]:
    """The properties in a file as `java.util.Properties.load` reads it: ISO 8859-1, with escapes, comments and
    continuation lines. If a name occurs twice, the last one counts."""
    found: dict[str, str] = {}
    for line in _logical_lines(data.decode("latin-1")):
        match = _LINE.fullmatch(line)
        if match is not None:
            found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    begun: str | None = None
    for line in re.split(r"\r\n|\n|\r", text):
        stripped = line.lstrip(" \t\f")
        if begun is None and (not stripped or stripped[0] in "#!"):
            continue
        whole = stripped if begun is None else begun + stripped
        backslashes = len(whole) - len(whole.rstrip("\\"))
        if backslashes % 2:
            begun = whole[:-1]
        else:
            lines.append(whole)
            begun = None
    return lines if begun is None else [*lines, begun]


def _unescaped(text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        what = match[1]
        return chr(int(what[1:], 16)) if len(what) == 5 else _ESCAPED.get(what, what)

    return _ESCAPE.sub(replaced, text)


def read_jaas(text: str) -> tuple[str, dict[str, str]]:
    """The login module of `sasl.jaas.config` and its options.

    Raises ValueError. The message does not quote the text, which contains a password.
    """
    module = _MODULE.match(text)
    if module is None:
        raise ValueError("it must start with a login module and a control flag such as `required`")
    options: dict[str, str] = {}
    at = module.end()
    while (option := _OPTION.match(text, at)) is not None:
        value = option[2]
        options[option[1]] = re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] in "\"'" else value
        at = option.end()
    if text[at:].strip() != ";":
        raise ValueError('options must be written as name="value", with a semicolon after the last one')
    return module[1], options
