"""A second implementation of the rule of `regressions`: record by record, in plain Python, from raw rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_records.consumer_offsets import decode_record

Row = dict[str, Any]
CommitKey = tuple[str, str, int]
_Told = tuple[bool, int | None]
"""Whether a group has members, and the place of the last record that shows it."""

_GROUPS = ("GroupMetadataKey", "ConsumerGroupMetadataKey", "StreamsGroupMetadataKey", "ShareGroupMetadataKey")
_MEMBERS = ("ConsumerGroupMemberMetadataKey", "StreamsGroupMemberMetadataKey", "ShareGroupMemberMetadataKey")


@dataclass
class _Commit:
    offset: int
    topic_id: str | None
    place: int
    at_ms: int


@dataclass
class _Chain:
    """The commits of a group for one partition, in order."""

    last: _Commit | None = None
    deleted_at: int | None = None
    reached: int = -1
    topic_id: str | None = None
    fell: tuple[_Commit, _Commit] | None = None
    """The two commits of the fall with which the present run of commits began; None if it did not begin with a fall."""
    run: list[_Commit] = field(default_factory=list)


class _Coordinator:
    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._chains: dict[CommitKey, _Chain] = {}
        self._pending: dict[int, dict[CommitKey, tuple[_Commit, _Told]]] = {}
        self._members: dict[str, set[str]] = {}
        self._told_at: dict[str, int] = {}

    def take(self, row: Mapping[str, Any]) -> None:
        place, producer = row["offset"], row["producer_id"]
        if row["control"] is not None:
            for key, (commit, told) in self._pending.pop(producer, {}).items():
                if row["control"] == "commit":
                    self._committed(key, commit, told, place, producer)
            return
        decoded: Any = decode_record(row["key"], row["value"])
        key, value = decoded.key, decoded.value
        kind = type(key).__name__
        if kind in _GROUPS and value is None:
            self._told_at.pop(key.group if kind == "GroupMetadataKey" else key.group_id, None)
        elif kind == "GroupMetadataKey":
            self._told_at[key.group] = place
        elif kind in _MEMBERS and (value is not None or key.member_id in self._members.get(key.group_id, ())):
            self._told_at[key.group_id] = place
        if kind == "GroupMetadataKey":
            self._members[key.group] = set() if value is None else {each.member_id for each in value.members}
        elif kind in _MEMBERS:
            members = self._members.setdefault(key.group_id, set())
            members.discard(key.member_id) if value is None else members.add(key.member_id)
        elif kind in ("OffsetCommitKey", "LegacyOffsetCommitKey"):
            of = key.group, key.topic, key.partition
            if value is None:
                self._deleted(of, place)
                return
            topic_id = str(getattr(value, "topic_id", "A" * 22))
            commit = _Commit(value.offset, None if topic_id == "A" * 22 else topic_id, place, value.commit_timestamp)
            told = bool(self._members.get(key.group)), self._told_at.get(key.group)
            if row["transaction"] == "none":
                self._committed(of, commit, told, place, None)
            else:
                self._pending.setdefault(producer, {})[of] = commit, told

    def _deleted(self, of: CommitKey, place: int) -> None:
        chain = self._chains.setdefault(of, _Chain())
        chain.deleted_at = chain.reached = place
        for pending in self._pending.values():
            pending.pop(of, None)

    def _committed(self, of: CommitKey, commit: _Commit, told: _Told, at: int, producer: int | None) -> None:
        chain = self._chains.setdefault(of, _Chain())
        if commit.place < chain.reached:
            return
        before, known = chain.last, chain.topic_id
        if commit.topic_id is None:
            commit.topic_id = known
        fell = before is not None and commit.offset < before.offset
        is_recreated = None not in (known, commit.topic_id) and known != commit.topic_id
        was_deleted = before is not None and chain.deleted_at is not None
        low = self._left_at(chain, commit) if fell else None
        if fell:
            assert before is not None
            if is_recreated:
                kind = "topic_recreated"
            elif was_deleted:
                kind = "after_deletion"
            elif low is not None:
                kind = "sawtooth"
            else:
                kind = "rewind_by_member" if told[0] else "reset_while_empty"
            evidence = [
                ("tombstone", chain.deleted_at if was_deleted else None),
                ("marker", at if at > commit.place else None),
            ]
            if kind in ("sawtooth",) and chain.fell is not None and low is not None:
                evidence += [("high", chain.fell[0].place), ("low", low.place)]
            if kind in ("rewind_by_member", "reset_while_empty"):
                evidence.append(("group", told[1]))
            self.rows.append(
                {
                    "group_id": of[0],
                    "topic": of[1],
                    "partition": of[2],
                    "from_offset": before.offset,
                    "to_offset": commit.offset,
                    "kind": kind,
                    "confidence": "high" if known is not None or commit.topic_id is None else "low",
                    "producer_id": producer,
                    "topic_id": commit.topic_id,
                    "from_topic_id": known,
                    "commit_timestamp_ms": commit.at_ms,
                    "from_commit_timestamp_ms": before.at_ms,
                    "log_offset": commit.place,
                    "from_log_offset": before.place,
                    "evidence": [
                        {"shows": shows, "log_offset": there} for shows, there in evidence if there is not None
                    ],
                }
            )
        if before is None or is_recreated or was_deleted:
            chain.fell, chain.run = None, []
        elif fell:
            chain.fell, chain.run = (before, commit), []
        chain.run.append(commit)
        chain.last, chain.deleted_at, chain.reached, chain.topic_id = commit, None, commit.place, commit.topic_id

    @staticmethod
    def _left_at(chain: _Chain, commit: _Commit) -> _Commit | None:
        """The last commit of the lower of two sequences that `commit` continues; None if it continues none."""
        if chain.fell is None:
            return None
        high, bottom = chain.fell
        lower = [each for each in chain.run if each.offset < high.offset]
        if len(lower) == len(chain.run):
            return None
        low = lower[-1]
        jumped = high.offset - low.offset > low.offset - bottom.offset
        return low if jumped and commit.offset >= low.offset else None


def plain_regressions(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The rows of the table for the raw `rows` of one log partition, in order, without the columns about the group."""
    coordinator = _Coordinator()
    for row in rows:
        coordinator.take(row)
    return sorted(
        coordinator.rows, key=lambda row: (row["group_id"], row["topic"], row["partition"], row["log_offset"])
    )
