"""The problems in the topics of coordinators, one row each. A healthy cluster has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.checking.release_versions import RELEASES
from kafka_records_tables.tables.declaration import Table
from kafka_records_tables.tables.words.check_words import (
    BROKEN,
    COLUMNS,
    DELETING,
    INITIALIZED,
    INITIALIZING,
    OPTIONS,
    READ,
    SHARE_GROUP,
    STATE,
    STATE_DELETING,
    STATE_INITIALIZING,
    STATE_MISSING,
    STATE_UNNAMED,
    TRANSIENT,
    UNCHECKED,
    UNREADABLE,
)
from kafka_records_tables.topics import OFFSETS, SHARE_STATE, TRANSACTIONS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_TOPICS: Final = (OFFSETS, SHARE_STATE, TRANSACTIONS)

_Row = Mapping[str, Any]
_Place = tuple[str, str, int]

TABLE: Final = Table(
    name="checks",
    topic="",
    about="problems: assignments, share state, and logs that a coordinator, or an older one, cannot load",
    helper="view",
    records=(),
    reads=(),
    columns=COLUMNS,
    inputs=("group_checks", "share_checks", "transaction_checks"),
    optional_inputs=("group_checks", "share_checks", "transaction_checks"),
    join_keys=(),
    sort=(
        "level",
        "check",
        "log_topic",
        "log_partition",
        "log_offset",
        "group_id",
        "member_id",
        "topic_id",
        "partition",
    ),
    group="group_id",
    module=__name__,
    follows_clock=True,
    options=OPTIONS,
    essential=("check", "level", "group_id", "detail"),
    details=(
        "transactional_id",
        "member_id",
        "topic_id",
        "log_timestamp",
        "log_topic",
        "log_partition",
        "log_offset",
    ),
    rules=f"""\
One row per problem in `__consumer_offsets`, `__share_group_state` and `__transaction_state`; a note names a topic that
the source does not have. The checks, by their words in `check`:

- `undecodable_record`: a key or value cannot be decoded. A group or share coordinator does not load the log; a
  transaction coordinator ignores the rest of it.
- `replay_conflict`: a record conflicts with those before it, and a coordinator of Kafka 4.3.1 stops loading there,
  such as a record of one kind of group in a group of another kind, tombstones in the wrong order, or two members with
  one group.instance.id. One row per group, for its first such record. A cleaner may cause it (KAFKA-19862).
- `damaged_log`: the source found damage in the log.
- `unknown_record_type` (information): no Kafka up to {RELEASES[-1]} knows these records; coordinators skip them.
- `wrong_partition`: the key belongs to another partition of its topic, so its coordinator does not read it. Running
  brokers or the option `partitions` give the number of partitions; a note says if it is unknown.
- `not_loaded_by_release`, `passed_over_by_release` (information): what a coordinator of the release in `loads_in`, with
  its default settings, does with the records: it does not load a log with an unknown version of a value, and skips
  unknown record types and their tombstones (before 3.5 it does not load these either). One row per group, record type
  and version. The releases {", ".join(RELEASES[:-1])} and {RELEASES[-1]} are known; another one is judged by the last
  of these before it; newer ones are rejected. A release with two numbers is its first patch release. Bugs of replays
  count too: a streams group after offsets of its name (KAFKA-20254: 4.1.0 to 4.2.0), and a partition of a consumer
  group (KAFKA-19862: 4.0.0 to 4.0.1, 4.1.0 to 4.1.1) or a task of a streams group (4.1.0 to 4.1.1) that passes from one
  member to another while the record between is missing.
- `unknown_member`: a target or current assignment of a member that no record creates.
- `assigned_twice`: a partition of a consumer group, or an active task of a streams group, is in the target or in the
  current assignments of two members. Members of classic and share groups may share partitions.
