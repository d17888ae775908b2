"""The subcommand `compare`."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from kafka_records_codegen.evolution.change_report import as_json, as_text
from kafka_records_codegen.evolution.change_rules import Rank
from kafka_records_codegen.evolution.comparing import compare
from kafka_records_codegen.evolution.spec_sets import SpecSet, UnusableSpecs, read_spec_set
from kafka_records_codegen.spec.violations import SpecErrors
from kafka_records_runtime.text.printable import printable

_BREAKS: Final = 1
_UNUSABLE: Final = 2


def run(options: argparse.Namespace) -> int:
    """Compare the two sides named in `options` and print all changes. Returns the exit status."""
    sides = [_read(options, *words) for words in ((options.older, options.newer), (options.newer, options.older))]
    refused = [side for side in sides if isinstance(side, SpecErrors)]
    if refused:
        for errors in refused:
            print(errors, file=sys.stderr)
        helps = not options.older_dialect and _loads_as_older(options)
        hint = "; --older-dialect reads these, as Kafka wrote them before 4.0" if helps else ""
        _tell(f"specs that are refused cannot be compared{hint}")
    older, newer = sides
    if not isinstance(older, SpecSet) or not isinstance(newer, SpecSet):
        return _UNUSABLE
    comparison = compare(older, newer)
    show, fail_on = Rank(options.show), Rank(options.fail_on)
    if options.format == "json":
        print(as_json(comparison, show, fail_on))
    else:
        for line in as_text(comparison, show):
            print(line)
    return _BREAKS if comparison.at_least(fail_on) else 0


def _read(options: argparse.Namespace, word: str, other: str) -> SpecSet | SpecErrors | None:
    """One side, or the errors in its specs. None if it cannot be read at all, which has been reported."""
    try:
        return read_spec_set(word, other, older_dialect=options.older_dialect, tell=_tell)
    except UnusableSpecs as error:
        for line in str(error).splitlines():
            _tell(f"kafka-records-codegen: {line}")
        return None
    except SpecErrors as errors:
        return errors


def _loads_as_older(options: argparse.Namespace) -> bool:
    """Whether both sides can be read in the older dialect."""
    try:
        for word, other in ((options.older, options.newer), (options.newer, options.older)):
            read_spec_set(word, other, older_dialect=True)
    except (UnusableSpecs, SpecErrors):
        return False
    return True


def _tell(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
