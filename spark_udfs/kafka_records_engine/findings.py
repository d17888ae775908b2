"""Findings: problems found while a result was computed from the bytes of a log. Each is printed as one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from kafka_records_runtime.text.printable import printable

if TYPE_CHECKING:
    from kafka_records_runtime.errors import KafkaRecordsError

Severity = Literal["damage", "note"]

UNDECIDED_TRANSACTION: Final = "UndecidedTransaction"
"""The `reason` of a finding about a readable record whose transaction has an unknown outcome."""

UNKNOWN_STATE: Final = "UnknownState"
"""The `reason` of a finding about a readable record that contains a state unknown to Kafka."""

UNKNOWN_RECORDS: Final = "UnknownRecords"
"""The `reason` of damage if no record of a log has a known type. Most likely, the keys were read with a different
encoding than they were written with."""

DAMAGED_LOG: Final = "DamagedLog"
"""The `reason` of damage in the bytes of a log, found before the bytes were decoded into records."""

UNREAD_LOG: Final = "UnreadLog"
"""The `reason` of a note about an intact log whose files also contain bytes that are not records."""

UNREACHABLE_LOG: Final = "UnreachableLog"
"""The `reason` of damage if some offsets of a log were not delivered in time. Another try may succeed."""

FORBIDDEN_LOG: Final = "ForbiddenLog"
"""The `reason` of damage if the log itself is intact, but the user is not allowed to read one of its files."""

MISSING_RIGHT: Final = "MissingRight"
"""The `reason` of damage to a result that lacks data hidden by an ACL. The text names the operation, resource type and
resource name that are needed."""

ABSENT_TOPIC: Final = "AbsentTopic"
"""The `reason` of a note about a topic that does not exist, because no client has needed it yet."""

READ_MOMENTS: Final = "ReadMoments"
"""The `reason` of a note that says when brokers returned the values that a result compares."""

ABSENT_LOG: Final = "AbsentLog"
"""The `reason` of damage to a result whose source lacks logs of a coordinators' topic."""

DELETED_MEANWHILE: Final = "DeletedMeanwhile"
"""The `reason` of a note about offsets that were deleted after a log was found and before they were read."""

INCOMPLETE_HISTORY: Final = "IncompleteHistory"
"""The `reason` of a note that says from which offset or time the history in a table is complete."""

OTHER_RETENTION: Final = "OtherRetention"
"""The `reason` of a note that brokers kept offsets for a shorter time than the given retention."""

UNJUDGED_RULES: Final = "UnjudgedRules"
"""The `reason` of a note about requested rules that were never compared with the behavior of a broker."""

LATER_RECORDS: Final = "LaterRecords"
"""The `reason` of a note that a table shows a time before the last records of its log."""

OUTSIDE_LOG: Final = "OutsideLog"
"""The `reason` of a note that the requested time is before the first record of a topic, or long after the last."""

JUDGED_AS_OF: Final = "JudgedAsOf"
"""The `reason` of a note about a copied log: timeouts are judged as of the newest time in the log. A report names this
time in its first line instead."""

UNMADE_CHECKS: Final = "UnmadeChecks"
"""The `reason` of a note about a check that was not possible. The note says what the check needs."""

ABSENT_GROUP: Final = "AbsentGroup"
"""The `reason` of a note that a group requested by name has no rows."""

OTHER_PARTITIONS: Final = "OtherPartitions"
"""The `reason` of a note that a topic has more partitions than the given number, or that some groups are in several
partitions."""

NOT_WRITTEN: Final = "NotWritten"
"""The `reason` of damage to an output file whose format cannot hold one of the rows."""

SPARK_CHECKPOINT: Final = "SparkCheckpoint"
"""The `reason` of a note about offsets missing from the checkpoint of a Spark query."""

