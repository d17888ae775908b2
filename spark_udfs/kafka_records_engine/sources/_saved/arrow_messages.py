"""Finds the messages of Arrow streams and files: what each message describes, and where its bytes are.

A message consists of metadata and a body of buffers. A stream has the schema, followed by dictionaries and batches; a
file has the same between two magic strings, and a footer with the position of each (Message.fbs, File.fbs of Arrow's
format).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from struct import Struct
from typing import Any, Final, NamedTuple

import pyarrow as pa

from kafka_records_engine.sources._saved.arrow_layout import ArrowColumn, columns_of
from kafka_records_engine.sources._saved.flatbuffers import FlatTable, root

SCHEMA: Final = 1
DICTIONARY: Final = 2
BATCH: Final = 3

_MARK: Final = b"ARROW1"
_CONTINUES: Final = 0xFFFFFFFF
"""Precedes the length of metadata since Arrow 0.15. It cannot be a length, because metadata never has 2 GiB."""

_LENGTH: Final = Struct("<I")
_BLOCK: Final = Struct("<qi4xq")
_PIECE: Final = 64 * 1024 * 1024
"""The maximum number of bytes to read at a time for a length that may be wrong."""

ReadBody = Callable[[int, int], bytes]
"""A function that returns the requested number of bytes of a body, starting at a position."""


class ArrowMessage(NamedTuple):
    """A message: its kind (SCHEMA, DICTIONARY, BATCH; others are skipped), metadata and body."""

    kind: int
    version: int
    header: FlatTable
    metadata_size: int
    body_size: int
    read: ReadBody


class ArrowBlock(NamedTuple):
    """The place of a message in a file."""

    start: int
    metadata_size: int
    """The size of the metadata, including the length field before it."""
    body_size: int

    @property
    def end(self) -> int:
        """The position at which the message ends."""
        return self.start + self.metadata_size + self.body_size


def messages_of(stream: Any) -> Iterator[ArrowMessage]:
    """The messages of a stream, which must start with a schema. Raises pa.ArrowInvalid."""
    number = 0
    while start := bytes(stream.read(_LENGTH.size)):
        size = _length(start)
        if size == _CONTINUES:
            size = _length(_exactly(stream, _LENGTH.size))
        if not size:
            return
        metadata = _exactly(stream, size)
        made = _message(metadata, _no_body)
        body = _exactly(stream, made.body_size)
        if (made.kind == SCHEMA) != (number == 0):
            raise pa.ArrowInvalid("a stream must begin with its schema and contain no other")
        number += 1
        yield made._replace(read=partial(_slice, body))


class ArrowFooter:
    """The content of a file's footer: the columns, and the positions of dictionaries and batches. Raises
    pa.ArrowInvalid."""

    def __init__(self, file: Any) -> None:
        size = file.size()
        behind = _LENGTH.size + len(_MARK)
        ending = bytes(file.read_at(behind, size - behind)) if size >= 2 * behind else b""
        footer_size = _length(ending[: _LENGTH.size].ljust(_LENGTH.size))
        if not ending.endswith(_MARK) or footer_size > size - behind - len(_MARK):
            raise pa.ArrowInvalid("the footer is missing: the file was truncated, or is not an Arrow file")
        end = size - behind - footer_size
        footer = root(bytes(file.read_at(footer_size, end)))
        schema = footer.table(1)
        if schema is None:
            raise pa.ArrowInvalid("the footer has no schema")
        self.columns: tuple[ArrowColumn, ...] = columns_of(schema, footer.number(0, "h"), footer_size)
        self.dictionaries = [ArrowBlock(*block) for block in footer.structs(2, _BLOCK)]
        self.batches = [ArrowBlock(*block) for block in footer.structs(3, _BLOCK)]
        last = len(_MARK)
        for block in sorted((*self.dictionaries, *self.batches)):
            if block.start < last or min(block.metadata_size, block.body_size) < 0 or block.end > end:
                raise pa.ArrowInvalid(f"the footer refers to a part at byte {block.start}, which cannot be there")
            last = block.end


def message_at(file: Any, block: ArrowBlock, kind: int) -> ArrowMessage:
    """The message to which a block in a file's footer refers. Raises pa.ArrowInvalid if the message does not match the
    footer."""
    metadata = bytes(file.read_at(block.metadata_size, block.start))
    behind = _LENGTH.size if _length(metadata) != _CONTINUES else 2 * _LENGTH.size
    size = _length(metadata[behind - _LENGTH.size :])
    if size > len(metadata) - behind:
        raise pa.ArrowInvalid(f"the part at byte {block.start} claims to have {size} bytes of metadata")
    body = block.start + block.metadata_size
    made = _message(metadata[behind : behind + size], lambda at, size: bytes(file.read_at(size, body + at)))
    if made.kind != kind or made.body_size != block.body_size:
        raise pa.ArrowInvalid(f"the part at byte {block.start} differs from what the footer says")
    return made


def _message(metadata: bytes, read: ReadBody) -> ArrowMessage:
    table = root(metadata)
    header, body_size = table.table(2), table.number(3, "q")
    if header is None or body_size < 0:
        raise pa.ArrowInvalid("the metadata of a message lacks a header or the size of the body")
    return ArrowMessage(table.number(1, "B"), table.number(0, "h"), header, len(metadata), body_size, read)


def _no_body(at: int, size: int) -> bytes:
    return b""


def _slice(body: bytes, at: int, size: int) -> bytes:
    return body[at : at + size]


def _length(data: bytes) -> int:
    if len(data) < _LENGTH.size:
        raise pa.ArrowInvalid(_CUT)
    return int(_LENGTH.unpack_from(data)[0])


def _exactly(stream: Any, size: int) -> bytes:
    """Exactly the given number of bytes. A wrong length uses no more memory than there are bytes."""
    parts: list[bytes] = []
    while size:
        parts.append(bytes(stream.read(min(size, _PIECE))))
        if not parts[-1]:
            raise pa.ArrowInvalid(_CUT)
        size -= len(parts[-1])
    return parts[0] if len(parts) == 1 else b"".join(parts)


_CUT: Final = "the file ends in the middle of a message: it was truncated"
