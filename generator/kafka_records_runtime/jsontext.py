"""JSON as Kafka's tools print it: no blanks, non-ASCII as it is, control characters in upper-case hex."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, TextIO

from kafka_records_runtime.printable import json_printable

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_ESCAPES: Final = re.compile(r"\\\\|\\u[0-9a-f]{4}")


def json_text(value: Any) -> str:
    """One line of JSON, character for character what Jackson prints for the same tree."""
    text = _encode(value)
    return _ESCAPES.sub(_upper, text) if "\\u" in text else text


def json_lines(out: TextIO) -> Callable[[Any], str]:
    """A function that turns a value into a line for `out`, including the line end. For a terminal, it escapes
    unprintable characters."""
    if out.isatty():
        return lambda value: f"{json_printable(json_text(value))}\n"
    return lambda value: f"{json_text(value)}\n"


def _upper(match: re.Match[str]) -> str:
    escape = match[0]
    return escape if escape == "\\\\" else f"\\u{escape[2:].upper()}"
