"""An incident on a time axis: the drawing that the page shows next to its text, from rows of the report's tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.first_screen import needs_somebody

if TYPE_CHECKING:
    from kafka_records_tables.report.report_parts import Report, ReportFinding

_MOST_MARKS: Final = 300
"""The maximum number of marks in a lane. More could not be distinguished on a screen."""
_MOST_PARTITIONS: Final = 4
"""The maximum number of partitions whose offsets are drawn."""
_MOST_GROUPS: Final = 50
"""The maximum number of groups whose rows are looked up."""
_BEFORE: Final = 0.5
"""The length of the axis before the incident, as a multiple of the length of the incident."""
_LEAST_BEFORE_MS: Final = 60_000

_STILL: Final = 0.1
"""An offset with a single known commit is drawn if it has not moved for this share of the time span of the log."""

_EVENTS: Final = (
    ("member_joined", "members join"),
    ("member_left", "members leave"),
    ("rebalance_completed", "rebalances end"),
    ("emptied", "the group becomes empty"),
)
"""The events of the table `timeline` that have a lane, with the name of the lane."""


def incident_axes(report: Report) -> list[dict[str, Any] | None]:
    """The drawing for each finding, in order; None for notes and for findings without any rows that have times."""
    named = {group for each in report.findings if needs_somebody(each) for group in each.group_ids[:_MOST_GROUPS]}
    # Filter out the rows of other groups once, not once per finding.
    tables = {
        name: _of_groups(report.tables[name], tuple(named))
        for name in ("timeline", "regressions", "current_offsets", "lag")
        if name in report.tables
    }
    if "transactions" in report.tables:
        tables["transactions"] = report.tables["transactions"]
    commits = None if report.commits is None else _of_groups(report.commits, tuple(named))
    chosen = replace(report, tables=tables, commits=commits)
    return [_axis(chosen, each) if needs_somebody(each) else None for each in report.findings]


def _axis(report: Report, finding: ReportFinding) -> dict[str, Any] | None:
    """Lanes with events, and offsets next to the ends of logs.

    The axis ends at the time of the report. It begins where the log does, or some time before the incident if the log
    is much longer than that.
    """
    end = report.request.at_timestamp_ms
    moments = {name: times for name, times in _lanes(report, finding) if len(times)}
    since = finding.since_timestamp_ms
    offsets = _offsets(report, finding)
    first = report.counts.first_timestamp_ms
    known = [int(times.min()) for times in moments.values()] + [each["points"][0][0] for each in offsets]
    if not known or (since is None and first is None):
        return None
    begins = min(known) if first is None else first
    start = begins if since is None else max(begins, since - max(int((end - since) * _BEFORE), _LEAST_BEFORE_MS))
    lanes = [
        {"name": name, "count": len(inside), "times": _thinned(inside)}
        for name, times in moments.items()
        if len(inside := times[(times >= start) & (times <= end)])
    ]
    if end <= start or not (lanes or offsets):
        return None
    return {
        "start_ms": start,
        "end_ms": end,
        "since_ms": since,
        "is_cut": start > begins,
        "lanes": lanes,
        "offsets": offsets,
    }


def _lanes(report: Report, finding: ReportFinding) -> Iterator[tuple[str, Any]]:
    tables = report.tables
    groups = finding.group_ids[:_MOST_GROUPS]
    yield "evidence", np.array(sorted(_evidence_times(finding)), np.int64)
    if groups and "timeline" in tables:
        events = _of_groups(tables["timeline"], groups)
        for event, name in _EVENTS:
            yield name, _times(events.filter(pc.equal(events["event"], event)), "at_timestamp_ms")
    if groups and "regressions" in tables:
        yield "offsets fall", _times(_of_finding(tables["regressions"], finding), "commit_timestamp_ms")
    commits = _of_finding(report.commits, finding) if groups and report.commits is not None else None
    if commits is not None and commits.num_rows:
        yield "commits of new offsets", _times(commits, "valid_from_timestamp_ms")
    elif groups and "current_offsets" in tables:
        yield "last commits", _times(_of_finding(tables["current_offsets"], finding), "commit_timestamp_ms")
    if finding.transactional_ids and "transactions" in tables:
        transactions = tables["transactions"]
        own = transactions.filter(pc.is_in(transactions["transactional_id"], pa.array(finding.transactional_ids)))
        yield "transactions begin", _times(own, "start_timestamp_ms")
        yield "transactions change", _times(own, "last_update_timestamp_ms")


def _evidence_times(finding: ReportFinding) -> Iterator[int]:
    of_causes = [each for cause in finding.causes for each in (*cause.evidence_for, *cause.evidence_against)]
    seen = {
        (each.topic, each.partition, each.offset, at)
        for each in (*finding.evidence, *of_causes)
        if (at := each.timestamp_ms) is not None
    }
    for *_, timestamp_ms in seen:
        yield timestamp_ms


def _offsets(report: Report, finding: ReportFinding) -> list[dict[str, Any]]:
    """Offsets of groups over time, from rows with times: commits, falls, and the present ends of logs."""
    tables = report.tables
    points: dict[tuple[str, str, int], dict[int | None, int | None]] = defaultdict(dict)
    if not finding.group_ids:
        return []
    for row in [] if report.commits is None else _of_finding(report.commits, finding).to_pylist():
        points[row["group_id"], row["topic"], row["partition"]][row["valid_from_timestamp_ms"]] = row["offset"]
    for row in _rows(tables, "regressions", finding):
        of_place = points[row["group_id"], row["topic"], row["partition"]]
        of_place[row["from_commit_timestamp_ms"]] = row["from_offset"]
        of_place[row["commit_timestamp_ms"]] = row["to_offset"]
    for row in _rows(tables, "current_offsets", finding):
        points[row["group_id"], row["topic"], row["partition"]][row["commit_timestamp_ms"]] = row["offset"]
    ends = {
        (row["group_id"], row["topic"], row["partition"]): row["end_offset"] for row in _rows(tables, "lag", finding)
    }
    drawn: list[dict[str, Any]] = []
    now = report.request.at_timestamp_ms
    still_since = now - (now - (report.counts.first_timestamp_ms or now)) * _STILL
    for place, known in points.items():
        times = sorted(each for each, offset in known.items() if each is not None and offset is not None)
        end = ends.get(place)
        # A group that committed recently may lag slightly, which is normal.
        if times and (len(times) > 1 or (end is not None and end != known[times[0]] and times[0] <= still_since)):
            group, topic, partition = place
            drawn.append(
                {
                    "group": group,
                    "topic": topic,
                    "partition": partition,
                    "points": [[at, known[at]] for at in _thinned(np.asarray(times, np.int64))],
                    "end": end,
                    "ends": _ends_over_time(report, topic, partition),
                }
            )
    drawn.sort(key=lambda each: (-len(each["points"]), each["group"], each["topic"], each["partition"]))
    return drawn[:_MOST_PARTITIONS]


def _ends_over_time(report: Report, topic: str, partition: int) -> list[list[int]]:
    """Times, each with the offset at which a log ended then; empty if no rule has requested them."""
    if report.log_samples is None:
        return []
    rows = report.log_samples
    rows = rows.filter(pc.and_(pc.equal(rows["topic"], topic), pc.equal(rows["partition"], partition)))
    samples: list[dict[str, int]] = next((each for each in rows["samples"].to_pylist() if each), [])
    ends = {each["timestamp_ms"]: each["offset"] + 1 for each in samples}
    return [[at, ends[at]] for at in _thinned(np.asarray(sorted(ends), np.int64))]


def _rows(tables: Mapping[str, pa.Table], name: str, finding: ReportFinding) -> list[dict[str, Any]]:
    if name not in tables:
        return []
    rows: list[dict[str, Any]] = _of_finding(tables[name], finding).slice(0, _MOST_MARKS).to_pylist()
    return rows


def _of_finding(rows: pa.Table, finding: ReportFinding) -> pa.Table:
    """The rows about the groups, topics and partitions that a finding names."""
    found = _of_groups(rows, finding.group_ids[:_MOST_GROUPS])
    if finding.topics and not all(topic.startswith("__") for topic in finding.topics):
        found = found.filter(pc.is_in(found["topic"], pa.array(finding.topics)))
        if finding.partitions and len(finding.topics) == 1:
            found = found.filter(pc.is_in(found["partition"].cast(pa.int64()), pa.array(finding.partitions)))
    return found


def _of_groups(rows: pa.Table, groups: tuple[str, ...]) -> pa.Table:
    return rows.filter(pc.is_in(rows["group_id"], pa.array(groups, pa.string())))


def _times(rows: pa.Table, column: str) -> Any:
    return np.sort(np.asarray(rows[column].drop_null().cast(pa.int64()).to_numpy(), np.int64))


def _thinned(times: Any) -> list[int]:
    """The times, thinned out to as many as can be distinguished, including the first and the last."""
    if len(times) > _MOST_MARKS:
        times = times[np.linspace(0, len(times) - 1, _MOST_MARKS).astype(int)]
    found: list[int] = times.tolist()
    return found
