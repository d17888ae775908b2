"""Reads logs from several brokers at the same time in this process, with a thread per broker. If a broker does not
answer, the others are still read, so the total time is that of the slowest broker."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeVar

from kafka_records_engine.sources.abilities import HasLeader, has
from kafka_records_engine.sources.protocol import LogPartition
from kafka_records_engine.sources.waiting import MOST_THREADS, Stopped, start_threads, stop_on

T = TypeVar("T")
R = TypeVar("R")

_QUEUED: Final = 16
"""The maximum number of queued items. If the caller is slow, the readers wait."""
_MOST_AHEAD: Final = 1024
_MOST_BYTES_AHEAD: Final = 16 * 1024 * 1024
"""A broker's thread may be ahead of the caller by at most 16 actions and 16 MiB, or by one larger action."""
_SECONDS: Final = 1.0
"""How many seconds the caller waits for a stopped thread, which may be connecting."""


class Act(Protocol):
    """Passes an action to the caller of `read_in_order`; `size` is the approximate number of bytes that the action
    keeps in memory."""

    def __call__(self, action: Callable[[], object], size: int = 0) -> None: ...


def leader_of(log: LogPartition) -> Hashable:
    """The broker that leads a log partition; None if the source has no brokers."""
    return log.leader if has(log, HasLeader) else None


def read_by_broker(
    tasks: Sequence[T], log_of: Callable[[T], LogPartition], read: Callable[[T], Iterator[R]]
) -> Iterator[R]:
    """The results of `read` for the given tasks, in task order per broker. The results of different brokers are
    interleaved as they arrive.

    Raises the errors of `read`.
    """
    groups = _by_leader(tasks, log_of)
    if len(groups) < 2:
        for task in tasks:
            yield from read(task)
        return
    yield from _Readers(groups, read, _SECONDS).items()


def do_by_broker(tasks: Sequence[T], log_of: Callable[[T], LogPartition], do: Callable[[T], object]) -> None:
    """Call `do` for each of the given tasks: in task order per broker, and for several brokers at the same time.

    Raises the errors of `do`. All threads have ended when this function returns or raises an error.
    """

    def read(task: T) -> Iterator[None]:
        do(task)
        yield from ()

    groups = _by_leader(tasks, log_of)
    if len(groups) < 2:
        for task in tasks:
            do(task)
        return
    for _ in _Readers(groups, read, None).items():
        pass


def read_in_order(tasks: Sequence[T], log_of: Callable[[T], LogPartition], read: Callable[[T, Act], object]) -> None:
    """Call `read` for each given task, for several brokers at the same time. `read` passes actions to its second
    argument. They run in this thread: all actions of the first task, then all of the second task, and so on.

    Errors of `read` and of actions are raised in the same order.
    """
    lanes: dict[Hashable, int] = {}
    numbers = [lanes.setdefault(leader_of(log_of(task)), len(lanes)) % MOST_THREADS for task in tasks]
    if len(lanes) < 2:
        for task in tasks:
            read(task, at_once)
        return
    _OrderedReaders(tasks, numbers, read).run()


def _by_leader(tasks: Sequence[T], log_of: Callable[[T], LogPartition]) -> list[list[T]]:
    groups: dict[Hashable, list[T]] = {}
    for task in tasks:
        groups.setdefault(leader_of(log_of(task)), []).append(task)
    return list(groups.values())


def at_once(action: Callable[[], object], size: int = 0) -> None:
    """An `Act` that calls the action immediately."""
    action()


class _Readers:
    def __init__(
        self, groups: Sequence[Sequence[Any]], read: Callable[[Any], Iterator[Any]], join_seconds: float | None
    ) -> None:
        self._left = deque(groups)
        self._read = read
        self._join_seconds = join_seconds
        self._items: queue.Queue[tuple[str, Any]] = queue.Queue(_QUEUED)
        self._stop = threading.Event()

    def items(self) -> Iterator[Any]:
        busy = min(len(self._left), MOST_THREADS)
        threads = start_threads(self._run, busy)
        try:
            while busy:
                kind, content = self._items.get()
                if kind == "item":
                    yield content
                elif kind == "error":
                    raise content
                else:
                    busy -= 1
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(self._join_seconds)

    def _run(self) -> None:
        try:
            with stop_on(self._stop):
                while not self._stop.is_set():
                    try:
                        tasks = self._left.popleft()
                    except IndexError:
                        break
                    for task in tasks:
                        for item in self._read(task):
                            self._put("item", item)
            self._put("idle", None)
        except Stopped:
            return
        except BaseException as error:
            try:
                self._put("error", error)
            except Stopped:
                return

    def _put(self, kind: str, content: Any) -> None:
        while True:
            if self._stop.is_set():
                raise Stopped
            try:
                self._items.put((kind, content), timeout=0.1)
                return
            except queue.Full:
                continue


class _OrderedReaders:
    """One thread per lane. A lane has the tasks of one or several brokers.

    The caller takes actions from the lanes task by task. A thread can be ahead of the caller by as much as its lane can
    hold.
    """

    def __init__(self, tasks: Sequence[Any], numbers: Sequence[int], read: Callable[[Any, Act], object]) -> None:
        """`numbers` has the lane of each task."""
        self._read = read
        self._numbers = numbers
        self._stop = threading.Event()
        self._lanes = [_Lane(self._stop) for _ in range(max(numbers) + 1)]
        for task, number in zip(tasks, numbers, strict=True):
            self._lanes[number].tasks.append(task)
        self._left = deque(self._lanes)

    def run(self) -> None:
        threads = start_threads(self._run, len(self._lanes))
        try:
            for number in self._numbers:
                while (action := self._lanes[number].take()) is not None:
                    action()
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(_SECONDS)

    def _run(self) -> None:
        lane = self._left.popleft()
        try:
            with stop_on(self._stop):
                for task in lane.tasks:
                    self._read(task, lane.put)
                    lane.put(None)
        except Stopped:
            return
        except BaseException as error:
            lane.fail(error)


class _Lane:
    """The actions of one thread in order, with None after the last one of each task."""

    def __init__(self, stop: threading.Event) -> None:
        self.tasks: list[Any] = []
        self._stop = stop
        self._waiting: deque[tuple[Callable[[], object] | None, int]] = deque()
        self._bytes = 0
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def put(self, action: Callable[[], object] | None, size: int = 0) -> None:
        """Add an action as soon as there is room. Raises Stopped."""
        with self._changed:
            while not self._has_room(size) and not self._stop.is_set():
                self._changed.wait(0.1)
            if self._stop.is_set():
                raise Stopped
            self._waiting.append((action, size))
            self._bytes += size
            self._changed.notify()

    def _has_room(self, size: int) -> bool:
        is_full = len(self._waiting) >= _MOST_AHEAD or self._bytes + size > _MOST_BYTES_AHEAD
        return not self._waiting or not is_full

    def fail(self, error: BaseException) -> None:
        """Set the error that `take` raises after the last action."""
        with self._changed:
            self._error = error
            self._changed.notify()

    def take(self) -> Callable[[], object] | None:
        """Wait for the next action and return it. Raises the error with which the thread failed."""
        with self._changed:
            while not self._waiting:
                if self._error is not None:
                    raise self._error
                self._changed.wait()
            action, size = self._waiting.popleft()
            self._bytes -= size
            self._changed.notify()
            return action
