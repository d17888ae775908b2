"""The quotas that limit how fast a group's clients may read, according to the metadata log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.quota_changes import TABLE
from kafka_records_tables.report.lost_files import metadata_is_cut
from kafka_records_tables.report.rule_context import shown
from kafka_records_tables.tables.log_sizes import TABLE as LOG_SIZES
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_records_tables.report.rule_context import RuleContext

BYTES: Final = "consumer_byte_rate"
"""Bytes per second that a broker sends to consumers."""
TIME: Final = "request_percentage"
"""The share of a thread's time that a broker spends on a client's requests."""
_DEFAULT: Final = ""


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit that applies, or may apply, to a client."""

    client_id: str
    """A client id to which it applies."""
    user: str | None
    """The user of the quota; empty for the default of all users, None if the quota names only a client id."""
    of_client_id: str | None
    """The client id of the quota; empty for the default of all client ids, None if the quota names only a user."""
    name: str
    value: float
    set_ms: int | None
    """When it was set; None if this is known only from a checkpoint."""
    log_offset: int
    before: float | None
    """The previous limit of the same quota; None if it was not set."""

    @property
    def is_of_one_user(self) -> bool:
        """Whether it applies only to a certain user. Records of groups do not contain the user of a client."""
        return bool(self.user)

    @property
    def limit(self) -> str:
        """The limit with its name."""
        return f"{self.name}={self.value:.10g}"

    @property
    def whose(self) -> str:
        """The clients to which it applies, as words in a sentence."""
        names = []
        if self.user is not None:
            names.append("all users without a quota of their own" if self.user == _DEFAULT else f"user {self.user}")
        if self.of_client_id is not None:
            is_default = self.of_client_id == _DEFAULT
            names.append(
                "each client id without a quota of its own" if is_default else f"client id {shown(self.of_client_id)}"
            )
        return " with ".join(names)

    @property
    def words(self) -> tuple[str, ...]:
        """The `kafka-configs` options that name it."""
        found: list[str] = []
        for kind, name in (("users", self.user), ("clients", self.of_client_id)):
            if name is not None:
                found += ["--entity-type", kind]
                found += ["--entity-default"] if name == _DEFAULT else option("--entity-name", name)
        return tuple(found)


def lacking_quotas(context: RuleContext) -> tuple[str, ...]:
    """The information that a verdict about quotas lacks; empty if the source has the whole metadata log."""
    ends = context.table("log_ends")
    is_there = context.is_stored and kept(ends, equal(ends, "topic", METADATA)).num_rows
    return (
        ()
        if is_there and not metadata_is_cut(ends)
        else ("the quotas of its clients (kafka-configs --describe --entity-type clients)",)
    )


def quotas_of(context: RuleContext, client_ids: Iterable[str | None], at_ms: int) -> list[Quota]:
    """The quotas that limit how fast clients with these ids read. Those that certainly apply come first. The quotas of
    a single user may apply too, because the user of a client is unknown."""
    rows = context.look(TABLE).to_pylist()
    if not rows:
        return []
    in_force = _in_force(rows, at_ms)
    found: dict[tuple[Any, ...], Quota] = {}
    for client_id in dict.fromkeys(each for each in client_ids if each is not None):
        for name in (BYTES, TIME):
            for key, (row, before) in _of_client(in_force, client_id, name).items():
                set_ms, offset = row["at_timestamp_ms"], row["log_offset"]
                quota = Quota(client_id, key[0], key[1], name, row["value"], set_ms, offset, before)
                found.setdefault(key, quota)
    return sorted(found.values(), key=lambda each: (each.is_of_one_user, each.name))


Set = tuple[Mapping[str, Any], float | None]


def _in_force(rows: Sequence[Mapping[str, Any]], at_ms: int) -> dict[tuple[Any, ...], Set]:
    """The quotas at a given time, by user, client id and name: the last change of each, and its previous limit."""
    found: dict[tuple[Any, ...], Set] = {}
    for row in rows:
        if row["ip"] is None and (row["at_timestamp_ms"] or 0) <= at_ms:
            key = row["user"], row["client_id"], row["name"]
            former = found.pop(key, None)
            if row["value"] is not None:
                found[key] = row, former[0]["value"] if former else None
    return found


def _of_client(in_force: Mapping[tuple[Any, ...], Set], client_id: str, name: str) -> dict[tuple[Any, ...], Set]:
    """The quotas that may apply to a client id. A broker uses the first one that is set: for the user with the client
    id, for the user, for all users, and finally for the client id (`DefaultQuotaCallback`)."""
    usual = (
        (_DEFAULT, client_id, name),
        (_DEFAULT, _DEFAULT, name),
        (_DEFAULT, None, name),
        (None, client_id, name),
        (None, _DEFAULT, name),
    )
    first = next((key for key in usual if key in in_force), None)
    found = {} if first is None else {first: in_force[first]}
    own = {key: each for key, each in in_force.items() if key[0] and key[2] == name}
    return found | {key: each for key, each in own.items() if key[1] in (client_id, _DEFAULT, None)}


def bytes_per_record(context: RuleContext, topic: str) -> float | None:
    """The mean number of bytes per offset in the log of a topic; None if the source has no files of the topic."""
    size = records = 0
    for row in context.look(LOG_SIZES, topic=topic).to_pylist():
        if row["bytes"] and row["log_start_offset"] is not None and row["log_end_offset"] is not None:
            first = min((each["offset"] for each in row["sizes"] or ()), default=row["log_start_offset"])
            size, records = size + row["bytes"], records + row["log_end_offset"] - first
    return size / records if records > 0 else None
