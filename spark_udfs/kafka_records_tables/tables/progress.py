"""The progress of each group in each partition: ok, idle, falling behind, stalled, stopped or rewound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.commit_progress import INTERVAL, WINDOW
from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Option, Table, timestamps
from kafka_records_tables.tables.words.progress_words import KNOWN_BY, REASONS, STATES

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

TABLE: Final = Table(
    name="progress",
    topic=EVERY_TOPIC,
    about="whether groups keep up, fall behind, stall, stop or go backwards, and since when",
    helper="view",
    inputs=("commit_progress", "assigned_partitions", "log_ends"),
    records=(),
    reads=(),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic", "string", "name of the topic"),
        Column("partition", "int32", "partition of the topic"),
        Column(
            "state",
            "string",
            "ok, idle, falling_behind, stalled, stopped, rewound, or `stalled or stopped`; null if unknown (reason "
            "says why)",
            STATES,
        ),
        *timestamps("since", "when the state began; null if unknown"),
        Column(
            "reason",
            "string",
            "why the state is unknown, or why an idle group leaves records unread; null in all other rows",
            REASONS,
        ),
        Column("offset", "int64", "offset of the next record to consume"),
        Column("end_offset", "int64", "end of the log; null if unknown"),
        *timestamps(
            "unread",
            "latest possible time of the first unread record; null if there is none, or if unknown",
        ),
        Column(
            "wait_ms",
            "int64",
            "milliseconds since the group has had a record to read and has not changed its offset; null if no record "
            "is left",
        ),
        Column(
            "longest_wait_ms", "int64", "longest earlier wait in the log, in milliseconds; null if the log shows none"
        ),
        Column(
            "commit_rate", "float64", "offsets per second by which the group advanced, over the window; null if unknown"
        ),
        Column(
            "produce_rate",
            "float64",
            "offsets per second that were written to the log, over the window; null if unknown",
        ),
        Column(
            "caught_up_in_ms",
            "int64",
            "milliseconds until the group reaches the end at these rates; null if it is there or would never get "
            "there",
        ),
        Column("window_ms", "int64", "window from which the state was computed"),
        Column("fell_from", "int64", "the highest offset before the offset went backwards; null if it did not"),
        *timestamps("changed", "when the offset was first committed; no other offset was committed since"),
        *timestamps("commit", "when the offset was last committed"),
        Column(
            "known_by",
            "string",
            "what shows which records are left to read: log, end (only the end of the log) or commits (of other "
            "groups)",
            KNOWN_BY,
        ),
        *timestamps("moment", "moment at which the state is judged"),
        Column("log_partition", "int32", "partition of `__consumer_offsets` that holds the group"),
    ),
    sort=("group_id", "topic", "partition", "log_partition"),
    group="group_id",
    module=__name__,
    follows_clock=True,
    essential=("group_id", "topic", "partition", "state", "since_timestamp", "reason"),
    details=(
        "log_partition",
        "window_ms",
        "commit_rate",
        "produce_rate",
        "caught_up_in_ms",
        "known_by",
        "moment_timestamp",
        "commit_timestamp",
        "changed_timestamp",
        "fell_from",
        "longest_wait_ms",
        "end_offset",
        "unread_timestamp",
    ),
    options=(
        WINDOW,
        INTERVAL,
        Option(
            "at", "moment", "the moment to judge by; default: now for brokers, otherwise the time of the last record"
        ),
    ),
    rules="""\
One row per committed offset, from the history of commits in the log.

A *wait* is how long a group has had a record to read without changing its offset. A wait is too long if it is longer
than the window and than twice the longest earlier wait: a rare record, an hourly job and a consumer that commits
rarely raise no alarm. The state is the first that applies:

- `rewound`: a lower offset was committed within the window, and the offset has not returned to where it was. `since`
  is the last commit that was lower than the previous one.
- `stalled`: the wait is too long, and the commits within the window, at least one, all have the same offset. `since`
  is the beginning of the wait.
- `stopped`: the wait is too long, and there is no commit within the window. `since` is the last commit, or the first
  record left if that came later.
- `falling_behind`: the offset moves, but at the end of each quarter of the window more records are left than before,
  at least four times in a row, and at least a tenth of what was written in that time. `since` is the end of the first
  of these quarters, at most twelve ago.
- `idle`: nothing is left to read, and the offset has not changed within the window. With a `reason`, the group does
  not read what is left: an `open_transaction` begins at its offset; `left`: its members have no partition of this
  topic.
- `ok`: everything else. `since` of both is the first commit of the offset.

The state is null if it is unknown, and `reason` says why:

- `no_history`: the offset was committed after the moment of `at`.
- `moved`: the group has since committed in another partition of `__consumer_offsets`.
- `no_log`, `end_unknown`: the source has no log of the partition, or not its end.
- `topic_recreated`: the last commit has the id of an earlier topic of this name.
- `beyond_end`: the offset is negative, or above the end.
- `time_unknown`: records are left, but it is unknown how long they have been there.

What is known about logs over time depends on the source; `known_by` names it:

- `log`: the files of the topic. All states are found.
- `end`: the present end of the log, from running brokers. `falling_behind` is never found, and a group that does not
  move is `time_unknown` if no other group moves. Ask again later, or read the files of the brokers.
- `commits`: no log of the topic. Only what other groups have consumed is known to exist.

With `--source requests` there is no history. Coordinators are asked twice, with `interval` between. If an offset has
not changed although there is more to read, its state is `stalled or stopped`: choose an interval longer than the usual
pause between commits. If only one offset is left, which may be a transaction marker, the state is null. All times are
null.

Times of records may be the producers': a wrong clock makes waits shorter or longer. `commit_rate` is null if the
history of the offset is shorter than the window, and `produce_rate` if no file shows where the log ended that long
ago.

What the logs do not show: commits that a cleaner removed, and with them earlier waits; a finding says from which
offset on nothing is missing. A job that runs for the first time is `stopped` when records have waited for longer than
the window. A group that has never committed has no row.
""",
)


def joined(parts: Mapping[str, Any], context: Context) -> Iterator[Any]:
    """The rows described in `TABLE.rules`."""
    from kafka_records_tables.tables.moving import polls, states

    told = parts["commit_progress"]
    is_polled = told["polled_timestamp_ms"].null_count < told.num_rows
    rows = polls.rows if is_polled else states.rows
    yield from rows(TABLE, parts, context)
