"""Determines how the transactions in a log partition end, as a coordinator does. A transaction is pending until its
marker.

The next control row of the same producer determines the outcome of a record in a transaction; only producer ids are
compared (`OffsetMetadataManager.replayEndTransactionMarker`; KIP-98). A tombstone takes effect at once, even in a
transaction (`OffsetMetadataManager.replay`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_tables.coordinator.records.latest import joined, last_of_same

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

COLUMNS: Final = ("offset", "key", "value", "producer_id", "transaction", "control")
"""The columns that are needed to decide whether a record takes effect."""

NONE: Final = "none"
COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
PENDING: Final = "pending"
OPEN: Final = "open"
"""The log ends before the transaction's marker."""
UNKNOWN: Final = "unknown"
"""The transaction's marker may be in damaged bytes, or in a file that was not read."""

_WORDS: Final = (NONE, PENDING, COMMITTED, ABORTED, OPEN, UNKNOWN)

_WORD_ARRAY: Final = pa.array(_WORDS)

_SILENT: Final = -1
"""The code for rows whose transaction the source does not report."""

_NOWHERE: Final = np.iinfo(np.int64).max

_MOST_PENDING: Final = 100_000
"""The number of waiting rows above which replaced rows are dropped (`TransactionResolver._squeeze`)."""


class UnknownTransactions(KafkaRecordsError, ValueError):
    """The source does not report which records of `topic` were written in a transaction. Partition and offset are None
    if the columns already show it."""

    def __init__(self, topic: str, partition: int | None = None, offset: int | None = None) -> None:
        super().__init__(topic, partition, offset)
        self.topic = topic
        self.partition = partition
        self.offset = offset

    def __str__(self) -> str:
        place, which = self.topic, "a record"
        if self.offset is not None:
            place, which = f"{self.topic}-{self.partition}", f"the record at offset {self.offset}"
        return (
            f"{place}: it is unknown whether {which} was written in a transaction, and whether that was committed: "
            "the source has neither transaction nor producer ids. Read a source that has them (log segments, "
            'or rows saved from them with all columns), or pass assume="committed" to count such records as '
            "committed, although some may belong to aborted or open transactions"
        )


class UnknownOutcome(KafkaRecordsError, ValueError):
    """A raw row has an invalid value, `word`, in its column `transaction`."""

    def __init__(self, topic: str, partition: int, offset: int, word: str) -> None:
        super().__init__(topic, partition, offset, word)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.word = word

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition}: the transaction of the record at offset {self.offset} is {self.word!r}: "
            f"raw rows say {', '.join(_WORDS[:-1])} or {_WORDS[-1]}"
        )


class Resolved(NamedTuple):
    """Rows whose transactions ended the same way: NONE (no transaction), COMMITTED, ABORTED, OPEN or UNKNOWN."""

    outcome: str
    rows: pa.RecordBatch


def outside_transactions(batch: pa.RecordBatch, context: Context) -> FLAGS:
    """Flags for records that take effect at their own position: tombstones, records that the source reports as such,
    and records without a producer id.

    In the topics of coordinators, only records in transactions have a producer id. The producer id decides if a source
    reports `unknown` or nothing about the transaction. Raises UnknownTransactions as `TransactionResolver` does.
    """
    return _outside(batch, _numbers_of_words(batch, context), context, tombstones_at_once=True)


def _numbers_of_words(batch: pa.RecordBatch, context: Context) -> NDArray[np.int32]:
    """For each row, the index of its `transaction` in _WORDS, or _SILENT for null. Raises UnknownOutcome."""
    words = batch.column("transaction")
    places = pc.index_in(words, value_set=_WORD_ARRAY)
    if not places.null_count:
        found: NDArray[np.int32] = places.to_numpy()
        return found
    if places.null_count > words.null_count:
        row = int(np.argmax(pc.and_(places.is_null(), words.is_valid()).to_numpy(zero_copy_only=False)))
        offset = batch.column("offset")[row].as_py()
        raise UnknownOutcome(context.topic, context.partition, offset, words[row].as_py())
    found = places.fill_null(_SILENT).to_numpy()
    return found


def _outside(batch: pa.RecordBatch, words: NDArray[np.int32], context: Context, tombstones_at_once: bool) -> FLAGS:
    is_record = batch.column("control").is_null().to_numpy(zero_copy_only=False)
    producers = batch.column("producer_id")
    plain = words == _WORDS.index(NONE)
    silent = (words == _SILENT) | (words == _WORDS.index(UNKNOWN))
    if silent.any():
        has_producer = producers.is_valid().to_numpy(zero_copy_only=False)
        unknown = silent & ~has_producer & is_record
        if tombstones_at_once:
            unknown &= batch.column("value").is_valid().to_numpy(zero_copy_only=False)
        if unknown.any() and context.question.assume is None:
            offset = int(batch.column("offset")[int(np.argmax(unknown))].as_py())
            raise UnknownTransactions(context.topic, context.partition, offset)
        plain = plain | (silent & has_producer & (producers.fill_null(0).to_numpy() < 0)) | unknown
    if tombstones_at_once:
        plain = plain | batch.column("value").is_null().to_numpy(zero_copy_only=False)
    settled: FLAGS = is_record & plain
    return settled


