"""From the entries of a chunk to blocks of rows: one vector per column, the bytes of keys and values left in place.

Batches of magic 2 are parsed many at a time: every step below is one numpy expression over all records of the block.
It takes only what is surely right. Batches it cannot vouch for, those of older formats, control batches and records
with headers go through `batches`, which also says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafka_records_arrow.batches import (
    LARGEST_OFFSET,
    MESSAGES_AT,
    RECORDS_AT,
    Batch,
    BrokenRecordsError,
    Span,
    read_batch,
    read_marker,
    record_bytes,
    record_spans,
)
from kafka_records_arrow.compression import CODECS, Decompressed, decompress
from kafka_records_arrow.findings import ControlTrouble, broken, control_left_out, control_trouble
from kafka_records_arrow.heads import Heads
from kafka_records_arrow.problems import OnProblem, SegmentProblem
from kafka_records_arrow.scanning import PAD, Chunk
from kafka_records_arrow.transactions import TRANSACTIONS, Transaction, TransactionIndex
from kafka_records_arrow.varints import INT64
from kafka_records_arrow.vectors import SMALLEST_RECORD, parse
from kafka_records_arrow.vetting import Vetted

CONTROLS: Final = ("commit", "abort")
TIMESTAMP_TYPES: Final = ("create", "log_append")

_ENDED: Final[tuple[Transaction, ...]] = ("committed", "aborted")
_MOST_DECOMPRESSED: Final = 32 * 1024 * 1024
"""Decompressed bytes after which a block is finished, whatever is left of the chunk."""
_MOST_DELTA: Final = (1 << 31) - 1


class Rows(NamedTuple):
    """One element per row. `batch` is its entry, an index into the vectors of `Heads`; a size of -1 is a null."""

    batch: INT64
    offset: INT64
    timestamp: INT64
    key_at: INT64
    key_size: INT64
    value_at: INT64
    value_size: INT64


@dataclass(frozen=True, slots=True)
class Block:
    """Rows in the order of the log. `arena` holds their keys and values, which follow one another in it.

    `base_offset`, `transaction` and `control` have an element per entry of `heads` (the last two index TRANSACTIONS
    and CONTROLS, -1 stands for null).
    """

    arena: bytes
    rows: Rows
    heads: Heads
    base_offset: INT64
    transaction: NDArray[np.int8]
    control: NDArray[np.int8]
    control_left_out: int = 0
    """Records of its control batches that are no rows."""

    def __len__(self) -> int:
        return len(self.rows.offset)


@dataclass(slots=True)
class _Added:
    """Rows that the careful reader found: the entry, and the row with its positions in the arena."""

    batch: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def add(self, batch: int, span: Span, start: int) -> None:
        self.batch.append(batch)
        self.spans.append(span._replace(key_at=span.key_at + start, value_at=span.value_at + start))


class BlockReader:
    """Turns the chunks of one file into blocks, and reports what it had to leave out."""

    def __init__(self, path: str, index: TransactionIndex | None, report: OnProblem) -> None:
        """Without an `index`, what is part of a transaction is pending."""
        self._path = path
        self._index = index
        self._on_problem = report
        self._found: list[SegmentProblem] = []
        self._control_left_out = 0

    def blocks(self, vetted: Vetted) -> Iterator[Block]:
        chunk, heads, usable = vetted.chunk, vetted.heads, vetted.usable
        self._found += [problem for _, problem in sorted(vetted.problems.items())]
        contents = dict[int, Decompressed]()
        pending = 0
        first = 0
        for number, at in enumerate(usable.tolist()) if (heads.codec[usable] != 0).any() else ():
            if heads.codec[at] == 0:
                continue
            contents[at] = self._content(chunk, heads, at)
            pending += len(contents[at].data)
            if pending >= _MOST_DECOMPRESSED:
                block = self._block(chunk, heads, usable[first : number + 1], contents)
                self._report_up_to(chunk.position + int(chunk.entries[at]))
                yield block
                contents, pending, first = {}, 0, number + 1
        block_left = self._block(chunk, heads, usable[first:], contents) if first < len(usable) else None
        self._report_up_to(None)
        if block_left is not None:
            yield block_left

    # -- one block -----------------------------------------------------------------------------------------------------

    def _block(self, chunk: Chunk, heads: Heads, entries: INT64, contents: dict[int, Decompressed]) -> Block:
        arena, starts, ends = _arena(chunk, heads, entries, contents)
        count = heads.count[entries]
        fast = (heads.magic[entries] == 2) & ~heads.is_control[entries] & (heads.codec[entries] < len(CODECS))
        fast &= (count >= 0) & (count * SMALLEST_RECORD <= ends - starts)
        fast &= heads.offset[entries] <= LARGEST_OFFSET - _MOST_DELTA
        for at, content in contents.items():
            if content.failure is not None:
                fast[np.searchsorted(entries, at)] = False
        chosen = np.flatnonzero(fast)
        parsed = parse(arena, starts[chosen], ends[chosen], count[chosen])
        refused = chosen[parsed.refused]
        fast[refused] = False

        self._control_left_out = 0
        base_offset = heads.offset.copy()
        control = np.full(len(heads.offset), -1, np.int8)
        added = _Added()
        for position in np.flatnonzero(~fast).tolist():
            at = int(entries[position])
            start = int(starts[position])
            content = contents[at] if at in contents else Decompressed(arena[start : int(ends[position])])
            self._read_carefully(_head(chunk, at), at, content, start, added, base_offset, control)

        batch = entries[chosen[parsed.batch]]
        delta = parsed.timestamp_delta + heads.base_timestamp[batch]
        log_append = (heads.attributes[batch] & 0x08) != 0
        rows = Rows(
            batch,
            heads.offset[batch] + parsed.offset_delta,
            np.where(log_append, heads.max_timestamp[batch], delta) if log_append.any() else delta,
            parsed.key_at,
            parsed.key_size,
            parsed.value_at,
            parsed.value_size,
        )
        if added.batch:
            rows = _merged(rows, added)
        transaction = self._transactions(heads, entries, control)
        return Block(arena, rows, heads, base_offset, transaction, control, self._control_left_out)

    def _read_carefully(
        self,
        head: Batch,
        at: int,
        content: Decompressed,
        start: int,
        added: _Added,
        base_offset: INT64,
        control: NDArray[np.int8],
    ) -> None:
        delivered = left = 0
        failure = content.failure
        troubles: list[ControlTrouble] = []
        try:
            for span in record_spans(head, content.data):
                if head.is_control:
                    trouble = _read_control(content.data, span, at, control)
                    if trouble is not None:
                        troubles.append(trouble)
                        continue
                if head.magic < 2 and not delivered:
                    base_offset[at] = span.offset
                added.add(at, span, start)
                delivered += 1
        except BrokenRecordsError as error:
            failure, left = failure or error.detail, len(content.data) - error.at
        if troubles:
            self._found.append(control_left_out(self._path, head, troubles))
            self._control_left_out += len(troubles)
        if failure is not None:
            left_out, is_cut = len(troubles), content.failure is not None
            problem = broken(
                self._path, head, failure, delivered=delivered, left_out=left_out, left=left, is_cut=is_cut
            )
            self._found.append(problem)

    def _transactions(self, heads: Heads, entries: INT64, control: NDArray[np.int8]) -> NDArray[np.int8]:
        states = np.zeros(len(heads.offset), np.int8)
        transactional = entries[heads.is_transactional[entries] & ~heads.is_control[entries]]
        if self._index is None:
            states[transactional] = TRANSACTIONS.index("pending")
        else:
            for at in transactional.tolist():
                state = self._index.state(int(heads.producer_id[at]), int(heads.offset[at]))
                states[at] = TRANSACTIONS.index(state)
        for number, name in enumerate(_ENDED):
            states[control == number] = TRANSACTIONS.index(name)
        return states

    def _content(self, chunk: Chunk, heads: Heads, at: int) -> Decompressed:
        start = int(chunk.entries[at])
        end = start + int(chunk.sizes[at])
        codec = int(heads.codec[at])
        if heads.magic[at] == 2 and codec < len(CODECS) and heads.count[at] > 0:
            return decompress(codec, chunk.data[start + RECORDS_AT : end])
        return record_bytes(_head(chunk, at), chunk.data[start:end])

    # -- findings ------------------------------------------------------------------------------------------------------

    def _report_up_to(self, position: int | None) -> None:
        """Hand over what was found, in the order of the file."""
        found = sorted(self._found, key=lambda problem: problem.position or 0)
        due = [problem for problem in found if position is None or (problem.position or 0) <= position]
        self._found = found[len(due) :]
        for problem in due:
            self._on_problem(problem)


def _read_control(data: bytes, span: Span, at: int, control: NDArray[np.int8]) -> ControlTrouble | None:
    """Note how the record ends its transaction; why not, for any other control record."""
    key = data[span.key_at : span.key_at + span.key_size] if span.key_size >= 0 else None
    value = data[span.value_at : span.value_at + span.value_size] if span.value_size >= 0 else None
    trouble = control_trouble(key, value)
    if trouble is None:
        kind = read_marker(key, value).control
        control[at] = -1 if kind is None else CONTROLS.index(kind)
    return trouble


def _head(chunk: Chunk, at: int) -> Batch:
    start = int(chunk.entries[at])
    return read_batch(chunk.data, start, chunk.position + start)


def _arena(chunk: Chunk, heads: Heads, entries: INT64, contents: dict[int, Decompressed]) -> tuple[bytes, INT64, INT64]:
    """One buffer with the record bytes of `entries`, and where those of each entry start and end in it."""
    heads_end = np.array((*MESSAGES_AT, RECORDS_AT), np.int64)
    starts = chunk.entries[entries] + heads_end[heads.magic[entries]]
    ends = chunk.entries[entries] + chunk.sizes[entries]
    if not contents:
        return chunk.data, starts, ends
    parts = [
        contents[at].data if at in contents else chunk.data[start:end]
        for at, start, end in zip(entries.tolist(), starts.tolist(), ends.tolist(), strict=True)
    ]
    ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
    parts.append(bytes(PAD))
    return b"".join(parts), np.concatenate(([0], ends[:-1])), ends


def _merged(rows: Rows, added: _Added) -> Rows:
    """Put the carefully read rows in their places among the others."""
    spans = added.spans
    more = (
        added.batch,
        [span.offset for span in spans],
        [span.timestamp_ms for span in spans],
        [span.key_at for span in spans],
        [span.key_size for span in spans],
        [span.value_at for span in spans],
        [span.value_size for span in spans],
    )
    joined = [np.concatenate((vector, np.array(new, np.int64))) for vector, new in zip(rows, more, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return Rows(*(vector[order] for vector in joined))
