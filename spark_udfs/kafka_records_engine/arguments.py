"""Checks the arguments of public functions at once, so that errors name the argument.

Each function takes the name of an argument and its value. It raises TypeError for a value of the wrong type, with the
expected type and the value in the message, and ValueError for a value of the right type that is invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike, fspath
from typing import Any


def text(name: str, given: object) -> str:
    """The argument as a string."""
    if not isinstance(given, str):
        raise _wrong(name, "a string", given)
    return given


def texts(name: str, given: object) -> tuple[str, ...]:
    """The argument, one string or several, as a tuple."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise _wrong(name, "a string or a list of strings", given)
    return _all_texts(name, "a string or a list of strings", given)


def names(name: str, given: object) -> tuple[str, ...]:
    """The argument as a list of names. A single string is rejected, because it would be treated as a list of
    letters."""
    if isinstance(given, str):
        raise TypeError(f"{name} must be a list of names: write [{given!r}]")
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise _wrong(name, "a list of names", given)
    return _all_texts(name, "a list of names", given)


def count(name: str, given: object, of: str) -> int:
    """The argument as a number of at least 1. `of` names what is counted, for error messages."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise _wrong(name, f"a number of {of}", given)
    if given < 1:
        raise ValueError(f"{name} must be a number of {of} above 0, not {given}")
    return given


def flag(name: str, given: object) -> bool:
    """The argument, which must be True or False. Strings are rejected, because even "no" would be true."""
    if not isinstance(given, bool):
        raise _wrong(name, "True or False", given)
    return given


def function(name: str, given: object) -> Callable[..., Any]:
    """The argument, which must be callable."""
    if not callable(given):
        raise _wrong(name, "a function", given)
    return given


def path(name: str, given: object) -> str:
    """The argument as the string of a path."""
    if not isinstance(given, str | PathLike):
        raise _wrong(name, "a path", given)
    found: str | bytes = fspath(given)
    if not isinstance(found, str):
        raise _wrong(name, "a path that is a string", given)
    return found


def session(name: str, given: Any) -> None:
    """Check that the argument is a SparkSession, of classic Spark or Spark Connect."""
    if not hasattr(given, "createDataFrame"):
        raise _wrong(name, "a SparkSession", given)


def frame(name: str, given: Any) -> None:
    """Check that the argument is a DataFrame, of classic Spark or Spark Connect."""
    if not hasattr(given, "sparkSession"):
        raise _wrong(name, "a Spark DataFrame", given)


def _all_texts(name: str, what: str, given: Iterable[object]) -> tuple[str, ...]:
    found = []
    for each in given:
        if not isinstance(each, str):
            raise TypeError(f"{name} must be {what}, but {each!r} is not")
        found.append(each)
    return tuple(found)


def _wrong(name: str, what: str, given: object) -> TypeError:
    return TypeError(f"{name} must be {what}, not {given!r}")
