"""The parts around Spark: the progress bar, texts of exceptions."""

from __future__ import annotations

import os
import pty
import sys
import threading
import time
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from kafka_records_cli.progress import SparkProgress
from kafka_records_cli.session import first_line, gateway_reason

# -- the bar -----------------------------------------------------------------------------------------------------------


class Stage(NamedTuple):
    numCompletedTasks: int  # noqa: N815 (PySpark's name)
    numTasks: int  # noqa: N815


class Session:
    """As much of a session as the bar looks at: two stages, of which the first is over."""

    def __init__(self) -> None:
        self.looks = 0

    @property
    def sparkContext(self) -> Session:  # noqa: N802
        return self

    def statusTracker(self) -> Session:  # noqa: N802
        return self

    def getActiveStageIds(self) -> list[int]:  # noqa: N802
        self.looks += 1
        return [1] if self.looks == 1 else [2]

    def getStageInfo(self, number: int) -> Stage:  # noqa: N802
        return Stage(1, 4) if number == 1 else Stage(2, 6)


def test_nothing_is_drawn_elsewhere_than_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    session: Any = Session()
    with SparkProgress() as progress:
        progress.watch(session, "groups")
    assert capsys.readouterr() == ("", "")
    assert session.looks == 0


class Screen(threading.Thread):
    """Reads what is drawn on a terminal until nobody has it open any more."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(daemon=True)
        self._descriptor = descriptor
        self.drawn = ""

    def run(self) -> None:
        with suppress(OSError):
            while data := os.read(self._descriptor, 4096):
                self.drawn += data.decode("utf-8", "replace")

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + 30
        while text not in self.drawn:
            assert time.monotonic() < deadline, self.drawn
            time.sleep(0.02)


def test_the_bar_counts_tasks_and_leaves_a_clean_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    screen = Screen(ours)
    screen.start()
    session: Any = Session()
    with open(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with SparkProgress() as progress:
            screen.wait_for("starting Spark")
            progress.watch(session, "groups")
            screen.wait_for("groups")
            screen.wait_for("6/10")
    screen.join(10)
    os.close(ours)
    assert screen.drawn.rstrip("\r\n").endswith("\x1b[2K")


# -- texts and places --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("first\nsecond", "first"),
        (
            "\n  An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
            '  File "x.py", line 1, in f\n    raise ValueError\nValueError: what it says\n\nJVM trace',
            "ValueError: what it says",
        ),
        ("", "RuntimeError"),
        (
            "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
            ": org.apache.spark.SparkException: A master URL must be set\n\tat org.apache.spark.SparkContext",
            "A master URL must be set",
        ),
    ],
)
def test_the_line_that_says_what_happened(text: str, line: str) -> None:
    assert first_line(RuntimeError(text)) == line


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", None),
        (
            "Picked up JAVA_TOOL_OPTIONS: -Xss1m\nWARNING: Using incubator modules: jdk.incubator.vector\n"
            "Invalid maximum heap size: -Xmxmuch\nError: Could not create the Java Virtual Machine.\n",
            "Invalid maximum heap size: -Xmxmuch",
        ),
        (
            'Exception in thread "main" java.lang.IllegalArgumentException: System memory must be at least 471859200\n'
            "\tat org.apache.spark.X.y(X.scala:1)\n\t... 5 more\n",
            "System memory must be at least 471859200",
        ),
        (
            'Exception in thread "main" java.lang.ExceptionInInitializerError\n\tat a.b.c(D.java:1)\n'
            "Caused by: java.net.UnknownHostException: host: Name or service not known\n\tat a.b.c(D.java:1)\n",
            "host: Name or service not known",
        ),
    ],
)
def test_why_a_jvm_did_not_come_up(said: str, reason: str | None) -> None:
    assert gateway_reason(said) == reason
