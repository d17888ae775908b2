"""Recognizes transactions that are left open on purpose: two-phase commits (KIP-939), which no coordinator ends by
itself."""

from __future__ import annotations

from typing import Final

NO_TIMEOUT_MS: Final = 2**31 - 1
"""The timeout in the record of a producer that takes part in a two-phase commit. `TransactionCoordinator` writes it for
InitProducerId with `Enable2Pc`, and `TransactionMetadata.isDistributedTwoPhaseCommitTxn` checks it. The transaction
stays open, prepared or not, until its application commits or aborts it."""


def has_timeout(timeout_ms: int | None) -> bool:
    """Whether a coordinator eventually aborts a transaction with this timeout; False if the timeout is unknown."""
    return timeout_ms is not None and timeout_ms != NO_TIMEOUT_MS
