"""A worker of the local engine: a process that reads tasks from standard input and writes rows to standard output."""

from __future__ import annotations

import logging
import os
import pickle
import sys
import time
from typing import IO, Any, Final

import pyarrow as pa

from kafka_records_engine.lean import collect_rarely, leave_pandas_out, let_pandas_in
from kafka_records_tables.engines.frames import portable, read_frame, write_frame
from kafka_records_tables.engines.shared_reading import SharedReading

_SOURCES: Final = "kafka_records_engine.sources"
"""The logger of all code that reads. It also reports what that code is waiting for."""

_MOST_OFTEN: Final = 0.1
"""The minimum number of seconds between two messages about progress."""


def main() -> None:
    """Process tasks until standard input ends."""
    # pyarrow tries to import pandas when it creates its first array. A user's own table may still import pandas later.
    leave_pandas_out()
    pa.array([0])
    let_pandas_in()
    collect_rarely()
    # Output of `print` must not be mixed with the answers.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        logging.getLogger(_SOURCES).addHandler(_Told(answers))
        while (frame := read_frame(sys.stdin.buffer)) is not None:
            try:
                _answer(frame, answers)
            except BrokenPipeError:
                os._exit(1)
            except Exception as error:
                _say(answers, "error", portable(error))


class _Told(logging.Handler):
    """Passes log messages to the parent process, which knows who wants to see them."""

    def __init__(self, answers: IO[bytes]) -> None:
        super().__init__()
        self._answers = answers

    def emit(self, record: logging.LogRecord) -> None:
        _say(self._answers, "log", (record.name, record.levelno, record.getMessage()))


def _answer(frame: bytes, answers: IO[bytes]) -> None:
    last = time.monotonic()

    def progress(done: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _MOST_OFTEN:
            last = time.monotonic()
            _say(answers, "progress", done)

    reading = SharedReading(pickle.loads(frame), progress)
    for number, batch in reading.rows():
        held = pa.BufferOutputStream()
        with pa.ipc.new_stream(held, batch.schema) as stream:
            stream.write_batch(batch)
        _say(answers, "batch", (number, held.getvalue()))
    _say(answers, "report", reading.report())


def _say(answers: IO[bytes], kind: str, content: Any) -> None:
    write_frame(answers, pickle.dumps((kind, content), protocol=5))
    answers.flush()
