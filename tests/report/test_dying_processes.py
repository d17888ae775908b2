"""An offset that does not move while members come and go: a record fails, or one process ends for another reason."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.made_up_cluster import MINUTE, SECOND
from tests.report.rule_cases import END_MS, GROUP
from tests.report.test_rules_in_detail import _context, _found

_FIRST = END_MS - 2 * MINUTE
"""Until then, all partitions are read."""
_STUCK, _OTHER, _OF_OTHERS = 0, 1, 2
"""The partition that does not move, the other one of the same members, and that of a member that stays."""
_RECORD, _PROCESS = "poison_record", "process_dies"


@dataclass(frozen=True)
class _Life:
    """A member with the partition that does not move. Times are seconds after it joined."""

    client: str
    commits: Sequence[float] = ()
    """When it commits the other partition."""
    leaves: float = 9
    joins_before: float = 0
    """How long before it got its partitions it joined."""
    places: Sequence[int] = (_STUCK, _OTHER)
    pause: float = 0
    """From when it leaves until the next one gets its partitions."""


_KILLED = _Life("w-2", (1,))
_ORDERLY = _Life("w-2", (), 1, pause=1)


def _event(event: str, at_ms: float, member: str, **detail: Any) -> dict[str, Any]:
    row = {"group_id": GROUP, "event": event, "at_timestamp_ms": int(at_ms), "member_id": member}
    place = {"log_partition": 0, "log_offset": int(at_ms - _FIRST + 10 * MINUTE), "sequence": 0}
    return row | place | {"detail": json.dumps(detail)}


def _commit(partition: int, offset: int, at_ms: float) -> dict[str, Any]:
    place = {"group_id": GROUP, "topic": "orders", "partition": partition, "log_partition": 0}
    return place | {"offset": offset, "log_offset": int(at_ms - _FIRST + 10 * MINUTE), "log_timestamp_ms": int(at_ms)}


def _history(commits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for partition in (_STUCK, _OTHER, _OF_OTHERS):
        own = [each for each in commits if each["partition"] == partition]
        for at, each in enumerate(own):
            until = own[at + 1]["log_timestamp_ms"] if at + 1 < len(own) else None
            rows.append(each | {"valid_from_timestamp_ms": each["log_timestamp_ms"], "commits": 1})
            rows[-1] |= {"valid_to_timestamp_ms": until, "ended_by": None if until is None else "commit"}
            del rows[-1]["log_timestamp_ms"]
    return rows


def _finding(lives: Sequence[_Life], stays: bool = True, then: float | None = None) -> ReportFinding:
    """The finding about a group in which one member after another has the first two partitions. One member reads
    another partition all the time; if not `stays`, it joined only during the loop. `then` is when, in seconds after the
    last life, the first partition moves on."""
    commits = [_commit(place, 50 + at, _FIRST - (20 - at) * SECOND) for place in range(3) for at in range(20)]
    events = [_event("member_joined", _FIRST - (60 if stays else -1) * SECOND, "s", client_id="w-0")]
    at_ms: float = _FIRST
    for number, life in enumerate(lives):
        name, left_ms = f"m{number}", at_ms + life.leaves * SECOND
        limit = {"session_timeout_ms": 8 * SECOND, "rebalance_timeout_ms": 5 * MINUTE}
        joined = _event("member_joined", at_ms - life.joins_before * SECOND, name, client_id=life.client, **limit)
        events += [joined, _event("assignment_changed", at_ms, name, gained={"orders": list(life.places)})]
        events.append(_event("member_left", left_ms, name))
        commits += [_commit(_OTHER, 100 + 10 * number, at_ms + after * SECOND) for after in life.commits]
        at_ms = left_ms + life.pause * SECOND
    commits += [_commit(_OF_OTHERS, 80 + at, _FIRST + at * SECOND) for at in range(int(at_ms - _FIRST) // SECOND)]
    if then is not None:
        commits.append(_commit(_STUCK, 90, at_ms + then * SECOND))
    events.sort(key=lambda each: each["at_timestamp_ms"])
    lag = {"group_id": GROUP, "topic": "orders", "unread_timestamp_ms": _FIRST}
    samples = [{"timestamp_ms": _FIRST, "offset": 69}, {"timestamp_ms": _FIRST + 500, "offset": 100}]
    ends = {"topic": "orders", "partition": _STUCK, "exact_from": 0, "log_start_offset": 0, "samples": samples}
    context = _context(
        {
            "history": _history(commits),
            "offset_commits": [each | {"is_tombstone": False} for each in commits],
            "log_samples": [ends],
        },
        timeline=events,
        lag=[
            lag | {"partition": _STUCK, "lag": 0 if then is not None else 40},
            lag | {"partition": _OTHER, "lag": 0 if then is not None else 7},
        ],
    )
    (found,) = _found(context, "crash_loop")
    return found


def _causes(found: ReportFinding) -> list[tuple[str, str]]:
    return [(each.name, each.confidence) for each in found.causes]


def test_one_process_that_is_killed_again_and_again_proves_nothing_about_a_record() -> None:
    """It reads another partition in each life, and stays a member until its session timeout; another member stays."""
    found = _finding([_KILLED] * 6)
    assert _causes(found) == [(_PROCESS, "medium"), (_RECORD, "low")]
    assert found.confidence == "medium"
    assert found.title == "one client comes and goes again and again, and an offset does not move"
    assert '6 members of "w-2" joined the group "g" one after another' in found.problem
    assert "orders-1, which it has too, moved on in 6 of 6 lives of its members" in found.problem
    assert "until its session timeout (8 s) is over, half of them for 8 s after the last commit" in found.problem
    assert '"w-0" stayed' in found.problem
    assert found.scale["records_waiting"] == 47
    assert [each.shows.split(";")[0] for each in found.causes[0].evidence_for] == [
        'only "w-2" came and went',
        "orders-1, which it has too, moved on in 6 of 6 lives of its members",
        "half of the members that left had committed nothing for 8 s or longer before (usually they commit every 1 s), "
        "and the session timeout is 8 s",
    ]
    first, second = found.next[:2]
    assert first.what.startswith('Look at the process of "w-2" only: its exit code (137 or OOMKilled: out of memory)')
    assert second.what.startswith("Until it stays up, take it out of the group")
    assert found.decision is not None
    assert found.decision.between == (_PROCESS, _RECORD)
    assert "--partition 0 --offset 69" in (found.decision.command or "")


def test_members_of_two_processes_that_fail_at_one_offset_prove_that_it_is_the_record() -> None:
    """Each takes the partition over while the other one is down."""
    found = _finding([replace(_KILLED, client=each) for each in ("w-2", "w-3") * 3])
    assert _causes(found) == [(_RECORD, "high")]
    assert found.title == "members fail on a record, leave and join again, endlessly"


def test_members_that_were_there_together_are_of_several_processes() -> None:
    """Their client ids are new each time."""
    lives = [replace(_KILLED, client=f"w-{at}", joins_before=at * 9) for at in range(4)]
    assert _causes(_finding(lives)) == [(_RECORD, "high")]


@pytest.mark.parametrize(
    ("lives", "stays", "causes"),
    [
        ([_ORDERLY] * 6, True, [(_RECORD, "medium"), (_PROCESS, "low")]),
        ([replace(_KILLED, commits=())] * 6, True, [(_PROCESS, "medium"), (_RECORD, "medium")]),
        ([_KILLED] * 6, False, [(_PROCESS, "medium"), (_RECORD, "low")]),
        (
            [replace(_KILLED, client=each) for each in ("w-2", "w-2", "w-2", "w-3", "w-3", "w-3")],
            True,
            [(_PROCESS, "medium"), (_RECORD, "low")],
        ),
        ([replace(_KILLED, client=f"w-{at}") for at in range(6)], True, [(_PROCESS, "medium"), (_RECORD, "low")]),
        (
            [replace(_KILLED, client=f"w-{at}", joins_before=5) for at in range(6)],
            True,
            [(_PROCESS, "medium"), (_RECORD, "low")],
        ),
        (
            [*[_KILLED] * 3, replace(_KILLED, client="w-0-once", joins_before=20), *[_KILLED] * 3],
            True,
            [(_PROCESS, "medium"), (_RECORD, "low")],
        ),
    ],
    ids=[
        "leaves by itself",
        "reads nothing",
        "none stayed",
        "renamed",
        "new names",
        "joined before the killed member was removed",
        "another one was restarted once",
    ],
)
def test_records_of_one_process_leave_two_causes(
    lives: Sequence[_Life], stays: bool, causes: Sequence[tuple[str, str]]
) -> None:
    found = _finding(lives, stays)
    assert _causes(found) == causes
    assert "No record shows that another process has tried it" in next(
        each.statement for each in found.causes if each.name == _RECORD
    )


def test_members_that_leave_without_the_partition_do_not_fail_on_its_record() -> None:
    """Two processes take the partition over from each other, but all members end again and again."""
    pair = [replace(_KILLED, client="w-2"), replace(_KILLED, client="w-3")]
    idle = [replace(each, places=(_OTHER,), client="w-4") for each in pair]
    assert _causes(_finding((*pair, *idle) * 4))[0] == (_PROCESS, "medium")


def test_threads_of_one_process_are_no_several_processes() -> None:
    """Both leave and join together; each has one of two partitions that do not move, now this one, now that one."""
    lives = []
    for number in range(8):
        one, other = ((_STUCK,), (_OTHER,)) if number % 2 else ((_OTHER,), (_STUCK,))
        lives.append(replace(_KILLED, client="w-2-1", commits=(), places=one, pause=-9))
        lives.append(replace(_KILLED, client="w-2-2", commits=(), places=other))
    found = _finding(lives)
    assert found.partitions == (_STUCK, _OTHER)
    assert _causes(found)[0] == (_PROCESS, "medium")


@pytest.mark.parametrize(
    ("clients", "causes"),
    [(("w-2",), [(_PROCESS, "medium"), (_RECORD, "low")]), (("w-2", "w-3"), [(_RECORD, "high")])],
    ids=["one process", "two processes"],
)
def test_a_loop_that_is_over_may_have_been_one_process(
    clients: Sequence[str], causes: Sequence[tuple[str, str]]
) -> None:
    lives = [replace(_KILLED, client=clients[at % len(clients)]) for at in range(6)]
    found = _finding(lives, then=1)
    assert _causes(found) == causes
    assert found.title.startswith("members came and went again" if len(clients) == 1 else "members failed on a record")
    assert not found.is_going_on
