"""Asks for confirmation on the terminal before something is changed."""

from __future__ import annotations

import sys

from kafka_records_tables.console.endings import CommandError
from kafka_records_tables.console.standard_error import say


def can_ask() -> bool:
    """Whether a person at a terminal can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def check_can_ask() -> None:
    """Raise CommandError if there is no terminal at which a person can answer."""
    if not can_ask():
        raise CommandError("this is not a terminal, so the command cannot ask for confirmation: add --yes to --execute")


def confirmed(question: str) -> bool:
    """Whether the user types `yes`. Raises CommandError if no user can answer."""
    check_can_ask()
    say(f"{question} Type yes to continue:")
    return sys.stdin.readline().strip() == "yes"
