"""Suggests correct names for misspelled ones. Imports only the standard library."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kafka_records_runtime.text.close_names import close_names


class UnknownTable(ValueError):
    """A table name that does not exist."""


class UnknownColumn(ValueError):
    """A column name that the table does not have."""


class UnknownOption(ValueError):
    """An option name that no table has."""


def near(name: str, names: Iterable[str]) -> str:
    """A hint for a `name` that is not among `names`: similar names, or all of them if none is similar."""
    known = list(names)
    return did_you_mean(name, known, 1).removeprefix("; ") or f"there are {', '.join(known)}"


def check_columns(table: str, asked: Iterable[str], names: Sequence[str]) -> None:
    """Raise an UnknownColumn that lists every requested name that is not a column of the table."""
    wrong = [name for name in dict.fromkeys(asked) if name not in names]
    if len(wrong) == 1:
        raise UnknownColumn(f"{table} has no column {wrong[0]!r}; {near(wrong[0], names)}")
    if wrong:
        hints = {name: did_you_mean(name, names, 1).removeprefix("; ") for name in wrong}
        listed = ", ".join(f"{name!r} ({hint})" if hint else repr(name) for name, hint in hints.items())
        every = "" if all(hints.values()) else f"; there are {', '.join(names)}"
        raise UnknownColumn(f"{table} has no columns {listed}{every}")


def has_words(text: str, words: Collection[str]) -> bool:
    """Whether a text is one of the given words, or several of them joined by ` or `."""
    return all(word in words for word in text.split(" or "))


def did_you_mean(name: str, names: Iterable[str], most: int = 3) -> str:
    """`; did you mean a or b?` with at most `most` of the `names` that are similar to `name`, the most similar first;
    "" if there are none."""
    close = close_names(name, names, most)
    return f"; did you mean {' or '.join(close)}?" if close else ""
