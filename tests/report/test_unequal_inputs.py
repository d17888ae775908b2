"""Streams groups without tasks, because topics that must have as many partitions as each other have not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_records.consumer_offsets import streams_group_metadata, streams_group_topology
from kafka_records_tables.report.facts import stream_topologies
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.data_directory import OFFSETS
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND, MadeCluster
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found, _read
from tests.tables.topic import struct

KIND: Final = "streams_partitions_differ"
MADE: Final = END_MS - HOUR
GREW: Final = END_MS - 10 * MINUTE
INVALID: Final = GREW + 3 * SECOND
Row = dict[str, Any]


def _part(joined: Sequence[str], changelogs: Sequence[str] = (), repartitions: Sequence[str] = ()) -> Row:
    """A part of an application that reads rides and drivers; it joins the given topics."""
    groups = [{"sources": list(joined), "repartitions": list(repartitions)}] if joined else []
    names = {"changelogs": list(changelogs), "repartitions": list(repartitions)}
    return names | {"subtopology_id": "0", "sources": ["drivers", "rides"], "joined": groups}


def _enricher(
    part: Row,
    counts: dict[str, int],
    *,
    grew: str | None = "rides",
    grew_ms: int = GREW,
    other_grew: str | None = None,
    was_valid: bool | None = True,
    has_tasks: bool = False,
    waits: bool = True,
) -> list[ReportFinding]:
    """The group enricher. All topics had four partitions; `grew` was given more, and `other_grew` a minute later."""
    changes = [
        {"topic": topic, "event": "created", "partition_count": 4, "at_timestamp_ms": MADE, "log_offset": at}
        for at, topic in enumerate(sorted(counts))
    ]
    for at, (topic, at_ms) in enumerate(((grew, grew_ms), (other_grew, GREW + MINUTE))):
        if topic is not None:
            more = {"partition_count": counts[topic], "at_timestamp_ms": at_ms, "log_offset": 90 + at}
            changes.append({"topic": topic, "event": "partitions_added", **more})
    group = {"group_id": "enricher", "group_kind": "streams", "log_partition": 0}
    invalid = None if was_valid is None else INVALID
    topology = {"group_id": "enricher", "subtopologies": [part], "was_valid": was_valid, "log_partition": 0}
    life = [("member_joined", MADE), ("member_left", INVALID + SECOND), ("member_joined", INVALID + MINUTE)]
    timeline = [
        group | {"event": event, "at_timestamp_ms": at_ms, "log_offset": at, "member_id": f"m{at // 2}", "sequence": 0}
        for at, (event, at_ms) in enumerate(life)
    ]
    task = group | {"member_id": "m1", "role": "target", "subtopology_id": "0", "partition": 0}
    ends = [
        {"topic": topic, "partition": at, "log_start_offset": 10, "end_offset": 10 + 100 * waits}
        | {"log_end_offset": 10 + 100 * waits, "is_cut": False}
        for topic in ("drivers", "rides")
        for at in range(counts[topic])
    ]
    place = {"group_id": "enricher", "log_partition": 0, "topic": "rides", "partition": 0}
    context = _context(
        {
            "topics": [{"topic": topic, "partition_count": count} for topic, count in counts.items()],
            "topic_changes": changes,
            "stream_topologies": [
                topology | {"invalid_timestamp_ms": invalid, "invalid_log_offset": 7, "log_offset": 2}
            ],
        },
        groups=[group],
        assignments=[task] if has_tasks else [],
        timeline=timeline if waits else [],
        current_offsets=[place | {"offset": 60 if waits else 10}],
        log_ends=ends,
    )
    return _found(context, KIND)


JOIN: Final = _part(["drivers", "rides"], ["store-changelog"])
GROWN: Final = {"drivers": 4, "rides": 6, "store-changelog": 4}


def test_inputs_that_are_joined_need_the_same_number_of_partitions() -> None:
    (found,) = _enricher(JOIN, GROWN)
    assert (found.level, found.group_ids, found.topics) == (Level.HIGH, ("enricher",), ("drivers", "rides"))
    assert (found.since_timestamp_ms, found.is_going_on) == (GREW, True)
    assert found.scale == {"records_waiting": 950, "joins_since": 1}
    assert 'has 6 partitions now, but "drivers" has 4' in found.problem
    assert [(each.name, each.confidence) for each in found.causes] == [("inputs_differ", "high")]
    assert 'Give 6 partitions to "drivers", too, then to the changelog "store-changelog"' in found.next[0].what
    assert str(found.next[0].command).endswith("--alter --topic drivers --partitions 6")


def test_a_changelog_needs_as_many_partitions_as_the_inputs() -> None:
    (found,) = _enricher(_part([], ["store-changelog"]), {"drivers": 6, "rides": 6, "store-changelog": 4})
    assert found.topics == ("drivers", "store-changelog")
    assert "internal topic" in found.title
    assert [each.name for each in found.causes] == ["internal_topic_differs"]
    assert "--topic store-changelog --partitions 6" in str(found.next[0].command)


def test_a_repartition_topic_needs_as_many_partitions_as_the_input_that_it_is_joined_with() -> None:
    joined = _part(["rides"], repartitions=["by-driver-repartition"])
    (found,) = _enricher(joined, {"drivers": 4, "rides": 6, "by-driver-repartition": 4})
    assert found.topics == ("by-driver-repartition", "rides")


@pytest.mark.parametrize(
    ("part", "counts", "given"),
    [
        (JOIN, dict.fromkeys(GROWN, 6), {"other_grew": "drivers"}),
        (_part([]), GROWN, {}),
        (_part(["rides"]), GROWN, {}),
        (JOIN, GROWN, {"has_tasks": True}),
        (JOIN, GROWN, {"was_valid": None}),
        (JOIN, GROWN, {"grew_ms": END_MS - 14 * SECOND}),
        (_part([], ["store-changelog"]), {"drivers": 6, "rides": 4, "store-changelog": 6}, {}),
    ],
    ids=[
        "both_grew",
        "nothing_is_joined",
        "one_is_joined_with_itself",
        "members_have_tasks",
        "the_topology_is_valid",
        "it_grew_just_now",
        "a_changelog_has_as_many_as_the_largest_input",
    ],
)
def test_health_that_looks_like_it(part: Row, counts: dict[str, int], given: dict[str, Any]) -> None:
    assert _enricher(part, counts, **given) == []


def test_an_application_that_was_started_later_is_hit_then() -> None:
    (found,) = _enricher(JOIN, GROWN, was_valid=False)
    assert found.since_timestamp_ms == INVALID
    (found,) = _enricher(JOIN, GROWN, grew=None, was_valid=True)
    assert found.since_timestamp_ms == INVALID
    assert "The numbers of partitions differ" in found.problem


def test_without_members_or_records_it_can_wait() -> None:
    (found,) = _enricher(JOIN, GROWN, waits=False)
    assert (found.level, found.scale) == (Level.MODERATE, {})


def _topology() -> Any:
    module = "streams_group_topology"
    groups = (struct(module, "CopartitionGroup", source_topics=(1, 0, 9), repartition_source_topics=(0,)),)
    part = struct(
        module,
        "Subtopology",
        subtopology_id="0",
        source_topics=("rides", "drivers"),
        repartition_source_topics=(struct(module, "TopicInfo", name="r"),),
        state_changelog_topics=(struct(module, "TopicInfo", name="c"),),
        copartition_groups=groups,
    )
    key = streams_group_topology.StreamsGroupTopologyKey("enricher")
    return key, streams_group_topology.StreamsGroupTopologyValue(epoch=0, subtopologies=(part,))


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [
        ((-1, 0, -1, -1), (True, 2, 3)),
        ((-1, -1), (False, 0, 1)),
        ((-1, 0), (None, None, None)),
        ((0, None), None),
    ],
    ids=["no_longer_valid", "never_valid", "valid", "deleted"],
)
def test_since_when_a_topology_is_not_valid(
    tmp_path: Path, epochs: tuple[int | None, ...], expected: tuple[Any, ...] | None
) -> None:
    cluster = MadeCluster("topologies", END_MS, days=1, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    cluster.logs.write(OFFSETS, "enricher", MADE, _topology())
    key = streams_group_metadata.StreamsGroupMetadataKey("enricher")
    for at, epoch in enumerate(epochs):
        value = None
        if epoch is not None:
            value = streams_group_metadata.StreamsGroupMetadataValue(epoch=at, validated_topology_epoch=epoch)
        cluster.logs.write(OFFSETS, "enricher", MADE + at, (key, value))
    cluster.write(tmp_path)
    rows = _read(stream_topologies.TABLE, tmp_path)
    if expected is None:
        assert rows == []
        return
    (row,) = rows
    at = row["invalid_timestamp_ms"]
    assert (row["was_valid"], None if at is None else at - MADE, row["invalid_log_offset"]) == expected
    assert row["subtopologies"] == [
        {
            "subtopology_id": "0",
            "sources": ["rides", "drivers"],
            "repartitions": ["r"],
            "changelogs": ["c"],
            "joined": [{"sources": ["drivers", "rides"], "repartitions": ["r"]}],
        }
    ]
