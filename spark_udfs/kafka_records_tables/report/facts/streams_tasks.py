"""The partitions that tasks of streams groups read. Records of such a group assign tasks, not partitions, to
members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_records_tables.report.rule_context import RuleContext

_ACTIVE: Final = "active "
"""Changes of an assignment name tasks as `active <subtopology>`; standby tasks do not read the sources."""

Sources = dict[str, list[str]]
"""The topics that each subtopology of a group reads."""


def sources_of_group(context: RuleContext, group: str) -> Sources:
    """The source topics of a streams group by subtopology; empty for other groups, and if no member has tasks now."""
    return context.once(_sources).get(group, {})


def with_topics(changes: Mapping[str, Any], sources: Sources) -> Mapping[str, Any]:
    """A change of an assignment by topic, if it concerns active tasks with known source topics. A task reads the
    partitions with its number."""
    if not sources:
        return changes
    found: dict[str, Any] = {}
    for what, numbers in changes.items():
        for topic in _topics(what, sources):
            found[topic] = [*found.get(topic, ()), *numbers]
    return found


def _topics(what: str, sources: Sources) -> Iterable[str]:
    return sources.get(what.removeprefix(_ACTIVE), ()) if what.startswith(_ACTIVE) else ()


def _sources(context: RuleContext) -> dict[str, Sources]:
    rows = context.table("assignments")
    rows = kept(rows, pc.is_valid(rows["subtopology_id"]), pc.is_valid(rows["source_topics"]))
    found: dict[str, Sources] = {}
    columns = (rows[name].to_pylist() for name in ("group_id", "subtopology_id", "source_topics"))
    for group, subtopology, topics in zip(*columns, strict=True):
        found.setdefault(group, {})[subtopology] = topics
    return found
