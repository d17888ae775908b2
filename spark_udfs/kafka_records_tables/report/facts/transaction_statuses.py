"""The numbers of transaction states in records of __transaction_state (`TransactionState`)."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.transactions import STATES

EMPTY: Final = STATES.index("Empty")
ONGOING: Final = STATES.index("Ongoing")
PREPARE_COMMIT: Final = STATES.index("PrepareCommit")
PREPARE_ABORT: Final = STATES.index("PrepareAbort")
COMPLETE_ABORT: Final = STATES.index("CompleteAbort")
DEAD: Final = STATES.index("Dead")
PREPARE_EPOCH_FENCE: Final = STATES.index("PrepareEpochFence")
