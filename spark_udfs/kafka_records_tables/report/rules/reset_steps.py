"""Steps that move a group's offsets, for several rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kafka_records_tables.report.command_lines import option

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.group_facts import Place
    from kafka_records_tables.report.report_parts import NextStep
    from kafka_records_tables.report.rule_context import RuleContext

MOST_LINES: Final = 20
"""The maximum number of partitions to list in a step."""


def reset_from_file(
    context: RuleContext, group: str, what: str, offsets: Iterable[tuple[Place, int]], caution: str = ""
) -> NextStep:
    """The step of setting a group to the given offsets. `what` ends before "write into offsets.csv"; `caution` follows
    the instructions for executing the command."""
    lines = "; ".join(f"{topic},{number},{offset}" for (topic, number), offset in list(offsets)[:MOST_LINES])
    return context.ask_kafka(
        f"{what} write into offsets.csv, one a line: {lines} (--execute in place of --dry-run does it{caution})",
        "kafka-consumer-groups",
        "--reset-offsets",
        *option("--group", group),
        "--from-file",
        "offsets.csv",
        "--dry-run",
    )
