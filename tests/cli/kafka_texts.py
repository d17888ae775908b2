"""The texts of Kafka's tools, brought into one form."""

from __future__ import annotations

import re

_NUMBER_AS_TEXT = re.compile(r'^\{"(type|version)":"(-?\d+)",')


def as_numbers(text: str) -> str:
    """A key or payload of the dump tool as a formatter prints it: type and version are numbers there, not texts."""
    return "null" if text == "<DELETE>" else _NUMBER_AS_TEXT.sub(r'{"\1":\2,', text)
