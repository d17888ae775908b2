"""The rules of the report, a module for each subject. Declarations load no library; functions load pyarrow."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.report.rule import ReportRule
from kafka_records_tables.report.rules import (
    archived_records,
    broken_logs,
    crash_loops,
    cut_logs,
    damaged_logs,
    expired_restarts,
    expiring_offsets,
    fencing_producers,
    flooding_commits,
    foreign_offsets,
    held_partitions,
    held_transactions,
    left_transactions,
    lost_offsets,
    many_groups,
    many_transactional_ids,
    moved_groups,
    offset_falls,
    outrun_readers,
    rebalancing,
    remade_topics,
    share_deliveries,
    shared_group_ids,
    shared_instance_ids,
    slow_groups,
    still_groups,
    uneven_assignments,
    unneeded_offsets,
)

RULES: Final[tuple[ReportRule, ...]] = (
    *moved_groups.RULES,
    *foreign_offsets.RULES,
    *expired_restarts.RULES,
    *outrun_readers.RULES,
    *archived_records.RULES,
    *crash_loops.RULES,
    *held_partitions.RULES,
    *left_transactions.RULES,
    *slow_groups.RULES,
    *still_groups.RULES,
    *shared_instance_ids.RULES,
    *fencing_producers.RULES,
    *shared_group_ids.RULES,
    *many_transactional_ids.RULES,
    *many_groups.RULES,
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
