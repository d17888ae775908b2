"""Score the reports of `kafka-records report` on recordings that lack a part, as many copies of a broker's data do.
Such a report may say less, but nothing false.

These parts of each recording are removed in turn: the logs of all user topics; the metadata log; everything but segment
files; everything but those of `__consumer_offsets`; single partitions of the topics that it is about, and of the topics
of coordinators, the latter also together with everything but segment files. It prints one line per recording, and the
false statements.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from kafka_records_tables.topics import OFFSETS, SHARE_STATE, TRANSACTIONS
from tools.incidents.recording import unpack
from tools.incidents.score import NOTES, Finding, cause_is_right, falsehoods, is_about, recordings, report_on
from tools.incidents.truth import Truth, load_truth

METADATA: Final = "__cluster_metadata"

_OF_LOGS: Final = frozenset({"log_cut"})
"""The kinds of findings that say that logs are incomplete. They are true here."""
_CONDITIONAL: Final = re.compile(r"\b(If|Whether)\b.*?\.(?=\s|$)")
_LOST, _REPEATED, _AT_LEAST = "records_lost", "records_repeated", "records_repeated_at_least"


@dataclass(frozen=True, slots=True)
class Removal:
    """The part that a copy of a data directory lacks."""

    name: str
    folders: frozenset[str] = frozenset()
    """The folders of the partitions that it lacks."""
    all_but_logs: bool = False
    """Whether the copy has only segment files: no index, producer snapshot, checkpoint or properties file."""


def removals(data: Path, topics: Collection[str]) -> Iterator[Removal]:
    """The parts to remove from a data directory, one after another. Single partitions are those with records in
    `topics` and in the topics of coordinators."""
    folders = sorted(each.name for each in data.iterdir() if each.is_dir())
    offsets = [each for each in folders if _topic(each) == OFFSETS]
    yield Removal("user_topics", frozenset(each for each in folders if not each.startswith("__")))
    yield Removal("cluster_metadata", frozenset(each for each in folders if _topic(each) == METADATA))
    yield Removal("all_but_logs", all_but_logs=True)
    yield Removal("all_but_offsets", frozenset({*folders}.difference(offsets)), all_but_logs=True)
    for each in folders:
        if any(log.stat().st_size for log in (data / each).glob("*.log")):
            is_coordinator = _topic(each) in (OFFSETS, SHARE_STATE, TRANSACTIONS)
            if is_coordinator or _topic(each) in topics:
                yield Removal(each, frozenset({each}))
            if is_coordinator:
                yield Removal(f"{each} and all_but_logs", frozenset({each}), all_but_logs=True)


def copy_without(data: Path, removal: Removal, into: Path) -> Path:
    """A copy of a data directory that lacks a part; files are linked. Returns `into`."""
    into.mkdir(parents=True)
    for path in sorted(data.rglob("*")):
        inside = path.relative_to(data)
        if inside.parts[0] in removal.folders:
            continue
        if path.is_dir():
            (into / inside).mkdir()
        elif path.suffix == ".log" or not removal.all_but_logs:
            _link(path, into / inside)
    return into


def _link(path: Path, link: Path) -> None:
    try:
        os.link(path, link)
    except OSError:
        shutil.copy2(path, link)


def _topic(folder: str) -> str:
    return folder.rpartition("-")[0]


def faults_without(truth: Truth, findings: Sequence[Finding]) -> list[str]:
    """The false statements in a report on an incomplete recording, each as a sentence."""
    faults = []
    for each in findings:
        is_alarm = each["level"] not in NOTES and each["kind"] not in _OF_LOGS
        if not is_about(truth, each):
            faults += [f"false alarm: {_said(each)}"] if is_alarm else []
            continue
        faults += falsehoods(truth, _asserted(each))
        if is_alarm:
            faults += [f"false alarm: {_said(each)}"] if truth.kind == "healthy" else _overstated(truth, each)
    return faults


def _asserted(finding: Finding) -> Finding:
    """The finding without statements about mere possibilities: without causes that are not certain, and without
    sentences that start with a condition."""
    causes = [each for each in finding.get("causes", ()) if each["confidence"] == "high"]
    texts = {name: _CONDITIONAL.sub("", finding.get(name, "")) for name in ("problem", "impact")}
    return {**finding, **texts, "causes": causes}


def _overstated(truth: Truth, finding: Finding) -> Iterator[str]:
    """Statements about an incident that contradict its truth, regardless of the wording."""
    causes = finding.get("causes", ())
    if causes and causes[0]["confidence"] == "high" and not cause_is_right(truth, finding):
        yield f"certain of another cause ({causes[0]['name']}): {_said(finding)}"
    scale = finding.get("scale", {})
    lost, repeated = scale.get(_LOST, 0), scale.get(_REPEATED, scale.get(_AT_LEAST, 0))
    if "lost" in truth.scale and repeated and not lost:
        yield f"says that {repeated} records were read twice, but records were lost: {_said(finding)}"
    truly = truth.scale.get("lost", 0)
    if lost > truly * (1 + truth.scale_margin) + 3:
        yield f"says that {lost} records were lost, but {truly} were: {_said(finding)}"


def _said(finding: Finding) -> str:
    return f"{finding['level']} {finding['kind']}: {finding['problem'][:200]}"


def faults_of(folder: Path, names: Collection[str] = (), more: Sequence[str] = ()) -> dict[str, list[str]]:
    """The false statements about a recording, by the name of the removed part: the parts with these `names`, or all
    parts in turn. `more` are arguments of the report."""
    truth, found = load_truth(folder), {}
    with tempfile.TemporaryDirectory() as scratch:
        data = unpack(folder, Path(scratch) / "data")
        for each in removals(data, truth.topics):
            if not names or each.name in names:
                copy = copy_without(data, each, Path(scratch) / "copies" / folder.name)
                found[each.name] = faults_without(truth, report_on(copy, truth, *more)["findings"])
                shutil.rmtree(copy)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 1 if a statement is false."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.incidents.incomplete", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="a recording, or a folder of recordings")
    parser.add_argument("--processes", type=int, default=2, help="number of recordings at a time (default 2)")
    asked = parser.parse_args(arguments)
    folders = recordings(asked.folders)
    count = wrong = 0
    with ProcessPoolExecutor(asked.processes, get_context("spawn")) as pool:
        for folder, found in zip(
            folders, pool.map(partial(faults_of, more=("--processes", "1")), folders), strict=True
        ):
            faults = {name: each for name, each in found.items() if each}
            print(f"{'WRONG' if faults else 'right'} {folder.name} ({len(found)} removals)", flush=True)
            for name, each in faults.items():
                print(f"    without {name}:" if name != "all_but_offsets" else "    only offsets:")
                print(*(f"        {fault}" for fault in each), sep="\n", flush=True)
            count, wrong = count + len(found), wrong + len(faults)
    print(f"\n{count - wrong} of {count} reports on incomplete recordings say nothing false")
    return int(bool(wrong) or not count)


if __name__ == "__main__":
    sys.exit(main())
