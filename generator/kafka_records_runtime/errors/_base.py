"""The base class of all errors, and the form of numbers in their texts."""

from __future__ import annotations


class KafkaRecordsError(Exception):
    """Base class of all errors that this project raises deliberately."""


def plural(count: int, noun: str) -> str:
    """A number with a noun: `1 byte`, `2 bytes`."""
    return f"{count} {noun}" if count == 1 else f"{number(count)} {noun}s"


def number(value: object) -> str:
    """The digits of a number, shortened if it has more than Python can print; other values unchanged."""
    if not isinstance(value, int) or value.bit_length() <= 128:
        return str(value)
    return f"{'-' if value < 0 else ''}2**{value.bit_length() - 1}"
