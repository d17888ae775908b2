"""Converts the texts of Kafka's tools to a common form."""

from __future__ import annotations

import re

_NUMBER_AS_TEXT = re.compile(r'^\{"(type|version)":"(-?\d+)",')


def as_numbers(text: str) -> str:
    """A key or payload of the dump tool in the form of a formatter, where type and version are numbers, not texts."""
    return "null" if text == "<DELETE>" else _NUMBER_AS_TEXT.sub(r'{"\1":\2,', text)