- `unknown_task`: a target assignment has tasks of a subtopology that the topology of the streams group does not have.
- `unassigned`: partitions (active tasks) exist but are in no target assignment of a group with members. They exist if
  running brokers have them, if higher partitions (tasks) are assigned, or if records of the group name them. A custom
  assignor may leave some out on purpose. Transient while the group changes, and if a topic has got more partitions.
- `share_state_missing`: the group's record of type 15 lists a share partition as initialized, but it has no state: its
  leader gets INVALID_REQUEST, and no member consumes the partition.
- `share_state_unnamed`: a share partition has state, but no group lists it. A group of that name that starts at a
  lower epoch cannot initialize it (FENCED_STATE_EPOCH).
- `share_state_initializing` (transient): the group coordinator has requested state but recorded no answer.
- `share_state_deleting` (transient): the state of a topic is being deleted. If that failed, the next request to delete
  the group, or its offsets of the topic, retries it.

What the logs do not show: whether a topic was deleted in the meantime; and how many partitions it has, unless running
brokers or a group of a broker before 4.1 report it, so only gaps are found. Share state that changes during the
reading may look missing or unnamed: pass a moment some seconds ago as `as_of`. With an earlier `as_of`, missing state
is transient, groups are not checked where a cleaner has been, and no state is called unnamed.
""",
)


def joined(parts: Mapping[str, Any], context: Context) -> Iterator[Any]:
    """The rows described in `TABLE.rules`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    tables = [part.select(["fact", *TABLE.names]) for part in parts.values()]
    told = pa.concat_tables(tables)
    problems = told.filter(pc.is_null(told["fact"])).select(list(TABLE.names))
    yield from problems.cast(TABLE.schema).to_batches()
    facts = _Facts(told.filter(pc.is_valid(told["fact"])).to_pylist())
    facts.tell_what_is_not_checked(context)
    rows = list(facts.problems(context.question.as_of_ms is not None))
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=TABLE.schema)


