"""Every table over one log, compared with the bare reader of the same topic: a case of `answers.py`.

The log has records of every kind that the writer knows, transactions and tombstones. A table has a goal if its rows
depend only on the last record of each key; all other tables are only reported. All tables are also read over a tenth
and a hundredth of the records, with about as many keys. This shows whether time and memory grow with the records or
with the keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kafka_records_tables.tables import TABLES, Table, inputs_of
from kafka_records_tables.topics import METADATA
from tools.segments.plan import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC, Plan

MIX: Final = {
    "commits": 96,
    "tombstones": 2,
    "group_metadata": 0.4,
    "group_tombstones": 0.1,
    "consumer_groups": 0.2,
    "consumer_members": 0.2,
    "consumer_assignments": 0.3,
    "share_groups": 0.1,
    "share_members": 0.2,
    "streams_groups": 0.1,
    "streams_members": 0.2,
}
TRANSACTIONS: Final = 0.02
"""The share of batches of commits that are transactions."""

SLOWEST: Final = 3.0
"""The maximum time of a table whose rows depend only on the last record of each key, as a multiple of the time of
reading."""

MOST_OF_REPORT: Final = 4.0
"""The maximum time of all tables of a report, as a multiple of the time of reading their topics."""

_MORE: Final = {"expirations": {"at": 4_102_444_800_000}}
"""Additional options of a table: a clean-up at a time when everything has expired, so that there is a row for each
offset."""


@dataclass(frozen=True)
class Asked:
    """A table and the options with which it is read."""

    table: Table
    options: Mapping[str, int]

    @property
    def name(self) -> str:
        """The name of the table in the figures."""
        return " ".join((self.table.name, *(f"--{option}" for option in self.options)))

    @property
    def topic(self) -> str:
        """The largest topic that the table, or one of its inputs, reads."""
        return _largest(topics_of(self.table))

    @property
    def has_goal(self) -> bool:
        """Whether the rows of the table depend only on the last record of each key."""
        return self.table.helper == "latest" or self.table.reader.last_of_key


def every_table() -> list[Asked]:
    """All tables that are made from records of coordinators, and views of these. For the tables of the cluster see
    `metadata_log`."""
    found = [Asked(table, {}) for table in TABLES.values() if topics_of(table) and METADATA not in topics_of(table)]
    return [*found, *(Asked(TABLES[name], options) for name, options in _MORE.items())]


def topics_of(table: Table) -> frozenset[str]:
    """The topics whose records are read by a table or by its inputs."""
    own = {table.topic} if table.topic else set()
    return frozenset(own).union(*map(topics_of, inputs_of(table)))


def plans(records: int, keys: int, partitions: int) -> list[Plan]:
    """The logs to write. The smaller topics have a tenth of the records and about a tenth of the keys."""
    tenth, some = max(1, records // 10), max(1, keys // 10)
    return [
        Plan(partitions=partitions, records=records, keys=keys, mix=MIX, transactions=TRANSACTIONS),
        Plan(TRANSACTIONS_TOPIC, partitions, tenth, some),
        Plan(SHARE_STATE_TOPIC, partitions, tenth, some),
    ]


def _largest(topics: frozenset[str]) -> str:
    return next(topic for topic in (OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC) if topic in topics)


def sizes_of(records: int) -> list[int]:
    """A hundredth of the given number of records, a tenth of it, and all of it."""
    return sorted({max(1, records // part) for part in (100, 10, 1)})
