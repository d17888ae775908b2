"""The parsers of the command and of its subcommands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from kafka_records_tables.console.endings import FAILED
from kafka_records_tables.console.standard_error import say
from kafka_records_tables.near_names import did_you_mean

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class Parser(argparse.ArgumentParser):
    """A parser that does not accept abbreviations. Its errors are one line, followed by a line that says how to get
    help."""

    def __init__(self, **settings: object) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        settings.setdefault("allow_abbrev", False)
        super().__init__(**settings)  # type: ignore[arg-type]
        self.without: dict[str, str] = {}
        """Options that do not exist although users may look for them, each with a hint on what to do instead."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Like the base class, but accepts values such as `-offset`, which the base class takes for an option unless
        `=` precedes them."""
        given = list(sys.argv[1:] if args is None else args)
        ends = given.index("--") if "--" in given else len(given)
        for at in range(ends - 2, -1, -1):
            if self._takes_one(given[at]) and self._is_no_option(given[at + 1]):
                given[at : at + 2] = [f"{given[at]}={given[at + 1]}"]
        return super().parse_known_args(given, namespace)

    def _takes_one(self, name: str) -> bool:
        action = self._option_string_actions.get(name)
        return name.startswith("--") and action is not None and action.nargs is None

    def _is_no_option(self, text: str) -> bool:
        return len(text) > 1 and text[0] == "-" != text[1] and text not in self._option_string_actions

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Like the base class, but raises an error if the text cannot be written."""
        (sys.stdout if file is None else file).write(self.format_help())

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Like the base class, but suggests names for a misspelled one."""
        if action.choices is not None and value not in action.choices:
            names = [str(each) for each in action.choices]
            close = did_you_mean(str(value), names) or f"; choose one of {', '.join(names)}"
            raise argparse.ArgumentError(action, f"invalid choice: {str(value)!r}{close}")

    @property
    def subcommands(self) -> list[Parser]:
        """The parsers of the subcommands."""
        groups = (each for each in self._actions if isinstance(each, argparse._SubParsersAction))
        return [parser for group in groups for parser in group.choices.values()]

    @property
    def options(self) -> list[str]:
        """All option strings, including hyphens."""
        return [option for option in self._option_string_actions if option.startswith("--")]

    def error(self, message: str) -> NoReturn:
        say(f"{self.prog}: error: {message}")
        say(f"{self.prog} --help lists the arguments")
        raise SystemExit(FAILED)
