"""The nets that catch mutants: fixed for each module, the cheapest first.

1. Histories that Kafka's classes wrote: those in tests/data, and new ones of the judge, each read as a whole.
2. Our own tests of the module, without those that take long.
3. Those that take long.
4. Some of the judge's logs, read in every way: at every cut, cleaned, shuffled, with lost records.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from tools.judge.comparing import COMPARISONS
from tools.judge.coordinators import Coordinators, program
from tools.judge.decoded_once import DecodedOnce
from tools.judge.histories import History
from tools.judge.rounds import Written, written
from tools.mutants.drawing import ROOT

HISTORIES: Final = ROOT / "tests" / "data" / "histories"

_RECORDED: Final = 8
"""The number of recorded histories of each topic that are used: those that are compared fastest."""
_IN_EVERY_WAY: Final = 2
"""The number of the judge's logs of each topic that are compared in every way."""


@dataclass(frozen=True)
class Net:
    """The tests for the mutants of a module."""

    tests: tuple[str, ...]
    """The modules of tests/tables, without `test_`, in this order."""
    tables: tuple[str, ...]
    """The tables that are compared with the answers of Kafka's classes."""


def _net(tests: str, tables: str = "") -> Net:
    return Net(tuple(tests.split()), tuple(tables.split()))


_SHARES: Final = _net("share_partitions share_disappearances", "share_partitions share_disappearances")
_STATES: Final = _net("group_events regressions activity", "timeline groups regressions disappearances")
_KEPT: Final = _net("deletable_offsets expirations", "deletable_offsets expirations")

NETS: Final[Mapping[str, Net]] = {
    "groups/embedded": _net("members check_releases checks", "members checks assignments"),
    "groups/group_log": _STATES,
    "groups/group_model": _net("groups checks group_events members", "groups members timeline checks assignments"),
    "groups/group_states": _STATES,
    "groups/groups_before": _net("group_events activity disappearances", "disappearances activity"),
    "groups/last_group_records": _net("groups members current_offsets", "groups members assignments expirations"),
    "groups/loading_groups": _net("coordinator_parts checks check_releases", "checks"),
    "groups/record_names": _net("groups", "groups"),
    "groups/replay_bugs": _net("checks check_releases released_replay_bugs", "checks"),
    "groups/subscriptions": _net("expirations deletable_offsets", "expirations timeline"),
    "groups/task_processes": _net("check_releases", "checks"),
    "offsets/advances": _net("advances"),
    "offsets/commit_effects": _net("coordinator_parts activity history", "history activity"),
    "offsets/commit_lots": _net("commit_lots activity", "activity disappearances timeline"),
    "offsets/commit_order": _net("commit_order coordinator_parts advances live_offsets", "regressions history"),
    "offsets/commit_steps": _net("coordinator_parts advances transactions_settled", "regressions"),
    "offsets/commits": _net("current_offsets", "current_offsets offset_commits"),
    "offsets/committed_topics": _net("coordinator_parts assignments"),
    "offsets/decoded_commits": _net("coordinator_parts history", "history regressions"),
    "offsets/falls": _net("coordinator_parts regressions", "regressions"),
    "offsets/key_numbers": _net("coordinator_parts live_offsets activity", "activity disappearances"),
    "offsets/last_commits": _net("current_offsets expirations", "current_offsets pending_offsets expirations"),
    "offsets/live_offsets": _net("live_offsets disappearances", "disappearances"),
    "offsets/offset_spans": _net("history", "history"),
    "offsets/repeated_commits": _net("coordinator_parts activity", "activity"),
    "records/decoded_records": _net(
        "current_offsets groups damage group_events", "current_offsets groups share_partitions"
    ),
    "records/latest": _net("coordinator_parts current_offsets latest groups", "current_offsets groups members"),
    "records/lot_size": _net("commit_lots latest history", "history"),
    "records/named_records": _net(
        "coordinator_parts groups members share_partitions", "groups members share_partitions"
    ),
    "records/since_snapshot": _SHARES,
    "coordinator/transactions": _net(
        "coordinator_parts current_offsets pending_offsets transactions_settled damage",
        "current_offsets pending_offsets history",
    ),
    "rules/deletion_rules": _KEPT,
    "rules/expiry_rules": _KEPT,
    "rules/open_on_purpose": _net("open_transactions"),
    "shares/share_batches": _SHARES,
    "shares/share_replay": _SHARES,
    "removal/deletable_rows": _KEPT,
    "removal/expiry_rows": _net("coordinator_parts expirations", "expirations"),
    "removal/held_offsets": _KEPT,
}
"""The nets by the last two parts of the path of a module."""


def net_of(path: str) -> Net:
    """The net of a module. Raises KeyError if it has none."""
    return NETS["/".join(path.removesuffix(".py").split("/")[-2:])]


# -- histories ---------------------------------------------------------------------------------------------------------


class _Stopped(BaseException):
    """A table differs from what Kafka's classes answer."""


class _Stopping(list[str]):
    """Differences, of which the first one is enough."""

    def append(self, line: str) -> None:
        raise _Stopped(line)


@dataclass
class Log:
    """A log of a history, with its records decoded."""

    whole: History
    decoded: DecodedOnce
    written: Written | None = None
    """The log as the judge wrote it."""


