"""What tables say, against what a coordinator answers that has loaded the same records: one function for each table.

A function takes a `Loaded` and yields the differences. Where the log cannot tell what a coordinator answers, a rule of
`UNTOLD` says so, and why; no other difference is allowed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from tools.judge.histories import History, Question

UNTOLD: Final = {
    "a simple group is classic": "Kafka has no word of its own for a classic group without a protocol type; the table "
    "calls it simple",
    "the generation of a classic group": "describe has no field for it",
    "the protocol of a group that is not classic": "their members agree on none, the broker assigns",
    "a share group's first epoch": "a share group known by its share offsets alone has no record with an epoch; the "
    "coordinator starts to count at 1",
}
"""What the log cannot tell, or tells otherwise, and why."""


class Read(Protocol):
    """Reads a table over the records that were loaded; options are those of `read_table`."""

    def __call__(self, table: str, **options: Any) -> pa.Table:
        """All rows."""


@dataclass
class Loaded:
    """A log up to a cut: what a coordinator answered that had loaded it, and the tables over the same records."""

    history: History
    cut: int
    read: Read
    used: Counter[str] = field(default_factory=Counter)
    """How often each rule of `UNTOLD` was needed."""

    @property
    def questions(self) -> list[Question]:
        """The questions asked at the cut, each with its answer."""
        return self.history.cuts[self.cut]

    def untold(self, rule: str, answer: Any) -> Any:
        """The answer, for the table cannot have it."""
        assert rule in UNTOLD
        self.used[rule] += 1
        return answer


@dataclass(frozen=True)
class Difference:
    """Where a table says something else than a coordinator."""

    table: str
    about: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.table}, {self.about}\n  expected {self.expected!r}\n  got      {self.got!r}"


Comparison = Callable[[Loaded], Iterator[Difference]]


def differences(loaded: Loaded, topic: str) -> Iterator[Difference]:
    """What all tables of a topic say that a coordinator says otherwise."""
    for comparison in COMPARISONS[topic].values():
        yield from comparison(loaded)


def _asked(question: Question) -> str:
    return json.dumps({name: told for name, told in question.items() if name not in ("answer", "tombstones")})


def _columns(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in names), strict=True)


# -- current_offsets ---------------------------------------------------------------------------------------------------

Place = tuple[str, int]
UNSTABLE: Final = "UNSTABLE_OFFSET_COMMIT"


def current_offsets(loaded: Loaded) -> Iterator[Difference]:
    """The answers to OffsetFetch: offset, leader epoch and metadata, or that a transaction is open."""
    committed: dict[str, dict[Place, Any]] = {}
    columns = ("group_id", "topic", "partition", "offset", "leader_epoch", "metadata")
    for group, topic, partition, offset, epoch, metadata in _columns(loaded.read("current_offsets"), *columns):
        told = (offset, -1 if epoch is None else epoch, metadata)
        if (topic, partition) in committed.setdefault(group, {}):
            yield Difference("current_offsets", f"two rows of {group!r} {topic} {partition}", "one row", told)
        committed[group][topic, partition] = told
    waiting = _open_commits(loaded.read("offset_commits"))
    for question in loaded.questions:
        if question["question"] in ("fetch_all_offsets", "fetch_offsets"):
            got = dict(committed.get(question["group"], {}))
            if question["require_stable"]:
                unstable = waiting.get(question["group"], set())
                if question["question"] == "fetch_all_offsets":
                    # Of partitions with an open transaction and nothing older it knows nothing.
                    unstable = unstable & got.keys()
                got |= dict.fromkeys(unstable, UNSTABLE)
            yield from _differing("current_offsets", _asked(question), _fetched(question["answer"]), got)


def _fetched(answer: list[dict[str, Any]]) -> dict[Place, Any]:
    """By topic and partition what is committed there; nothing is, where the offset is -1 and no error told."""
    return {
        (each["topic"], each["partition"]): each.get("error")
        or (each["offset"], each["leader_epoch"], each["metadata"])
        for each in answer
        if each["offset"] != -1 or "error" in each
    }


def _open_commits(commits: pa.Table) -> dict[str, set[Place]]:
    """The partitions of each group with a commit in an open transaction and no tombstone behind it."""
    deleted: dict[tuple[str, str, int], int] = {}
    pending: dict[tuple[str, str, int], int] = {}
    columns = ("group_id", "topic", "partition", "log_offset", "is_tombstone", "transaction")
    for group, topic, partition, place, is_tombstone, transaction in _columns(commits, *columns):
        kept = deleted if is_tombstone else pending
        if is_tombstone or transaction == "open":
            kept[group, topic, partition] = max(place, kept.get((group, topic, partition), -1))
    found: dict[str, set[Place]] = {}
    for (group, topic, partition), place in pending.items():
        if place > deleted.get((group, topic, partition), -1):
            found.setdefault(group, set()).add((topic, partition))
    return found


def _differing(table: str, about: str, expected: Mapping[Any, Any], got: Mapping[Any, Any]) -> Iterator[Difference]:
    """One difference with the entries that are not the same, if there are any."""
    if expected != got:
        names = [name for name in {**expected, **got} if expected.get(name) != got.get(name)]
        yield Difference(
            table,
            about,
            {name: expected[name] for name in names if name in expected},
            {name: got[name] for name in names if name in got},
        )


# -- groups ------------------------------------------------------------------------------------------------------------


class _Group(NamedTuple):
    """What both the table and describe say of a group."""

    kind: str
    protocol_type: str
    state: str
    epoch: int | None
    protocol: str | None
    members: int


def groups(loaded: Loaded) -> Iterator[Difference]:
    """The answers to ListGroups and to the requests that describe a group."""
    columns = ("group_id", "group_kind", "protocol_type", "state", "epoch", "protocol", "member_count")
    rows = [(group, _Group(*row)) for group, *row in _columns(loaded.read("groups"), *columns)]
    found = dict(rows)
    if len(found) < len(rows):
        yield Difference("groups", "several rows of a group", len(found), len(rows))
    for question in loaded.questions:
        if question["question"] == "list_groups":
            got = {group: (_listed_kind(loaded, row), row.protocol_type, row.state) for group, row in found.items()}
            yield from _differing("groups", _asked(question), _listed(question["answer"]), got)
        elif question["question"] == "describe" and question["group"] in found:
            row = found[question["group"]]
            yield from _differing("groups", _asked(question), _described(loaded, question, row), row._asdict())


def _listed(answer: list[dict[str, str]]) -> dict[str, tuple[str, str, str]]:
    return {each["groupId"]: (each["groupType"], each["protocolType"], each["groupState"]) for each in answer}


def _listed_kind(loaded: Loaded, row: _Group) -> Any:
    return loaded.untold("a simple group is classic", "classic") if row.kind == "simple" else row.kind


def _described(loaded: Loaded, question: Question, row: _Group) -> dict[str, Any]:
    """The row as the answer has it; of the kind ListGroups has told."""
    answer = question["answer"]
    described = row._asdict() | {"state": answer["groupState"], "members": len(answer["members"])}
    if question["group_type"] == "classic":
        loaded.untold("the generation of a classic group", None)
        return described | {"protocol_type": answer["protocolType"], "protocol": answer["protocolData"] or None}
    loaded.untold("the protocol of a group that is not classic", None)
    epoch = answer["groupEpoch"]
    if row.epoch is None and epoch == 1:
        epoch = loaded.untold("a share group's first epoch", None)
    return described | {"protocol": None, "epoch": epoch}


# -- all of them -------------------------------------------------------------------------------------------------------

COMPARISONS: Final[Mapping[str, Mapping[str, Comparison]]] = {
    "__consumer_offsets": {"current_offsets": current_offsets, "groups": groups},
    "__share_group_state": {},
}
"""By topic and table. A new table is one function and one entry."""
