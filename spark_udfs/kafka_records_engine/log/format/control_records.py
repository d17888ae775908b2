"""Reads control records: the end of a transaction, or a message of the controller quorum."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final, Literal

from kafka_records_engine.log.format.batches import BrokenRecordsError

__all__ = ["QUORUM_CONTROLS", "ControlMarker", "marker_of_key", "read_marker"]

_MARKER_KEY: Final = Struct(">hh")
_MARKER_VALUE: Final = Struct(">hi")

QUORUM_CONTROLS: Final = {
    2: "leader_change",
    3: "snapshot_header",
    4: "snapshot_footer",
    5: "kraft_version",
    6: "kraft_voters",
}
"""The types of control records of the metadata log and its checkpoints (`ControlRecordType`)."""


@dataclass(frozen=True, slots=True)
class ControlMarker:
    """The content of a control record: its type and, at the end of a transaction, the coordinator's epoch."""

    type: int
    coordinator_epoch: int | None = None

    @property
    def control(self) -> Literal["commit", "abort"] | None:
        """How the transaction ended; None for the other control types, which occur only in the metadata log."""
        return "abort" if self.type == 0 else "commit" if self.type == 1 else None

    @property
    def of_quorum(self) -> str | None:
        """The name of a control record about the controller quorum itself; None for all others."""
        return QUORUM_CONTROLS.get(self.type)


def read_marker(key: bytes | None, value: bytes | None) -> ControlMarker:
    """The content of the record of a control batch (`ControlRecordType`, `EndTransactionMarker`; KIP-98).

    Later versions of key and value are read like version 0. Raises BrokenRecordsError.
    """
    marker = marker_of_key(key)
    if marker.control is None:
        return marker
    if value is None or len(value) < _MARKER_VALUE.size:
        raise BrokenRecordsError(f"the value of a transaction marker needs 6 bytes, but has {len(value or b'')}")
    version, epoch = _MARKER_VALUE.unpack_from(value)
    if version < 0:
        raise BrokenRecordsError(f"the transaction marker has the negative version {version}")
    return ControlMarker(marker.type, epoch)


def marker_of_key(key: bytes | None) -> ControlMarker:
    """The type in the key of a control record. Raises BrokenRecordsError if the key is not that of a control record."""
    if key is None or len(key) < _MARKER_KEY.size:
        raise BrokenRecordsError(f"the key of a control record needs 4 bytes, but has {len(key or b'')}")
    version, kind = _MARKER_KEY.unpack_from(key)
    if version < 0:
        raise BrokenRecordsError(f"the key of a control record has the negative version {version}")
    return ControlMarker(kind)
