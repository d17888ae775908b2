"""The top of the tree of errors, and how their texts spell numbers."""

from __future__ import annotations


class KafkaRecordsError(Exception):
    """Base of everything this project raises on purpose."""


def plural(count: int, noun: str) -> str:
    """`1 byte`, `2 bytes`."""
    return f"{count} {noun}" if count == 1 else f"{number(count)} {noun}s"


def number(value: object) -> str:
    """The digits of a number, unless it has absurdly many, which Python refuses to print; other values as they are."""
    if not isinstance(value, int) or value.bit_length() <= 128:
        return str(value)
    return f"{'-' if value < 0 else ''}2**{value.bit_length() - 1}"
