"""Asks a source for the unread records of many logs at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kafka_records_engine.sources.abilities import TellsFirstUnread, TellsUnread, has
from kafka_records_engine.sources.protocol import Context, Source

if TYPE_CHECKING:
    from kafka_records_engine.log.reading.unread import Unread, UnreadAsked


def unread_records(
    source: Source, context: Context, asked: Sequence[UnreadAsked], *, may_read: bool = False
) -> Iterator[tuple[UnreadAsked, Unread]]:
    """The answers of a source. They are empty if it cannot answer, or could answer only by reading batches although
    `may_read` is false. Findings go to the context."""
    if has(source, TellsUnread):
        yield from source.unread(asked, context)
    elif may_read and has(source, TellsFirstUnread):
        yield from source.first_unread(asked, context)
