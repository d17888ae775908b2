"""The topics of coordinators and of controllers."""

from __future__ import annotations

from typing import Final

OFFSETS: Final = "__consumer_offsets"
SHARE_STATE: Final = "__share_group_state"
TRANSACTIONS: Final = "__transaction_state"
METADATA: Final = "__cluster_metadata"
