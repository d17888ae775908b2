"""Whether each group makes progress in each partition: ok, idle, falling behind, stalled, stopped or rewound."""

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
    about="whether each group moves on: ok, idle, falling behind, stalled, stopped, rewound, and since when",
    helper="view",
    inputs=("commit_progress", "assigned_partitions", "log_ends"),
    records=(),
    reads=(),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic", "string", "topic whose records it consumes"),
        Column("partition", "int32", "partition of that topic"),
        Column(
            "state",
            "string",
            "ok, idle, falling_behind, stalled, stopped or rewound; stalled or stopped if requests cannot tell which; "
            "null if it is unknown (reason says why)",
            STATES,
        ),
        *timestamps("since", "when the state began; null if it is unknown"),
        Column(
            "reason",
            "string",
            "why the state is unknown: no_history, moved, no_log, topic_recreated, end_unknown, beyond_end or "
            "time_unknown; why the group is idle though records are left: left or open_transaction; otherwise null",
            REASONS,
        ),
        Column("offset", "int64", "committed offset: that of the next record to consume"),
        Column("end_offset", "int64", "end of the log; null if the source does not tell"),
        *timestamps("unread", "by when the first record was there that is left to read; null for none, or unknown"),
        Column(
            "wait_ms",
            "int64",
            "how long the group has had a record to read and the offset has not changed; null if none is left",
        ),
        Column("longest_wait_ms", "int64", "the longest such wait that ended, in the log; null if it shows none"),
        Column("commit_rate", "float64", "offsets a second that the group moved on, over the window; null if unknown"),
        Column("produce_rate", "float64", "offsets a second that the log got in that time; null if unknown"),
        Column(
            "caught_up_in_ms",
            "int64",
            "how long it takes to the end at these rates; null if it is there, never gets there, or a rate is null",
        ),
        Column("window_ms", "int64", "the window that was used for the state, a quarter of the history at most"),
        Column("fell_from", "int64", "of a rewound offset, the highest one before; otherwise null"),
        *timestamps("changed", "when the offset was committed first, with no other one since"),
        *timestamps("commit", "when it was committed last"),
        Column(
            "known_by",
            "string",
            "how it is known what is left to read. log: by the files of the topic. end: by its end alone. commits: by "
            "commits of other groups",
            KNOWN_BY,
        ),
        *timestamps("moment", "the moment that the state is of"),
        Column("log_partition", "int32", "partition of `__consumer_offsets` that the group is in"),
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
        Option("at", "moment", "the moment to judge by; default: now for brokers, else the time of the last record"),
    ),
    rules="""\
One row per committed offset. No watching is needed: the history of commits is in the log, and the time of each record
is in the files of its topic.

A *wait* is how long a group has had a record to read without changing its offset: from the time of the first record
that is left, or from the last change if that was later. A wait is too long if it is longer than the window, and longer
than twice the longest one that ended before. So a topic with one record a day, a job that runs once an hour and a
consumer that commits rarely raise no alarm. If the whole history is shorter than four windows, a quarter of it counts
as the window. Markers of transactions are not records to read, and neither are records of aborted transactions: an
offset right before them has nothing left. The state is the first that applies:

- `rewound`: the offset was committed lower than before within the window, and has not come back to where it was. An
  offset that was deleted in between, or that is of another topic of the same name, is not rewound, nor is one that came
  back from beyond the end of the log.
- `stalled`: the wait is too long, and there are commits within the window, all of the same offset. A consumer that
  cannot process a record and a paused one look the same.
- `stopped`: the wait is too long, and there is no commit within the window.
- `falling_behind`: the offset moves, but more records are left over at the end of each part of the window than at the
  end of the part before, at least four times in a row up to now, and at least a tenth of what was written meanwhile. A
  part is about a quarter of the window: 131 seconds of ten minutes.
- `idle`: nothing is left to read, and the offset has not changed within the window.
- `ok`: everything else.

`since` is the beginning of the wait if the state is `stalled`; if `stopped`, the last commit, or the first record left
if that came later; if `rewound`, the last commit that was lower than the one before; if `falling_behind`, the end of
the first of these parts, of which at most twelve are remembered; and if `ok` or `idle`, the first commit of the offset.

A group is `idle` with a `reason` if there are records that it cannot or does not want to read. `open_transaction`: its
offset is where an open transaction begins, and `read_committed` ends there. `left`: its members have partitions, but
none of this topic.

The state is null if nothing can be said, and `reason` says why:

- `no_history`: the offset was committed after the moment that was asked for with `at`, and of before only a part is
  known.
- `moved`: the group has committed in another partition of `__consumer_offsets` since, as after a change of their
  number. Its coordinator does not know this offset.
- `no_log`: the source has no log of the partition.
- `topic_recreated`: the last commit names another topic that had this name. One that names no id is of the topic that
  there is, as in `lag`.
- `end_unknown`: the end of the log is unknown.
- `beyond_end`: the offset is negative, or above the end.
- `time_unknown`: records are left, but it is unknown since when.

What is known of logs over time depends on the source, as `known_by` says:

- `log`: the files of the topic. The heads of all batches in at least the last 128 KiB of each log are read, which tell
  the time of a record to the batch; further back `.timeindex` has some times. Records are not read. All states are
  found.
- `end`: the end of the log as it is now, of running brokers. When a record was written is known only if other groups
  have consumed it, and then `since` may be later than it was. So `falling_behind` is never found, and a group that
  stands still while no other group moves on is `time_unknown`. Ask again later, or read the files of the brokers.
- `commits`: no log of the topic, as in a copy of `__consumer_offsets` alone. What other groups have consumed was there.
  Without such a group the state is null, unless the offset was rewound.

With `--source requests` (`LiveRequests`) there is no history. Coordinators are asked twice, `interval` apart; that is
`window_ms`, and `window` has no effect. A group whose offset changed is `ok`, or `rewound` if it is lower the second
time. A group with nothing left to read is `idle`. If records were left the first time and the offset has not changed,
the state is `stalled or stopped`, because coordinators do not say whether the same offset was committed again. Choose
an interval longer than the usual pause between commits. If only one offset is left, which may be the marker of a
transaction, the state is null (`time_unknown`). `falling_behind` is never found. Both rates are those of the interval,
and all times are null.

Times of commits are the brokers'. Times of records may be the producers': a producer whose clock is wrong makes waits
shorter or longer. The moment is now for running brokers. For stored logs it is the time of the last record or commit
in the source, and not now, so that a copy from last week shows what was wrong last week; `at` sets another moment.

`commit_rate` is null if the history of the offset is shorter than the window, and `produce_rate` if no file tells where
the log ended that long ago: brokers do not. Both count offsets, markers of transactions too.

What the logs cannot know: a cleaner takes away older commits, and with them how long a group has waited before; a
finding says from which offset on nothing is missing. A job that runs for the first time has never waited: it is
`stopped` when records have waited for longer than the window. A group that has never committed has no row. Groups that
filter records out, or read late on purpose, look like any others.
""",
)


def joined(parts: Mapping[str, Any], context: Context) -> Iterator[Any]:
    """The rows; `TABLE.rules` says which."""
    from kafka_records_tables.tables.moving import polls, states

    told = parts["commit_progress"]
    is_polled = told["polled_timestamp_ms"].null_count < told.num_rows
    rows = polls.rows if is_polled else states.rows
    yield from rows(TABLE, parts, context)
