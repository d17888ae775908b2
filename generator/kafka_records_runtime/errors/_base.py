"""The base class of all errors, and functions that format numbers in error messages."""

from __future__ import annotations


class KafkaRecordsError(Exception):
    """Base class of all errors that this project deliberately raises."""


def plural(count: int, noun: str) -> str:
    """A number with a noun: `1 byte`, `2 bytes`."""
    return f"{count} {noun}" if count == 1 else f"{number(count)} {noun}s"


def number(value: object) -> str:
    """A number as text, or as a power of two if it has more digits than Python can print. Other values are returned
    unchanged."""
    if not isinstance(value, int) or value.bit_length() <= 128:
        return str(value)
    return f"{'-' if value < 0 else ''}2**{value.bit_length() - 1}"
