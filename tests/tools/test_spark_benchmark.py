"""The benchmark of Spark runs, compares what it claims to compare, and ends with the right status. No time is
asserted."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_records_codegen.evolution.kafka_releases import FetchError
from tools.benchmarks import _java_udf, spark_decode
from tools.benchmarks._offset_commits import Mix, offset_commits
from tools.benchmarks._spark_contenders import CONTENDERS, Contender, ours
from tools.benchmarks._spark_runs import Timing, configured, processor_seconds
from tools.benchmarks._spark_steps import STEPS, Step, measure_steps, steps_table
from tools.java_compiler import CompileError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = "tools/benchmarks/spark_decode.py"
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
IN_THE_JVM = ("jvm", "jvm columns")
"""Contenders that change the session; tests/spark/jvm has a session for them."""
DECODERS = [name for name, contender in CONTENDERS.items() if contender.structs]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


@pytest.fixture
def raw(spark: SparkSession, data: Path) -> DataFrame:
    """A thousand raw rows."""
    return spark.read.parquet(*map(str, offset_commits(data, 1_000, Mix())))


def altered(structs: tuple[str, str], change: Callable[[DataFrame], DataFrame]) -> Contender:
    return Contender("altered", "gives something else", lambda raw: change(ours(raw)), structs)


OURS = CONTENDERS["ours"]
KEY, VALUE = "offset_commit.key", "offset_commit.value"


@pytest.mark.spark
@pytest.mark.matrix
class TestContenders:
    def test_all_but_java_agree_and_are_timed(
        self, spark: SparkSession, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        chosen = [contender for name, contender in CONTENDERS.items() if name not in ("java", *IN_THE_JVM)]
        rows = spark_decode.Rows(spark, data, Mix(), total=1_000, few=400)
        timings = spark_decode.run_contenders(rows, chosen, rounds=2, sample=200)
        assert [(timing.name, timing.rows) for timing in timings] == [
            ("scan", 1_000),
            ("identity", 1_000),
            ("ours", 1_000),
            ("one crossing", 1_000),
            ("one crossing in place", 1_000),
            ("ours in place", 1_000),
            ("columns", 1_000),
            ("row udf", 400),
            ("arrow row udf", 400),
        ]
        assert all(len(timing.clock) == len(timing.processor) == 2 for timing in timings)
        told = capsys.readouterr().err.splitlines()
        sums = [line.split(": ")[1].split(" ", 1) for line in told if line.startswith("checksum over ")]
        assert [name for _, name in sums] == [
            *("ours", "one crossing", "one crossing in place", "ours in place", "columns"),
            *("ours", "row udf", "arrow row udf"),
        ]
        assert len({found for found, _ in sums[:5]}) == len({found for found, _ in sums[5:]}) == 1
        assert sums[0][0] != sums[5][0]
        table = spark_decode.contenders_table(timings).splitlines()
        assert table[0].split("  ")[-1].strip() == "÷ arrow row udf"
        assert [line.split("  ")[0] for line in table[1:]] == [timing.name for timing in timings]
        assert [line.split(":")[0] for line in spark_decode.verdicts(timings)] == ["ours ÷ identity", "ours ÷ row udf"]

    def test_another_value_is_found_in_the_sample(self, raw: DataFrame) -> None:
        liar = altered((KEY, "value"), lambda df: df.selectExpr("*", "named_struct('offset', offset) AS value"))
        with pytest.raises(spark_decode.Disagreement) as caught:
            spark_decode.check_agreement([OURS, liar], raw, 10)
        first = liar.decoded(raw).orderBy("offset").first()
        assert str(caught.value) == f"altered gives {first}, ours gives {OURS.decoded(raw).orderBy('offset').first()}"

    def test_a_row_less_is_found_in_the_sample(self, raw: DataFrame) -> None:
        liar = altered((KEY, VALUE), lambda df: df.where("offset <> 7"))
        with pytest.raises(spark_decode.Disagreement) as caught:
            spark_decode.check_agreement([OURS, liar], raw, 10)
        assert str(caught.value) == "altered gives 9 rows instead of 10"

    def test_another_value_is_found_by_the_checksum(self, raw: DataFrame) -> None:
        """The changed value is far after the sample, and has the same type."""
        change = "if(offset = 999, named_struct('group', 'g', 'topic', 't', 'partition', 1), offset_commit.key) AS key"
        liar = altered(("key", VALUE), lambda df: df.selectExpr("*", change))
        spark_decode.check_agreement([OURS, liar], raw, 10)
        with pytest.raises(spark_decode.Disagreement) as caught:
            spark_decode.check_checksums([OURS, liar], raw, 1_000)
        assert str(caught.value) == "altered and ours give different rows"

    def test_rows_left_out_by_everybody_are_found(self, raw: DataFrame) -> None:
        liar = altered((KEY, VALUE), lambda df: df.where("offset <> 999"))
        with pytest.raises(spark_decode.Disagreement) as caught:
            spark_decode.check_checksums([liar, liar], raw, 1_000)
        assert str(caught.value) == "altered gives 999 rows instead of 1000"


@pytest.mark.spark
@pytest.mark.matrix
class TestSteps:
    @pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
    def test_every_step_gives_every_row(self, spark: SparkSession, raw: DataFrame, step: Step) -> None:
        with configured(spark, step.settings):
            assert step.build(raw).count() == step.baseline(raw).count() == 1_000

    def test_shapes_hold_what_decode_records_gives(self, raw: DataFrame) -> None:
        shaped = {step.name: step.build(raw) for step in STEPS if step.name.endswith("no status")}
        assert [len(df.columns) for df in shaped.values()] == [12, 13, 20, 4, 1]
        expected = [row.offset_commit for row in ours(raw).orderBy("offset").collect()]
        for name, df in shaped.items():
            found = df.orderBy("offset" if "offset" in df.columns else "decoded_0.value.commit_timestamp").collect()
            decoded = [[row[column] for column in df.columns if column.startswith("decoded_")] for row in found]
            if "flat" in name:
                assert decoded == [[*row.key, *row.value] for row in expected]
            elif "apart" in name:
                assert decoded == [[row.key, row.value] for row in expected]
            else:
                assert sorted(map(repr, decoded)) == sorted(repr([row]) for row in expected)

    def test_they_are_timed_beside_their_identities(self, spark: SparkSession, raw: DataFrame) -> None:
        before = spark.conf.get(BATCH_ROWS)
        chosen = [step for step in STEPS if step.name in ("decode_records", "batch of 2000")]
        told: list[str] = []
        measured = measure_steps(spark, raw, chosen, 2, told.append)
        assert [line.split(":")[0] for line in told[:4]] == [
            "[1/3] decode_records, identity",
            "[1/3] decode_records",
            "[1/3] batch of 2000, identity",
            "[1/3] batch of 2000",
        ]
        assert [len(each.decoder.clock) for each in measured] == [2, 2]
        assert measured[1].decoder.settings == measured[1].identity.settings == {BATCH_ROWS: "2000"}
        assert spark.conf.get(BATCH_ROWS) == before
        assert [line.split("  ")[0] for line in steps_table(measured).splitlines()[1:]] == [
            "decode_records",
            "batch of 2000",
        ]


@pytest.mark.spark
@pytest.mark.matrix
class TestScript:
    @pytest.mark.maven
    def test_java_agrees(self, data: Path, tmp_path: Path) -> None:
        if shutil.which("mvn") is None or shutil.which("javac") is None:
            pytest.skip("Maven or a Java compiler is missing")
        figures = tmp_path / "spark.json"
        tiny = ("--rows", "600", "--udf-rows", "200", "--rounds", "1", "--sample", "200", "--data", str(data))
        done = run(*tiny, "--contenders", "ours,java", "--set", f"{BATCH_ROWS}=100", "--json", str(figures))
        assert done.returncode == 0, done.stderr
        sums = [line.split(": ")[1].split(" ") for line in done.stderr.splitlines() if line.startswith("checksum")]
        assert [name for _, name in sums] == ["ours", "java"]
        assert sums[0][0] == sums[1][0]
        found = json.loads(figures.read_text(encoding="utf-8"))
        lines = done.stdout.splitlines()
        assert lines[0] == found["machine"]
        assert lines[1] == ", ".join(f"{name} {number}" for name, number in found["versions"].items())
        assert lines[2] == f"local[2], best / median of 1 rounds, {BATCH_ROWS}=100"
        assert [(row["name"], row["rows"], len(row["clock"])) for row in found["rows"]] == [
            ("ours", 600, 1),
            ("java", 600, 1),
        ]
        assert lines[-1] == "java: Java UDF on Kafka's generated classes"

    def test_steps_that_need_sessions_of_their_own(self, data: Path, tmp_path: Path) -> None:
        figures = tmp_path / "steps.json"
        tiny = ("--rows", "600", "--rounds", "1", "--data", str(data), "--json", str(figures))
        done = run(*tiny, "--steps", "unix socket,pipelined")
        assert done.returncode == 0, done.stderr
        assert [row["name"] for row in json.loads(figures.read_text(encoding="utf-8"))["rows"]] == [
            "unix socket, identity",
            "unix socket",
            "pipelined, identity",
            "pipelined",
        ]


class TestOptions:
    def refused(self, *arguments: str) -> int:
        with pytest.raises(SystemExit) as caught:
            spark_decode.main(arguments)
        assert isinstance(caught.value.code, int)
        return caught.value.code

    def test_no_such_contender(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.refused("--contenders", "ours,theirs") == 2
        assert capsys.readouterr().err.endswith(
            "error: no contender is called 'theirs'; there are scan, identity, ours, jvm, jvm columns, one crossing, "
            "one crossing in place, ours in place, columns, java, row udf, arrow row udf\n"
        )

    def test_no_such_step(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.refused("--steps", "nothing") == 2
        names = "\n  ".join(step.name for step in STEPS)
        assert capsys.readouterr().err.endswith(f"error: no step has 'nothing' in its name; there are\n  {names}\n")

    def test_a_setting_has_a_value(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.refused("--set", BATCH_ROWS) == 2
        assert capsys.readouterr().err.endswith(f"error: argument --set: {BATCH_ROWS} is not NAME=VALUE\n")

    @pytest.mark.parametrize("option", ["--rows", "--udf-rows", "--rounds", "--sample", "--batch-rows"])
    def test_nothing_is_not_measured(self, option: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.refused(option, "0") == 2
        assert capsys.readouterr().err.endswith(f"error: argument {option}: 0 is not above zero\n")

    def test_help_has_examples(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.refused("--help") == 0
        assert "tools/benchmarks/spark_decode.py --steps --rows 2000000" in capsys.readouterr().out


class TestFigures:
    @staticmethod
    def timing(name: str, *clock: float) -> Timing:
        return Timing(name, 1_000, lambda: pytest.fail("not called"), clock=[*clock], processor=[2 * s for s in clock])

    def test_rates_and_costs_are_best_and_median(self) -> None:
        timing = self.timing("ours", 4.0, 1.0, 2.0)
        assert timing.rates == (1_000.0, 500.0)
        assert timing.costs == (0.002, 0.004)

    def test_the_plain_function_per_row_is_the_one_to_beat(self) -> None:
        timings = [self.timing("ours", 1.0), self.timing("row udf", 5.0), self.timing("arrow row udf", 3.0)]
        assert spark_decode.ratios(timings, "row udf")["ours"] == pytest.approx((5.0, 5.0))
        assert spark_decode.ratios(timings, "arrow row udf")["ours"] == pytest.approx((3.0, 3.0))
        assert spark_decode.verdicts(timings) == ["ours ÷ row udf: 5.00, goal 4 met"]

    def test_no_verdict_without_a_rival(self) -> None:
        assert spark_decode.verdicts([self.timing("ours", 1.0)]) == []
        assert spark_decode.verdicts([self.timing("java", 1.0)]) == []

    def test_processor_time_counts_children(self) -> None:
        before = processor_seconds()
        subprocess.run([sys.executable, "-c", "for _ in range(10**7): pass"], check=True)
        assert processor_seconds() - before >= 0.05

    def test_processor_time_counts_this_process(self) -> None:
        before = processor_seconds()
        start = time.process_time()
        while time.process_time() - start < 0.1:
            pass
        assert processor_seconds() - before >= 0.05


class TestJavaUdf:
    @pytest.fixture
    def compiler(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A fake JDK, whose compiler rejects everything."""
        script = tmp_path / "jdk" / "bin" / "javac"
        script.parent.mkdir(parents=True)
        script.write_text("#!/bin/sh\necho 'error: no such class' >&2\nexit 1\n", encoding="utf-8")
        script.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
        jars = tmp_path / "cache" / "jars"
        jars.mkdir(parents=True)
        for module in ("kafka-clients", "kafka-group-coordinator"):
            (jars / f"{module}-4.3.1.jar").touch()
        monkeypatch.setenv("KAFKA_RECORDS_CACHE", str(tmp_path / "cache"))
        return script

    def test_what_the_compiler_says(self, compiler: Path, tmp_path: Path) -> None:
        with pytest.raises(CompileError) as caught:
            _java_udf.udf_jars(tmp_path, pytest.fail)
        assert str(caught.value) == "javac refuses DecodeOffsetCommit.java:\nerror: no such class"

    def test_no_compiler(self, compiler: Path, tmp_path: Path) -> None:
        compiler.unlink()
        with pytest.raises(CompileError) as caught:
            _java_udf.udf_jars(tmp_path, pytest.fail)
        assert str(caught.value) == "javac, which compiles the UDF, is not in JAVA_HOME or on the PATH: install a JDK"

    def test_without_a_compiler_java_is_left_out(
        self, compiler: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        compiler.unlink()
        chosen = [CONTENDERS["java"], OURS]
        assert spark_decode.with_java(chosen, tmp_path) == ([OURS], [])
        assert capsys.readouterr().err == (
            "java is not timed: javac, which compiles the UDF, is not in JAVA_HOME or on the PATH: install a JDK\n"
        )

    def test_nothing_is_fetched_for_the_others(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spark_decode, "udf_jars", pytest.fail)
        assert spark_decode.with_java([OURS], tmp_path) == ([OURS], [])

    def test_no_maven(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KAFKA_RECORDS_CACHE", str(tmp_path))
        monkeypatch.setenv("PATH", str(tmp_path))
        told: list[str] = []
        with pytest.raises(FetchError, match=r"^Maven \(mvn\) is needed to fetch Kafka's jars"):
            _java_udf.udf_jars(tmp_path, told.append)
        assert told == ["Fetching kafka-clients 4.3.1 by Maven (once)"]
        assert list((tmp_path / "jars").iterdir()) == []
