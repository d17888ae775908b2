"""The rules of the report, a module for each subject. Declarations load no library; functions load pyarrow."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.report.rule import ReportRule
from kafka_records_tables.report.rules import (
    broken_logs,
    cut_logs,
    damaged_logs,
    expiring_offsets,
    flooding_commits,
    held_transactions,
    lost_offsets,
    offset_falls,
    rebalancing,
    remade_topics,
    share_deliveries,
    uneven_assignments,
    unneeded_offsets,
)

RULES: Final[tuple[ReportRule, ...]] = (
    *expiring_offsets.RULES,
    *lost_offsets.RULES,
    *remade_topics.RULES,
    *held_transactions.RULES,
    *offset_falls.RULES,
    *rebalancing.RULES,
    *uneven_assignments.RULES,
    *share_deliveries.RULES,
    *flooding_commits.RULES,
    *broken_logs.RULES,
    *damaged_logs.RULES,
    *cut_logs.RULES,
    *unneeded_offsets.RULES,
)
"""All rules, in the order in which the page about them has them."""
