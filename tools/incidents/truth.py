"""What was done to a cluster, and what a report has to say about it and must not: the file next to a recording."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

NAME: Final = "truth.json"


@dataclass
class Truth:
    """The truth about one recorded cluster. Times are milliseconds since 1970; patterns are regular expressions."""

    kind: str
    """`incident` or `healthy`."""
    case: str
    """The name of the kind, as `--list` has it; for an incident also the name of its cause."""
    planted: str = ""
    """What was done, in plain words."""
    conclusion: str = ""
    """What an operator should conclude and do first."""
    proof: str = ""
    """What in the files proves it."""
    groups: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    """Client ids of the members, and transactional ids, that it is about."""
    hosts: list[str] = field(default_factory=list)
    since: int | None = None
    since_also: list[int] = field(default_factory=list)
    """Other moments that are right as well, such as when the application came back after its offsets expired."""
    since_margin_ms: int = 5000
    going_on: bool = True
    scale: dict[str, int] = field(default_factory=dict)
    """`lost`, `read_twice`, `stuck` and similar ones, in records, counted by the clients that read them."""
    scale_margin: float = 0.15
    is_note: bool = False
    """Whether a note is enough to name it."""
    named: list[str] = field(default_factory=list)
    """Each has to be found in one finding: then it counts as named."""
    cause: list[str] = field(default_factory=list)
    """Each has to be found in that finding: then its cause is right."""
    first_step: list[str] = field(default_factory=list)
    """One of them has to be found in what the finding says to do next."""
    never: list[list[str]] = field(default_factory=list)
    """Pairs: what must not be found in any finding of the groups and topics concerned, and why it is false."""
    report_arguments: list[str] = field(default_factory=list)
    """What the report has to be told because no file does: `--retention 1m`."""
    seed: int = 0
    kafka: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    """Settings of the broker that differ from those of `tools.broker`."""
    recorded_at: int = 0
    details: dict[str, Any] = field(default_factory=dict)

    def never_say(self, pattern: str, why: str) -> None:
        """Add a statement that is false."""
        self.never.append([pattern, why])

    def save(self, folder: Path) -> None:
        """Write it next to the recording."""
        (folder / NAME).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def load_truth(folder: Path) -> Truth:
    """The truth beside a recording. Raises OSError without one."""
    return Truth(**json.loads((folder / NAME).read_text(encoding="utf-8")))


def incident(case: str, groups: Sequence[str], topics: Sequence[str] = ()) -> Truth:
    """An incident that is about these groups and topics."""
    return Truth("incident", case, groups=list(groups), topics=list(topics), hosts=["127.0.0.1"])


def healthy(case: str, groups: Sequence[str], topics: Sequence[str] = ()) -> Truth:
    """A healthy state that looks like trouble, in these groups and topics."""
    return Truth("healthy", case, groups=list(groups), topics=list(topics), going_on=False)
