"""Known bugs that stop some Kafka releases from loading a valid log. The bugs are Kafka issues. Each was checked in the
classes of the releases around its fix, from 4.0.0 to 4.4.0, if Maven has them. KAFKA-17306 (tombstones of unknown
groups, before 3.9) is left out: no release that has it uses this group coordinator by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class ReplayBug(NamedTuple):
    """A bug that stops coordinators of some releases at a record that later releases load."""

    issue: str
    method: str
    """The class and method of Kafka that throws IllegalStateException."""
    fixed_in: Mapping[tuple[int, int], int | None]
    """For each minor release that has the bug, the first patch release without it; None if no patch release fixes
    it."""
    advice: str
    """The first release that loads such a log."""
    why: str

    def is_in(self, release: str) -> bool:
        """Whether a release has the bug. A release with two numbers means its first patch release: 4.2 is 4.2.0."""
        major, minor, patch = (*map(int, release.split(".")), 0, 0)[:3]
        if (major, minor) not in self.fixed_in:
            return False
        fixed = self.fixed_in[major, minor]
        return fixed is None or patch < fixed


STREAMS_AFTER_COMMITS: Final = ReplayBug(
    issue="KAFKA-20254",
    method="GroupMetadataManager.getOrMaybeCreatePersistedStreamsGroup",
    fixed_in={(4, 1): None, (4, 2): 1},
    advice="4.2.1",
    why="the record is of a streams group, but earlier offsets have made a simple group of that name",
)
"""A bug with streams groups that used to be classic groups: it occurs if a cleaner has removed the tombstone of the
classic group but not its offsets."""

PARTITION_EPOCHS: Final = ReplayBug(
    issue="KAFKA-19862",
    method="ConsumerGroup.addPartitionEpochs and removePartitionEpochs",
    fixed_in={(4, 0): 2, (4, 1): 2},
    advice="4.1.2",
    why="the member gets or gives up a partition that another one has according to earlier records",
)
"""A bug with partition epochs: it occurs if a cleaner has removed the record in which a member gave up a partition that
later went to another member."""

TASK_PROCESSES: Final = ReplayBug(
    issue="KAFKA-19862",
    method="StreamsGroup.addTaskProcessId and removeTaskProcessIds",
    fixed_in={(4, 1): 2},
    advice="4.1.2",
    why="according to earlier records, another process has a task that the member gets, or its own has none "
    "that it gives up",
)
"""The same bug for tasks of a streams group. It also occurs if the record of a member's tasks precedes the record of
its process."""
