"""The benchmark of the tables: it runs on tiny logs, and its judgments are right. No time is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka_records_tables.report.making import REPORTED
from kafka_records_tables.tables import TABLES
from kafka_records_tables.topics import METADATA
from tests.kafka_needed import skipped_without_kafka
from tools.benchmarks import _answers_cases as cases
from tools.benchmarks import answers
from tools.benchmarks._answers_cases import CASES, Judged, Logs, NotEnoughSpace, Sizes, Work, WrongAnswer, environment
from tools.benchmarks._every_table import every_table, sizes_of
from tools.benchmarks._processes import ProgramFailed, Run, family, memory_of, run_program
from tools.broker import broker_jars
from tools.write_segments import Plan, write_segments

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = "tools/benchmarks/answers.py"
TINY = ("--records", "3000", "--keys", "200", "--dump-records", "500", "--largest", "0.0002", "--batch-rows", "50")
PYTHON = (sys.executable, "-c")


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *TINY, "--rounds", "1", "--folder", str(folder), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def measured(folder: Path, *names: str) -> tuple[list[str], dict[str, Any]]:
    """The output, and the figures."""
    done = run("--only", ",".join(names), "--json", str(folder / "answers.json"), folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), json.loads((folder / "answers.json").read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.matrix
def test_the_local_engine_beside_reading(tmp_path: Path) -> None:
    lines, found = measured(tmp_path, "current_offsets", "groups", "columns", "growth")
    assert lines[0] == found["machine"]
    assert lines[2] == "best / median of 1 rounds"
    assert [goal["what"] for goal in found["goals"]] == [
        "current_offsets, 3000 records, against reading",
        "current_offsets, 3000 records, memory",
        "groups, 3000 records, against reading",
        "groups, 3000 records, memory",
        "OffsetCommit v3 in columns, one core",
        "OffsetCommit v4 in columns, one core",
        "current_offsets over 0.00 to 0.00 GB, seconds",
        "current_offsets over 0.00 to 0.00 GB, MiB",
    ]
    assert [goal["goal"] for goal in found["goals"]] == [
        *("≥ 0.8 ×", "≤ 1024 MiB", "≥ 0.5 ×", "≤ 1024 MiB", "≥ 8 ×", "≥ 8 ×"),
        *("exponent ≤ 1.05", "exponent ≤ 1.05"),
    ]
    for line, goal in zip(lines[5:], found["goals"], strict=True):
        assert line.split("  ")[-1].strip() == ("met" if goal["met"] else "missed")
    # The reader, two tables, and three sizes; the reader is the same for both tables.
    assert len(found["runs"]) == 6
    for runs in found["runs"].values():
        (only,) = runs
        assert min(only["seconds"], only["processor"], only["memory"]) > 0
    assert list(tmp_path.iterdir()) == [tmp_path / "answers.json"]


def test_the_folder_for_the_logs_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = tmp_path / "new" / "folder", tmp_path / "file"
    file.touch()
    monkeypatch.setattr(answers, "measure", lambda cases, rounds: ({}, []))
    monkeypatch.setattr(answers, "make_case", lambda *_: folder.exists() or pytest.fail("it is not there"))
    assert answers.main(["--only", "growth", "--folder", str(folder)]) == 0
    assert list(folder.iterdir()) == []
    capsys.readouterr()
    assert answers.main(["--only", "growth", "--folder", str(file)]) == 1
    assert capsys.readouterr().err == f"no logs can be written to {file} (File exists): choose another --folder\n"


@pytest.mark.slow
@pytest.mark.matrix
def test_every_table_has_its_lines(tmp_path: Path) -> None:
    case = cases.make_case("tables", Sizes(3000, 200, 1, 1, 1), Logs(tmp_path, {}, lambda line: None), 1)
    tables = every_table()
    # The readers of three topics, and each table over three logs.
    assert len(case.works) == 3 + 3 * len(tables)
    judged = case.judged({work.name: made_up(2, memory=1 << 20) for work in case.works})
    assert [each.what for each in judged[::3]] == [f"{asked.name}, 3000 records" for asked in tables]
    assert [each.reached for each in judged[1::3]] == ["2.00 / 2.00 / 2.00"] * len(tables)
    assert [each.reached for each in judged[2::3]] == ["1.00 / 1.00 / 1.00"] * len(tables)
    with_goal = {each.what.split(",")[0] for each in judged if each.goal == "≤ 3 ×"}
    assert {"current_offsets", "groups", "members", "transactions"} <= with_goal
    assert not {"offset_commits", "share_partitions"} & with_goal
    by_name = {work.name: work for work in case.works}
    for name in ("offset_commits, 30 records", "expirations --at, 3000 records", "bare reader, __share_group_state"):
        run = run_program(by_name[name].command, cwd=ROOT, environment=environment(), says_json=True)
        assert run.said["rows"] > 10


def test_every_table_that_is_made_of_records_is_timed() -> None:
    assert {asked.table.name for asked in every_table()} == {
        name for name, table in TABLES.items() if name != "log_ends" and table.topic != METADATA
    }
    assert sizes_of(3000) == [30, 300, 3000]


@pytest.mark.slow
@pytest.mark.matrix
def test_tables_of_a_report_together_and_one_by_one(tmp_path: Path) -> None:
    assert {*REPORTED} <= TABLES.keys()
    case = cases.make_case("report", Sizes(3000, 200, 1, 1, 1), Logs(tmp_path, {}, lambda line: None), 1)
    runs = {
        work.name: [run_program(work.command, cwd=ROOT, environment=environment(), says_json=True)]
        for work in case.works
    }
    together, alone = (runs[f"report tables{how}, 3000 records"][0] for how in ("", " one by one"))
    assert together.said["rows"] == alone.said["rows"] > 1000
    assert [judged.goal for judged in case.judged(runs)] == ["≤ 4 ×", "≤ 1 ×", ""]


@pytest.mark.slow
@pytest.mark.matrix
def test_whole_commands(tmp_path: Path) -> None:
    _, found = measured(tmp_path, "command")
    assert [(goal["what"], goal["goal"]) for goal in found["goals"]] == [
        *(
            (f"table {name}, against dump", "≤ 2 ×")
            for name in ("current_offsets", "groups", "offset_commits", "transactions")
        ),
        ("report of all topics, as a page", "≤ 2 s"),
    ]


@pytest.mark.maven
@pytest.mark.matrix
def test_kafkas_dump_tool(tmp_path: Path) -> None:
    with skipped_without_kafka():
        broker_jars()
    _, found = measured(tmp_path, "dump-tool")
    (goal,) = found["goals"]
    assert (goal["what"], goal["goal"]) == ("decoded, 500 records, against Kafka's dump tool", "≥ 40 ×")
    assert list(found["runs"]) == ["decoded, 500 records", "dump tool", "dump tool on nothing"]


@pytest.mark.spark
@pytest.mark.matrix
def test_a_table_by_spark(tmp_path: Path) -> None:
    log, small = tmp_path / "log", tmp_path / "small"
    written = write_segments(log, Plan(partitions=2, records=300, keys=40))
    write_segments(small, Plan(partitions=1, records=10, keys=5))
    command = (sys.executable, "tools/benchmarks/_answers_work.py", "spark_table", str(log), "groups", str(small))
    run = run_program(command, cwd=ROOT, environment=environment(), says_json=True)
    assert run.said["rows"] == written.truth["groups"].num_rows
    assert min(run.seconds, run.processor) > 0


# -- judging -----------------------------------------------------------------------------------------------------------


def made_up(*seconds: float, memory: int | None = None) -> list[Run]:
    return [Run(each, 2 * each, memory, {}) for each in seconds]


def test_ratios_are_of_the_best_and_of_the_medians() -> None:
    runs = {"ours": made_up(2, 5, 3), "theirs": made_up(4, 1.5, 6)}
    assert cases._as_fast("table", "ours", "theirs", 0.8, runs) == Judged(
        "table", "2.00 / 3.00 s", "1.50 / 4.00 s", "0.75 / 1.33", "0.75", "≥ 0.8 ×", False
    )
    assert cases._no_slower("table", "ours", "theirs", 1.5, runs) == Judged(
        "table", "2.00 / 3.00 s", "1.50 / 4.00 s", "1.33 / 0.75", "1.33", "≤ 1.5 ×", True
    )


def test_a_start_is_taken_off() -> None:
    runs = {"ours": made_up(0.05), "tool": made_up(3), "nothing": made_up(1)}
    assert cases._without_start("decoded", "ours", "tool", "nothing", 40, runs) == Judged(
        "decoded", "50.0 / 50.0 ms", "2.00 / 2.00 s", "40.0 / 40.0", "40.0", "≥ 40 ×", True
    )


def test_memory_is_the_most_of_all_rounds() -> None:
    mib = 1024 * 1024
    runs = {"ours": [*made_up(1, memory=900 * mib), *made_up(1, memory=1100 * mib)], "blind": made_up(1)}
    judge = partial(cases._memory_below, "table, memory")
    assert judge("ours", 1024 * mib, runs).cells == ["table, memory", "", "", "1100 MiB", "", "≤ 1024 MiB", "missed"]
    assert judge("blind", 1024 * mib, runs).cells == ["table, memory", "", "", "-", "", "≤ 1024 MiB", "-"]


@pytest.mark.parametrize(
    ("seconds", "reached", "met"),
    [
        ((1, 3, 10), "exponent 1.00 (0.00 + 10.0 per GB)", True),
        ((2, 4, 11), "exponent 0.74 (1.00 + 10.0 per GB)", True),
        ((1, 9, 100), "exponent 2.00 (0.00 + 115 per GB)", False),
    ],
)
def test_growth(seconds: tuple[float, ...], reached: str, met: bool) -> None:
    works = {0.1: "small", 0.3: "larger", 1.0: "large"}
    runs = {name: made_up(each) for name, each in zip(works.values(), seconds, strict=True)}
    judged = cases._linear("growth", works, lambda runs, name: cases._best(runs, name)[0], runs)
    assert (judged.reached, judged.met) == (reached, met)


@pytest.mark.parametrize(
    ("largest", "sizes"),
    [(10, [0.1, 0.3, 1, 3, 10]), (1, [0.1, 0.3, 1]), (0.01, [0.001, 0.003, 0.01])],
)
def test_at_least_three_sizes_from_a_tenth_of_a_gigabyte_on(largest: float, sizes: list[float]) -> None:
    assert Sizes(1, 1, 1, largest, 1).growing_gb == pytest.approx(sizes)


def test_a_wrong_answer_is_no_figure() -> None:
    work = Work("groups, 9 records", (), expected={"rows": 9})
    work.check(Run(1, 1, 1, {"rows": 9}))
    with pytest.raises(WrongAnswer) as caught:
        work.check(Run(1, 1, 1, {"rows": 8}))
    assert str(caught.value) == "groups, 9 records: rows is 8, and the log holds 9"


def test_logs_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(NotEnoughSpace) as caught:
        Logs(tmp_path, {}, lambda line: None).of(10**15, 10)
    assert str(caught.value).startswith(f"{10**15} records take {114 * 10**15} bytes, and {tmp_path} has ")
    assert str(caught.value).endswith(": choose another --folder, or fewer records")
    assert list(tmp_path.iterdir()) == []


# -- running programs --------------------------------------------------------------------------------------------------


def program(code: str, *, says_json: bool = False) -> Run:
    return run_program((*PYTHON, code), cwd=ROOT, environment={}, says_json=says_json)


def test_memory_of_a_child_counts_as_well() -> None:
    child = "import time; held = bytearray(b'x' * (80 << 20)); time.sleep(1)"
    run = program(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    assert run.memory is not None
    assert run.memory > 80 << 20
    assert run.seconds > 1 > run.processor


def test_a_program_may_know_its_own_seconds() -> None:
    run = program("print('ignored'); print('{\"seconds\": 7, \"rows\": 3}')", says_json=True)
    assert (run.seconds, run.said["rows"]) == (7, 3)


def test_a_program_that_fails_is_quoted() -> None:
    with pytest.raises(ProgramFailed) as caught:
        program("import sys; sys.exit('no such table')")
    assert str(caught.value) == (
        f"{sys.executable} -c import sys; sys.exit('no such table') ended with status 1:\nno such table"
    )


def test_a_process_that_is_gone_has_no_memory() -> None:
    with subprocess.Popen([*PYTHON, ""]) as process:
        process.wait()
        assert memory_of(process.pid) is None
        assert family(process.pid) == [process.pid]


# -- the command -------------------------------------------------------------------------------------------------------


def test_no_such_case(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        answers.main(["--only", "groups,lag"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: argument --only: 'lag' is no case; there are {', '.join(CASES)}\n")


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        answers.main(["--help"])
    assert caught.value.code == 0
    assert "tools/benchmarks/answers.py --only growth --largest 10" in capsys.readouterr().out
