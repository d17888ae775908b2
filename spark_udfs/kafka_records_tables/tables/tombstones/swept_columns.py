"""Columns of facts about bulk deletions, with a row for each group that a write removed or whose offsets it removed."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.tables.tombstones.swept_states import NOTHING, SHOWN

NO_AGE: Final = np.iinfo(np.int64).max


class Shown(NamedTuple):
    """Evidence for or against something, with one entry per element."""

    word: INT64
    """The index of the word in SHOWN; NOTHING if there is no evidence."""
    log_offset: INT64

    @property
    def there(self) -> FLAGS:
        """Whether there is evidence."""
        flags: FLAGS = self.word != NOTHING
        return flags

    def otherwise(self, other: Shown) -> Shown:
        """This evidence or, if there is none, the other."""
        is_there = self.there
        return Shown(*(np.where(is_there, own, its) for own, its in zip(self, other, strict=True)))

    def where(self, flags: FLAGS) -> Shown:
        """The evidence for the flagged elements only."""
        return Shown(np.where(flags, self.word, NOTHING), self.log_offset)

    def taken(self, at: INT64) -> Shown:
        """The evidence at some indexes; none for NOTHING."""
        return Shown(*(taken(each, at) for each in self))


def shown(word: str, log_offset: INT64) -> Shown:
    """The evidence with this word at some log offsets; none for NOTHING."""
    return Shown(np.where(log_offset == NOTHING, NOTHING, SHOWN.index(word)), log_offset)


class Swept(NamedTuple):
    """Groups that a write removed or whose offsets it removed. Each array has one element per group and write."""

    case: INT64
    """The number of the write."""
    begin: INT64
    """The offset where the write begins."""
    now_ms: INT64
    """When it was written; NO_TIME if unknown."""
    is_log_whole: INT64
    """Whether offsets without a record in the log do not exist."""
    is_known: INT64
    """Whether the group existed, and is known."""
    told_ms: INT64
    """The time of the last record about the group."""
    has_since: INT64
    since_ms: INT64
    """The time from which the retention of all offsets of the group is counted, if there is a common one."""
    has_base: INT64
    """Whether the start of the retention is certain."""
    may_expire: INT64
    """Whether the start is certain and the group's state allows its offsets to expire."""
    is_empty: INT64
    """Whether the group certainly had no member."""
    are_topics_known: INT64
    """Whether it is known which topics the group subscribes to."""
    is_ended: INT64
    """Whether the write contains the group's last tombstone."""
    end: INT64
    """The offset of the last tombstone of the whole group; NOTHING if the write has none."""
    may_end_unseen: INT64
    """Whether the group may have been deleted with these offsets without its own tombstone. At first, this assumes that
    these are all of its offsets."""
    has_offsets: INT64
    """Whether offsets were removed."""
    waits_at: INT64
    """The log offset of a pending offset of the group; NOTHING if there is none."""
    never_word: INT64
    never_at: INT64
    """The evidence that no clean-up removed this group."""
    not_yet_word: INT64
    not_yet_at: INT64
    """The evidence that no clean-up removed this group if the given retention is right."""
    refused_word: INT64
    refused_at: INT64
    """The evidence that a coordinator would not delete these offsets for an administrator."""
    has_topics: INT64
    are_deleted: INT64
    are_near: INT64
    have_stayed_always: INT64
    have_stayed: INT64
    """Whether a metadata log was compared, and which facts of `OfTopics` it shows."""
    due_at: INT64
    """The commit of an offset that was due to expire."""
    is_due: INT64
    """Whether a clean-up would have removed this group at this time, and not long before."""
    longest_ms: INT64
    """The longest retention with which a clean-up would have removed this group; NO_AGE if records do not show it."""

    @property
    def never(self) -> Shown:
        """The columns as evidence."""
        return Shown(self.never_word, self.never_at)

    @property
    def not_yet(self) -> Shown:
        """The columns as evidence."""
        return Shown(self.not_yet_word, self.not_yet_at)

    @property
    def refused(self) -> Shown:
        """The columns as evidence."""
        return Shown(self.refused_word, self.refused_at)


FOUND_LATER: Final = (NOTHING, 0, NO_AGE)
"""The last three columns of `Swept` until they are known."""

STAYS, STAYS_IF_DUE, STAYS_IN_TOPIC = range(3)


class Watched(NamedTuple):
    """Offsets that may remain after a write. Each array has one element per offset."""

    row: INT64
    """The index in `Swept`."""
    kind: INT64
    """STAYS: a clean-up would also have removed this offset of the group. STAYS_IF_DUE: it would have, if the given
    retention is right. STAYS_IN_TOPIC: an offset of any group for a topic of the removed offsets."""
    number: INT64
    log_offset: INT64
    """The log offset of its commit."""
    is_gone: INT64
    """Whether it was deleted in the rows that are forgotten."""

    def of_rows(self, count: int) -> Watched:
        """The offsets for the first elements of `Swept`."""
        which = self.row < count
        return Watched(*(each[which] for each in self))


def first(of: INT64, which: FLAGS, count: int) -> INT64:
    """For each of `count` numbers, the index of the first flagged element of `of` with that number, or NOTHING."""
    found = np.full(count, NOTHING)
    at = np.flatnonzero(which)[::-1]
    # numpy keeps the last assignment to an index.
    found[of[at]] = at
    return found


def taken(values: INT64, at: INT64) -> INT64:
    """The values at some indexes; NOTHING for NOTHING."""
    found: INT64 = np.append(values, NOTHING)[at]
    return found
