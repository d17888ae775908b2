"""Controls Kafka's own clients: the Java program of this folder runs in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tools.broker import broker_jars, java
from tools.java_compiler import compile_java

_SOURCES: Final = Path(__file__).parent / "java"
_PATIENCE: Final = 60.0


class CrewError(Exception):
    """A command to the clients failed. The text says which one, and why."""


@dataclass(frozen=True)
class Event:
    """An event that a client noticed: crashed, assigned, revoked, lost, refused, vanished, written."""

    event: str
    name: str
    at: int
    detail: str


class Crew:
    """The clients of one cluster. Use it in a `with` block; at its end, the clients vanish without leaving their
    groups."""

    def __init__(self, bootstrap: str, release: str, folder: Path) -> None:
        jars = broker_jars(release=release)
        classes = folder / "classes"
        classes.mkdir(parents=True, exist_ok=True)
        sources = sorted(_SOURCES.glob("*.java"))
        compile_java("the clients of incidents", sources, [f"{jars}/*"], classes)
        self.events: list[Event] = []
        self._answers: dict[int, dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._asked = 0
        self._ended = False
        self._log = (folder / "crew.log").open("wb")
        self._process = subprocess.Popen(
            [
                *(java(), "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                *("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true"),
                *("-cp", os.pathsep.join([str(classes), f"{jars}/*"]), "Crew", bootstrap),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()

    def ask(self, what: str, **more: object) -> Any:
        """Send a command and wait until it is done. Raises CrewError."""
        with self._changed:
            self._asked += 1
            number = self._asked
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, "do": what, **more}) + "\n")
        self._process.stdin.flush()
        with self._changed:
            if not self._changed.wait_for(lambda: self._ended or number in self._answers, _PATIENCE):
                raise CrewError(f"no answer within {_PATIENCE:g} s: {what} {more}; see {self._log.name}")
            answer = self._answers.pop(number, None)
        if answer is None:
            raise CrewError(f"the clients' process ended: {what} {more}; see {self._log.name}")
        if "failed" in answer:
            raise CrewError(f"{what} failed: {answer['failed']}; see {self._log.name}")
        return answer["ok"]

    def seen(self, event: str, names: Sequence[str] = (), since: int = 0) -> list[Event]:
        """The events of this kind so far, of these clients, at or after a time."""
        with self._changed:
            return [
                each
                for each in self.events
                if each.event == event and (not names or each.name in names) and each.at >= since
            ]

    def wait_for(self, event: str, names: Sequence[str], since: int = 0, patience: float = _PATIENCE) -> Event:
        """The first such event; waits for it. Raises CrewError."""
        deadline = time.monotonic() + patience
        while not (found := self.seen(event, names, since)):
            if time.monotonic() > deadline:
                raise CrewError(f"within {patience:g} s none of {', '.join(names)} has {event}")
            time.sleep(0.05)
        return found[0]

    def offsets(self, what: str, topics: Sequence[str]) -> Mapping[str, int]:
        """The `ends` or `starts` of the partitions of topics."""
        answer: Mapping[str, int] = self.ask(what, topics=list(topics))
        return answer

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            with self._changed:
                if "event" in said:
                    self.events.append(Event(**said))
                else:
                    self._answers[said["id"]] = said
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
