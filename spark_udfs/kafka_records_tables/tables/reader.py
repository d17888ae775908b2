"""What turns the raw rows of one log partition into the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import pyarrow as pa


class TableReader:
    """Takes the raw rows of one log partition, batch by batch in the order of the log, and gives rows of its table.

    Its class is called `Reader`, in the module `Table.code`. It is made with the context of the log partition; findings
    go there. What it needs of an engine its class says.
    """

    last_of_key: ClassVar[bool] = False
    """Whether only the last value and the last tombstone of each key, compared as bytes, decide about rows and
    findings: of the records outside of transactions where the table `needs_transactions` (a tombstone acts at once
    then), and otherwise of all. An engine may leave out the others before it calls the reader."""
    needs_all_groups: ClassVar[bool] = False
    """Whether the rows of a group depend on records of others: the reader sees all of them, and the rows of groups that
    were not asked about are left out in the end."""
    every_type: ClassVar[bool] = False
    """Whether records of other types than `Table.records`, known or not, are looked at too."""
    uses_topics: ClassVar[bool] = False
    """Whether rows depend on what a source knows of topics: engines ask it once for their names by ids, which are in
    records, and how many partitions they have."""
    tells_open: ClassVar[bool] = False
    """Whether rows show transactions that are open, so that an answer as of a moment before the end of one lacks what a
    cleaner has taken of it since."""
    form_of_kept: ClassVar[int | None] = None
    """Of a table that goes on by itself: `go_on` beside the reader makes bytes of what it keeps, and `still_open` rows
    of them. A number for the form of these bytes, for another form cannot be gone on with."""

    is_done = False
    """Whether it wants no more rows. It is asked to finish then."""

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """Add raw rows after those before; the rows of the table that are known by now."""
        raise NotImplementedError

    def finish(self) -> Iterable[pa.RecordBatch]:
        """The rows that are left, at the end of the log."""
        return ()