OF_LOGS: Final = (DAMAGED_LOG, UNREAD_LOG, UNREACHABLE_LOG, FORBIDDEN_LOG, MISSING_RIGHT, DELETED_MEANWHILE)
"""The reasons that concern logs rather than the content of a record."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that users must know to judge a result.

    `str()` is one line: `<file>: byte <position>, batch at offset <offset>: <what> (<consequence>)`, or the log
    partition instead of the file if there is none.

    `damage` means that bytes are not what a broker wrote, or that something is or may be missing from the result. A
    command that reports damage ends with status 1. A `note` is about something that healthy logs have too: zeros of a
    pre-allocated file, an append at the very end that a crash cut short, files that a cleaner had only partly swapped.
    Fields that do not apply are None.
    """

    severity: Severity
    reason: str
    """An identifier for programs: the name of an error class of `kafka_records_runtime.errors`, or one of the constants
    of this module."""
    what: str
    consequence: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    """The offset of the record in the log."""
    file: str | None = None
    position: int | None = None
    """The byte in the file where the damaged batch, or the bytes in its place, start; None if the finding is about the
    whole file."""
    base_offset: int | None = None
    """The offset at the start of the entry (the base offset of a magic 2 batch); None if the batch is unknown."""
    record_type: int | None = None
    version: int | None = None
    path: str | None = None
    """The path of the field that could not be decoded, outermost first: `members[2].client_host`."""
    byte_offset: int | None = None
    """The byte at which decoding failed, counted from the byte after the int16 at the start of a key or value."""
    raw_key: bytes | None = field(default=None, repr=False)
    raw_value: bytes | None = field(default=None, repr=False)
    records: int = 0
    """The number of records that could not be read because of this problem, as far as known."""
    bytes: int = 0
    """The number of bytes of the file that were not read because of this problem: the whole batch if no record of it
    was read, and all bytes of compressed records if only some of them could be decompressed."""
    complete_from: int | None = None
    """Only for INCOMPLETE_HISTORY: the history is complete from this offset of the log on. None if the finding names a
    time instead."""

    def __str__(self) -> str:
        return f"{self.place}: {self.what} ({self.consequence})"

    @property
    def place(self) -> str:
        """The place as text: the file or log, with the byte, batch or record."""
        place = printable(self.file or self._log())
        if self.position is not None:
            place += f": byte {self.position}"
            if self.base_offset is not None:
                place += f", batch at offset {self.base_offset}"
        elif self.base_offset is not None:
            place += f": batch at offset {self.base_offset}"
        return place if self.offset is None else f"{place}: record at offset {self.offset}"

    def _log(self) -> str:
        if self.topic is None:
            return "the log"
        return self.topic if self.partition is None else f"{self.topic}-{self.partition}"

    @property
    def is_about_file(self) -> bool:
        """Whether the finding is about a whole file rather than a batch or record in it."""
        return self.file is not None and self.position is None and self.offset is None and self.base_offset is None

    @property
    def order(self) -> tuple[str, int, int, str, int]:
        """A sort key: the place in the logs. Findings about a whole log or file come first."""
        return (
            self.topic or "",
            -1 if self.partition is None else self.partition,
            -1 if self.offset is None and self.base_offset is None else (self.offset or self.base_offset or 0),
            self.file or "",
            -1 if self.position is None else self.position,
        )


def members_of(finding: Finding) -> dict[str, Any]:
    """The fields of a finding as JSON documents contain them, by name. `complete_from` is left out, because documents
    describe it in a sentence."""
    return {each.name: getattr(finding, each.name) for each in fields(finding) if each.name != "complete_from"}


OnFinding = Callable[[Finding], None]


def in_file(
    file: str,
    position: int | None,
    base_offset: int | None,
    what: str,
    consequence: str,
    severity: Severity = "damage",
    records: int = 0,
    bytes: int = 0,
) -> Finding:
    """A finding about one segment file; the source adds topic and partition."""
    return Finding(
        severity=severity,
        reason=DAMAGED_LOG if severity == "damage" else UNREAD_LOG,
        what=what,
        consequence=consequence,
        file=file,
        position=position,
        base_offset=base_offset,
        records=records,
        bytes=bytes,
    )


def sorted_findings(findings: Iterable[Finding]) -> list[Finding]:
    """The findings sorted by their place in the logs; findings about the same place keep their order."""
    return sorted(findings, key=lambda finding: finding.order)


def merged_findings(readings: Iterable[Iterable[Finding]]) -> list[Finding]:
    """Combine the findings of several readings of the same logs.

    A finding that several readings share counts once. Equal findings of the same reading are all kept, because they are
    about different records: a damaged batch may repeat offsets."""
    merged: Counter[Finding] = Counter()
    for findings in readings:
        merged |= Counter(findings)
    return [*merged.elements()]


def said_of(error: KafkaRecordsError) -> str:
    """The text of an error about a key or value. It also says where the byte is counted from, because a finding also
    contains a byte of the file."""
    place = f" at byte {getattr(error, 'offset', None)}:"
    behind = "type" if getattr(error, "message_name", "").endswith("Key") else "version"
    return str(error).replace(place, f"{place[:-1]} after its {behind}:", 1)


def reason_of(error: KafkaRecordsError) -> str:
    """The `reason` of a finding about a record that this error made undecodable."""
    return type(error).__name__
