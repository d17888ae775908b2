"""Control records that a quorum of controllers writes to the metadata log about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_records.schemas.control import (
    KRAFT_VERSION_RECORD,
    LEADER_CHANGE_MESSAGE,
    SNAPSHOT_FOOTER_RECORD,
    SNAPSHOT_HEADER_RECORD,
    VOTERS_RECORD,
)
from kafka_records_runtime.messages.json_form import to_json
from kafka_records_runtime.wire import walker

if TYPE_CHECKING:
    from kafka_records_runtime.schema import MessageSchema

VERSION: Final = 0
"""The version in which Kafka writes and reads all of them (`ControlRecordUtils`, `MemoryRecordsBuilder`). Their field
`version` only affects how its tools print them."""

SCHEMAS: Final[dict[str, MessageSchema]] = {
    "leader_change": LEADER_CHANGE_MESSAGE,
    "snapshot_header": SNAPSHOT_HEADER_RECORD,
    "snapshot_footer": SNAPSHOT_FOOTER_RECORD,
    "kraft_version": KRAFT_VERSION_RECORD,
    "kraft_voters": VOTERS_RECORD,
}
"""The schemas of the values, by the name of the control record in raw rows."""


def shown(control: str, value: bytes | None) -> dict[str, Any]:
    """The value of a control record as Kafka's dump tool prints it. Like that tool, it ignores trailing bytes. Raises
    DecodeError."""
    schema = SCHEMAS[control]
    message, _ = walker.decode(schema, value or b"", VERSION, allow_trailing=True)
    assert schema.versions is not None
    lowest, highest = schema.versions
    return to_json(schema, message, min(max(message["version"], lowest), highest), lossy=True)
