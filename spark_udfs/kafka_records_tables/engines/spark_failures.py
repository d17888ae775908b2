"""Explains Spark failures in one sentence, because Spark's own texts are JVM stack traces."""

from __future__ import annotations

import re
from typing import Final

from kafka_records_runtime.errors import KafkaRecordsError

_JVM_IS_GONE: Final = (
    "Connection refused",
    "Connection reset",
    "Answer from Java side is empty",
    "Error while sending or receiving",
    "error while receiving",
)
_MEMORY: Final = ("OutOfMemoryError", "Java heap space", "MemoryError", "malloc of size", "exit code 137", "SIGKILL")
_WORKER_IS_GONE: Final = ("Python worker exited unexpectedly", "Python worker process terminated")


class SparkFailed(KafkaRecordsError, RuntimeError):
    """Spark did not finish; `detail` says why."""

    def __init__(self, error: BaseException | str) -> None:
        self.detail = error if isinstance(error, str) else detail_of(error)
        super().__init__(self.detail)

    def __str__(self) -> str:
        return f"Spark did not finish: {self.detail}"


def memory_ran_out(error: BaseException) -> bool:
    """Whether the exception indicates that a JVM or a worker ended in the middle of its work."""
    text = str(error)
    if isinstance(error, ConnectionError | EOFError | MemoryError) or type(error).__name__ == "Py4JNetworkError":
        return True
    return any(each in text for each in (*_JVM_IS_GONE, *_MEMORY, *_WORKER_IS_GONE))


def detail_of(error: BaseException) -> str:
    """Why Spark failed: it ran out of memory, if the exception indicates this; otherwise, the first line of its
    text."""
    text = str(error)
    if any(each in text for each in _WORKER_IS_GONE):
        return (
            "a Python worker ended in the middle of its work, probably because the machine ran out of memory: run "
            "fewer "
            'tasks at a time (--master "local[1]", or more memory for the executors: spark.executor.memoryOverhead)'
        )
    if any(each in text for each in _MEMORY):
        return (
            f"memory ran out ({first_line(error)}): give the driver more (spark.driver.memory, 1g by default), run "
            'fewer tasks at a time (--master "local[1]"), or pass fewer rows to Python at once '
            "(spark.sql.execution.arrow.maxRecordsPerBatch)"
        )
    if memory_ran_out(error):
        return (
            "Spark's JVM ended in the middle of its work, probably because it ran out of memory: give it more "
            "(spark.driver.memory, 1g by default), or run fewer tasks at a time "
            '(--master "local[1]")'
        )
    return first_line(error)


def first_line(error: BaseException) -> str:
    """The text of a Spark exception, without the JVM's stack trace."""
    text = str(error).strip() or type(error).__name__
    # Py4J's message has the call first, and then the error.
    called = re.match(r"An error occurred while calling .*\n: (?:[\w.$]+: )?(.+)", text)
    if called:
        return called[1]
    # An exception in a Python worker arrives as a complete traceback, whose last line is the error.
    worker = re.search(r"Traceback \(most recent call last\):\n(?: .*\n)+(\S.*)", text)
    return worker[1] if worker else text.splitlines()[0]


_CHATTER: Final = re.compile(r"\s*(?:at |\.\.\. \d+ more|WARNING|Picked up |NOTE:|Setting default |To adjust |$)")


def gateway_detail(said: str) -> str | None:
    """Why a session's JVM ended before it was ready, according to its output; None if it printed nothing.

    The cause of an exception is more informative than the exception itself, and the first error is more informative
    than later ones.
    """
    lines = [line for line in said.splitlines() if not _CHATTER.match(line)]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    if causes:
        return re.sub(r"^Caused by: (?:[\w.$]+: )?", "", causes[-1])
    thrown = [line for line in lines if line.startswith("Exception in thread ")]
    if thrown:
        return re.sub(r'^Exception in thread "[^"]*" (?:[\w.$]+: )?', "", thrown[0])
    return lines[0] if lines else None
