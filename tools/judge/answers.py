"""The input and the output of a comparison of a table with a coordinator: `Loaded` and `Difference`.

If the log does not show what a coordinator answers, a rule of `UNTOLD` gives the reason; nothing else may differ.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol

import pyarrow as pa

from kafka_records.consumer_offsets import decode_record
from tools.judge.histories import History, Question

UNTOLD: Final = {
    "a simple group is classic": "Kafka has no word of its own for a classic group without a protocol type; the table "
    "calls it simple",
    "the generation of a classic group": "describe has no field for it",
    "the protocol of a group that is not classic": "their members agree on none, the broker assigns",
    "a share group's first epoch": "a share group known by its share offsets alone has no record with an epoch; the "
    "coordinator starts to count at 1, before 4.3 at 0",
    "no expression is an empty one": "a member that subscribes by name has the expression '' in its record and in the "
    "answer; the table has null",
    "the offsets of tasks": "a member of a streams group reports them with heartbeats",
    "more about members than an answer has": "no answer tells timeouts, states and former epochs of members, or the "
    "epochs of classic ones; test_described.py compares these with Kafka's "
    "dump tool",
    "a group that Kafka cannot describe": "a cleaner may leave a streams group without its topology, which it asks for",
    "offsets without their group": "a coordinator that has loaded them answers with them when the group is there "
    "again; the table has them at once",
    "a state without its snapshot": "a coordinator takes an update alone for a state that began at zero; the table "
    "calls it partial",
    "partitions of deleted topics": "they stay in the records of an assignment; describe leaves them out",
    "the name of a topic": "a log partition names a topic with its id where a group committed for it, or remembers it; "
    "without these, or a source that knows names, the table has null",
    "the target of a share group": "describe has no field for it",
    "what is to be given up": "describe has it among what a consumer has, and does not have it in a streams group",
    "share state that was given up": "where initializing failed the group has given up a state that the share "
    "coordinator may have; the table calls it unnamed",
    "groups that no coordinator loads": "a client may have written what stops the loading; checks say so, and what "
    "they say about the log itself is compared with what stops the coordinator",
    "a subscription that 4.4 passes over": "before, a coordinator stops at a subscription that claims more than there "
    "is; no log tells the release of the broker that loads it",
    "a clean-up that fails": "of the group that a share group followed a cleaner may leave an offset of record type 0, "
    "and the clean-up of all groups fails at it",
    "a member without its metadata": "where a log has lost the metadata of a streams member that gives up tasks, a "
    "coordinator fails once all is replayed; checks shows records at which it stops",
    "what an expression stands for": "no answer tells the topics of a regular expression, so what nobody has of them "
    "is not compared",
    "writes of one moment in one batch": "with group.coordinator.append.linger.ms a batch may hold several writes; "
    "those of one millisecond look like one, so what deletes several things at once may be two deletions",
    "a streams group that 4.1 has just loaded": "until a member sends its next heartbeat it has no configured "
    "topology (StreamsGroup.configuredTopology), so it describes none, and StreamsGroup.isSubscribedToTopic of 4.1 "
    "takes that for no subscription: its offsets expire and can be deleted",
    "a replay bug of the release": "later releases load the log; checks says so with loads_in",
    "what is to be given up, before 4.3": "ConsumerGroupMember.asConsumerGroupDescribeMember leaves it out",
    "a transaction whose offsets were deleted": "OffsetMetadataManager.replayEndTransactionMarker of 4.0 forgets only "
    "what has offsets left, so a group whose pending offsets were all deleted never expires",
    "an offset in several transactions": "OffsetMetadataManager.deleteAllOffsets of 4.0 writes a tombstone for each "
    "open transaction that commits it; deletable_offsets has one row",
    "a topic that had more partitions": "OffsetMetadataManager.onPartitionsDeleted, before 4.3, leaves the offsets of "
    "an earlier topic of the name whose own deletion the coordinator missed, if they are of partitions that the "
    "deleted topic does not have; the table takes an offset of the topic that stays for a proof that it was not "
    "deleted",
    "an open transaction of a group without offsets": "OffsetMetadataManager.cleanupExpiredOffsets of 4.0 looks for "
    "transactions only where offsets are committed, and deletes such a group; expirations has the rule since 4.1",
    "a topic that the cluster does not have": "a share coordinator looks topics up before it answers",
}
"""The answers that the log does not show, or shows differently, and the reasons."""

OF_CLEANED_LOGS: Final = frozenset(
    {
        "a group that Kafka cannot describe",
        "offsets without their group",
        "a state without its snapshot",
        "a clean-up that fails",
    }
)
"""The rules that only a log needs from which a cleaner has removed a part."""

OF_LOSSY_LOGS: Final = frozenset({"a member without its metadata"})
"""The rules that only a log needs that has lost records."""

OF_BOTH_TOPICS: Final = frozenset({"share state that was given up", "groups that no coordinator loads"})
"""The rules that only logs of groups and of share state together need."""

SINCE_4_4: Final = frozenset({"a subscription that 4.4 passes over"})
"""The rules that only histories of Kafka 4.4 and later need."""

BEFORE_4_3: Final = frozenset(
    {
        "a streams group that 4.1 has just loaded",
        "what is to be given up, before 4.3",
        "a replay bug of the release",
        "a topic that had more partitions",
    }
)
"""The rules that only histories of Kafka before 4.3 need."""

BEFORE_4_1: Final = frozenset(
    {
        "an open transaction of a group without offsets",
        "a transaction whose offsets were deleted",
        "an offset in several transactions",
    }
)
"""The rules that only histories of Kafka before 4.1 need."""

OF_SHARED_BATCHES: Final = frozenset({"writes of one moment in one batch"})
"""The rules that only histories need in which writes share batches."""


_STREAMS_GROUP: Final = "0011"
"""The first bytes of the key of a record of type 17."""

COMPARISONS_MADE: Final[Counter[str]] = Counter()
"""The number of comparisons of values since this process started, by table (`differing`)."""


class Read(Protocol):
    """Reads a table over the loaded records. The options are those of `read_table`."""

    def __call__(self, table: str, **options: Any) -> pa.Table:
        """Returns all rows."""


@dataclass
class Loaded:
    """A log up to a cut, with the answers of a coordinator that had loaded it, and the tables over the same records."""

    history: History
    cut: int
    read: Read
    used: Counter[str] = field(default_factory=Counter)
    """How often each rule of `UNTOLD` was needed."""
    noted: Counter[str] = field(default_factory=Counter)
    """Other counts of a comparison."""
    first: int = 0
    """The offset from which the table was read."""

    @property
    def questions(self) -> list[Question]:
        """The questions asked at the cut, each with its answer."""
        return self.history.cuts[self.cut]

    @property
    def topics(self) -> dict[str, str]:
        """The topics of the cluster at the cut: names by ids."""
        (at_cut,) = (each for each in self.history.header["questions"] if each["cut"] == self.cut)
        return {topic["id"]: topic["name"] for topic in at_cut["topics"]}

    @cached_property
    def unsubscribed(self) -> frozenset[str]:
        """The streams groups, if a coordinator of 4.1 may not know what they subscribe to."""
        if not self.history.is_before("4.2.0"):
            return frozenset()
        keys = {record["key"] for record in self.history.records if record.get("key", "").startswith(_STREAMS_GROUP)}
        decoded: list[Any] = [decode_record(bytes.fromhex(key), None).key for key in keys]
        found = frozenset(key.group_id for key in decoded)
        if not found:
            return found
        self.untold("a streams group that 4.1 has just loaded", None)
        return found

    def untold(self, rule: str, answer: Any) -> Any:
        """Counts the rule, and returns the coordinator's answer, because the table cannot have this value."""
        assert rule in UNTOLD
        self.used[rule] += 1
        return answer


