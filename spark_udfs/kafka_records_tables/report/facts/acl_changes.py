"""When entries of access control lists (ACLs) were added and removed: a table that only the report uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.facts.metadata_changes import ChangeReader, ChangeReplay, times_of
from kafka_records_tables.tables.cluster.metadata_records import MetadataRecords, events
from kafka_records_tables.tables.declaration import REPLAYED, Column, Table
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
    from kafka_records_tables.report.rule_context import RuleContext

TOPIC, GROUP = "topic", "group"
_TYPES: Final = {2: TOPIC, 3: GROUP, 4: "cluster", 5: "transactional_id", 6: "delegation_token", 7: "user"}
"""`ResourceType`."""
ALL, READ, WRITE, DESCRIBE = "ALL", "READ", "WRITE", "DESCRIBE"
_OPERATIONS: Final = (
    *("UNKNOWN", "ANY", ALL, READ, WRITE, "CREATE", "DELETE", "ALTER", DESCRIBE, "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
)
"""`AclOperation`, by code."""
_LITERAL, _PREFIXED = 3, 4
"""`PatternType`."""
_DENIES: Final = 2
"""`AclPermissionType`."""
_EVERY: Final = "*"
_ALL_USERS: Final = "User:*"

_ADDED, _REMOVED = "AccessControlEntryRecord", "RemoveAccessControlEntryRecord"

TABLE: Final = Table(
    name="acl_changes",
    topic=METADATA,
    about="when entries of access control lists were added and removed",
    helper="history",
    records=(_ADDED, _REMOVED),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("is_added", "bool", "whether the entry was added; otherwise it was removed"),
        Column("resource_type", "string", "type of the resource"),
        Column("resource_name", "string", "name of the resource, or a prefix of names; * is every resource"),
        Column("is_prefix", "bool", "whether the name is a prefix of names"),
        Column("principal", "string", "principal that the entry is about, such as User:ann"),
        Column("host", "string", "host that it is about; * is every host"),
        Column("operation", "string", "operation that it is about"),
        Column("is_denied", "bool", "whether it denies the operation; otherwise it allows it"),
        Column("at_timestamp_ms", "int64", "time of the change; null if only a checkpoint shows it"),
        Column("log_offset", "int64", "offset of the record in the metadata log"),
    ),
    sort=("log_offset",),
    group=None,
    module=__name__,
    rules=REPLAYED,
)


class AclReplay(ChangeReplay):
    """Collects ACL changes in log order."""

    def __init__(self, context: Context) -> None:
        super().__init__(MetadataRecords(context, (_ADDED, _REMOVED)))
        self._entries: dict[str, dict[str, Any]] = {}

    def _add(self, decoded: DecodedRecords, is_checkpoint: bool) -> None:
        times = times_of(decoded, is_checkpoint)
        for at, name, value in events(decoded, self._records.numbers):
            if name == _ADDED:
                entry = self._entries[value["id"]] = _entry(value)
            else:
                removed = self._entries.pop(value["id"], None)
                if removed is None:
                    continue
                entry = removed
            place = {"at_timestamp_ms": times[at], "log_offset": int(decoded.offsets[at])}
            self.rows.append({"is_added": name == _ADDED} | entry | place)


def _entry(value: Mapping[str, Any]) -> dict[str, Any]:
    operation = value["operation"]
    return {
        "resource_type": _TYPES.get(value["resource_type"], str(value["resource_type"])),
        "resource_name": value["resource_name"],
        "is_prefix": value["pattern_type"] == _PREFIXED,
        "principal": value["principal"],
        "host": value["host"],
        "operation": _OPERATIONS[operation] if 0 <= operation < len(_OPERATIONS) else str(operation),
        "is_denied": value["permission_type"] == _DENIES,
    }


class Reader(ChangeReader):
    table = TABLE

    def __init__(self, context: Context) -> None:
        super().__init__(AclReplay(context))


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of an access control list."""

    resource_type: str
    resource_name: str
    is_prefix: bool
    principal: str
    host: str
    operation: str
    is_denied: bool

    def matches(self, resource_type: str, name: str) -> bool:
        """Whether it applies to a resource (`StandardAuthorizerData`)."""
        if self.resource_type != resource_type:
            return False
        is_named = name.startswith(self.resource_name) if self.is_prefix else self.resource_name in (name, _EVERY)
        return is_named

    def allows(self, operation: str) -> bool:
        """Whether it allows an operation."""
        return not self.is_denied and self.operation in (operation, ALL)

    @property
    def is_of_all(self) -> bool:
        """Whether it applies to every user on every host."""
        return self.principal == _ALL_USERS and self.host == _EVERY

    @property
    def words(self) -> str:
        """The entry as words in a sentence."""
        host = "" if self.host == _EVERY else f" from {self.host}"
        return f"{'DENY' if self.is_denied else 'ALLOW'} {self.operation} for {self.principal}{host}"


