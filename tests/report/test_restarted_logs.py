"""Groups of one log of `__consumer_offsets` that began again when its files were lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from kafka_records_tables.report.facts.leader_epochs import TABLE
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from tests.log.logs import batch, record
from tests.report.data_directory import OFFSETS
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found, _read

KIND: Final = "coordinator_log_restarted"
UP: Final = END_MS - 10 * MINUTE
"""When the broker was there again."""
Row = dict[str, Any]


def _epochs(partition: int, *starts: tuple[int, int, int | None, int | None]) -> Row:
    names = ("epoch", "offset", "before_timestamp_ms", "timestamp_ms")
    epochs = [dict(zip(names, each, strict=True)) for each in starts]
    return {"topic": OFFSETS, "partition": partition, "log_start_offset": 0, "leader_epochs": epochs}


def _event(group: str, at_ms: int, partition: int = 0, offset: int = 0) -> Row:
    row = {"group_id": group, "event": "created", "at_timestamp_ms": at_ms, "member_count": 1}
    return row | {"log_partition": partition, "log_offset": offset}


def _of(
    groups: dict[str, int],
    *,
    epoch: int = 2,
    others: dict[str, int] | None = None,
    sibling: tuple[int, int, int | None, int | None] = (2, 50, UP - 30 * SECOND, UP + 2 * SECOND),
    topic_made_ms: int = UP - HOUR,
    first_commit: int = 120,
) -> list[ReportFinding]:
    """Groups of partition 0 with the times of their first records; `others` are of partition 1, which is older."""
    timeline = [_event(name, at) for name, at in groups.items()]
    timeline += [_event(name, at, 1) for name, at in {"old": UP - HOUR, **(others or {})}.items()]
    place = {"topic": "orders", "partition": 0}
    committed = [
        place | {"group_id": name, "offset": first_commit, "log_partition": 0, "valid_from_timestamp_ms": at + SECOND}
        for name, at in groups.items()
    ]
    samples = [{"offset": 99, "timestamp_ms": UP - 31 * SECOND}, {"offset": 149, "timestamp_ms": END_MS}]
    log = place | {"log_start_offset": 10, "log_end_offset": 150, "samples": samples, "exact_from": 0}
    made = {"topic": "orders", "event": "created", "at_timestamp_ms": topic_made_ms, "log_offset": 4}
    looks = {
        "leader_epochs": [
            _epochs(0, (epoch, 0, None, UP)),
            _epochs(1, (0, 0, None, UP - HOUR), sibling),
            _epochs(2, (2, 0, None, None)),
        ],
        "history": [each | {"log_offset": 5} for each in committed],
        "log_samples": [log],
        "topic_changes": [made],
    }
    ends = [{"topic": OFFSETS, "partition": each, "log_start_offset": 0} for each in range(3)]
    return _found(_context(looks, timeline=timeline, current_offsets=committed, log_ends=ends), KIND)


def test_groups_of_a_lost_log_begin_again_together() -> None:
    (found,) = _of({"export": UP, "publisher": UP + 3 * SECOND})
    assert (found.level, found.group_ids) == (Level.HIGH, ("export", "publisher"))
    # Of 150 records 90 were there before the restart.
    assert found.scale == {"groups": 2, "records_possibly_repeated": 180}
    assert [(each.name, each.confidence) for each in found.causes] == [("log_lost", "medium"), ("first_groups", "low")]
    assert found.next[0].what.startswith("Find out what became of the earlier files of __consumer_offsets-0")
    assert "below the end" not in found.impact
    (found,) = _of({"export": UP, "publisher": UP + 3 * SECOND}, first_commit=60)
    assert '"export", "publisher" began below the end' in found.impact


@pytest.mark.parametrize(
    ("groups", "more", "levels"),
    [
        ({"one": UP}, {}, [Level.NOTE]),
        ({"one": UP, "late": UP + MINUTE}, {}, [Level.NOTE]),
        ({"one": UP, "two": UP}, {"epoch": 0}, []),
        ({"one": UP, "two": UP}, {"others": {"three": UP + SECOND}}, []),
        ({"one": UP, "two": UP}, {"others": {"three": UP + MINUTE}}, [Level.HIGH]),
        ({"one": UP, "two": UP}, {"sibling": (2, 50, UP - 3 * MINUTE, UP - MINUTE)}, []),
        ({"one": UP, "two": UP}, {"sibling": (2, 0, None, UP)}, []),
        ({"one": UP, "two": UP}, {"topic_made_ms": UP - SECOND}, []),
        ({"one": UP, "two": UP, "old": UP}, {}, [Level.HIGH]),
        ({"one": UP, "old": UP}, {}, [Level.NOTE]),
    ],
    ids=[
        "one_group_may_be_new",
        "one_at_once",
        "new_topic",
        "deployed_elsewhere_too",
        "deployed_elsewhere_later",
        "long_after_the_restart",
        "no_older_log",
        "younger_topics",
        "another_one_has_an_old_copy",
        "one_has_an_old_copy",
    ],
)
def test_what_else_looks_like_a_lost_log(groups: dict[str, int], more: dict[str, Any], levels: list[Level]) -> None:
    assert [each.level for each in _of(groups, **more)] == levels


@pytest.mark.parametrize(
    ("checkpoint", "epochs"),
    [
        ("0\n2\n0 0\n2 3\n", [(0, 0, None, 100), (2, 3, 300, 400)]),
        ("0\n3\n0 0\n1 1\n4 9\n", [(0, 0, None, 100), (1, 1, 100, None), (4, 9, None, None)]),
        ("0\n2\n0 0\n", None),
        ("0\n1\n0 zero\n", None),
        ("", None),
    ],
    ids=["two", "inside_a_batch_and_after_the_end", "cut", "no_number", "empty"],
)
def test_epochs_come_from_the_file_beside_a_log(
    tmp_path: Path, checkpoint: str, epochs: list[tuple[int, ...]] | None
) -> None:
    """Batches have the offsets 0, 1 to 2, 3 and 4; the second one lost offset 1 to a cleaner."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    offsets = {0: 100, 2: 300, 3: 400, 4: 500}
    parts = [batch(record(0, b"k", b"v"), 1, offset=at, timestamp=ms) for at, ms in offsets.items()]
    (folder / f"{0:020}.log").write_bytes(b"".join(parts))
    (folder / "leader-epoch-checkpoint").write_text(checkpoint, encoding="utf-8")
    (row,) = _read(TABLE, tmp_path)
    names = ("epoch", "offset", "before_timestamp_ms", "timestamp_ms")
    found = row["leader_epochs"] or None
    assert (found and [tuple(each[name] for name in names) for each in found]) == epochs
