"""Command lines that a report shows, with names quoted for a shell. Imports no library."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from kafka_records_runtime.text.printable import printable

BROKERS: Final = '"$BOOTSTRAP"'
"""The placeholder for the address of a broker in a report about files, because files do not contain addresses."""

AFTER_RECORD: Final = "AFTER_RECORD"
"""The placeholder for an offset that no record contains: the offset after a record that cannot be processed."""


def quoted(text: str) -> str:
    r"""An argument for a shell. Non-printable characters are escaped as `$'\033'`, which bash, zsh and ksh support; all
    other quoting works in any shell."""
    if printable(text) == text:
        return shlex.quote(text)
    parts = []
    for character in text:
        if printable(character) == character and character not in "'\\":
            parts.append(character)
        else:
            # An octal escape has at most three digits, so any character may follow.
            parts.append("".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape")))
    return "$'" + "".join(parts) + "'"


def command_line(words: Iterable[str]) -> str:
    """Join arguments into one line."""
    return " ".join(map(quoted, words))


def option(name: str, value: str) -> tuple[str, ...]:
    """An option with its value, joined with `=` if the value looks like an option."""
    return (f"{name}={value}",) if value.startswith("-") or not value else (name, value)


def instant(ms: int) -> str:
    """A time for --as-of that people can read: `2026-11-23T14:20:05.060Z`."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    except OverflowError:
        return str(ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def condition_of(column: str, value: str | int) -> str:
    """A condition that a column has a value, in the syntax of --where."""
    if isinstance(value, int):
        return f"{column}={value}"
    is_plain = value == value.strip() and value[:1] not in ("", "'", '"')
    return f"{column}={value}" if is_plain else f'{column}="{value}"'


def kafka_command(tool: str, bootstrap: str | None, config: str | None, *words: str) -> str:
    """A command line for one of Kafka's own tools."""
    return f"{tool} {_brokers('--bootstrap-server', bootstrap, config)} {command_line(words)}"


def records_command(command: str, bootstrap: str | None, config: str | None, *words: str) -> str:
    """A command line of this project that connects to brokers."""
    return f"kafka-records {command} {_brokers('--bootstrap', bootstrap, config)} {command_line(words)}"


def _brokers(name: str, bootstrap: str | None, config: str | None) -> str:
    server = BROKERS if bootstrap is None else quoted(bootstrap)
    return f"{name} {server}" + ("" if config is None else f" --command-config {quoted(config)}")
