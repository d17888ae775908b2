"""What is usual for a group by its own history."""

from __future__ import annotations

from kafka_records_tables.report.facts.usual_values import LEAST, UsualGap, usual_gap


def test_intervals_are_those_between_neighbours_in_time() -> None:
    times = [1000 * each for each in range(19)] + [118_000]
    assert usual_gap([None, *reversed(times)]) == UsualGap(19, 1000, 100_000, 100_000)


def test_few_intervals_show_nothing() -> None:
    assert usual_gap(range(LEAST)) is None
    assert usual_gap(range(LEAST + 1)) == UsualGap(LEAST, 1, 1, 1)
