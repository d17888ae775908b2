"""Groups whose commits are refused because the metadata of these commits has become too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.made_up_cluster import MINUTE, SECOND
from tests.report.rule_cases import END_MS, GROUP
from tests.report.test_rules_in_detail import _context, _found

_STOPPED_MS: Final = END_MS - 5 * MINUTE
_HANGS, _TOO_LARGE = "application_hangs", "metadata_too_large"
_GROWS: Final = tuple(range(47, 4096, 50))
"""The lengths of metadata that grows by 50 characters with each commit, up to 4047; the next one would have 4097."""


def _commits(partition: int, lengths: Sequence[int], step_ms: int = SECOND, last_ms: int = _STOPPED_MS) -> list[Any]:
    """Rows of `history` of a partition, of which the last is at `last_ms`."""
    first = last_ms - (len(lengths) - 1) * step_ms
    return [
        {
            "group_id": GROUP,
            "topic": "orders",
            "partition": partition,
            "offset": at,
            "metadata": "é" * size,
            "commits": 1,
            "valid_from_timestamp_ms": first + at * step_ms,
            "commit_timestamp_ms": first + at * step_ms,
            "ended_by": "commit" if at < len(lengths) - 1 else None,
            "log_partition": 0,
            "log_offset": at,
        }
        for at, size in enumerate(lengths)
    ]


def _stop(history: Sequence[Any], partitions: Sequence[int] = (0,), joined_ms: int | None = None) -> ReportFinding:
    """The finding about a member whose partitions stopped five minutes ago, and which joined then, or before."""
    place = {"group_id": GROUP, "topic": "orders", "log_partition": 0}
    since = {"since_timestamp_ms": _STOPPED_MS, "commit_timestamp_ms": _STOPPED_MS, "wait_ms": 5 * MINUTE}
    named = {"group_id": GROUP, "member_id": "m-2", "client_id": "exporter"}
    joins = {"event": "member_joined", "log_partition": 0, "log_offset": 900, "sequence": 0}
    context = _context(
        {"history": history},
        progress=[{**place, **since, "partition": each, "state": "stopped"} for each in partitions],
        lag=[{**place, "partition": each, "lag": 70, "offset": 5, "member_id": "m-2"} for each in partitions],
        groups=[{"group_id": GROUP, "member_count": 1}],
        members=[named],
        timeline=[
            {**named, **joins, "detail": '{"client_id": "exporter"}', "at_timestamp_ms": joined_ms}
            for joined_ms in ([joined_ms] if joined_ms is not None else [])
        ],
    )
    (found,) = _found(context, "group_stands_still")
    return found


def test_metadata_that_grew_up_to_the_limit_is_the_cause_and_a_restart_does_not_help() -> None:
    found = _stop(_commits(0, _GROWS), joined_ms=END_MS - MINUTE)
    assert [(each.name, each.confidence) for each in found.causes] == [(_TOO_LARGE, "high")]
    assert _HANGS in found.refuted_by
    assert (
        "has 4047 characters, and each of the 10 commits up to it had 50 more than the one before: the next one would "
        "have had 4097 or more; brokers reject more than 4096"
    ) in found.causes[0].evidence_for[0].shows
    assert '"exporter" joined 4 min after the last commit' in found.causes[0].evidence_for[1].shows
    assert found.consequence == "work_repeated"
    assert "Probably they are processed, but each restart reads them again" in (found.impact or "")
    assert found.scale == {"records_without_commit": 70, "partitions": 1}
    assert "before any restart" in found.next[0].what
    assert "offset.metadata.max.bytes" in found.next[1].what
    assert not any("stack dump" in each.what for each in found.next)


def test_nothing_is_known_to_be_repeated_before_a_new_member_joins() -> None:
    found = _stop(_commits(0, _GROWS))
    assert (found.causes[0].name, found.consequence) == (_TOO_LARGE, "none")
    assert len(found.causes[0].evidence_for) == 1


@pytest.mark.parametrize(
    "lengths",
    [
        tuple(range(300, 4096, 400)),
        (4080,),
        (*range(3697, 4040, 38), 4060),
    ],
    ids=["few commits", "only the last one", "may not exceed it"],
)
def test_it_is_likely_if_the_next_commit_may_have_exceeded_the_limit(lengths: Sequence[int]) -> None:
    found = _stop(_commits(0, lengths))
    assert [(each.name, each.confidence) for each in found.causes] == [(_TOO_LARGE, "medium"), (_HANGS, "medium")]
    assert found.decision is not None
    assert "OffsetMetadataTooLarge" in found.decision.question
    assert bool(found.lacked) == (len(lengths) == 1)


@pytest.mark.parametrize(
    "lengths",
    [
        (0,) * 20,
        (4096,) * 20,
        _GROWS[:-1],
        (*range(4050, 4097, 40), *_GROWS),
        (5000, *_GROWS),
        (3000,),
    ],
    ids=["none", "does not grow", "next one fits", "was shortened", "longer was accepted", "far from the limit"],
)
def test_other_metadata_does_not_stop_a_group(lengths: Sequence[int]) -> None:
    found = _stop(_commits(0, lengths), joined_ms=END_MS - MINUTE)
    assert _TOO_LARGE not in [each.name for each in found.causes]
    assert (found.causes[0].name, found.consequence) == (_HANGS, "work_stopped")
    assert found.scale == {"records_waiting": 70, "partitions": 1}
    assert any("stack dump" in each.what for each in found.next)


def test_a_partition_that_was_committed_earlier_has_shorter_metadata_if_all_have_the_same() -> None:
    history = [*_commits(0, _GROWS), *_commits(1, _GROWS[:-20], last_ms=_STOPPED_MS - 20 * SECOND)]
    assert _stop(history, (0, 1)).causes[0].name == _TOO_LARGE


def test_each_partition_may_have_metadata_of_its_own() -> None:
    """Partition 2 goes on with short metadata. If partition 1 stopped with short metadata, something else did that."""
    later = _commits(2, (0,) * 20, last_ms=END_MS)
    own = [*_commits(0, _GROWS), *_commits(1, _GROWS, step_ms=900), *later]
    assert _stop(own, (0, 1)).causes[0].name == _TOO_LARGE
    short = [*_commits(0, _GROWS), *_commits(1, (0,) * 20, step_ms=900), *later]
    assert _TOO_LARGE not in [each.name for each in _stop(short, (0, 1)).causes]


def test_an_offset_that_was_deleted_has_no_last_metadata() -> None:
    history = [each | {"ended_by": each["ended_by"] or "tombstone"} for each in _commits(0, _GROWS)]
    assert _TOO_LARGE not in [each.name for each in _stop(history).causes]
