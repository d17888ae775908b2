"""The base class of objects that turn the raw rows of one log partition into the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import pyarrow as pa


class TableReader:
    """Receives the raw rows of one log partition, batch by batch in the order of the log, and returns rows of its
    table.

    The subclass is called `Reader`, in the module `Table.code`. It is created with the context of the log partition,
    which gets the findings. Its class attributes declare what it needs from an engine.
    """

    last_of_key: ClassVar[bool] = False
    """Whether rows and findings depend only on the last value and the last tombstone of each key, compared as bytes:
    among the records outside of transactions if the table `needs_transactions` (a tombstone then takes effect at once),
    otherwise among all records. An engine may leave out the others before it calls the reader."""
    needs_all_groups: ClassVar[bool] = False
    """Whether the rows of a group depend on records of other groups: the reader sees all of them, and the rows of
    groups that were not requested are left out at the end."""
    every_type: ClassVar[bool] = False
    """Whether records of types that are not in `Table.records`, known or not, are used too."""
    uses_topics: ClassVar[bool] = False
    """Whether rows depend on a source's facts about topics. Engines then request the names for ids and the numbers of
    partitions once."""
    tells_open: ClassVar[bool] = False
    """Whether rows show open transactions. If so, an answer as of a moment at which a transaction was open lacks
    records of the transaction that a cleaner has removed since."""
    form_of_kept: ClassVar[int | None] = None
    """For a table with its own state: the number of the format in which the state is kept as bytes, because a table
    cannot continue with another format. Next to the reader, `go_on` turns the state into bytes, and `still_open`
    returns rows from them."""

    is_done = False
    """Whether the reader needs no more rows, so that `finish` is called next."""

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """Add the raw rows that follow; returns the rows of the table that are known by now."""
        raise NotImplementedError

    def finish(self) -> Iterable[pa.RecordBatch]:
        """The remaining rows, at the end of the log."""
        return ()
