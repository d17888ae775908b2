"""Converts the entries of a chunk to blocks of rows, with one vector per column. Keys and values stay in place as
bytes.

Batches of magic 2 are parsed many at a time: every step is one numpy expression over all records of the block. This
works only for batches in which every byte is as expected. All other batches (older formats, control batches, records
with headers, damaged batches) are passed to `batches`, which reads one record at a time and reports problems.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafka_records_engine.findings import Finding, OnFinding
from kafka_records_engine.log.format.batches import (
    ENTRY_HEAD,
    LARGEST_OFFSET,
    MESSAGES_AT,
    RECORDS_AT,
    SMALLEST_SIZES,
    BatchHead,
    BrokenRecordsError,
    Span,
    read_head,
    record_bytes,
    record_spans,
)
from kafka_records_engine.log.format.compression import CODECS, Decompressed, decompress
from kafka_records_engine.log.format.control_records import QUORUM_CONTROLS, read_marker
from kafka_records_engine.log.reading._faults import ControlLeftOut, ControlTrouble, broken, control_trouble
from kafka_records_engine.log.reading._heads import Heads
from kafka_records_engine.log.reading._scanning import PAD, Chunk
from kafka_records_engine.log.reading._transaction_index import TRANSACTIONS, Transaction, TransactionIndex
from kafka_records_engine.log.reading._vectors import SMALLEST_RECORD, Parsed, cut, parse, parse_some
from kafka_records_engine.log.reading._vetting import Vetted
from kafka_records_engine.numpy_types import FLAGS, INT64

CONTROLS: Final = ("commit", "abort", *QUORUM_CONTROLS.values())
"""The types of control records: first those that end transactions, then those that only metadata logs have."""
TIMESTAMP_TYPES: Final = ("create", "log_append")

_NO_END: Final[Transaction] = "none"
_ENDED: Final[tuple[Transaction, ...]] = ("committed", "aborted", *[_NO_END] * len(QUORUM_CONTROLS))
_MOST_DECOMPRESSED: Final = 32 * 1024 * 1024
"""A block ends after this many decompressed bytes, even if the chunk contains more."""
_MOST_ROWS: Final = 256 * 1024
"""The maximum number of rows in a block. While a block is built, a row takes a few hundred bytes of memory."""
_ENDS: Final = np.array([TRANSACTIONS.index(name) for name in _ENDED], np.int8)
_MOST_DELTA: Final = (1 << 31) - 1


class BlockRows(NamedTuple):
    """One element per row. `batch` is the row's entry, an index into the vectors of `Heads`; a size of -1 means
    null."""

    batch: INT64
    offset: INT64
    timestamp: INT64
    key_at: INT64
    key_size: INT64
    value_at: INT64
    value_size: INT64
    control: INT64
    """An index into CONTROLS; -1 means null."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows in log order. `arena` contains their keys and values in the same order.

    `base_offset` and `transaction` (an index into TRANSACTIONS) have one element per entry of `heads`. For control
    records, `transactions_of` says how the transaction ended.
    """

    arena: bytes
    rows: BlockRows
    heads: Heads
    base_offset: INT64
    transaction: NDArray[np.int8]
    control_left_out: int = 0
    """The number of records in control batches that do not become rows."""

    def __len__(self) -> int:
        return len(self.rows.offset)


@dataclass(slots=True)
class _Added:
    """Rows from the careful reader: the entry of each, the positions of its fields in the arena, and the transaction
    that it ends."""

    batch: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    control: list[int] = field(default_factory=list)

    def add(self, batch: int, span: Span, start: int, control: int) -> None:
        self.batch.append(batch)
        self.spans.append(span._replace(key_at=span.key_at + start, value_at=span.value_at + start) if start else span)
        self.control.append(control)


class _CarefulReader:
    """Reads the records of one entry one by one, starting with record number `done` at `position`."""

    def __init__(
        self, head: BatchHead, at: int, content: Decompressed, *, of_quorum: bool, done: int = 0, position: int = 0
    ) -> None:
        self.first_offset: int | None = None
        self._head = head
        self._at = at
        self._of_quorum = of_quorum
        self._content = content
        self._spans = record_spans(head, content.data, done, position)
        self._delivered = done
        self._left_out = ControlLeftOut()
        self._failure: str | None = content.failure
        self._left = 0

    @property
    def left_out(self) -> int:
        """The number of control records read so far that are not rows."""
        return self._left_out.count

    def read(self, added: _Added, start: int, most: int | None = None) -> bool:
        """Read at most `most` more rows, with few more bytes than a block may have. Returns whether the entry was read
        to its end."""
        data, head, at = self._content.data, self._head, self._at
        rows, first = 0, None
        try:
            for span in self._spans:
                control = -1
                if head.is_control:
                    found = _read_control(data, span, self._of_quorum)
                    if not isinstance(found, int):
                        self._left_out.add(found)
                        continue
                    control = found
                if head.magic < 2 and self.first_offset is None:
                    self.first_offset = span.offset
                added.add(at, span, start, control)
                rows += 1
                first = span.key_at if first is None else first
                if most is not None and (rows == most or span.value_at - first > _MOST_DECOMPRESSED):
                    self._delivered += rows
                    return False
        except BrokenRecordsError as error:
            self._failure, self._left = self._failure or error.detail, len(data) - error.at
        self._delivered += rows
        return True

    def findings(self, path: str) -> Iterator[Finding]:
        """The findings about the entry. Call it when the entry has been read to its end."""
        left_out = self._left_out.finding(path, self._head)
        if left_out is not None:
            yield left_out
        if self._failure is not None:
            yield broken(
                path,
                self._head,
                self._failure,
                delivered=self._delivered,
                left_out=self.left_out,
                left=self._left,
                is_cut=self._content.failure is not None,
            )


class BlockReader:
    """Converts the chunks of one file to blocks, and reports records that it had to skip.

    A block has at most a few hundred thousand rows and tens of megabytes, unless a single record is larger. Without
    this limit a batch of a few kilobytes, which may contain millions of records, could fill the memory.
    """

    def __init__(
        self, path: str, index: TransactionIndex | None, on_finding: OnFinding, *, of_quorum: bool = False
    ) -> None:
        """Without an `index`, records of transactions are `pending`. If `of_quorum`, this is a metadata log, in which
        control records about the quorum are rows too."""
        self._path = path
        self._index = index
        self._on_finding = on_finding
        self._of_quorum = of_quorum
        self._found: list[Finding] = []

    def blocks(self, vetted: Vetted) -> Iterator[Block]:
        chunk, heads, usable = vetted.chunk, vetted.heads, vetted.usable
        self._found += [finding for _, finding in sorted(vetted.findings.items())]
        most_rows = np.where(heads.is_old, 1, np.minimum(heads.count, (chunk.sizes - RECORDS_AT) // SMALLEST_RECORD))
        first = 0
        if (heads.codec[usable] != 0).any() or most_rows[usable].sum() > _MOST_ROWS:
            contents = dict[int, Decompressed]()
            size = rows = 0
            for number, at in enumerate(usable.tolist()):
                content = self._content(chunk, heads, at) if heads.codec[at] != 0 else None
                more_size = len(content.data) if content else 0
                more_rows = _most_rows(heads, at, more_size) if content else int(most_rows[at])
                if first < number and (size + more_size > _MOST_DECOMPRESSED or rows + more_rows > _MOST_ROWS):
                    yield self._reported(chunk, self._block(chunk, heads, usable[first:number], contents), at)
                    contents, size, rows, first = {}, 0, 0, number
                if more_size > _MOST_DECOMPRESSED or more_rows > _MOST_ROWS:
                    yield from self._large(chunk, heads, at, content)
                    first = number + 1
                    continue
                if content:
                    contents[at] = content
                size, rows = size + more_size, rows + more_rows
        else:
            contents = {}
        block_left = self._block(chunk, heads, usable[first:], contents) if first < len(usable) else None
        self._report_up_to(None)
        if block_left is not None:
            yield block_left

    def _reported(self, chunk: Chunk, block: Block, before: int) -> Block:
        """Report all findings about places before the entry `before`, then return the block."""
        self._report_up_to(chunk.position + int(chunk.entries[before]) - 1)
        return block

    # -- one block -----------------------------------------------------------------------------------------------------

    def _block(self, chunk: Chunk, heads: Heads, entries: INT64, contents: dict[int, Decompressed]) -> Block:
        arena, starts, ends = _arena(chunk, heads, entries, contents)
        count = heads.count[entries]
        fast = _are_plain(heads, entries) & (count >= 0) & (count * SMALLEST_RECORD <= ends - starts)
        for at, content in contents.items():
            if content.failure is not None:
                fast[np.searchsorted(entries, at)] = False
        chosen = np.flatnonzero(fast)
        parsed = parse(arena, starts[chosen], ends[chosen], count[chosen])
        fast[chosen[parsed.refused]] = False

        left_out = 0
        base_offset = heads.offset.copy()
        added = _Added()
        for position in np.flatnonzero(~fast).tolist():
            at = int(entries[position])
            start = int(starts[position])
            content = contents[at] if at in contents else Decompressed(arena[start : int(ends[position])])
            reader = _CarefulReader(_head(chunk, at), at, content, of_quorum=self._of_quorum)
            reader.read(added, start)
            if reader.first_offset is not None:
                base_offset[at] = reader.first_offset
            left_out += reader.left_out
            self._found += reader.findings(self._path)

        rows = _rows(heads, entries[chosen[parsed.batch]], parsed)
        if added.batch:
            rows = _merged(rows, added)
        return Block(arena, rows, heads, base_offset, self._transactions(heads, entries), left_out)

    def _large(self, chunk: Chunk, heads: Heads, at: int, content: Decompressed | None) -> Iterator[Block]:
        """Split the records of one entry into several blocks."""
        entry = np.array([at])
        transaction = self._transactions(heads, entry)
        start = int(chunk.entries[at]) + RECORDS_AT
        end = int(chunk.entries[at] + chunk.sizes[at])
        data, first, end = (chunk.data, start, end) if content is None else (content.data, 0, len(content.data))
        position, done, count = first, 0, int(heads.count[at])
        if bool(_are_plain(heads, entry)[0]) and (content is None or content.failure is None):
            while done < count:
                places = cut(data, position, end, min(_MOST_ROWS, count - done), _MOST_DECOMPRESSED)
                if places is None:
                    break
                starts, behind = places
                arena = data[position:behind] + bytes(PAD)
                parsed = parse_some(arena, [each - position for each in starts])
                if len(parsed.refused):
                    break
                position, done = behind, done + len(starts)
                rows = _rows(heads, np.full(len(starts), at), parsed)
                yield Block(arena, rows, heads, heads.offset, transaction)
            if done == count and position == end:
                self._report_up_to(chunk.position + int(chunk.entries[at]))
                return
        whole = content or Decompressed(data[first:end])
        begun = position - first
        reader = _CarefulReader(_head(chunk, at), at, whole, of_quorum=self._of_quorum, done=done, position=begun)
        is_read = False
        while not is_read:
            added, left_out = _Added(), reader.left_out
            is_read = reader.read(added, 0, _MOST_ROWS // 4)
            base_offset = heads.offset.copy()
            if reader.first_offset is not None:
                base_offset[at] = reader.first_offset
            if is_read:
                self._found += reader.findings(self._path)
                self._report_up_to(chunk.position + int(chunk.entries[at]))
            if added.batch or reader.left_out > left_out:
                rows = _merged(None, added)
                yield Block(whole.data, rows, heads, base_offset, transaction, reader.left_out - left_out)

    def _transactions(self, heads: Heads, entries: INT64) -> NDArray[np.int8]:
        states = np.zeros(len(heads.offset), np.int8)
        transactional = entries[heads.is_transactional[entries] & ~heads.is_control[entries]]
        if self._index is None:
            states[transactional] = TRANSACTIONS.index("pending")
        else:
            for at in transactional.tolist():
                state = self._index.state(int(heads.producer_id[at]), int(heads.offset[at]))
                states[at] = TRANSACTIONS.index(state)
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
        """Report the findings up to `position`, in the order of the file."""
        found = sorted(self._found, key=lambda finding: finding.position or 0)
        due = [finding for finding in found if position is None or (finding.position or 0) <= position]
        self._found = found[len(due) :]
        for finding in due:
            self._on_finding(finding)


def transactions_of(states: NDArray[np.int8], control: INT64) -> NDArray[np.int8]:
    """The column `transaction` of rows: the outcome of the batch's transaction or, for a control record, the outcome
    that it announces."""
    return states if (control < 0).all() else np.where(control < 0, states, _ENDS[control])


def _read_control(data: bytes, span: Span, of_quorum: bool) -> int | ControlTrouble:
    """The index in CONTROLS for a control record that is a row; for any other record, the reason why it is not a
    row."""
    key = data[span.key_at : span.key_at + span.key_size] if span.key_size >= 0 else None
    value = data[span.value_at : span.value_at + span.value_size] if span.value_size >= 0 else None
    trouble = control_trouble(key, value, of_quorum=of_quorum)
    if trouble is not None:
        return trouble
    marker = read_marker(key, value)
    kind = marker.control or marker.of_quorum
    return -1 if kind is None else CONTROLS.index(kind)


def _are_plain(heads: Heads, entries: INT64) -> FLAGS:
    """Which entries can be parsed many at a time, judging by their headers. Their records may still prevent it."""
    plain: FLAGS = (heads.magic[entries] == 2) & ~heads.is_control[entries] & (heads.codec[entries] < len(CODECS))
    return plain & (heads.offset[entries] <= LARGEST_OFFSET - _MOST_DELTA)


def _most_rows(heads: Heads, at: int, size: int) -> int:
    """The maximum number of records in a compressed entry with `size` bytes of decompressed records."""
    if heads.magic[at] == 2:
        return min(max(int(heads.count[at]), 0), size // SMALLEST_RECORD)
    return size // (ENTRY_HEAD + SMALLEST_SIZES[int(heads.magic[at])])


def _rows(heads: Heads, batch: INT64, parsed: Parsed) -> BlockRows:
    delta = parsed.timestamp_delta + heads.base_timestamp[batch]
    log_append = (heads.attributes[batch] & 0x08) != 0
    return BlockRows(
        batch,
        heads.offset[batch] + parsed.offset_delta,
        np.where(log_append, heads.max_timestamp[batch], delta) if log_append.any() else delta,
        parsed.key_at,
        parsed.key_size,
        parsed.value_at,
        parsed.value_size,
        np.full(len(batch), -1),
    )


def _head(chunk: Chunk, at: int) -> BatchHead:
    start = int(chunk.entries[at])
    return read_head(chunk.data, start, chunk.position + start)


def _arena(chunk: Chunk, heads: Heads, entries: INT64, contents: dict[int, Decompressed]) -> tuple[bytes, INT64, INT64]:
    """A buffer with the record bytes of `entries`, and the start and end of each entry's bytes in it."""
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


def _merged(rows: BlockRows | None, added: _Added) -> BlockRows:
    """Insert the rows of the careful reader at their positions among the others."""
    spans = added.spans
    more = (
        added.batch,
        [span.offset for span in spans],
        [span.timestamp_ms for span in spans],
        [span.key_at for span in spans],
        [span.key_size for span in spans],
        [span.value_at for span in spans],
        [span.value_size for span in spans],
        added.control,
    )
    vectors = [np.array(new, np.int64) for new in more]
    if rows is None:
        return BlockRows(*vectors)
    joined = [np.concatenate((vector, new)) for vector, new in zip(rows, vectors, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return BlockRows(*(vector[order] for vector in joined))
