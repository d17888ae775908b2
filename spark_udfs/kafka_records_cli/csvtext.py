"""CSV by RFC 4180, with null and the empty text told apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from kafka_records_cli.jsontext import json_text
from kafka_records_runtime.printable import printable

_QUOTED: Final = re.compile(r'[",\r\n]|^\s|\s$')


def csv_line(values: Sequence[Any], shown: bool = False) -> str:
    """One record with its line end, CRLF. Null is an empty field, the empty text two quotes; structs are JSON.

    With `shown`, for a terminal, what is not printable in it is escaped.
    """
    line = ",".join(map(_field, values))
    return (printable(line) if shown else line) + "\r\n"


def _field(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json_text(value)
    if text == "" or _QUOTED.search(text):
        escaped = text.replace('"', '""')
        return f'"{escaped}"'
    return text
