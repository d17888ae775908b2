"""Writes JSON like Kafka's tools: no spaces, non-ASCII characters unchanged, control characters in upper-case hex."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, TextIO

from kafka_records_runtime.text.printable import json_printable

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_ESCAPES: Final = re.compile(r"\\\\|\\u[0-9a-f]{4}")


def json_text(value: Any) -> str:
    """One line of JSON, identical to Jackson's output for the same tree."""
    text = _encode(value)
    return _ESCAPES.sub(_upper, text) if "\\u" in text else text


def json_lines(out: TextIO) -> Callable[[Any], str]:
    """A function that converts a value to a line for `out`, including the line end. If `out` is a terminal, unprintable
    characters are escaped."""
    if out.isatty():
        return lambda value: f"{json_printable(json_text(value))}\n"
    return lambda value: f"{json_text(value)}\n"


def _upper(match: re.Match[str]) -> str:
    escape = match[0]
    return escape if escape == "\\\\" else f"\\u{escape[2:].upper()}"
