"""Damaged files of saved rows: none ends the process, hangs, or results in a row that is not in the file.

`make test` reads a few hundred mutants of each format in child processes, `make damaged-rows` a hundred thousand
(KAFKA_RECORDS_MUTANTS can set the number).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.sources import saved_mutants
from tests.sources.saved_mutants import ORIGINALS, mutant, names_of, run
from tests.variants import one_in

pytestmark = pytest.mark.slow

FORMATS: Final = ("arrow", "avro", "csv", "json", "parquet")
MANY: Final = int(os.environ.get("KAFKA_RECORDS_MUTANTS", "100000"))


def check(format: str, first: int, count: int, folder: Path) -> None:
    """Read `count` mutants of a format."""
    outcome = run(format, first, count, folder)
    assert not outcome.wrong
    assert sum(seen.mutants for seen in outcome.seen.values()) == count
    for name, seen in outcome.seen.items():
        # Some damage must be harmless, and some must not.
        assert 0 < seen.read < seen.mutants, name
        assert seen.rows > seen.read, name


@pytest.mark.parametrize("format", one_in(3, FORMATS))
def test_mutants_are_refused_or_give_rows_of_the_file(format: str, tmp_path: Path) -> None:
    check(format, 0, 250, tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize("format", FORMATS)
def test_many_mutants_are_refused_or_give_rows_of_the_file(format: str, tmp_path: Path) -> None:
    check(format, 250, MANY, tmp_path)


def test_every_format_has_mutants() -> None:
    assert {name for format in FORMATS for name in names_of(format)} == ORIGINALS.keys()
    for format in FORMATS:
        assert mutant(format, 0) == mutant(format, 0) != mutant(format, len([*names_of(format)]))


# -- the runner sees what it is for ------------------------------------------------------------------------------------

_BROKEN: Final = """
import os, signal, sys, time
from tests.sources import saved_mutants

def read(path, is_nested):
    number = int((path.parent / "number").read_bytes() or b"-1") if (path.parent / "number").exists() else -1
    if number == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 2:
        time.sleep(60)
    if number == 3:
        raise KeyError("topic")
    if number == 4:
        return [(1, b"of another file", None)]
    return [(1_000_000, b"key-000000000", None)] * 24

saved_mutants.read = read
saved_mutants.SECONDS = 0.5
saved_mutants.main(*sys.argv[1:])
"""


def test_crashes_hangs_tracebacks_and_strange_rows_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that does all of these wrong things, instead of ours."""
    (tmp_path / "broken.py").write_text(_BROKEN)
    monkeypatch.setattr(saved_mutants, "CHILD", [str(tmp_path / "broken.py")])
    outcome = run("arrow", 0, 6, tmp_path)
    assert outcome.wrong.keys() >= {1, 2, 3, 4}
    assert outcome.wrong[1].startswith("the process ended with signal SIGSEGV")
    assert outcome.wrong[2].startswith("it takes more than ")
    assert outcome.wrong[3].endswith("KeyError: 'topic'\n")
    assert outcome.wrong[4].startswith("a row that is not in the file: (1, b'of another file', None)")


def test_bytes_that_come_from_elsewhere_are_seen() -> None:
    """The check of an original accepts its own rows, and no others."""
    for name, original in ORIGINALS.items():
        if original.has is not None:
            holds = original.has(saved_mutants.original(name))
            assert holds((1_000_002, b"key-000000002", b"value-0000002-vv")), name
            assert not holds((1_000_002, b"key-000000002", b"value-0000002-wv")), name
            assert not holds((1_000_002, b"\xa5" * 16, None)), name