def recorded_logs() -> list[Log]:
    """The smallest histories in tests/data, which need no process with Kafka's classes."""
    found = []
    for topic in ("????", "????-share"):
        files = sorted(HISTORIES.glob(f"{topic}.log.jsonl.gz"), key=lambda file: (file.stat().st_size, file.name))
        found += [History(HISTORIES, file.name.removesuffix(".log.jsonl.gz")) for file in files[:_RECORDED]]
    return [Log(history, DecodedOnce(history.rows)) for history in found]


def judged_logs(seeds: Sequence[int], folder: Path, tell: Callable[[str], None]) -> list[Log]:
    """Logs that Kafka's coordinators write and answer during this run."""
    with Coordinators(folder, program(tell)) as coordinators:
        found = [each for seed in seeds for each in written(seed, coordinators)]
    return [Log(each.whole, DecodedOnce(each.whole.rows), each) for each in found]


def judged_in_every_way(logs: Sequence[Log]) -> Iterator[Log]:
    """The first logs of each topic that the judge wrote."""
    for topic in dict.fromkeys(log.whole.topic for log in logs):
        yield from [log for log in logs if log.whole.topic == topic and log.written is not None][:_IN_EVERY_WAY]


def difference(log: Log, tables: Sequence[str], *, is_whole: bool) -> str | None:
    """The first difference between some tables over a log and Kafka's answers, or None if there is none. With
    `is_whole`, the log is read only as it is, not in every way."""
    rounds: Any = importlib.import_module("tools.judge.rounds")
    again: Any = importlib.import_module("tools.judge.decoded_once").DecodedOnce
    decoded = again.__new__(again)
    decoded.__dict__.update(log.decoded.__dict__)
    verdict = rounds.Verdict(0, tables=tables, differences=_Stopping())
    try:
        with decoded.used():
            if is_whole:
                rounds.compare_last_cut(log.whole, verdict)
            else:
                rounds.compare_log(log.written, verdict)
    except _Stopped as stopped:
        return str(stopped)
    return None


def by_histories(logs: Sequence[Log], tables: Sequence[str], *, is_whole: bool) -> str | None:
    """The difference with which histories kill a mutant, or None."""
    for log in logs if is_whole else judged_in_every_way(logs):
        if not any(table in COMPARISONS[log.whole.topic] for table in tables):
            continue
        try:
            found = difference(log, tables, is_whole=is_whole)
        except Exception as error:
            # The mutant may already fail when its module is imported.
            found = f"{type(error).__name__}: {error}"
        if found:
            return found
    return None


# -- tests -------------------------------------------------------------------------------------------------------------


_LONG: Final = " or ".join(
    (
        "administrators_deleted",
        "at_every_cut",
        "brokers_wrote_is_sound",
        "cost_seconds",
        "deleted_on_a_broker",
        "depend_on_how_many_rows",
        "does_not_change_when_more",
        "forgotten_but",
        "histories_meet",
        "logs_at_random",
        "of_a_cleaned_log",
        "records_without_keys",
        "rows_of_a_moment",
        "second_opinion",
        "sums_are_those",
        "that_cannot_be_are_told",
        "the_coordinator_let_go",
        "twice_give_the_same",
    )
)
"""Parts of the names of tests that take more than half a second."""

# The parent has already imported the modules that pytest would rewrite.
_PYTEST: Final = (
    "-q",
    "-x",
    "-n0",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
    "-p",
    "no:randomly",
    "-p",
    "no:cacheprovider",
    "-m",
    "not (slow or spark or broker or browser or maven or releases or matrix)",
    f"--rootdir={ROOT}",
)
_NONE_CHOSEN: Final = 5


def by_tests(tests: Sequence[str], *, is_long: bool) -> str | None:
    """The name of the first of our tests that fails for a mutant, or None. With `is_long`, only tests that take long
    are run; otherwise only the others."""
    watch = _FirstFailure()
    pytest: Any = importlib.import_module("pytest")
    modules = [f"{ROOT}/tests/tables/test_{module}.py" for module in tests]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        status = pytest.main([*_PYTEST, "-k", _LONG if is_long else f"not ({_LONG})", *modules], plugins=[watch])
    return None if status in (0, _NONE_CHOSEN) else watch.failed or f"pytest ends with {status}"


class _FirstFailure:
    """A plugin of pytest that notes the first failure."""

    failed: str | None = None

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid


# -- all together ------------------------------------------------------------------------------------------------------


def caught(net: Net, logs: Sequence[Log], *, is_quick: bool = False) -> tuple[str | None, str]:
    """The kind of net that catches the mutant of this process, and how; None and an empty text if none does. With
    `is_quick`, nets that take seconds are left out."""
    if found := by_histories(logs, net.tables, is_whole=True):
        return "histories", found
    if found := by_tests(net.tests, is_long=False):
        return "tests", found
    if not is_quick:
        if found := by_tests(net.tests, is_long=True):
            return "tests", found
        if found := by_histories(logs, net.tables, is_whole=False):
            return "judge", found
    return None, ""


def net_of_all(paths: Iterable[str]) -> Net:
    """The nets of some modules as one."""
    nets = [net_of(path) for path in paths]
    tests, tables = (
        [each for net in nets for each in part(net)] for part in (attrgetter("tests"), attrgetter("tables"))
    )
    return Net(tuple(dict.fromkeys(tests)), tuple(dict.fromkeys(tables)))
