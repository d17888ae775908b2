"""Rows of several tables out of the same batches: each table in a thread of its own, one of all threads at a time.

The function of a table takes batches from an iterator whenever it likes, and gives rows whenever it likes. Several such
functions can follow one reader only if each can be stopped where it asks for the next batch, and that takes a stack for
each. The threads are used for their stacks alone: they take turns, so nothing happens at the same time, what comes out
has one order, and no queue holds more than one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import copy_context
from threading import Lock, Thread
from typing import Any, Final


class RowsInTurns:
    """What `function` gives for batches that are handed to it one after the other.

    Whoever hands them over waits while the function works, and closes this in the end (`close`), whatever happens.
    """

    def __init__(self, function: Callable[[Iterator[Any]], Iterator[Any]]) -> None:
        self._function = function
        self.is_over = False
        """Whether the function has ended, be it before the last batch."""
        self._batch: Any = None
        self._rows: Any = None
        self._error: BaseException | None = None
        self._is_closed = False
        # Each side waits for its lock, which the other one releases.
        self._function_goes_on, self._caller_goes_on = Lock(), Lock()
        self._function_goes_on.acquire()
        self._caller_goes_on.acquire()
        # What callers have set for their thread, such as numpy's errors, is set in this one.
        self._thread = Thread(target=copy_context().run, args=(self._run,), daemon=True)

    def start(self) -> Iterator[Any]:
        """The rows that come before the function asks for a batch."""
        self._thread.start()
        yield from self._turn()

    def take(self, batch: Any) -> Iterator[Any]:
        """Hand over a batch, or None behind the last one; the rows that come before the function asks for another."""
        self._batch = batch
        yield from self._turn()

    def close(self) -> None:
        """End the function where it stands, and its thread."""
        self._is_closed = True
        # Who is closed after Ctrl-C may have been interrupted between any two steps of a turn, so that either side may
        # be waiting. Once this is closed, no step of the function waits for another one.
        while self._thread.is_alive():
            _release(self._function_goes_on)
            self._thread.join(_SECONDS)

    def _turn(self) -> Iterator[Any]:
        while True:
            self._rows = None
            self._function_goes_on.release()
            self._caller_goes_on.acquire()
            error, self._error = self._error, None
            if error is not None:
                raise error
            if self._rows is None:
                return
            yield self._rows

    # -- in the thread of the function ---------------------------------------------------------------------------------

    def _run(self) -> None:
        self._function_goes_on.acquire()
        try:
            for rows in () if self._is_closed else self._function(self._batches()):
                self._rows = rows
                self._wait()
        except GeneratorExit:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._rows = None
            self.is_over = True
            _release(self._caller_goes_on)

    def _batches(self) -> Iterator[Any]:
        while True:
            self._wait()
            batch, self._batch = self._batch, None
            if batch is None:
                return
            yield batch

    def _wait(self) -> None:
        """Let the caller go on. Raises GeneratorExit when nobody wants more, as where a generator is closed."""
        if not self._is_closed:
            self._caller_goes_on.release()
            self._function_goes_on.acquire()
        if self._is_closed:
            raise GeneratorExit


_SECONDS: Final = 0.05


def _release(lock: Lock) -> None:
    if lock.locked():
        lock.release()