@dataclass(frozen=True)
class Difference:
    """A difference between a table and the answer of a coordinator."""

    table: str
    about: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.table}, {self.about}\n  expected {self.expected!r}\n  got      {self.got!r}"


def first_share_epoch(loaded: Loaded) -> int:
    """The epoch of a share group before any record has one (`ShareGroup`)."""
    return 0 if loaded.history.is_before("4.3.0") else 1


def is_described(loaded: Loaded, question: Question) -> bool:
    """Whether the question describes a group, and Kafka answered it."""
    if question["question"] != "describe":
        return False
    if "error" in question["answer"]:
        loaded.untold("a group that Kafka cannot describe", None)
        return False
    return True


def asked(question: Question) -> str:
    """The question without its answer."""
    return json.dumps({name: told for name, told in question.items() if name not in ("answer", "tombstones")})


def columns_of(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    """The values of some columns, row by row."""
    return zip(*(table[name].to_pylist() for name in names), strict=True)


def differing(table: str, about: str, expected: Mapping[Any, Any], got: Mapping[Any, Any]) -> Iterator[Difference]:
    """One difference with the entries that are not equal, if there are any."""
    COMPARISONS_MADE[table] += 1
    if expected != got:
        names = [name for name in {**expected, **got} if expected.get(name) != got.get(name)]
        yield Difference(
            table,
            about,
            {name: expected[name] for name in names if name in expected},
            {name: got[name] for name in names if name in got},
        )
