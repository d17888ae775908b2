#!/usr/bin/env python3
"""Time row codecs on identical bytes: ours, kio, kafka-python and our schema walker. See `--help`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the root

from kafka_records.consumer_offsets import consumer_group_current_member_assignment as current_assignment  # noqa: E402
from kafka_records.consumer_offsets.group_metadata import GroupMetadataValue, MemberMetadata  # noqa: E402
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue  # noqa: E402
from kafka_records.consumer_protocol import consumer_protocol_assignment as protocol_assignment  # noqa: E402
from kafka_records.schemas import consumer_offsets, consumer_protocol  # noqa: E402
from kafka_records_runtime.kafka.uuids import Uuid  # noqa: E402
from kafka_records_runtime.schema import MessageSchema  # noqa: E402
from tools.benchmarks._figures import chosen_cases, machine, pair, positive, versions  # noqa: E402
from tools.benchmarks._figures import table as laid_out  # noqa: E402
from tools.benchmarks._row_contenders import CONTENDERS, RowCodec  # noqa: E402
from tools.benchmarks._timing import ContenderError, Timing, figures, ratios, take_turns  # noqa: E402

_EPILOG = """\
Each case is one message. Our codec writes its bytes (without the record type or version that is before them);
every other contender must read them and write the same bytes again, otherwise it is reported and not timed. Then
rounds go over all contenders in turn, so that a busy moment of the machine meets all of them; what counts is the
processor time of this thread. The garbage collector stays on, and the same bytes come again and again, so that caches
are warm for everyone.

The table shows our time in microseconds and, for everybody else, their time divided by ours: above 1 we are faster.
Cells are best / median over the rounds; the goal is for kio's best. Progress goes to standard error.

examples:
  tools/benchmarks/row_codecs.py                                  everything, in about a minute
  tools/benchmarks/row_codecs.py --only OffsetCommit              cases with this in their name
  tools/benchmarks/row_codecs.py --only Key,members --rounds 99   two kinds of cases, more carefully
  tools/benchmarks/row_codecs.py --json rows.json                 all figures, in nanoseconds, also into a file
"""

# -------------------------------------------------------------------------------------------------------------- cases

_TOPICS = [f"orders.eu-west-1.topic-{number:03d}" for number in range(10)]
_TOPIC_IDS = [Uuid((0x0123_4567_89AB_CDEF * (number + 1)).to_bytes(16, "big")) for number in range(10)]
_GROUP = "payments-service-consumer"
_METADATA = "checkpoint=7;node=eu-west-1a"
_COMMITTED_AT = 1_700_000_000_123


@dataclass(frozen=True)
class Case:
    """A message to time. The goals are ratios to kio, for decoding and for encoding."""

    name: str
    schema: MessageSchema
    version: int
    message: Any
    goals: tuple[float, float]


_FLAT = (1.0, 6.0)
_NESTED = (0.6, 8.0)
_STRINGS = (0.45, 8.0)


def _offset_commit(version: int, what: str, **fields: Any) -> Case:
    message = OffsetCommitValue(offset=123_456_789, leader_epoch=5, commit_timestamp=_COMMITTED_AT, **fields)
    name = f"OffsetCommitValue v{version}{what}"
    return Case(name, consumer_offsets.OFFSET_COMMIT_VALUE, version, message, _FLAT)


def _protocol_assignment(topics: int, partitions: int) -> Case:
    message = protocol_assignment.ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            protocol_assignment.TopicPartition(topic, tuple(range(partitions))) for topic in _TOPICS[:topics]
        ),
        user_data=bytes(range(32)),
    )
    schema = consumer_protocol.CONSUMER_PROTOCOL_ASSIGNMENT
    return Case(f"ConsumerProtocolAssignment v3, {topics}x{partitions}", schema, 3, message, _NESTED)


def _group_metadata(members: int) -> Case:
    ids = [f"consumer-{_GROUP}-{number}-8f14e45f-ceea-467f-a0e6-0b7d2c3d9c5a" for number in range(members)]
    message = GroupMetadataValue(
        protocol_type="consumer",
        generation=42,
        protocol="range",
        leader=ids[0],
        current_state_timestamp=_COMMITTED_AT,
        members=tuple(
            MemberMetadata(
                member_id=member_id,
                client_id=f"payments-{number}",
                client_host=f"/10.0.0.{number}",
                rebalance_timeout=300_000,
                session_timeout=45_000,
                subscription=bytes(range(100)),
                assignment=bytes(range(80)),
            )
            for number, member_id in enumerate(ids)
        ),
    )
    name = f"GroupMetadataValue v3, {members} members"
    return Case(name, consumer_offsets.GROUP_METADATA_VALUE, 3, message, _STRINGS)


def _current_assignment(topics: int, partitions: int) -> Case:
    message = current_assignment.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7,
        previous_member_epoch=6,
        assigned_partitions=tuple(
            current_assignment.TopicPartitions(topic_id, tuple(range(partitions))) for topic_id in _TOPIC_IDS[:topics]
        ),
    )
    schema = consumer_offsets.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE
    return Case(f"ConsumerGroupCurrentMemberAssignmentValue v0, {topics}x{partitions}", schema, 0, message, _NESTED)


def cases() -> tuple[Case, ...]:
    """All cases, flat messages first."""
    key = OffsetCommitKey(_GROUP, _TOPICS[0], 7)
    return (
        Case("OffsetCommitKey v0", consumer_offsets.OFFSET_COMMIT_KEY, 0, key, _FLAT),
        _offset_commit(3, ""),
        _offset_commit(3, " with metadata", metadata=_METADATA),
        _offset_commit(4, ""),
        _offset_commit(4, " with metadata", metadata=_METADATA),
        _offset_commit(4, " with topic id", topic_id=_TOPIC_IDS[0]),
        _protocol_assignment(5, 10),
        _group_metadata(3),
        _group_metadata(20),
        _current_assignment(3, 16),
        _current_assignment(10, 10),
    )


# ------------------------------------------------------------------------------------------------------------- timing


@dataclass(frozen=True)
class Row:
    """One line of the table: a message in one direction, timed for every contender that returned the right result."""

    case: Case
    size: int
    direction: str
    timings: tuple[Timing, ...]

    @property
    def goal(self) -> float:
        return self.case.goals[("decode", "encode").index(self.direction)]

    def figures(self, contender: str) -> tuple[float, float] | None:
        """The best and median seconds per call; None if the contender was not timed."""
        return figures(self.timings, contender)

    def ratios(self, contender: str) -> tuple[float, float] | None:
        """The best and median relative to our codec."""
        return ratios(self.timings, contender, "ours")


def codec_for(contender: str, case: Case, body: bytes) -> RowCodec:
    """The contender's codec, after it was checked with the bytes of the case. Raises ContenderError."""
    try:
        codec = CONTENDERS[contender](case.schema, case.version)
        written = bytes(codec.encode(codec.decode(body)))
    except Exception as error:
        raise ContenderError(f"{type(error).__name__}: {error}") from error
    if written != body:
        raise ContenderError(f"reads {body.hex()} and writes {written.hex()}")
    return codec