@dataclass(frozen=True, slots=True)
class Restriction:
    """ACL changes at one time that certainly or possibly took rights away."""

    resource_type: str
    resource_name: str
    is_prefix: bool
    at_ms: int
    log_offset: int
    """The offset of the first of these records in the metadata log."""
    entries: tuple[Entry, ...]
    """The entries that were added or removed."""
    how: str
    """Why they take rights away, as a sentence without its end."""
    is_first: bool
    """Whether the resource had no entries before."""

    def matches(self, name: str) -> bool:
        """Whether they apply to a resource with this name."""
        return self.entries[0].matches(self.resource_type, name)

    def takes(self, operation: str) -> bool:
        """Whether they may take away the right to an operation. Once a resource has an entry, every operation needs
        one."""
        if self.is_first:
            return not any(each.allows(operation) and each.is_of_all for each in self.entries)
        return any(
            each.operation in (operation, ALL) or (each.is_denied and each.operation == DESCRIBE)
            for each in self.entries
        )


def restrictions(context: RuleContext) -> list[Restriction]:
    """The changes that took away rights to topics and groups, in the order of the metadata log."""
    there: list[Entry] = []
    batches: dict[tuple[Any, ...], list[tuple[bool, Entry, int]]] = {}
    found = []
    for row in context.look(TABLE).to_pylist():
        entry = Entry(*(row[name] for name in Entry.__slots__))
        if row["at_timestamp_ms"] is None:
            (there.append if row["is_added"] else there.remove)(entry)
            continue
        key = row["at_timestamp_ms"], entry.resource_type, entry.resource_name, entry.is_prefix
        batches.setdefault(key, []).append((row["is_added"], entry, row["log_offset"]))
    for (at_ms, kind, name, is_prefix), changes in batches.items():
        before = list(there)
        for is_added, entry, _ in changes:
            if is_added:
                there.append(entry)
            elif entry in there:
                there.remove(entry)
        chosen = _taking(before, there, changes, kind, name)
        if chosen is not None and kind in (TOPIC, GROUP):
            how, is_first, entries = chosen
            found.append(Restriction(kind, name, is_prefix, at_ms, changes[0][2], entries, how, is_first))
    return found


def _taking(
    before: list[Entry], after: list[Entry], changes: list[tuple[bool, Entry, int]], kind: str, name: str
) -> tuple[str, bool, tuple[Entry, ...]] | None:
    """How changes take rights away, whether they are the resource's first, and which entries do so; None if they take
    none away."""
    added = tuple(entry for is_added, entry, _ in changes if is_added)
    removed = tuple(
        entry
        for is_added, entry, _ in changes
        if not is_added
        and not entry.is_denied
        and not any(
            each.matches(kind, name)
            and each.allows(entry.operation)
            and (each.is_of_all or each.principal == entry.principal)
            for each in after
        )
    )
    denied = tuple(each for each in added if each.is_denied)
    if denied:
        return "they deny it", False, denied
    if removed:
        return "what allowed it was removed", False, removed
    if added and not any(each.matches(kind, name) for each in before):
        return (
            "there were no ACLs before, and allow.everyone.if.no.acl.found may have allowed everything; now only what "
            "ACLs allow is allowed",
            True,
            added,
        )
    return None
