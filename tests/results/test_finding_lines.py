"""Findings as lines for people."""

from __future__ import annotations

from typing import Any, Literal

from kafka_records_engine.findings import Finding
from kafka_records_tables.results.finding_lines import finding_lines


def found(
    partition: int | None,
    topic: str | None = "t",
    what: str = "it is odd",
    severity: Literal["damage", "note"] = "note",
    consequence: str = "mind it",
    **place: Any,
) -> Finding:
    return Finding(severity, "Odd", what, consequence, topic, partition, **place)


def lines(*findings: Finding, most: int = 50) -> list[str]:
    return [*finding_lines(findings, "ask for all", most)]


def test_the_same_words_about_several_partitions_are_one_line() -> None:
    assert lines(*map(found, (7, 0, 1, 2, 5, 8))) == ["note: t, partitions 0-2, 5, 7-8: it is odd (mind it)"]
    damage = (found(partition, severity="damage") for partition in (7, 0, 1))
    assert lines(*damage) == ["t, partitions 0-1, 7: it is odd (mind it)"]


def test_notes_of_one_reason_are_one_line_with_their_log_partitions() -> None:
    """The numbers in their texts and their places do not matter."""
    of_records = (found(2, offset=3), found(4, offset=5))
    assert lines(found(0), found(1, "u"), found(1, what="it is even"), *of_records, found(2), found(None, None)) == [
        "note: t, partitions 0, 2, 4; u-1: it is odd (mind it)",
        "note: t-1: it is even (mind it)",
        "note: the log: it is odd (mind it)",
    ]


def test_what_differs_in_notes_is_listed() -> None:
    from_where = [found(at, consequence=f"from offset {number} on") for at, number in enumerate((54, 40, 187))]
    assert lines(*from_where) == ["note: t, partitions 0-2: it is odd (from offset 54, 40, 187 on)"]
    many = [found(2 * at, what=f"as of 2026-11-{at + 10}T02:00", consequence=f"{9 * at} left") for at in range(12)]
    assert lines(*many) == [
        "note: t, partitions 0, 2, 4, 6, 8, 10, 12, 14 and 4 more: as of 2026-11-10T02:00 to 2026-11-21T02:00"
        " (0 to 99 left)"
    ]


def test_a_note_about_files_names_the_first() -> None:
    files = (found(1, file=f"/data/t-1/{number}.log", position=number * 100, what="zeros") for number in (3, 4))
    assert lines(*files) == ["note: t-1: zeros (mind it); first /data/t-1/3.log: byte 300"]
    assert lines(*(found(None, None, file=f"/{name}.log") for name in "ab")) == [
        "note: 2 places: it is odd (mind it); first /a.log"
    ]


def test_damage_that_differs_in_more_than_the_partition_is_a_line_of_its_own() -> None:
    numbered = (found(at, severity="damage", what=f"{at} bytes") for at in (3, 4))
    of_records = (found(at, severity="damage", offset=3) for at in (2, 4))
    assert lines(*numbered, *of_records) == [
        "t-3: 3 bytes (mind it)",
        "t-4: 4 bytes (mind it)",
        "t-2: record at offset 3: it is odd (mind it)",
        "t-4: record at offset 3: it is odd (mind it)",
    ]


def test_of_a_kind_only_the_first_lines_come() -> None:
    notes = [found(0), found(1), *(found(0, what=f"it is {word}") for word in ("big", "old", "new"))]
    assert lines(*notes, most=2) == [
        "note: t, partitions 0-1: it is odd (mind it)",
        "note: t-0: it is big (mind it)",
        "note: 2 more findings of the kind Odd: ask for all",
    ]
