"""Findings as lines for people."""

from __future__ import annotations

from kafka_records_engine.findings import Finding
from kafka_records_tables.results.finding_lines import finding_lines


def note(partition: int | None, topic: str | None = "t", what: str = "it is odd", offset: int | None = None) -> Finding:
    return Finding("note", "Odd", what, "mind it", topic, partition, offset)


def lines(*findings: Finding, most: int = 50) -> list[str]:
    return [*finding_lines(findings, "ask for all", most)]


def test_the_same_words_about_several_partitions_are_one_line() -> None:
    assert lines(*map(note, (7, 0, 1, 2, 5, 8))) == ["note: t, partitions 0-2, 5, 7-8: it is odd (mind it)"]


def test_what_differs_in_more_than_the_partition_is_a_line_of_its_own() -> None:
    of_records = (note(2, offset=3), note(4, offset=3))
    found = (note(0), note(1, "u"), note(1, what="it is even"), *of_records, note(2), note(None, None))
    assert lines(*found) == [
        "note: t, partitions 0, 2: it is odd (mind it)",
        "note: u-1: it is odd (mind it)",
        "note: t-1: it is even (mind it)",
        "note: t-2: record at offset 3: it is odd (mind it)",
        "note: t-4: record at offset 3: it is odd (mind it)",
        "note: the log: it is odd (mind it)",
    ]


def test_of_a_kind_only_the_first_lines_come() -> None:
    found = [note(0), note(1), *(note(0, what=f"it is {number}") for number in range(3))]
    assert lines(*found, most=2) == [
        "note: t, partitions 0-1: it is odd (mind it)",
        "note: t-0: it is 0 (mind it)",
        "note: 2 more findings of the kind Odd: ask for all",
    ]
