"""Tracks which process runs each task of a streams group, as Kafka 4.1.0 and 4.1.1 do when they load a log. In these
releases `StreamsGroup.addTaskProcessId`, `removeTaskProcessIds` and the corresponding methods for sets throw at a
record that does not fit the earlier ones, which stops the coordinator (KAFKA-19862). Later releases accept the
record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.coordinator.groups.group_model import LEFT

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.groups.group_model import Member
    from kafka_records_tables.coordinator.records.named_records import Picked

_ACTIVE: Final = "active_tasks"
_LISTS: Final = (_ACTIVE, "standby_tasks", "warmup_tasks")
_REVOKED: Final = "_pending_revocation"

PICKED: Final[Picked] = {
    "StreamsGroupMemberMetadata": ("process_id",),
    "StreamsGroupCurrentMemberAssignment": tuple(name + suffix for suffix in ("", _REVOKED) for name in _LISTS),
}
"""The fields that this module needs, by record."""

_Task = tuple[str, str, int]
"""The list that contains the task (assigned, or to be given up), its subtopology, and its number."""


class _StopsError(Exception):
    """These releases stop loading at this record."""


class TaskProcesses:
    """The processes of the tasks of one streams group."""

    def __init__(self) -> None:
        self._processes: dict[tuple[str, str], dict[int, set[str | None]]] = {}
        """The processes, by list of tasks and subtopology, then by task number. As in Kafka, the set of a standby or
        warm-up task stays when it becomes empty."""
        self._is_stopped = False

    def stops(self, before: Member | None, process: str | None, value: Any) -> bool:
        """Replace the tasks of a member with those in `value`, a current assignment or None, run by `process`. Returns
        whether a coordinator stops at this record. Nothing is tracked after such a record."""
        if self._is_stopped:
            return False
        try:
            held = assignment_of(before)
            if held is not None:
                self._remove(process_of(before), held)
            if value is not None and process is not None:
                self._add(process, value)
        except _StopsError:
            self._is_stopped = True
        return self._is_stopped

    def _remove(self, process: str | None, value: Any) -> None:
        for tasks, subtopology, number in _tasks(value):
            known = self._processes.get((tasks, subtopology))
            if known is None:
                raise _StopsError
            if tasks != _ACTIVE:
                if process not in known.get(number, ()):
                    raise _StopsError
                known[number].remove(process)
            else:
                if known.pop(number, {None}) != {process}:
                    raise _StopsError
                if not known:
                    del self._processes[tasks, subtopology]

    def _add(self, process: str, value: Any) -> None:
        for tasks, subtopology, number in _tasks(value):
            known = self._processes.setdefault((tasks, subtopology), {}).setdefault(number, set())
            if tasks == _ACTIVE and known:
                raise _StopsError
            known.add(process)


def process_of(member: Member | None) -> str | None:
    """The process of a member; None if no record has named it yet."""
    if member is None or member.metadata is None:
        return None
    process: str = member.metadata.value.process_id
    return process


def assignment_of(member: Member | None) -> Any:
    """The current assignment of a member; None if there is none."""
    return None if member is None or member.epoch == LEFT or member.current is None else member.current.value


def _tasks(value: Any) -> Iterator[_Task]:
    """The assigned tasks, then the tasks that the member has to give up."""
    for suffix in ("", _REVOKED):
        for tasks in _LISTS:
            for each in getattr(value, tasks + suffix):
                for number in dict.fromkeys(each["partitions"]):
                    yield tasks, each["subtopology_id"], number
