"""Finds commits in which a client gave partitions the offsets of other partitions, and what was read again for that."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

import pyarrow as pa

from kafka_records_tables.report.facts.beginnings import Beginning
from kafka_records_tables.report.facts.group_facts import LogEnds, Offset, Place, Span
from kafka_records_tables.report.rule_context import SECOND_MS

_LATE_MS: Final = SECOND_MS
"""Timestamps of producers may differ from those of brokers by this much."""
_NEAR_MS: Final = 5 * SECOND_MS
"""An offset is the position in a log if the log ended there within this time."""
_BEYOND: Final = 3
"""From so many commits beyond the end of a log on, the offsets are certainly not those of the partition."""
_FALLS: Final = 5
"""As many falls prove the same if no offset is beyond the end of a log."""
_MOST: Final = 0.9
_SAMPLE: Final = 400
"""So many commits, evenly spread, show whether partitions may have got the offsets of others."""
_RECENT: Final = 20
"""The number of commits that show whether a group keeps up with the logs."""
_SHORT: Final = 10, 0.02
"""A group keeps up if its commits are at most so many offsets, or such a share of the log, below an end."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The offsets that were committed together and that changed."""

    at_ms: int
    log_partition: int
    log_offset: int
    """The place of its last record."""
    offsets: Mapping[Place, int]

    @property
    def is_shared(self) -> bool | None:
        """Whether each offset was committed for several partitions; None if it has only one partition. Partitions
        without a record read do not count."""
        counts = Counter(offset for offset in self.offsets.values() if offset)
        return min(counts.values()) > 1 if counts.total() > 1 else None


class Logs:
    """The ends of logs over time: `ends` by topic, and the present ends as far as they are known."""

    def __init__(self, ends: Mapping[str, LogEnds], known: Mapping[Place, int]) -> None:
        self._ends, self._known = ends, known

    def start(self, place: Place) -> int:
        """The offset at which a log starts, or 0."""
        return self._ends[place[0]].start(place) or 0

    def end(self, place: Place) -> int | None:
        """The present end of a log; None if it is unknown."""
        return self._known.get(place, self._ends[place[0]].end(place))

    def at_least(self, place: Place, at_ms: int) -> int | None:
        """A lower bound of the end of a log at a time; None if it is unknown."""
        return self._ends[place[0]].end_at(place, at_ms)

    def at_most(self, place: Place, at_ms: int) -> int | None:
        """An upper bound of the end of a log at a time; None if the log is not available."""
        most = self._ends[place[0]].at_most(place, at_ms + _LATE_MS)
        return self.end(place) if most is None else most

    def is_beyond(self, place: Place, offset: int, at_ms: int) -> bool:
        """Whether an offset was beyond the end of a log at a time."""
        most = self.at_most(place, at_ms)
        return most is not None and offset > most

    def near_end(self, place: Place, at_ms: int) -> range:
        """The offsets at which a log ended at about this time; empty if they are unknown."""
        least, most = self.at_least(place, at_ms - _NEAR_MS), self.at_most(place, at_ms)
        return range(0) if least is None or most is None else range(least, most + 1)


@dataclass(frozen=True, slots=True)
class Run:
    """Wrong commits without a right one in between."""

    batches: list[Batch]
    before: Batch | None
    """The last right commit before them."""
    is_over: bool
    """Whether a right commit follows."""


