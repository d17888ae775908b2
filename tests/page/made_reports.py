"""Reports for the tests of the page: of a captured topic, and of synthetic rows with hostile texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.sources import Counts
from kafka_records_tables import TABLES, read_table
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import (
    Evidence,
    NextStep,
    Number,
    Report,
    ReportFinding,
    ReportRequest,
    Rows,
)

AT_MS: Final = 1_790_000_000_000
DAY_MS: Final = 86_400_000

HOSTILE: Final = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    "<!-- <script>",
    "]]><img src=x onerror=window.hacked=3>",
    "\"'><svg onload=window.hacked=4>",
    "{{policy}} ${window.hacked=5} `",
    "javascript:window.hacked=6",
    "line\u2028separator\u2029paragraph",
    "\u202egnirts\u202c turned",
    "datum.amount + 1",
    "a+b&group=c%20#=?/\\",
    "null\x00byte",
    "'; rm -rf / #",
    "__proto__",
    "",
    " ",
)
"""Names that somebody may give a group, a topic or a client."""

LONG: Final = "long-" * 200_000
"""A million characters."""


def request_of(source: str = "/var/lib/kafka/data", retention_ms: int = 7 * DAY_MS) -> ReportRequest:
    return ReportRequest(
        source=source,
        source_arguments=(source,),
        made_timestamp_ms=AT_MS + 60_000,
        at_timestamp_ms=AT_MS,
        as_of=False,
        retention_ms=retention_ms,
        groups=None,
        topic_filter=(),
        version="0.1.0",
        engine="local",
    )


def report_of(
    tables: Mapping[str, pa.Table], findings: Iterable[ReportFinding] = (), numbers: Iterable[Number] = ()
) -> Report:
    return Report(request_of(), tuple(findings), tuple(numbers), tables, {"lag": "no log of this topic"}, (), Counts())


def table_of(name: str, columns: Mapping[str, list[Any]]) -> pa.Table:
    """Rows of a table; the columns that are not given are null."""
    count = len(next(iter(columns.values())))
    schema = TABLES[name].schema
    return pa.table({each.name: pa.array(columns.get(each.name, [None] * count), each.type) for each in schema}, schema)


def groups_of(names: list[str]) -> pa.Table:
    count = len(names)
    return table_of(
        "groups",
        {
            "group_id": sorted(names),
            "group_kind": ["consumer", "classic", "share"] * (count // 3) + ["simple"] * (count % 3),
            "state": ["Stable", "Empty"] * (count // 2) + ["Empty"] * (count % 2),
            "epoch": list(range(count)),
            "member_count": [index % 5 for index in range(count)],
            "log_partition": [index % 50 for index in range(count)],
            "log_offset": [2**40 - index for index in range(count)],
        },
    )


def captured(topics: Path) -> Report:
    """The captured topic of Kafka 4.3, with every table as `table` prints it."""
    source = str(topics / "kafka-4.3" / "segments")
    names = ("groups", "members", "assignments", "current_offsets", "expirations", "timeline", "activity", "checks")
    tables = {name: read_table(name, source, processes=1).table for name in names}
    numbers = (
        Number("groups", "groups", tables["groups"].num_rows, None, Rows("groups")),
        Number("empty", "empty groups", _count(tables["groups"], "Empty"), None, Rows("groups", ("state=Empty",))),
    )
    return report_of(tables, findings_about("order-fulfilment", "orders"), numbers)


def _count(groups: pa.Table, state: str) -> int:
    return int(pc.sum(pc.equal(groups.column("state"), state)).as_py())


def hostile() -> Report:
    """Every table that names groups, topics, members and clients has the names of `HOSTILE` and `LONG`."""
    names = sorted({*HOSTILE, LONG})
    offsets = table_of(
        "current_offsets",
        {
            "group_id": names,
            "topic": names,
            "partition": [0] * len(names),
            "offset": [2**63 - 1, *range(len(names) - 1)],
            "metadata": list(reversed(names)),
            "commit_timestamp_ms": [AT_MS - index * 1000 for index in range(len(names))],
        },
    )
    members = table_of(
        "members",
        {"group_id": names, "member_id": names, "client_id": names, "subscribed_topics": [names[:3]] * len(names)},
    )
    activity = table_of(
        "activity",
        {
            "group_id": names,
            "topic": names,
            "window_start_timestamp_ms": [AT_MS - index * 3_600_000 for index in range(len(names))],
            **{
                column: list(range(1, len(names) + 1))
                for column in ("commits", "expirations", "deletions", "completed_rebalances", "records")
            },
            "key_bytes": [100] * len(names),
            "value_bytes": [100] * len(names),
        },
    )
    tables = {"groups": groups_of(names), "current_offsets": offsets, "members": members, "activity": activity}
    findings = [finding for name in HOSTILE for finding in findings_about(name, name)]
    return report_of(tables, findings)


def findings_about(group: str, topic: str) -> tuple[ReportFinding, ...]:
    return (
        ReportFinding(
            kind="offsets_expiring",
            level=Level.CRITICAL,
            title="offsets of a group that is alive expire soon",
            problem=f"Offsets of {group} expire within two hours.",
            group_ids=(group,),
            topics=(topic,),
            partitions=(0, 1, 2, 5),
            since_timestamp_ms=AT_MS - 7_200_000,
            until_timestamp_ms=AT_MS + 7_200_000,
            evidence=(Evidence(f"commit of {group}", topic, 3, 1234, AT_MS - 7_200_000),),
            evidence_count=40,
            rows=(Rows("current_offsets", (f"group_id={group}",)),),
            next=(NextStep("See when each expires.", f"kafka-records table expirations /data --group '{group}'"),),
            measured={"expires_in_ms": 7_200_000, "note": group},
            thresholds={"expires_in_ms": 10_800_000},
        ),
        ReportFinding(
            kind="unneeded",
            level=Level.NOTE,
            title="a group that nobody needs",
            problem="It is empty.",
            group_ids=(group,),
            transactional_ids=(group,),
            confidence="low",
            why_not_sure=f"{group} may come back",
        ),
    )
