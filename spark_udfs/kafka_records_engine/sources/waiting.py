"""Waits in threads that can be stopped."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, Final, TypeVar

T = TypeVar("T")

MOST_THREADS: Final = 16
"""The maximum number of brokers that are queried at the same time."""

THREAD_NAME: Final = "kafka-records-broker"
"""The prefix of the names of all threads."""

_SLICE: Final = 0.1
"""Seconds after which a waiting thread checks whether it has been stopped."""

_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)


class Stopped(Exception):
    """The thread was stopped because its answer is no longer needed."""


@contextmanager
def stop_on(event: threading.Event) -> Iterator[None]:
    """Within the context, waits in this thread raise Stopped once `event` is set."""
    token = _stop.set(event)
    try:
        yield
    finally:
        _stop.reset(token)


def next_wait(until: float) -> float:
    """The number of seconds to wait next, at most until `until` (`time.monotonic`). A thread that can be stopped waits
    in short slices. Raises Stopped, and TimeoutError if `until` has passed."""
    event = _stop.get()
    if event is not None and event.is_set():
        raise Stopped
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left if event is None else min(left, _SLICE)


def pause(seconds: float) -> None:
    """Sleep. Raises Stopped."""
    event = _stop.get()
    if event is None:
        time.sleep(seconds)
    elif event.wait(seconds):
        raise Stopped


def side_by_side(questions: Sequence[Callable[[], T]]) -> list[T]:
    """Call the given functions at the same time in threads, and return their results. If one fails, its error is
    raised."""
    if len(questions) < 2:
        return [question() for question in questions]
    stop = threading.Event()
    answers: dict[int, T] = {}
    errors: list[BaseException] = []
    left = deque(enumerate(questions))

    def ask() -> None:
        try:
            with stop_on(stop):
                while left and not stop.is_set():
                    number, question = left.popleft()
                    answers[number] = question()
        except (IndexError, Stopped):
            return  # either another thread has taken the last request, or this thread was stopped
        except BaseException as error:
            errors.append(error)
            stop.set()

    threads = start_threads(ask, min(len(questions), MOST_THREADS))
    try:
        for thread in threads:
            thread.join()
    finally:
        stop.set()
    if errors:
        raise errors[0]
    return [answers[number] for number in range(len(questions))]


def start_threads(target: Callable[..., Any], count: int) -> list[threading.Thread]:
    """Start threads that run `target` with the context variables of this thread, such as numpy's error handling."""
    threads = [
        threading.Thread(target=copy_context().run, args=(target,), name=f"{THREAD_NAME}-{number}", daemon=True)
        for number in range(count)
    ]
    for thread in threads:
        thread.start()
    return threads