class _Facts:
    """The facts that group coordinators and share coordinators know about share partitions."""

    def __init__(self, facts: Iterable[_Row]) -> None:
        self._read: dict[str, int | None] = {}
        self._began_ms: dict[str, int] = {}
        self._has_unchecked_groups = False
        self._groups: dict[str, set[str]] = {SHARE_GROUP: set(), UNREADABLE: set()}
        self._states: dict[_Place, _Row] = {}
        self._listed: dict[str, dict[_Place, _Row]] = {INITIALIZING: {}, INITIALIZED: {}}
        self._deleting: dict[tuple[str, str], _Row] = {}
        for fact in facts:
            self._add(fact)

    def _add(self, fact: _Row) -> None:
        kind, group_id, place = fact["fact"], fact["group_id"], (fact["group_id"], fact["topic_id"], fact["partition"])
        if kind == READ:
            topic, began = fact["log_topic"], fact["log_timestamp_ms"]
            self._read[topic] = fact["partition"]
            self._began_ms[topic] = min(began, self._began_ms.get(topic, began))
        elif kind == UNCHECKED:
            self._has_unchecked_groups = True
        elif fact["log_topic"] == SHARE_STATE:
            self._states[place] = fact
        elif kind in self._groups:
            self._groups[kind].add(group_id)
        elif kind == DELETING:
            self._deleting[group_id, fact["topic_id"]] = fact
        else:
            self._listed[kind][place] = fact

    def tell_what_is_not_checked(self, context: Context) -> None:
        """Report the topics that were not read, and those with an unknown partition count."""
        from kafka_records_engine.findings import UNMADE_CHECKS, Finding

        for topic in _TOPICS:
            if topic not in self._read:
                more = ", and share state is not compared with groups" if topic in (OFFSETS, SHARE_STATE) else ""
                what, consequence = "no log of this topic was read", f"its records are not checked{more}"
                context.report(Finding("note", UNMADE_CHECKS, what, consequence, topic))
        unknown = sorted(topic for topic, partitions in self._read.items() if partitions is None)
        if unknown:
            what = f"the number of partitions is unknown for {', '.join(unknown)}"
            told = ",".join(f"{topic}=N" for topic in unknown)
            # Do not suggest a number. If it were wrong, records of healthy groups would look misplaced.
            way = f"--partitions {told} (partitions in Python and Spark), N as kafka-topics --describe has it"
            consequence = f"wrong_partition is not checked there; pass it with {way}"
            context.report(Finding("note", UNMADE_CHECKS, what, consequence))

    def problems(self, is_past: bool) -> Iterator[dict[str, Any]]:
        """Rows about share partitions for which the two topics disagree."""
        if not {OFFSETS, SHARE_STATE} <= self._read.keys():
            return
        for place, fact in self._listed[INITIALIZED].items():
            if place not in self._states and fact["group_id"] not in self._groups[UNREADABLE]:
                yield self._missing(fact, is_past)
        for place, fact in self._listed[INITIALIZING].items():
            has = "has" if place in self._states else "does not have"
            detail = (
                f"the group coordinator has requested state for {_called(fact)}, which {has} it, and has not "
                "recorded a response; if none comes, it tries again at a heartbeat, after "
                "group.share.initialize.retry.interval.ms"
            )
            yield _row(fact, STATE_INITIALIZING, TRANSIENT, detail)
        left_of_topic = Counter(place[:2] for place in self._states)
        for (group_id, topic_id), fact in self._deleting.items():
            left = left_of_topic[group_id, topic_id]
            detail = (
                f"the state of topic {fact['topic']!r} is being deleted, and {left} of its share partitions "
                "still have it: if a deletion has failed, the next request to delete the group, or its offsets of this "
                "topic, retries it"
            )
            yield _row(fact, STATE_DELETING, TRANSIENT, detail)
        # The state may belong to an unchecked group.
        for place, fact in () if self._has_unchecked_groups else self._states.items():
            if fact["fact"] == STATE and not self._is_named(place):
                yield self._unnamed(fact)

    def _is_named(self, place: _Place) -> bool:
        return (
            place[0] in self._groups[UNREADABLE]
            or any(place in listed for listed in self._listed.values())
            or place[:2] in self._deleting
        )

    def _is_younger(self, fact: _Row, other: str) -> bool:
        """Whether a fact's record was written after reading of the other topic began."""
        written, began = fact["log_timestamp_ms"], self._began_ms.get(other)
        return written is not None and began is not None and bool(written >= began)

    def _missing(self, fact: _Row, is_past: bool) -> dict[str, Any]:
        detail = f"the group lists {_called(fact)} as initialized, but it has no state"
        if is_past:
            why = "reads of it are rejected; the log may have lost what it had at that moment"
            return _row(fact, STATE_MISSING, TRANSIENT, f"{detail}: {why}")
        if self._is_younger(fact, SHARE_STATE):
            why = "the group's record was written after share state was read"
            return _row(fact, STATE_MISSING, TRANSIENT, f"{detail}: {why}")
        return _row(fact, STATE_MISSING, BROKEN, f"{detail}: reads of it are rejected")

    def _unnamed(self, fact: _Row) -> dict[str, Any]:
        if self._is_younger(fact, OFFSETS):
            detail = f"{_called(fact)} has state that was written after groups were read, so no group lists it yet"
            return _row(fact, STATE_UNNAMED, TRANSIENT, detail)
        if fact["group_id"] in self._groups[SHARE_GROUP]:
            why = (
                "its group does not list it: it is never deleted, unless a member subscribes to the topic and it is "
                "requested again"
            )
        else:
            why = "there is no share group of that name: it is never deleted"
        detail = f"{_called(fact)} has state, and {why}"
        return _row(fact, STATE_UNNAMED, BROKEN, detail)


def _called(fact: _Row) -> str:
    return f"partition {fact['partition']} of topic {fact['topic'] or fact['topic_id']!r}"


def _row(fact: _Row, check: str, level: str, detail: str) -> dict[str, Any]:
    return {**{name: fact[name] for name in TABLE.names}, "check": check, "level": level, "detail": detail}
