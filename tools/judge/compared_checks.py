"""Checks the table `checks`: it must find nothing broken in records of coordinators, and a conflict if a coordinator
cannot load the remaining records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.sources import LogPartition
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_tables import read_table
from kafka_records_tables.coordinator.groups.loading_groups import PASSED_OVER
from kafka_records_tables.tables.words.check_words import CONFLICT, NOT_LOADED, STATE_UNNAMED, TRANSIENT, UNASSIGNED
from tools.judge.answers import Difference, Loaded, differing, is_described
from tools.judge.histories import History

ONE_EACH: Final = "__consumer_offsets=1,__share_group_state=1"
"""The numbers of partitions: histories have one partition of each topic."""

_WITHOUT_METADATA: Final = ("StreamsGroupMember.rebalanceTimeoutMs()", "Cannot remove the process ID null")
"""The messages of coordinators of 4.2 and later, and of 4.1."""

Row = dict[str, Any]

_Left = dict[tuple[str, str | None], int]
"""By group and topic id, the first number that no member has. Tasks of all subtopologies are under None."""


def checks(loaded: Loaded) -> Iterator[Difference]:
    """A coordinator has loaded the log, so every problem would be a false alarm. If it did not load the log, the table
    must have the record at which it stopped."""
    rows = loaded.read("checks", partitions=ONE_EACH).to_pylist()
    problems = [
        (row["check"], row["log_offset"], row["detail"]) for row in _problems(rows, loaded.history, loaded.used)
    ]
    if is_refused(loaded):
        has_conflict = any(check == CONFLICT for check, *_ in problems) or _has_replay_bug(loaded)
        error = loaded.questions[0]["error"]
        yield from differing("checks", "a log that is not loaded", {"stops": error}, {"stops": has_conflict and error})
        return
    yield from differing("checks", "a log that a coordinator has loaded", {"problems": []}, {"problems": problems})
    if loaded.history.topic == "__consumer_offsets" and loaded.cut == max(loaded.history.cuts):
        yield from _unassigned(loaded)


def _has_replay_bug(loaded: Loaded) -> bool:
    """Whether the release that wrote the log cannot load it because of a bug that later releases do not have."""
    release = loaded.history.header["kafka"]
    rows = loaded.read("checks", partitions=ONE_EACH, loads_in=release).to_pylist()
    found = any(row["check"] == NOT_LOADED and "KAFKA-" in row["detail"] for row in rows)
    return bool(found and loaded.untold("a replay bug of the release", True))


def _problems(rows: list[Row], history: History, rules: Counter[str]) -> list[Row]:
    """The problems in `checks` that are not excused by a rule for the release whose coordinator loaded the log; counts
    `rules`."""
    there = {topic["id"] for topic in history.header["questions"][-1]["topics"]}
    problems = []
    for row in rows:
        if row["check"] == UNASSIGNED and row["topic_id"] is not None and row["topic_id"] not in there:
            rules["partitions of deleted topics"] += 1
        elif row["level"] != TRANSIENT:
            problems.append(row)
    if history.is_before("4.4.0"):
        return problems
    passed = [row for row in problems if row["check"] == CONFLICT and PASSED_OVER in row["detail"]]
    rules["a subscription that 4.4 passes over"] += len(passed)
    return [row for row in problems if row not in passed]


def is_refused(loaded: Loaded) -> bool:
    """Whether Kafka's coordinator cannot load the log after Kafka's own cleaner has cleaned it."""
    refused: bool = loaded.questions[0]["question"] == "load"
    return refused


def refusals(loaded: Loaded) -> Iterator[Difference]:
    """Compare only whether a coordinator loads a log that has lost records."""
    rows = loaded.read("checks", partitions=ONE_EACH).to_pylist()
    conflicts = [row["detail"] for row in _problems(rows, loaded.history, loaded.used) if row["check"] == CONFLICT]
    (answer,) = loaded.questions
    if any(error in answer.get("error", "") for error in _WITHOUT_METADATA):
        loaded.untold("a member without its metadata", None)
        return
    about = f"a log that has lost records: {answer.get('error')}, {conflicts}"
    stops = bool(conflicts) or (is_refused(loaded) and _has_replay_bug(loaded))
    yield from differing("checks", about, {"stops": is_refused(loaded)}, {"stops": stops})


def of_both_topics(groups: History, states: History, as_of: int | None, rules: Counter[str]) -> Iterator[Difference]:
    """Groups and their share state from one cluster are consistent at the end and at any moment, with two exceptions,
    which `rules` counts: if initializing failed, the group has given up a state that may exist; and a client may have
    written records that no coordinator loads."""
    rows = pa.concat_tables([groups.rows, states.rows])
    found = read_table("checks", rows, partitions=ONE_EACH, as_of=as_of).table.to_pylist()
    given_up = {
        bytes.fromhex(record["key"])[4:].decode()
        for record in groups.records
        if "control" not in record and groups.why[record["offset"]]["call"] == "uninitializeShareGroupState"
    }
    is_loaded = groups.cuts[max(groups.cuts)][0]["question"] != "load"
    problems = []
    for row in _problems(found, groups, rules):
        if row["check"] == CONFLICT and row["log_topic"] == groups.topic and not is_loaded:
            rules["groups that no coordinator loads"] += 1
        elif row["check"] == STATE_UNNAMED and row["group_id"] in given_up:
            rules["share state that was given up"] += 1
        else:
            problems.append((row["check"], row["log_topic"], row["detail"]))
    yield from differing("checks", f"share state and groups, as of {as_of}", {"problems": []}, {"problems": problems})


def _unassigned(loaded: Loaded) -> Iterator[Difference]:
    """Compare with the topics of the cluster, as running brokers report them. The table must have exactly the
    partitions that are in no target assignment described by the coordinator. None of them may be called broken, because
    a heartbeat will fix them."""
    cluster = _Cluster(loaded)
    rows = read_table("checks", cluster, partitions=ONE_EACH).table.to_pylist()
    problems = [row["detail"] for row in _problems(rows, loaded.history, loaded.used)]
    yield from differing("checks", "with the topics of the cluster", {"problems": []}, {"problems": problems})
    expected: _Left = {}
    told = set()
    for question in loaded.questions:
        # No answer contains the target assignment of a share group.
        if is_described(loaded, question) and question["group_type"] in ("consumer", "streams"):
            answer = question["answer"]
            if any(member.get("subscribedTopicRegex") for member in answer["members"]):
                loaded.untold("what an expression stands for", None)
                continue
            if answer.get("topology", {}) is None:
                loaded.untold("a streams group that 4.1 has just loaded", None)
                continue
            told.add(answer["groupId"])
            of_tasks = question["group_type"] == "streams"
            expected |= (_tasks_left if of_tasks else _partitions_left)(answer, cluster) if answer["members"] else {}
    got: _Left = {}
    for row in rows:
        if row["check"] == UNASSIGNED and row["group_id"] in told:
            if row["topic_id"] is not None and row["topic_id"] not in loaded.topics:
                loaded.untold("partitions of deleted topics", None)
                continue
            key = row["group_id"], row["topic_id"]
            got[key] = min(row["partition"], got.get(key, row["partition"]))
    yield from differing("checks", "what nobody has", expected, got)


def _partitions_left(answer: Mapping[str, Any], cluster: _Cluster) -> _Left:
    subscribed = {name for member in answer["members"] for name in member["subscribedTopicNames"]}
    targets = [part for member in answer["members"] for part in member["targetAssignment"]["topicPartitions"]]
    known = cluster.known_topics()
    names, counts = known.names, known.partition_counts
    found: _Left = {}
    for topic_id in {*names, *(part["topicId"] for part in targets)}:
        has = {number for part in targets if part["topicId"] == topic_id for number in part["partitions"]}
        is_there = names.get(topic_id) in subscribed
        left = _missing(has, counts[names[topic_id]] if is_there else 0)
        if left:
            found[answer["groupId"], topic_id] = min(left)
    return found


def _tasks_left(answer: Mapping[str, Any], cluster: _Cluster) -> _Left:
    """A subtopology has as many tasks as the largest of the topics it reads has partitions."""
    targets = [part for member in answer["members"] for part in member["targetAssignment"]["activeTasks"]]
    counts = cluster.known_topics().partition_counts
    lefts: list[int] = []
    for each in answer["topology"]["subtopologies"]:
        topics = [*each["sourceTopics"], *(topic["name"] for topic in each["repartitionSourceTopics"])]
        there = [counts.get(topic, 1) for topic in topics]
        wanted = [topic["partitions"] for topic in each["repartitionSourceTopics"]]
        has = {n for part in targets if part["subtopologyId"] == each["subtopologyId"] for n in part["partitions"]}
        lefts.extend(_missing(has, max(there + wanted)))
    return {(answer["groupId"], None): min(lefts)} if lefts else {}


def _missing(numbers: set[int], count: int) -> set[int]:
    """The missing numbers of a topic, which may have been deleted or recreated with fewer partitions."""
    return set(range(max(count, *(number + 1 for number in numbers), 0))) - numbers


class _Cluster:
    """The records that were loaded, as a source that knows the topics of that moment."""

    name = "brokers"

    def __init__(self, loaded: Loaded) -> None:
        self._rows = ArrowRows(loaded.history.up_to(loaded.cut))
        (asked,) = (each for each in loaded.history.header["questions"] if each["cut"] == loaded.cut)
        self._topics: list[dict[str, Any]] = asked["topics"]

    def topics(self) -> list[str]:
        """The topic whose records were loaded."""
        return self._rows.topics()

    def partitions(self, topic: str) -> Sequence[LogPartition]:
        """The only partition."""
        return self._rows.partitions(topic)

    def known_topics(self) -> KnownTopics:
        """The topics of the cluster at that moment."""
        names = {topic["id"]: topic["name"] for topic in self._topics}
        return KnownTopics(names, {topic["name"]: topic["partitions"] for topic in self._topics})