@dataclass(frozen=True, slots=True)
class MixedOffsets:
    """Commits of a group, one after another, that have offsets of other partitions."""

    batches: Sequence[Batch]
    sources: Mapping[Place, Place]
    """For each partition that always gets the offset of a certain other one, that one; empty if partitions share one
    offset."""
    beyond: int
    """The number of these commits that were beyond the end of a log."""
    falls: int
    """How often such offsets were lower than the ones before, while the same members read on."""
    before: Batch | None
    """The last commit before them with an offset for each partition."""
    is_over: bool
    """Whether the group has committed other offsets for several partitions since."""
    runs: Sequence[Run]
    """All commits of this kind: these, and other sequences."""

    @property
    def places(self) -> list[Place]:
        """The partitions that got such offsets."""
        return sorted({place for batch in self.batches for place in batch.offsets})

    @property
    def is_by_number(self) -> bool:
        """Whether the partitions that share an offset are those with the same number, of several topics."""
        numbers = [
            {(number, offset) for (_, number), offset in each.offsets.items()}
            for each in self.batches
            if len(set(each.offsets.values())) > 1
        ]
        same = sum(len(dict(each)) == len(each) for each in numbers)
        return len(numbers) >= _BEYOND and same >= _MOST * len(numbers)


@dataclass(frozen=True, slots=True)
class Gain:
    """A member that gets partitions, and reads them from the committed offsets."""

    at_ms: int
    log_partition: int
    log_offset: int
    client: str
    places: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Start:
    """Where a member began to read a partition because of a wrong offset."""

    gain: Gain
    place: Place
    committed: int
    is_beyond: bool
    """Whether the offset was beyond the end of the log, so that auto.offset.reset decided."""
    began: Beginning


def batches_of(spans: Mapping[Place, Sequence[Span]]) -> list[Batch]:
    """The commits of a group in the order of the log. Records of one request follow each other, and have one time."""
    rows = sorted(
        (span.log_partition, span.log_offset, place, span.offset, span.from_ms)
        for place, of_place in spans.items()
        for span in of_place
        if span.from_ms is not None
    )
    found: list[tuple[int, int, int, dict[Place, int]]] = []
    for log_partition, log_offset, place, offset, at_ms in rows:
        last = found[-1] if found else None
        if last is not None and last[:3] == (at_ms, log_partition, log_offset - 1) and place not in last[3]:
            last[3][place] = offset
            found[-1] = at_ms, log_partition, log_offset, last[3]
        else:
            found.append((at_ms, log_partition, log_offset, {place: offset}))
    return [Batch(*each) for each in found]


def mixed_offsets(
    batches: Sequence[Batch], logs: Logs, gains: Sequence[Gain], least: int, by_member: Callable[[Batch], bool]
) -> MixedOffsets | None:
    """The longest sequence of at least `least` commits with offsets of other partitions: several partitions share one
    offset each time, or partitions get those of others. None if there is none. Commits without members do not count,
    because a tool writes them."""
    shared = _shared(batches, logs, gains, least, by_member)
    return shared if shared is not None else _exchanged(batches, logs, least, by_member)


def _shared(
    batches: Sequence[Batch], logs: Logs, gains: Sequence[Gain], least: int, by_member: Callable[[Batch], bool]
) -> MixedOffsets | None:
    runs = _runs(batches, [each.is_shared for each in batches], by_member)
    longest = _longest(runs)
    run = longest.batches
    if len(run) < least:
        return None
    is_beyond = [_has_beyond(each, logs) for each in run]
    at = [each.log_offset for each in gains if each.log_partition == run[0].log_partition]
    falls = sum(
        any(second.offsets[place] < first.offsets.get(place, 0) for place in second.offsets)
        for first, second in pairwise(run)
        if bisect_left(at, first.log_offset) == bisect_left(at, second.log_offset)
    )
    # If a log has lost its end, offsets of its time look as if they had been beyond it, but they rise.
    by_end = sum(is_beyond) >= _BEYOND and (falls > 0 or is_beyond[0])
    by_falls = falls >= _FALLS and sum(_ends_differ(each, logs) for each in run) >= _MOST * len(run)
    if not by_end and not by_falls:
        return None
    return MixedOffsets(run, {}, sum(is_beyond), falls, longest.before, longest.is_over, runs)


