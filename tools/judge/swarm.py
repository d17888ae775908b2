"""Count which features occur together in the histories of some seeds. See `--help`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Final

from kafka_records.consumer_offsets import decode_record as decode_group_record
from kafka_records.share_group_state import decode_record as decode_share_record
from tools.judge.coordinators import Coordinators, program
from tools.judge.histories import History

ALL: Final = "all"
"""The word for all features at once."""

_EPILOG = """\
A feature is what a seed switches on or off (tools/judge/java/Feature.java). What is counted is what happened: by the
records that were written, not by the switches. The first number is of histories whose features were drawn, the second
of those that have all of them.

example:
  python -m tools.judge.swarm 1-300
"""

_PAIRS = 40
_STEP_MS: Final = 1
_KINDS: Final = {
    "ConsumerGroupMetadata": "consumer_groups",
    "ShareGroupMetadata": "share_groups",
    "StreamsGroupMetadata": "streams_groups",
}
_TARGETS: Final = {
    "ConsumerGroupMetadata": "ConsumerGroupTargetAssignmentMetadata",
    "ShareGroupMetadata": "ShareGroupTargetAssignmentMetadata",
    "StreamsGroupMetadata": "StreamsGroupTargetAssignmentMetadata",
}
_RELEASED, _ACCEPTED, _REJECTED = 0, 2, 4


def happened(history: History, share: History | None = None) -> frozenset[str]:
    """The features that occur in the log of a seed, and in that of its share state, if there is any."""
    why = history.why
    found: set[str] = {"old_versions"} if history.header.get("old_versions") else set()
    writes: dict[tuple[int, int], list[Any]] = {}
    for line in history.records:
        if "control" in line:
            continue
        record = decode_group_record(bytes.fromhex(line["key"]), _bytes(line["value"]))
        writes.setdefault((line["batch"], line["timestamp_ms"]), []).append(record)
        found.update(_of_record(record))
        cause = why[line["offset"]].get("why")
        if cause == "topic_deleted":
            found.add("topic_deletions")
        elif cause == "conversion" and record.name in ("GroupMetadata", "ConsumerGroupMetadata"):
            found.add("conversions" if record.name == "GroupMetadata" else "downgrades")
    found.update(_of_transactions(history.records))
    found.update(_of_batches(history))
    for records in writes.values():
        names = {record.name for record in records if record.value is not None}
        if any(kind in names and target not in names for kind, target in _TARGETS.items()):
            found.add("batched_assignments")
    if share is not None:
        found.update(_of_share_state(share))
    return frozenset(found)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _of_record(record: Any) -> Iterator[str]:
    value = record.value
    if value is None:
        return
    if record.name == "GroupMetadata":
        if value.protocol_type:
            yield "classic_groups" if value.protocol_type == "consumer" else "connect_groups"
        if any(member.group_instance_id is not None for member in value.members):
            yield "static_members"
    elif record.name in _KINDS:
        yield _KINDS[record.name]
    elif record.name == "ConsumerGroupRegularExpression":
        yield "regular_expressions"
    elif record.name.startswith("StreamsGroup") and hasattr(value, "standby_tasks"):
        if value.standby_tasks:
            yield "standby_tasks"
        if value.warmup_tasks:
            yield "warm_up_tasks"
    if getattr(value, "instance_id", None) is not None:
        yield "static_members"


def _of_transactions(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The features of transactions, including a marker after another marker of its producer without a record in
    between."""
    wrote: dict[int, int] = {}
    ended: set[int] = set()
    for line in records:
        producer, epoch = line["producer_id"], line["producer_epoch"]
        if "control" not in line:
            if producer >= 0:
                wrote[producer] = epoch
                ended.discard(producer)
        elif producer in wrote:
            yield "transactions_v1" if wrote.pop(producer) == epoch else "transactions_v2"
            ended.add(producer)
        elif producer in ended:
            yield "late_markers"


def _of_batches(history: History) -> Iterator[str]:
    calls: dict[int, set[str]] = {}
    for line in history.records:
        calls.setdefault(line["batch"], set()).add(f"{line['timestamp_ms']} {history.why[line['offset']]['call']}")
    if any(len(each) > 1 for each in calls.values()):
        yield "shared_batches"
    times = [line["timestamp_ms"] for line in history.records]
    if any(later < earlier - _STEP_MS for earlier, later in pairwise(times)):
        yield "clock_jumps"


def _of_share_state(share: History) -> Iterator[str]:
    states: set[int] = set()
    for line in share.records:
        value = decode_share_record(bytes.fromhex(line["key"]), _bytes(line["value"])).value
        states.update(batch.delivery_state for batch in getattr(value, "state_batches", ()))
    if states >= {_RELEASED, _ACCEPTED, _REJECTED}:
        yield "acknowledgements"


def counted(seeds: Iterable[int], coordinators: Coordinators, features: str = "") -> Counter[frozenset[str]]:
    """How often each feature occurred, and each pair of features; the number of seeds is under the empty set."""
    counts: Counter[frozenset[str]] = Counter()
    for seed in seeds:
        name = coordinators.log(seed, features)
        share = coordinators.folder / f"{name}-share.log.jsonl.gz"
        told = History(coordinators.folder, name)
        found = happened(told, History(coordinators.folder, f"{name}-share") if share.exists() else None)
        counts.update(frozenset(each) for size in (0, 1, 2) for each in combinations(sorted(found), size))
        for file in coordinators.folder.glob(f"{name}*.gz"):
            file.unlink()
    return counts


def lines(drawn: Counter[frozenset[str]], everything: Counter[frozenset[str]]) -> Iterator[str]:
    """The table of features, the pairs that are rarest if all features are on, and how many pairs occur more often."""
    names = sorted({name for each in (*drawn, *everything) for name in each})
    yield f"{'feature':40} drawn    all"
    for name in names:
        key = frozenset({name})
        yield f"{name:40} {drawn[key]:5}  {everything[key]:5}"
    pairs = sorted(combinations(names, 2), key=lambda pair: (everything[frozenset(pair)], pair))
    yield f"{'pair, the rarest first':40} drawn    all"
    for pair in pairs[:_PAIRS]:
        key = frozenset(pair)
        yield f"{' + '.join(pair):40} {drawn[key]:5}  {everything[key]:5}"
    seeds = everything[frozenset()]
    rare = [key for key in map(frozenset, pairs) if everything[key] * 10 < seeds]
    yield (
        f"{seeds} seeds: {len(rare)} of {len(pairs)} pairs are in fewer than a tenth of the histories with all "
        f"features, together {sum(everything[key] for key in rare)} times, and {sum(drawn[key] for key in rare)} times "
        f"where features are drawn; {sum(drawn[key] > everything[key] for key in rare)} of them meet more often there"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.judge.swarm",
        description="Count which features occur together in the histories of some seeds.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("seeds", help="such as 1-300")
    first, _, last = parser.parse_args(arguments).seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    with tempfile.TemporaryDirectory() as folder, Coordinators(Path(folder), program()) as coordinators:
        print(*lines(counted(seeds, coordinators), counted(seeds, coordinators, ALL)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
