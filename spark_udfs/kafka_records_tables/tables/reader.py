"""What turns the raw rows of one log partition into the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class TableReader:
    """Takes the raw rows of one log partition, batch by batch in the order of the log, and gives rows of its table.

    Its class is called `Reader`, in the module `Table.code`. It is made with the context of the log partition; findings
    go there.
    """

    is_done = False
    """Whether it wants no more rows. It is asked to finish then."""

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """Add raw rows after those before; the rows of the table that are known by now."""
        raise NotImplementedError

    def finish(self) -> Iterable[pa.RecordBatch]:
        """The rows that are left, at the end of the log."""
        return ()
