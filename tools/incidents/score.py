"""Score the reports of `kafka-records report` on recorded incidents, compared with the truth about each.

For an incident: whether it is named, whether its cause, time, scale and first step are right, and whether nothing false
is said. For a healthy cluster: whether there is nothing above a note. It prints one line per recording, then a table by
kind, as Markdown; `--page docs/incidents.md` writes a summary between the marks of a page.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from kafka_records_tables.commands.command import run_command
from tools.incidents.every_kind import EVERY_KIND
from tools.incidents.recording import LIVE, unpack
from tools.incidents.truth import NAME, Truth, load_truth

MARKS: Final = (
    "<!-- written by python -m tools.incidents.score -->",
    "<!-- end of what python -m tools.incidents.score writes -->",
)
NOTES: Final = frozenset({"note", "info"})
"""The levels that are not an alarm."""

WAYS: Final = ("files", "snapshots", "live", "spark")
_WAYS: Final = (
    "how the report reads a recording: its files here, a snapshot of all its topics, the running broker (as reported "
    "when it was played), or its files with Spark"
)

ASPECTS: Final = ("named", "cause", "since", "scale", "first step", "nothing false")

_STATED: Final = (
    *("title", "problem", "impact", "causes", "decision", "who", "scale", "effects", "next", "why_not_sure"),
    *("what", "consequence"),
)
"""The parts of a finding that make statements; the rest is evidence, counts and places. The last two parts belong to
version 1."""
_NOT_STATED: Final = frozenset({"refuted_by", "thresholds", "command", "evidence", "rows"})
_REFUTED: Final = frozenset({"refuted_by", "thresholds"})
_CAUSES: Final = ("title", "problem", "impact", "causes", "who", "what")
_NUMBER: Final = re.compile(r"(?<![\w.-])\d[\d ,]*(?:\.\d+)?(?![\w.-]*[a-z_])")

_DENIED: Final = re.compile(r"\b(nothing|not|no|never|nobody|none|neither|without)\b[^,]*$", re.IGNORECASE)

Finding = Mapping[str, Any]


@dataclass
class Score:
    """The score of a report on one recording: aspect → whether it is right; aspects that do not apply are missing."""

    case: str
    seed: int
    healthy: bool
    aspects: dict[str, bool] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    """Sentences about what is missing or false."""

    @property
    def right(self) -> bool:
        """Whether everything is right."""
        return all(self.aspects.values())

    @property
    def solved(self) -> bool:
        """Whether an incident is named with the right cause and without a false statement, or a healthy cluster has no
        alarm."""
        return all(self.aspects.get(each, True) for each in ("named", "cause", "nothing false"))


def report_of(folder: Path, truth: Truth, way: str = "files", *more: str) -> Mapping[str, Any]:
    """The report of the command on a recording, which is read in one of `WAYS`. Raises RuntimeError if there is
    none."""
    if way == "live":
        if not (folder / LIVE).is_file():
            raise RuntimeError(f"{folder} has no {LIVE}: the report on a running broker is made when a kind is played.")
        live: Mapping[str, Any] = json.loads((folder / LIVE).read_text(encoding="utf-8"))
        return live
    with tempfile.TemporaryDirectory() as scratch:
        data = unpack(folder, Path(scratch) / "data")
        if way == "snapshots":
            data = _snapshot(data, Path(scratch) / "kept")
        return report_on(data, truth, *(("--engine", "spark") if way == "spark" else ()), *more)


def report_on(data: Path, truth: Truth, *more: str) -> Mapping[str, Any]:
    """The report of the command on the data directory of a recording. Raises RuntimeError if there is none."""
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "report.json"
        asked = ["report", str(data), "--format", "json", "--no-tables", "--output", str(output)]
        status, said = _ran([*asked, *truth.report_arguments, *more])
        if not output.is_file():
            raise RuntimeError(f"No report on {data} (status {status}): {said}")
        report: Mapping[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return report


def _snapshot(data: Path, kept: Path) -> Path:
    """Take a snapshot of every topic in a data directory. Raises RuntimeError if that fails."""
    topics = sorted({each.name.rpartition("-")[0] for each in data.iterdir() if re.search(r"-\d+$", each.name)})
    named = [word for topic in topics for word in ("--topic", topic)]
    status, said = _ran(["snapshot", str(data), "--output", str(kept), *named])
    # Status 1: rows are missing, for example because the incident damaged a log.
    if status not in (0, 1):
        raise RuntimeError(f"No snapshot of {data} (status {status}): {said}")
    return kept


def _ran(arguments: Sequence[str]) -> tuple[int, str]:
    """Run the command; returns its exit status and its standard error."""
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        status = run_command(list(arguments))
    return status, said.getvalue().strip()


def score(truth: Truth, findings: Sequence[Finding]) -> Score:
    """Score the findings of a report against the truth."""
    got = Score(truth.case, truth.seed, truth.kind == "healthy")
    if got.healthy:
        alarms = [each for each in findings if each["level"] not in NOTES]
        got.faults += [f"false alarm: {each['level']} {each['kind']}: {_first(each)}" for each in alarms]
        got.faults += [said for each in findings if is_about(truth, each) for said in falsehoods(truth, each)]
        got.aspects["nothing false"] = not got.faults
        return got
    alarms = [each for each in findings if truth.is_note or each["level"] not in NOTES]
    candidates = [each for each in alarms if _all_found(truth.named, _text(each, everything=True))]
    best = max(candidates, key=lambda each: _worth(truth, each), default=None)
    got.aspects["named"] = best is not None
    if best is None:
        got.faults.append("not named: no finding has " + " and ".join(truth.named))
    _score_incident(truth, best or {}, got)
    _look_for_falsehoods(truth, findings, got)
    return got


def _score_incident(truth: Truth, best: Finding, got: Score) -> None:
    judged = {
        "cause": cause_is_right(truth, best),
        "since": truth.since is None or _near(truth, best),
        "scale": not truth.scale or _scaled(truth, best),
        "first step": _one_found(truth.first_step, _text({"next": best.get("next", ())}, commands=True)),
    }
    got.aspects.update(judged if best else dict.fromkeys(judged, False))
    if best:
        wanted = {
            "cause": " and ".join(truth.cause),
            "since": f"{truth.since} (it says {best.get('since_timestamp_ms')})",
            "scale": ", ".join(f"{name} {count}" for name, count in truth.scale.items()),
            "first step": " or ".join(truth.first_step),
        }
        got.faults += [f"{aspect} wrong: wanted {wanted[aspect]}" for aspect, fine in judged.items() if not fine]


def _look_for_falsehoods(truth: Truth, findings: Sequence[Finding], got: Score) -> None:
    false: list[str] = []
    for each in findings:
        if is_about(truth, each):
            false += falsehoods(truth, each)
        elif each["level"] not in NOTES:
            false.append(f"false alarm: {each['level']} {each['kind']}: {_first(each)}")
    got.aspects["nothing false"] = not false
    got.faults += false


def is_about(truth: Truth, finding: Finding) -> bool:
    """Whether a finding names something that the truth is about, or names nothing at all."""
    about = {*finding.get("group_ids", ()), *finding.get("topics", ()), *finding.get("transactional_ids", ())}
    return not about or any(name in other for name in (*truth.groups, *truth.topics, *truth.members) for other in about)


def cause_is_right(truth: Truth, finding: Finding) -> bool:
    """Whether a finding states the true cause."""
    return _all_found(truth.cause, _text(finding, parts=_CAUSES))


def falsehoods(truth: Truth, finding: Finding) -> Iterator[str]:
    """Statements in a finding that are false according to the truth."""
    text = _text(finding, commands=True)
    for pattern, why in truth.never:
        if said := _stated(pattern, text):
            yield f"false: {finding['kind']} says {said!r}, but {why}"


def _stated(pattern: str, text: str) -> str | None:
    """The match of the pattern, unless it is negated by earlier words of the same sentence (`nothing was cut`)."""
    for found in re.finditer(pattern, text, re.IGNORECASE):
        before = re.split(r"[.:;?] ", text[: found.end()])[-1][: -len(found[0]) or None]
        if not _DENIED.search(before):
            return found[0]
    return None


def _worth(truth: Truth, finding: Finding) -> int:
    return 2 * cause_is_right(truth, finding) + _near(truth, finding)


def _near(truth: Truth, finding: Finding) -> bool:
    said = finding.get("since_timestamp_ms")
    if truth.since is None or said is None:
        return False
    return any(abs(said - moment) <= truth.since_margin_ms for moment in (truth.since, *truth.since_also))


def _scaled(truth: Truth, finding: Finding) -> bool:
    """Whether the report has each count, within the margin: reports and clients count at different moments."""
    said = [
        float(number.replace(" ", "").replace(",", "")) for number in _NUMBER.findall(_text(finding, parts=_STATED))
    ]
    for part in ("scale", "measured"):
        said += [float(number) for number in _numbers(finding.get(part, {}))]
    return all(
        any(abs(number - count) <= max(3, truth.scale_margin * count) for number in said)
        for count in truth.scale.values()
    )


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _numbers(each)


def _first(finding: Finding) -> str:
    return _text(finding, parts=("problem", "what"))[:160]


def _text(finding: Finding, parts: Iterable[str] = _STATED, *, everything: bool = False, commands: bool = False) -> str:
    left_out = _REFUTED if everything else _NOT_STATED - ({"command"} if commands else set())
    chosen = finding if everything else {part: finding[part] for part in parts if part in finding}
    return " ".join(_strings(chosen, left_out))


def _strings(value: object, left_out: frozenset[str]) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if key not in left_out:
                yield from _strings(each, left_out)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _strings(each, left_out)


def _all_found(patterns: Sequence[str], text: str) -> bool:
    return all(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def _one_found(patterns: Sequence[str], text: str) -> bool:
    return not patterns or any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def table(scores: Sequence[Score]) -> str:
    """The scores by kind, as a table in Markdown: the aspects that are wrong, and in how many recordings of the
    kind."""
    lines = ["| kind | what happens | wrong |", "|---|---|---|"]
    for case, of_case in _by_kind(scores).items():
        notes = ["healthy"] * of_case[0].healthy + [f"{len(of_case)} recordings"] * (len(of_case) > 1)
        name = f"{case} ({', '.join(notes)})" if notes else case
        about = EVERY_KIND[case].about if case in EVERY_KIND else "made by hand"
        lines.append(f"| {name} | {about} | {_wrong(of_case)} |")
    return "\n".join(lines)


def summary(scores: Sequence[Score]) -> str:
    """The part of a page about scores: the kinds of recordings, and the aspects that are wrong."""
    kinds = _by_kind(scores)
    solved = f"{sum(each.solved for each in scores)} of {len(scores)} recordings are solved"
    wrong = [f"`{case}`: {faults}" for case, of_case in kinds.items() if (faults := _wrong(of_case))]
    lines = [f"{solved}; wrong are {'; '.join(wrong)}." if wrong else f"{solved}, with every aspect right."]
    for title, healthy in (("Incidents", False), ("Healthy", True)):
        if named := [case for case, of_case in kinds.items() if of_case[0].healthy is healthy]:
            lines += ["", f"{title}: {', '.join(f'`{case}`' for case in named)}."]
    return "\n".join(textwrap.fill(line, 120, break_long_words=False) for line in lines)


def _by_kind(scores: Sequence[Score]) -> dict[str, list[Score]]:
    """The scores of each kind, incidents first."""
    order = sorted({each.case for each in scores}, key=lambda case: (_is_healthy(case, scores), case))
    return {case: [each for each in scores if each.case == case] for case in order}


def _wrong(scores: Sequence[Score]) -> str:
    """The aspects that are wrong, and in how many of these recordings."""
    counts = {aspect: sum(each.aspects.get(aspect) is False for each in scores) for aspect in ASPECTS}
    return ", ".join(f"{aspect} in {count}" for aspect, count in counts.items() if count)


def _is_healthy(case: str, scores: Sequence[Score]) -> bool:
    return next(each.healthy for each in scores if each.case == case)


def score_folder(folder: Path, way: str = "files", *more: str) -> Score:
    """Run the report on a recording and score it; `more` are arguments of the report."""
    truth = load_truth(folder)
    return score(truth, report_of(folder, truth, way, *more)["findings"])


def write_page(page: Path, text: str) -> None:
    """Put the text between the marks of a page. Raises ValueError if it has none."""
    before, mark, rest = page.read_text(encoding="utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not mark or not end:
        raise ValueError(f"{page} lacks the marks {MARKS[0]} and {MARKS[1]}: add them where the table belongs.")
    page.write_text(f"{before}{mark}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def recordings(folders: Sequence[Path]) -> list[Path]:
    """The recordings among folders and folders of recordings."""
    found = []
    for folder in folders:
        found += [folder] if (folder / NAME).is_file() else sorted(each.parent for each in folder.glob(f"*/{NAME}"))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 1 unless every recording is solved."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.incidents.score", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="a recording, or a folder of recordings")
    parser.add_argument("--page", type=Path, help="write a summary between the marks of this page")
    parser.add_argument("--from", choices=WAYS, default="files", dest="way", help=f"{_WAYS} (default: files)")
    parser.add_argument("--processes", type=int, default=2, help="number of reports at a time (default 2)")
    asked = parser.parse_args(arguments)
    folders = recordings(asked.folders)
    if not folders:
        print(f"No recording (a folder with {NAME}) in {', '.join(map(str, asked.folders))}.", file=sys.stderr)
        return 2
    with ProcessPoolExecutor(asked.processes, get_context("spawn")) as pool:
        scores = list(pool.map(partial(score_folder, way=asked.way), folders))
    for folder, each in zip(folders, scores, strict=True):
        print(f"{'right' if each.right else 'solved' if each.solved else 'WRONG'} {folder.name}")
        for fault in each.faults:
            print(f"    {fault}")
    print()
    print(table(scores))
    print(
        f"\n{sum(each.solved for each in scores)} of {len(scores)} solved, {sum(each.right for each in scores)} right"
    )
    if asked.page:
        write_page(asked.page, summary(scores))
    return int(not all(each.solved for each in scores))


if __name__ == "__main__":
    sys.exit(main())