def run_case(case: Case, rounds: int, seconds: float, report: Callable[[str], None]) -> tuple[Row, Row]:
    """Time a case in both directions; `report` gets a line for every contender that cannot take part."""
    body = case.message.encode(case.version)
    decoders, encoders = [], []
    for contender in CONTENDERS:
        try:
            codec = codec_for(contender, case, body)
        except ContenderError as refused:
            report(f"{contender} is not timed on {case.name}: {refused}")
            continue
        decoders.append(Timing(contender, codec.decode, body))
        encoders.append(Timing(contender, codec.encode, codec.decode(body)))
    take_turns((*decoders, *encoders), rounds, seconds)
    return Row(case, len(body), "decode", tuple(decoders)), Row(case, len(body), "encode", tuple(encoders))


# ------------------------------------------------------------------------------------------------------------- output

_DISTRIBUTIONS = ("kafka-records", "msgspec", "kio", "kafka-python")


def notes() -> dict[str, str]:
    """The name of each contender that can be loaded."""
    case = cases()[0]
    found = {}
    for contender in CONTENDERS:
        try:
            found[contender] = codec_for(contender, case, case.message.encode(case.version)).note
        except ContenderError as refused:
            found[contender] = str(refused)
    return found


def table(rows: Sequence[Row]) -> str:
    """All rows as text."""
    others = [name for name in CONTENDERS if name != "ours"]
    lines = [["message", "bytes", "", "ours (µs)", *(f"{name} ÷ ours" for name in others), "goal for kio"]]
    for row in rows:
        cells = [row.case.name, str(row.size), row.direction, pair(row.figures("ours"), 1e6)]
        lines.append([*cells, *(pair(row.ratios(name)) for name in others), _goal(row)])
    return laid_out(lines)


def _goal(row: Row) -> str:
    ratios = row.ratios("kio")
    verdict = "-" if ratios is None else "met" if ratios[0] >= row.goal else "missed"
    return f"{row.goal:g} {verdict}"


def as_json(rows: Sequence[Row]) -> dict[str, Any]:
    """All figures, in nanoseconds per call."""
    return {
        "machine": machine(),
        "versions": versions(_DISTRIBUTIONS),
        "contenders": notes(),
        "rows": [
            {
                "message": row.case.name,
                "bytes": row.size,
                "direction": row.direction,
                "kio_goal": row.goal,
                "nanoseconds": {
                    timing.contender: [round(seconds * 1e9, 1) for seconds in timing.rounds] for timing in row.timings
                },
            }
            for row in rows
        ],
    }


# ------------------------------------------------------------------------------------------------------------ command


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Decode and encode single messages with our codecs, kio, kafka-python and our schema walker.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=positive(int), default=31, help="measurements of each function (default: 31)")
    parser.add_argument(
        "--seconds", type=positive(float), default=0.015, help="length of one measurement (default: 0.015)"
    )
    parser.add_argument("--only", metavar="TEXT[,TEXT…]", default="", help="cases whose name contains one of the texts")
    parser.add_argument("--json", metavar="PATH", type=Path, help="write every figure to this file as well")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    options = _arguments(arguments)
    chosen = chosen_cases(cases(), options.only)
    if not chosen:
        return 2
    rows: list[Row] = []
    for number, case in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] {case.name}", file=sys.stderr)
        rows += run_case(case, options.rounds, options.seconds, lambda text: print(text, file=sys.stderr))
    print(machine())
    print(", ".join(f"{name} {number}" for name, number in versions(_DISTRIBUTIONS).items()))
    print(f"best / median of {options.rounds} rounds; right of our time: their time ÷ ours, above 1 we are faster\n")
    print(table(rows))
    print()
    for contender, note in notes().items():
        print(f"{contender}: {note}")
    if options.json:
        options.json.write_text(json.dumps(as_json(rows), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
