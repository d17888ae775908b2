"""The base class of what turns the raw rows of one log partition into the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import pyarrow as pa


class TableReader:
    """Receives the raw rows of one log partition, batch by batch in the order of the log, and returns rows of its
    table.

    The subclass is called `Reader`, in the module `Table.code`. It is created with the context of the log partition,
    which gets the findings. Its class attributes say what it needs from an engine.
    """

    last_of_key: ClassVar[bool] = False
    """Whether only the last value and the last tombstone of each key, compared as bytes, decide about rows and
    findings: among the records outside of transactions if the table `needs_transactions` (a tombstone acts at once
    then), otherwise among all records. An engine may leave out the others before it calls the reader."""
    needs_all_groups: ClassVar[bool] = False
    """Whether the rows of a group depend on records of other groups: the reader sees all of them, and the rows of
    groups that were not requested are left out at the end."""
    every_type: ClassVar[bool] = False
    """Whether records of types that are not in `Table.records`, known or not, are used too."""
    uses_topics: ClassVar[bool] = False
    """Whether rows depend on what a source knows of topics: engines request once the names of the ids in records, and
    the numbers of partitions."""
    tells_open: ClassVar[bool] = False
    """Whether rows show open transactions, so that an answer as of a moment before the end of one lacks the records of
    it that a cleaner has removed since."""
    form_of_kept: ClassVar[int | None] = None
    """For a table with a state of its own: next to the reader, `go_on` turns the state into bytes, and `still_open`
    returns rows from them. A number for the format of these bytes, because a table cannot continue with another
    format."""

    is_done = False
    """Whether it needs no more rows. Then `finish` is called."""

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """Add the raw rows that follow; returns the rows of the table that are known by now."""
        raise NotImplementedError

    def finish(self) -> Iterable[pa.RecordBatch]:
        """The remaining rows, at the end of the log."""
        return ()
