"""The base class of objects that turn the raw rows of one log partition into the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import pyarrow as pa


class TableReader:
    """Receives the raw rows of one log partition, batch by batch in log order, and returns rows of its table.

    The subclass is named `Reader`, in the module `Table.code`. It is created with the context of the log partition,
    which receives the findings. Its class attributes declare what it needs from an engine.
    """

    last_of_key: ClassVar[bool] = False
    """Whether rows and findings depend only on the last value and the last tombstone of each key, compared as bytes. If
    the table `needs_transactions`, this applies to records outside of transactions (a tombstone takes effect at once),
    otherwise to all records. An engine may drop the other records before it calls the reader."""
    needs_all_groups: ClassVar[bool] = False
    """Whether the rows of a group depend on records of other groups. The reader then sees all records, and rows of
    groups that were not requested are dropped at the end."""
    every_type: ClassVar[bool] = False
    """Whether the reader also uses records of types that are not in `Table.records`, known or not."""
    uses_topics: ClassVar[bool] = False
    """Whether rows depend on a source's facts about topics. Engines then request topic names and partition counts
    once."""
    tells_open: ClassVar[bool] = False
    """Whether rows show open transactions. If so, an answer as of a time at which a transaction was open lacks the
    transaction's records that a cleaner has removed since."""
    form_of_kept: ClassVar[int | None] = None
    """For a table with its own state: the format number of the state as bytes, because a table cannot continue with
    another format. Next to the reader, `go_on` returns the state as bytes, and `still_open` returns rows from them."""

    is_done = False
    """Whether the reader needs no more rows, so that `finish` is called next."""

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """Add the raw rows that follow. Returns the rows of the table that are known by now."""
        raise NotImplementedError

    def finish(self) -> Iterable[pa.RecordBatch]:
        """The remaining rows, at the end of the log."""
        return ()