class TransactionResolver:
    """Returns every record except control records, as soon as its outcome is known.

    A record outside of transactions is returned at once, and any other record after the marker of its transaction. Rows
    with the same outcome are in log order; rows with different outcomes are in no particular order.

    Parameters
    ----------
    context
        Its `holes` are the offsets after which a marker may be hidden. Its `assume` says how to treat records without
        information about transactions.
    tombstones_at_once
        Ignore the transaction of a tombstone, as a coordinator does.
    last_of_key
        Of the rows with the same producer, key and outcome, return only the last, even if they belong to several
        transactions. Memory then grows with the number of keys, instead of the number of records in open transactions.

    Raises
    ------
    UnknownTransactions
        If the source does not report a record's transaction, unless the context says how to treat it.
    """

    def __init__(self, context: Context, tombstones_at_once: bool, last_of_key: bool) -> None:
        self._context = context
        self._tombstones_at_once = tombstones_at_once
        self._last_of_key = last_of_key
        self._pending: list[_Waiting] = []
        self._count = 0
        self._squeezed = 0
        self._any_marker = False

    @property
    def waits(self) -> bool:
        """Whether any row waits for a marker."""
        return bool(self._pending)

    @property
    def waits_from(self) -> int | None:
        """Offset of the first row that waits for a marker; None if no row waits."""
        return min((int(waiting.rows.column("offset")[0].as_py()) for waiting in self._pending), default=None)

    def waiting(self, name: str) -> list[pa.Array]:
        """One column of the rows that wait for a marker, in parts."""
        return [waiting.rows.column(name) for waiting in self._pending]

    def take(self, batch: pa.RecordBatch) -> Iterator[Resolved]:
        """Add the raw rows that follow, with COLUMNS and all other columns that the caller needs; returns the rows
        whose outcome is now known."""
        words = _numbers_of_words(batch, self._context)
        has_markers = batch.column("control").null_count < batch.num_rows
        if not has_markers and (words == _WORDS.index(NONE)).all():
            yield Resolved(NONE, batch)
            return
        is_record = batch.column("control").is_null().to_numpy(zero_copy_only=False)
        plain = _outside(batch, words, self._context, self._tombstones_at_once)
        unknown = is_record & ~plain & (words == _WORDS.index(UNKNOWN))
        for outcome, chosen in ((NONE, plain), (UNKNOWN, unknown)):
            if chosen.any():
                yield Resolved(outcome, batch.filter(pa.array(chosen)))
        waiting = is_record & ~plain & ~unknown
        if waiting.any():
            self._pending.append(_waiting(batch.filter(pa.array(waiting))))
            self._count += int(waiting.sum())
        if has_markers:
            self._any_marker = True
            if self._pending:
                yield from self._end(batch.filter(pa.array(~is_record)))
        if self._last_of_key and self._count > max(_MOST_PENDING, 2 * self._squeezed):
            self._squeeze()

    # -- markers -------------------------------------------------------------------------------------------------------

    def _end(self, markers: pa.RecordBatch) -> Iterator[Resolved]:
        """The rows whose transactions end with these markers."""
        producers = _producers(markers)
        pending, self._pending = self._pending, []
        for waiting in pending:
            if waiting.producers.isdisjoint(producers):
                self._keep(waiting)
                continue
            rows = waiting.rows
            ended = _ends(rows, markers, self._hole_behind(rows))
            for outcome, number in ((COMMITTED, _COMMITTED), (ABORTED, _ABORTED), (UNKNOWN, _HIDDEN)):
                chosen = ended == number
                if chosen.any():
                    yield Resolved(outcome, rows.filter(pa.array(chosen)))
            still = ended == _WAITING
            if still.any():
                self._keep(_waiting(rows.filter(pa.array(still))))
        self._count = sum(waiting.rows.num_rows for waiting in self._pending)
        self._squeezed = min(self._squeezed, self._count)

    def _keep(self, waiting: _Waiting) -> None:
        """Keep rows waiting. Adjacent small lots are joined, so that each marker is compared with few lots."""
        lots = self._pending
        while lots and lots[-1].rows.num_rows <= 2 * waiting.rows.num_rows:
            before = lots.pop()
            waiting = _Waiting(joined([before.rows, waiting.rows]), before.producers | waiting.producers)
        lots.append(waiting)

    def _hole_behind(self, rows: pa.RecordBatch) -> INT64:
        """For each row, the offset of the first hole at or after it."""
        holes = np.array(sorted(self._context.log.holes), np.int64)
        at = np.searchsorted(holes, rows.column("offset").to_numpy())
        behind: INT64 = np.append(holes, _NOWHERE)[at]
        return behind

    def _is_before_gap(self, rows: pa.RecordBatch) -> FLAGS:
        """Flags rows that precede a gap in the offsets, in a source that has the whole log.

        A cleaner stops at the first record of an open transaction (`LogCleanerManager.cleanableOffsets`, by the last
        stable offset). So offsets missing after a waiting record were in a missing or damaged file, which may have
        contained its marker. This does not apply to an answer as of an earlier time, because the transaction may have
        ended since.
        """
        context = self._context
        if context.question.as_of_ms is not None or context.log.cleaned_up_to is None or context.log.whole_from is None:
            return np.zeros(rows.num_rows, np.bool_)
        before: FLAGS = rows.column("offset").to_numpy() < context.log.whole_from
        return before

    def rest(self) -> Iterator[Resolved]:
        """The rows whose marker was not read, because the log ends before it or because it is hidden."""
        if not self._pending:
            return
        rows = joined([waiting.rows for waiting in self._pending])
        words = rows.column("transaction")
        left = np.ones(rows.num_rows, np.bool_)
        # A source without control rows may report how a transaction ended. If it has control rows and the question is
        # about an earlier time, what it reports now would be wrong.
        if not self._any_marker or self._context.question.as_of_ms is None:
            for outcome in (COMMITTED, ABORTED):
                told = pc.fill_null(pc.equal(words, outcome), False).to_numpy(zero_copy_only=False)
                left &= ~told
                if told.any():
                    yield Resolved(outcome, rows.filter(pa.array(told)))
        hidden = left & ((self._hole_behind(rows) < _NOWHERE) | self._is_before_gap(rows))
        for outcome, chosen in ((UNKNOWN, hidden), (OPEN, left & ~hidden)):
            if chosen.any():
                yield Resolved(outcome, rows.filter(pa.array(chosen)))

    def _squeeze(self) -> None:
        """Drop rows that were replaced by rows that will have the same outcome in any case."""
        rows = joined([waiting.rows for waiting in self._pending])
        ends_alike = [
            rows.column("producer_id"),
            # Without control rows, this column gives the outcome. The transactions of one producer may have different
            # outcomes.
            rows.column("transaction"),
            # A marker after a gap ends only the rows after the gap.
            pa.array(self._hole_behind(rows)),
            pa.array(self._is_before_gap(rows).astype(np.int8)),
        ]
        last = last_of_same(rows.column("offset").to_numpy(), rows.column("key"), *ends_alike)
        self._pending = [_waiting(rows.filter(pa.array(last)))]
        self._count = self._squeezed = int(last.sum())


