"""docs/strictness.md names every leniency and every error, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_records_runtime import errors
from kafka_records_runtime.errors import DecodeError, EncodeError
from kafka_records_runtime.wire.leniency import Leniency

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "strictness.md").read_text(encoding="utf-8")

TITLE = re.compile(r"^## ", re.MULTILINE)


def section(title: str) -> str:
    return next(part for part in TITLE.split(PAGE) if part.startswith(title))


def first_cells(title: str) -> list[str]:
    """The code in the first cells of a section's table."""
    return re.findall(r"^\| `(\w+)` \|", section(title), re.MULTILINE)


def below(family: type[Exception]) -> set[str]:
    return {
        name
        for name, found in vars(errors).items()
        if isinstance(found, type) and issubclass(found, family) and found is not family
    }


def test_every_leniency_has_a_line_in_order() -> None:
    assert first_cells("Where the strict reader is stricter") == [leniency.value for leniency in Leniency]


def test_every_encode_error_has_a_line() -> None:
    named = first_cells("Where `encode` is stricter")
    assert len(named) == len(set(named))
    assert set(named) == below(EncodeError)


def test_every_decode_error_is_named() -> None:
    named = set(re.findall(r"`(\w+)`", section("Where the strict reader is stricter")))
    assert below(DecodeError) <= named


NO_ERRORS = {"Leniency", "UnknownVersionRecord"}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([A-Z]\w+[a-z]\w*)`", PAGE)) - NO_ERRORS))
def test_what_looks_like_an_error_is_one(name: str) -> None:
    assert name in below(errors.KafkaRecordsError)