def _runs(batches: Sequence[Batch], wrong: Sequence[bool | None], by_member: Callable[[Batch], bool]) -> list[Run]:
    """The sequences of wrong commits of members. None is neither wrong nor right."""
    runs = [Run([], None, False)]
    for batch, is_wrong in zip(batches, wrong, strict=True):
        last = runs[-1]
        if is_wrong and by_member(batch):
            last.batches.append(batch)
        elif is_wrong is False and last.batches:
            runs[-1:] = [Run(last.batches, last.before, True), Run([], batch, False)]
        elif is_wrong is False:
            runs[-1] = Run([], batch, False)
    return runs


def _longest(runs: Sequence[Run]) -> Run:
    return max(runs, key=lambda each: len(each.batches))


def spans_of_runs(
    mixed: MixedOffsets, spans: Mapping[Place, Sequence[Span]]
) -> dict[Place, list[tuple[int, int | None]]]:
    """For each partition, the times from its first wrong offset to the right one that followed; None if it still has a
    wrong one."""
    found: dict[Place, list[tuple[int, int | None]]] = {}
    for run in mixed.runs:
        if len(run.batches) < _BEYOND:
            # Partitions that are filled evenly have equal offsets at times.
            continue
        first, last = run.batches[0], run.batches[-1]
        for place in {place for each in run.batches for place in each.offsets}:
            later = (each.from_ms for each in spans[place] if each.log_offset > last.log_offset)
            until = next((each for each in later if each is not None), None) if run.is_over else None
            found.setdefault(place, []).append((first.at_ms, until))
    return found


def _has_beyond(batch: Batch, logs: Logs) -> bool:
    return any(logs.is_beyond(place, offset, batch.at_ms) for place, offset in batch.offsets.items())


def _ends_differ(batch: Batch, logs: Logs) -> bool:
    return len({logs.at_most(place, batch.at_ms) for place in batch.offsets}) > 1


