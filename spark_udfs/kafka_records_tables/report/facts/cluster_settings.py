"""Gets settings of topics and groups from the metadata log, so that rules do not have to assume them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kafka_records_tables.report.lost_files import metadata_is_cut
from kafka_records_tables.tables.cluster.cluster_facts import ClusterFacts

if TYPE_CHECKING:
    from kafka_records_tables.report.rule_context import RuleContext


def cluster_settings(context: RuleContext) -> ClusterFacts:
    """The settings in the metadata log, which is read when a rule first needs them; empty if the source has no metadata
    log."""
    return context.once(_read)


def lacking_settings(context: RuleContext) -> tuple[str, ...]:
    """The information that a verdict about settings lacks, as a sentence; empty if the source has the settings."""
    if metadata_is_cut(context.table("log_ends")):
        return ("later changes of configs are unknown (the end of __cluster_metadata is cut off)",)
    is_there = cluster_settings(context).configs or context.look("topics").num_rows
    return () if is_there else ("the configs of topics are unknown (there is no __cluster_metadata in the source)",)


def delivery_limits(context: RuleContext, groups: Sequence[str], otherwise: int) -> Any:
    """For each share group, the maximum number of deliveries of a record (`share.delivery.count.limit`), as a numpy
    array; `otherwise` if it is unknown."""
    facts = cluster_settings(context) if groups else None
    limits = {
        each: None if facts is None else facts.group_limit(each, "share.delivery.count.limit") for each in set(groups)
    }
    found = [otherwise if limits[each] is None else limits[each] for each in groups]
    return np.asarray(found, np.int64)


def _read(context: RuleContext) -> ClusterFacts:
    return ClusterFacts.of(context.look("configs").to_pylist())
