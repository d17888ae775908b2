"""The truth about a recording, in a file next to it: what was done to the cluster, and what a report must and must not
say."""

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
    """The name of the kind, as in `--list`; for an incident, this is also the name of its cause."""
    planted: str = ""
    """A description of what was done."""
    conclusion: str = ""
    """What an operator should conclude, and do first."""
    proof: str = ""
    """The evidence in the files."""
    groups: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    """The client ids of members, and the transactional ids, that it is about."""
    hosts: list[str] = field(default_factory=list)
    since: int | None = None
    since_also: list[int] = field(default_factory=list)
    """Other times that are right as well, such as when the application came back after its offsets expired."""
    since_margin_ms: int = 5000
    going_on: bool = True
    scale: dict[str, int] = field(default_factory=dict)
    """Numbers of records, such as `lost`, `read_twice` and `stuck`, as counted by the clients that read them."""
    scale_margin: float = 0.15
    is_note: bool = False
    """Whether a finding at the level of a note is enough."""
    named: list[str] = field(default_factory=list)
    """Patterns. If one finding matches all of them, the incident counts as named."""
    cause: list[str] = field(default_factory=list)
    """Patterns. If that finding matches all of them, its cause is right."""
    first_step: list[str] = field(default_factory=list)
    """Patterns. At least one of them must match the next steps of the finding."""
    never: list[list[str]] = field(default_factory=list)
    """Pairs of a pattern that must not match any finding about the affected groups and topics, and the reason why it is
    false."""
    report_arguments: list[str] = field(default_factory=list)
    """Arguments of the report about facts that are in no file, such as `--retention 1m`."""
    seed: int = 0
    kafka: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    """Settings of the broker that differ from those of `tools.broker`."""
    recorded_at: int = 0
    details: dict[str, Any] = field(default_factory=dict)

    def never_say(self, pattern: str, why: str) -> None:
        """Add a pattern of a false statement."""
        self.never.append([pattern, why])

    def save(self, folder: Path) -> None:
        """Write it next to the recording."""
        (folder / NAME).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def load_truth(folder: Path) -> Truth:
    """The truth about the recording in a folder. Raises OSError if there is none."""
    return Truth(**json.loads((folder / NAME).read_text(encoding="utf-8")))


def incident(case: str, groups: Sequence[str], topics: Sequence[str] = ()) -> Truth:
    """A truth about an incident with these groups and topics."""
    return Truth("incident", case, groups=list(groups), topics=list(topics), hosts=["127.0.0.1"])


def healthy(case: str, groups: Sequence[str], topics: Sequence[str] = ()) -> Truth:
    """A truth about a healthy state that looks like trouble, with these groups and topics."""
    return Truth("healthy", case, groups=list(groups), topics=list(topics), going_on=False)