def _exchanged(
    batches: Sequence[Batch], logs: Logs, least: int, by_member: Callable[[Batch], bool]
) -> MixedOffsets | None:
    # The ends of all logs at each commit take long.
    sample = _Exchange()
    every = max(len(batches) // _SAMPLE, 1)
    for at, (batch, state) in enumerate(_with_state(batches)):
        if at % every == 0:
            sample.add(batch, state, logs)
    if sample.unexplained > 2 * (1 - _MOST) * len(sample.wrong):
        return None
    whole = sample if every == 1 else _Exchange()
    for batch, state in _with_state(batches) if every > 1 else ():
        whole.add(batch, state, logs)
        if whole.unexplained > (1 - _MOST) * len(batches):
            return None
    runs = _runs(batches, whole.wrong, by_member)
    longest = _longest(runs)
    run = longest.batches
    likeliest = {place: those.most_common(1)[0] for place, those in whole.pairs.items() if those}
    counts = Counter(place for each in run for place in each.offsets)
    found = {place: source for place, (source, times) in likeliest.items() if times >= _MOST * counts[place] > 0}
    if len(run) < least or not found or whole.unexplained > (1 - _MOST) * len(run):
        return None
    return MixedOffsets(run, found, len(run), 0, longest.before, longest.is_over, runs)


def _with_state(batches: Sequence[Batch]) -> Iterator[tuple[Batch, Mapping[Place, int]]]:
    """Each commit, with the offsets of all partitions after it."""
    state: dict[Place, int] = {}
    for batch in batches:
        state |= batch.offsets
        yield batch, state


class _Exchange:
    """Which partitions have the offsets of which others."""

    def __init__(self) -> None:
        self.wrong: list[bool | None] = []
        self.unexplained = 0
        """The number of commits beyond the end of a log that are no position in another one."""
        self.pairs: dict[Place, Counter[Place]] = {}
        """For each partition, how often another one was at the end of its log at the offset of the former."""

    def add(self, batch: Batch, state: Mapping[Place, int], logs: Logs) -> None:
        """Take a commit, with the offsets of all partitions after it."""
        strange = [place for place, each in batch.offsets.items() if logs.is_beyond(place, each, batch.at_ms)]
        ends = {place: logs.near_end(place, batch.at_ms) for place in (state if strange else batch.offsets)}
        # The source of an offset has not got its own.
        others = [(place, near) for place, near in ends.items() if near and state[place] not in near]
        sources = {
            place: [other for other, near in others if other != place and batch.offsets[place] in near]
            for place in strange
        }
        for place, those in sources.items():
            self.pairs.setdefault(place, Counter()).update(those)
        is_wrong = bool(sources) and all(sources.values())
        # A member that catches up commits positions that are not yet near the end of any log.
        self.unexplained += bool(strange) and not is_wrong
        is_right = any(offset in ends[place] for place, offset in batch.offsets.items())
        self.wrong.append(True if is_wrong else False if is_right else None)


class MixedPlaces:
    """The partitions for which groups committed offsets of other partitions, and when."""

    def __init__(self, spans: Mapping[Offset, Sequence[tuple[int, int | None]]]) -> None:
        self._spans = spans

    def is_now(self, group: str, topic: str, partition: int) -> bool:
        """Whether the present offset may be one of another partition."""
        return any(until is None for _, until in self._spans.get((group, topic, partition), ()))

    def was_at(self, group: str, topic: str, partition: int, at_ms: int | None) -> bool:
        """Whether a commit at a time, or the offset before it, may be one of another partition."""
        return any(
            at_ms is None or (since <= at_ms and (until is None or at_ms <= until))
            for since, until in self._spans.get((group, topic, partition), ())
        )

    def rows_without_present(self, rows: pa.Table) -> pa.Table:
        """Rows of `lag` whose offsets are those of their partitions."""
        return self._left(rows, [not self.is_now(*each) for each in self._places(rows)])

    def falls_without(self, rows: pa.Table) -> pa.Table:
        """Rows of `regressions` between offsets of their partitions."""
        times = rows["commit_timestamp_ms"].to_pylist() if self._spans else ()
        places = self._places(rows)
        is_left = [not self.was_at(*place, at) for place, at in zip(places, times, strict=True)]
        return self._left(rows, is_left)

    def _places(self, rows: pa.Table) -> list[Offset]:
        if not self._spans:
            return []
        groups, topics, numbers = (rows[name].to_pylist() for name in ("group_id", "topic", "partition"))
        return list(zip(groups, topics, numbers, strict=True))

    def _left(self, rows: pa.Table, is_left: list[bool]) -> pa.Table:
        return rows.filter(pa.array(is_left, pa.bool_())) if self._spans else rows


# -- what was read again -----------------------------------------------------------------------------------------------


def starts_of(
    mixed: MixedOffsets, spans: Mapping[Place, Sequence[Span]], gains: Sequence[Gain], logs: Logs
) -> list[Start]:
    """Where members began to read because of wrong offsets: beyond the end of the log as auto.offset.reset says, which
    the commits after that may show. The setting belongs to a client, so one proof counts for its other starts."""
    first, last = mixed.batches[0], mixed.batches[-1]
    began = [
        (each, committed)
        for each in gains
        if each.log_partition == first.log_partition and each.log_offset > first.log_offset
        for committed in (_committed(each, spans, first, last),)
        if committed
    ]
    at_start = {
        gain.client
        for at, (gain, committed) in enumerate(began)
        if _began_at_start(gain, committed, began[at + 1][0] if at + 1 < len(began) else None, mixed, logs)
    }
    return [
        Start(gain, place, offset, is_beyond, _beginning(mixed, gain, place, offset, is_beyond, at_start, logs))
        for gain, committed in began
        for place, offset in committed.items()
        for is_beyond in (logs.is_beyond(place, offset, gain.at_ms),)
    ]


def _committed(gain: Gain, spans: Mapping[Place, Sequence[Span]], first: Batch, last: Batch) -> dict[Place, int]:
    """The wrong offsets that were valid for the partitions that a member got."""
    found = {}
    for place in sorted(gain.places & spans.keys()):
        of_log = [each for each in spans[place] if each.log_partition == gain.log_partition]
        valid = [each for each in of_log if each.log_offset < gain.log_offset]
        if valid and first.log_offset - len(first.offsets) < valid[-1].log_offset <= last.log_offset:
            found[place] = valid[-1].offset
    return found


def handled(mixed: MixedOffsets, place: Place, before: int | None, logs: Logs) -> tuple[int, int, bool]:
    """Up to where the members had read a partition at their last commit before a place in the log, or at all: a lower
    and an upper bound, and whether the lower one is near the truth."""
    batches = [each for each in mixed.batches if before is None or each.log_offset < before]
    at_ms = batches[-1].at_ms
    most = logs.at_most(place, at_ms)
    least = logs.at_least(place, at_ms)
    if most is not None and least is not None and _keeps_up(batches[-_RECENT:], mixed.places, logs):
        return least, most, True
    # Only the longest log has the highest offsets.
    own = [
        offset
        for each in batches
        for offset in each.offsets.values()
        if [other for other in mixed.places if not logs.is_beyond(other, offset, each.at_ms)] == [place]
    ]
    known = max([*own, mixed.before.offsets.get(place, 0) if mixed.before is not None else 0])
    return known, known if most is None else most, False


def _keeps_up(batches: Sequence[Batch], places: Sequence[Place], logs: Logs) -> bool:
    short = [
        min((most - offset) / max(_SHORT[0], _SHORT[1] * most) for most in ends)
        for each in batches
        for offset in set(each.offsets.values())
        for ends in (list(_ends_from(offset, each.at_ms, places, logs)),)
        if ends
    ]
    return bool(short) and median(short) <= 1


def _ends_from(offset: int, at_ms: int, places: Sequence[Place], logs: Logs) -> Iterator[int]:
    """The ends of logs at or after an offset."""
    for place in places:
        end = logs.at_least(place, at_ms)
        if end is not None and end >= offset:
            yield end


def _began_at_start(
    gain: Gain, committed: Mapping[Place, int], until: Gain | None, mixed: MixedOffsets, logs: Logs
) -> bool:
    """Whether a later commit has an offset that only a member can have that began at the start of a log: none of the
    others was below it, or they ended before it."""
    after = [
        each
        for each in mixed.batches
        if each.log_offset > gain.log_offset and (until is None or each.log_offset < until.log_offset)
    ]
    began = {
        place: logs.at_least(place, gain.at_ms) if logs.is_beyond(place, offset, gain.at_ms) else offset
        for place, offset in committed.items()
    }
    beyond = [place for place, offset in committed.items() if began[place] != offset]
    if None in began.values() or not set(mixed.places) <= began.keys():
        return False
    return any(
        any(not logs.is_beyond(place, offset, each.at_ms) for place in beyond)
        and all((began[place] or 0) > offset or logs.is_beyond(place, offset, each.at_ms) for place in began)
        for each in after
        for offset in set(each.offsets.values())
    )


def _beginning(
    mixed: MixedOffsets, gain: Gain, place: Place, offset: int, is_beyond: bool, at_start: set[str], logs: Logs
) -> Beginning:
    least, most, is_near = handled(mixed, place, gain.log_offset, logs)
    if not is_beyond:
        # Below the start of the log, auto.offset.reset decides; records that are gone cannot be read again.
        return Beginning(max(least - max(offset, logs.start(place)), 0), max(offset - most, 0), is_start_known=is_near)
    end = logs.at_least(place, gain.at_ms)
    again = max(least - logs.start(place), 0)
    if gain.client in at_start:
        return Beginning(again, 0, False, end, is_near)
    skipped = max((end or most) - (least if is_near else most), 0)
    return Beginning(again, skipped, True, end, is_near)
