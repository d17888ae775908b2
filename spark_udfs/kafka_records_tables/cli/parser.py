"""The parser of the command and of its subcommands."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NoReturn

from kafka_records_tables.near_names import did_you_mean
from kafka_records_tables.runs.endings import FAILED
from kafka_records_tables.runs.standard_error import say

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class Parser(argparse.ArgumentParser):
    """A parser that is not clever with abbreviations, and whose complaints are one line below the usage."""

    def __init__(self, **settings: object) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        settings.setdefault("allow_abbrev", False)
        super().__init__(**settings)  # type: ignore[arg-type]

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Unlike the original, fails when the text cannot be written."""
        (sys.stdout if file is None else file).write(self.format_help())

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """As the original, with the names that are close to a wrong one."""
        if action.choices is not None and value not in action.choices:
            names = [str(each) for each in action.choices]
            close = did_you_mean(str(value), names) or f"; choose one of {', '.join(names)}"
            raise argparse.ArgumentError(action, f"invalid choice: {str(value)!r}{close}")

    @property
    def options(self) -> list[str]:
        """The options there are, with their hyphens."""
        return [option for option in self._option_string_actions if option.startswith("--")]

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        say(f"{self.prog}: error: {message}")
        raise SystemExit(FAILED)