class _Waiting(NamedTuple):
    """Rows that wait for markers of their producers."""

    rows: pa.RecordBatch
    producers: frozenset[int | None]


def _waiting(rows: pa.RecordBatch) -> _Waiting:
    return _Waiting(rows, _producers(rows))


def _producers(rows: pa.RecordBatch) -> frozenset[int | None]:
    return frozenset(pc.unique(rows.column("producer_id")).to_pylist())


_WAITING, _COMMITTED, _ABORTED, _HIDDEN = range(4)


def next_markers(rows: pa.RecordBatch, markers: pa.RecordBatch) -> INT64:
    """For each row, the index of the first of `markers` after it from the same producer; -1 if there is none."""
    offsets = rows.column("offset").to_numpy()
    producers = rows.column("producer_id").fill_null(-1).to_numpy()
    of_markers = markers.column("producer_id").fill_null(-1).to_numpy()
    known, row_codes = np.unique(producers, return_inverse=True)
    places = np.minimum(np.searchsorted(known, of_markers), len(known) - 1)
    ours = np.flatnonzero(known[places] == of_markers)
    # Combine producer and log position into one number, so that one binary search finds a producer's next marker.
    _, ranks = np.unique(np.append(offsets, markers.column("offset").to_numpy()[ours]), return_inverse=True)
    width = len(ranks) + 1
    wanted = row_codes.astype(np.int64) * width + ranks[: len(offsets)]
    there = places[ours].astype(np.int64) * width + ranks[len(offsets) :]
    order = np.argsort(there)
    there = np.append(there[order], _NOWHERE)
    at = np.searchsorted(there, wanted, side="right")
    found: INT64 = np.where(there[at] // width == row_codes, np.append(ours[order], -1)[at], -1)
    return found


def _ends(rows: pa.RecordBatch, markers: pa.RecordBatch, holes: INT64) -> NDArray[np.int8]:
    """The outcome of each row, from the next marker of its producer, unless there is a hole before that marker."""
    at = next_markers(rows, markers)
    commits = pc.equal(markers.column("control"), "commit").to_numpy(zero_copy_only=False)
    ended = np.where(commits[at], _COMMITTED, _ABORTED).astype(np.int8)
    ended[holes < markers.column("offset").to_numpy()[at]] = _HIDDEN
    ended[at < 0] = _WAITING
    return ended
