"""Options of `table`: rows, columns, order, moment, package, file and format; and mistakes in them."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ArrowMemoryError

from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.tree import write
from kafka_records_tables import TABLES, read_table
from kafka_records_tables.commands import table_run
from kafka_records_tables.commands.command import NO_MEMORY
from kafka_records_tables.commands.main import main
from kafka_records_tables.coordinator.transactions import UnknownTransactions
from kafka_records_tables.engines.local import WorkerEnded
from kafka_records_tables.query import _MOMENTS, topic_columns
from kafka_records_tables.tables import inputs_of
from tests.cli.running import Ran, run
from tests.cli.segment_bytes import batch, commit, write_segment

ROOT = Path(__file__).resolve().parents[2]

ALL = "850 records and 9 transaction markers in 30 files of 6 partitions"


@pytest.fixture
def segments(topics_dir: Path) -> str:
    return str(topics_dir / "kafka-4.3" / "segments")


@pytest.fixture
def offsets(segments: str) -> list[dict[str, Any]]:
    """The rows of current_offsets."""
    return [json.loads(line) for line in run("table", "current_offsets", segments, "--format", "json").lines]


def asked(segments: str, *arguments: str, table: str = "current_offsets") -> list[dict[str, Any]]:
    ran = run("table", table, segments, "--format", "json", *arguments)
    assert ran.status == 0, ran.err
    return [json.loads(line) for line in ran.lines]


def complaint(ran: Ran) -> str:
    assert (ran.status, ran.out) == (2, "")
    return ran.err.splitlines()[0].removeprefix("kafka-records table: error: ").removeprefix("kafka-records: ")


# -- rows --------------------------------------------------------------------------------------------------------------


def test_groups(segments: str, offsets: list[dict[str, Any]]) -> None:
    chosen = ("basket-totaliser", "daily-rollup")
    arguments = [part for group in chosen for part in ("--group", group)]
    expected = [row for row in offsets if row["group_id"] in chosen]
    assert expected
    assert asked(segments, *arguments) == expected
    assert asked(segments, "--group", "nobody") == []


def test_a_group_that_is_not_there_brings_names_like_it(segments: str) -> None:
    for table, wrong, right in (
        ("groups", "fraud-scorin", "fraud-scoring"),
        ("transactions", "idle-writr", "idle-writer"),
    ):
        ran = run("table", table, segments, "--group", wrong)
        assert (ran.status, ran.err.splitlines()[0]) == (0, f"note: no row is about {wrong!r}; did you mean {right}?")
    ran = run("table", "groups", segments, "--group", "fraud-scoring", "--where", "state=Dead")
    assert "no row is about" not in ran.err
    said = run("table", "current_offsets", segments, "--group", "fraud-scoring", "--topic-filter", "nope").err
    assert "no row is about" not in said
    assert "note: no row is about 'xyzzy'\n" in run("table", "checks", segments, "--group", "xyzzy").err


def test_a_word_that_a_column_does_not_know_brings_the_one_that_was_meant(segments: str) -> None:
    ran = run("table", "groups", segments, "--where", "state=Stabel", "--where", "group_kind!=simple")
    assert (ran.status, ran.lines[2:]) == (0, [])
    assert "note: this build does not know the value 'Stabel' of state; did you mean Stable?" in ran.err.splitlines()
    assert "group_kind" not in ran.err
    said = run("table", "regressions", segments, "--where", "kind=xyzzy").err
    assert (
        "note: this build does not know the value 'xyzzy' of kind; there are topic_recreated, after_deletion, " in said
    )


def test_rows_that_no_comparison_holds_for_are_told(topics_dir: Path) -> None:
    """A copy of only one topic does not show the ends of others, so no lag is known."""
    source = str(topics_dir / "kafka-4.3" / "segments" / "__consumer_offsets-0")
    count = len(read_table("lag", source).table)
    said = run("table", "lag", source, "--where", "lag>0").err
    assert (
        f"note: lag is null (unknown) in {count} rows, which no comparison with lag finds: --where 'lag is null' shows "
        "them" in said
    )
    assert len(run("table", "lag", source, "--where", "lag is null", "--format", "csv").out.splitlines()) == count + 1
    elsewhere = (
        "note: lag is null in every row: the logs of the topics that groups consume are not here; read the data "
        "directories of the brokers that have them, or ask running brokers with --bootstrap"
    )
    assert said.count(elsewhere) == 1
    assert elsewhere in run("table", "group_lag", source, "--columns", "group_id").err


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (
            "9000-01-01",
            "9000-01-01T00:00:00.000Z is in the future, and the last record is of 2026-11-21T02:15:01.659Z (",
        ),
        (
            "2026-11-22",
            "2026-11-22T00:00:00.000Z is later than the last record, of 2026-11-21T02:15:01.659Z (the answer covers",
        ),
        ("2026-11-20", "2026-11-20T00:00:00.000Z is before the first record, of 2026-11-21T02:10:40.299Z (nothing"),
        ("2026-11-21T02:14", None),
        ("2026-11-21T03:14", None),
    ],
)
def test_a_moment_outside_of_the_log_is_told(segments: str, moment: str, expected: str | None) -> None:
    ran = run("table", "groups", segments, "--limit", "0", "--as-of", moment)
    assert ran.status == 0
    if expected is None:
        assert "record, of" not in ran.err
    else:
        assert f"__consumer_offsets: the moment {expected}" in ran.err


def test_what_stops_a_coordinator_ends_checks_with_status_3(segments: str, tmp_path: Path) -> None:
    write_segment(tmp_path, batch(0, [(b"\x00\x02\x00\x01g", b"\x00")]))
    ran = run("table", "checks", str(tmp_path), "--where", "level=information")
    assert ran.status == 3
    assert "1 row about what stops a coordinator from loading" in ran.err
    assert run("table", "checks", segments, "--partitions", "6").status == 0


def test_a_transactional_id_is_the_group_of_a_transaction(segments: str) -> None:
    (row,) = asked(segments, "--group", "idle-writer", table="transactions")
    assert row["transactional_id"] == "idle-writer"


def test_topics(segments: str, offsets: list[dict[str, Any]]) -> None:
    expected = [row for row in offsets if row["topic"].startswith("ship") or row["topic"] == "orders"]
    assert asked(segments, "--topic-filter", "ship*", "--topic-filter", "orders") == expected
    (row,) = asked(segments, "--topic-filter", "payments", table="open_transactions")
    assert ({each["topic"] for each in row["holds_back"]}, row["partitions"][0]["topic"]) == (
        {"payments"},
        "customer-tickets",
    )
    ran = run("table", "groups", segments, "--topic-filter", "x")
    others = ", ".join(name for name, table in TABLES.items() if topic_columns(table))
    told = "--topic-filter: rows of groups do not belong to a topic; tables whose rows do: "
    assert complaint(ran) == f"{told}{others}"


def test_what_one_table_alone_is_asked(segments: str) -> None:
    arguments = ("--retention", "1h", "--as-of", "2026-11-21T02:14:45")
    found = asked(segments, *arguments, "--within", "PT30M", table="expirations")
    options: dict[str, Any] = {"as_of": datetime(2026, 11, 21, 2, 14, 45, tzinfo=UTC), "retention": 3_600_000}
    expected = read_table("expirations", segments, within=timedelta(minutes=30), **options).table
    assert [row["expires_timestamp_ms"] for row in found] == expected["expires_timestamp_ms"].to_pylist()
    assert 0 < len(found) < read_table("expirations", segments, **options).table.num_rows

    (row,) = asked(
        segments, "--at", "in 520w", "--group", "refund-booking", "--where", "kind=group", table="expirations"
    )
    assert (row["record_type"], row["rule"]) == (2, "last_offset")


AHEAD = "also `in 24h` for a time in the future"
A_DURATION = "write 90s, 30m, 24h, 7d or 2w, or as in ISO 8601 P7D or PT24H"


@pytest.mark.parametrize(
    ("table", "arguments", "message"),
    [
        ("groups", ("--within", "24h"), "--within: groups does not have this option; it is an option of expirations"),
        (
            "expirations",
            ("--within", "24h", "--at", "now"),
            "--within cannot be combined with at: leave one of them out",
        ),
        ("expirations", ("--at", "soon"), f"--at: 'soon' is not a moment: write {_MOMENTS}; {AHEAD}"),
        ("expirations", ("--retention", "-7d"), f"--retention: '-7d' is not a duration: {A_DURATION}"),
        ("expirations", ("--rules", "x"), "argument --rules: invalid choice: 'x'; choose one of kafka-4.3, kip-211"),
    ],
)
def test_options_that_a_table_does_not_take(
    segments: str, table: str, arguments: tuple[str, ...], message: str
) -> None:
    assert complaint(run("table", table, segments, *arguments)) == message


def test_a_value_may_begin_with_a_hyphen_without_an_equals_sign(segments: str) -> None:
    assert asked(segments, "--sort", "-offset") == asked(segments, "--sort=-offset")
    assert complaint(run("table", "groups", segments, "--group", "--wide")) == (
        "argument --group: expected one argument"
    )


def test_conditions_columns_order_and_limit(segments: str, offsets: list[dict[str, Any]]) -> None:
    arguments = ("--where", "offset>=100", "--where", "metadata is not null", "--columns", "topic, offset")
    chosen = [row for row in offsets if row["offset"] >= 100 and row["metadata"] is not None]
    chosen.sort(key=lambda row: (-row["offset"], row["group_id"], row["topic"], row["partition"]))
    expected = [{name: row[name] for name in ("topic", "offset")} for row in chosen]
    assert asked(segments, *arguments, "--sort=-offset") == expected
    ran = run("table", "current_offsets", segments, *arguments, "--sort=-offset", "--limit", "3", "--format", "json")
    assert [json.loads(line) for line in ran.lines] == expected[:3]
    assert ran.err == f"3 of {len(expected)} rows from {ALL}\n"


def test_the_log_up_to_a_moment(segments: str, offsets: list[dict[str, Any]]) -> None:
    moment = sorted(row["commit_timestamp"] for row in offsets)[len(offsets) // 2]
    ran = run("table", "current_offsets", segments, "--as-of", moment, "--format", "json")
    rows = [json.loads(line) for line in ran.lines]
    milliseconds = next(row["commit_timestamp_ms"] for row in offsets if row["commit_timestamp"] == moment)
    result = read_table("current_offsets", segments, as_of=milliseconds)
    assert [(row["group_id"], row["log_offset"]) for row in rows] == [
        (row["group_id"], row["log_offset"]) for row in result.table.to_pylist()
    ]
    assert 0 < len(rows) < len(offsets)
    assert [line for line in ran.err.splitlines() if line.startswith("note: ")] == [
        f"note: {finding}" for finding in result.findings
    ]
    assert asked(segments, "--as-of", "1s ago") == offsets


def test_any_number_of_processes_gives_the_same(segments: str) -> None:
    one, two = (run("table", "offset_commits", segments, "--processes", each) for each in "12")
    assert one == two


# -- formats -----------------------------------------------------------------------------------------------------------


def test_the_end_of_a_file_says_its_format(segments: str, offsets: list[dict[str, Any]], tmp_path: Path) -> None:
    paths = {each: tmp_path / f"rows.{each}" for each in ("parquet", "CSV", "jsonl", "txt")}
    for path in paths.values():
        ran = run("table", "current_offsets", segments, "--output", str(path))
        assert (ran.status, ran.out, ran.err) == (0, "", f"78 rows from {ALL}\n")
    assert [json.loads(line) for line in paths["jsonl"].read_text("utf-8").splitlines()] == offsets
    with paths["CSV"].open(encoding="utf-8", newline="") as file:
        assert [row["group_id"] for row in csv.DictReader(file)] == [row["group_id"] for row in offsets]
    assert paths["txt"].read_text("utf-8") == run("table", "current_offsets", segments).out
    table = pq.read_table(paths["parquet"])
    assert table.column("offset").to_pylist() == [row["offset"] for row in offsets]
    assert {field.name: field.metadata[b"comment"].decode() for field in table.schema} == {
        column.name: column.about for column in TABLES["current_offsets"].columns
    }


@pytest.mark.parametrize("name", ["rows.xyz", "rows", "rows.html"])
def test_an_end_that_says_no_format_is_refused(segments: str, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    ran = run("table", "current_offsets", segments, "--output", str(path))
    assert (ran.status, ran.err.splitlines()[0]) == (
        2,
        f"kafka-records table: error: --output {path}: its extension does not name a format: use .json, "
        f".jsonl, .ndjson, "
        ".csv, .parquet, .arrow, .prom or .txt, or add --format",
    )
    assert not path.exists()
    assert run("table", "current_offsets", segments, "--output", str(path), "--format", "csv").status == 0


def test_arrow_as_a_stream_and_as_a_file(
    segments: str, offsets: list[dict[str, Any]], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "rows.arrow"
    assert run("table", "current_offsets", segments, "--output", str(path)).status == 0
    table = pa.ipc.open_file(path).read_all()
    assert table.column("offset").to_pylist() == [row["offset"] for row in offsets]
    assert table.schema.field("offset").metadata[b"comment"].decode() == next(
        column.about for column in TABLES["current_offsets"].columns if column.name == "offset"
    )
    assert main(["table", "current_offsets", segments, "--format", "arrow"]) == 0
    assert pa.ipc.open_stream(capfdbinary.readouterr().out).read_all() == table


def test_more_rows_than_are_held_are_not_sorted(
    segments: str, offsets: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_records_tables.commands.table_run.HELD", 1)
    ran = run("table", "current_offsets", segments, "--format", "json")
    rows = [json.loads(line) for line in ran.lines]
    key = ("group_id", "topic", "partition")
    assert rows != offsets
    assert sorted(rows, key=lambda row: [row[name] for name in key]) == offsets
    assert ran.err.splitlines()[0] == (
        "note: the rows are not sorted: there are more than 0 MiB of them; --sort sorts them, in memory"
    )
    assert asked(segments, "--sort", "group_id") == offsets
    assert run("table", "current_offsets", segments).lines[2].split()[0] == offsets[0]["group_id"]


# -- what is said ------------------------------------------------------------------------------------------------------


def test_the_columns_of_a_table_are_described() -> None:
    for table in TABLES.values():
        ran = run("table", "--describe", table.name)
        assert (ran.status, ran.err) == (0, "")
        first, second, *_ = ran.lines
        assert first == f"{table.name}: {table.about}"
        about = f"topic {table.topic}, records {table.records[0]}" if table.records else "every topic, no records"
        if table.inputs and not table.join_keys:
            topics = dict.fromkeys(each.topic for each in inputs_of(table))
            about = f"topics {', '.join(topic or 'and ends of all logs' for topic in topics)}"
        elif table.inputs:
            about = f"joins {' and '.join(table.inputs)} by {', '.join(table.join_keys)}"
        assert second.startswith(about)
        words = " ".join(ran.out.split())
        for column in table.columns:
            assert f"{column.name} {column.type} {column.about}" in words
        assert words.endswith(" ".join(table.rules.split()))
        assert run("table", table.name, "--describe") == ran
    assert complaint(run("table", "--describe")) == "argument --describe: names no table"
    assert complaint(run("table", "--describe", "grup")) == (
        "argument --describe: no table is called 'grup'; did you mean groups?"
    )


def test_repeated_findings_are_summed_up_and_a_file_has_all(tmp_path: Path) -> None:
    key, value = commit("torn", 7)
    assert key is not None
    assert value is not None
    broken = [(key.replace(b"torn", b"t%03d" % at), value[:12]) for at in range(60)]
    path = write_segment(tmp_path, batch(0, [*broken, (None, b"x"), commit("a", 1)]))
    out = tmp_path / "findings.jsonl"
    arguments = ("table", "current_offsets", str(path.parent), "--format", "json")
    ran = run(*arguments)
    assert (ran.status, len(ran.lines)) == (1, 1)
    lines = ran.err.splitlines()
    assert len(lines) == 50 + 1 + 1 + 2
    assert lines[50:] == [
        f"{path}: byte 0, batch at offset 0: record at offset 60: the record has no key (not used: it is unknown "
        "whose offset it is)",
        "10 more findings of the kind BufferUnderflow: --findings FILE writes all of them",
        "1 row from 62 records and 0 transaction markers in 1 file of 1 partition",
        "61 records could not be decoded",
    ]
    again = run(*arguments, "--findings", str(out))
    assert again.err.splitlines()[51] == f"10 more findings of the kind BufferUnderflow: {out} has all of them"
    findings = [json.loads(line) for line in out.read_text("ascii").splitlines()]
    assert [each["offset"] for each in findings] == [*range(61)]
    assert [each["message"] for each in findings[:50]] == lines[:50]
    first = findings[0]
    assert (first["severity"], first["reason"], first["path"]) == ("damage", "BufferUnderflow", "leader_epoch")
    assert (first["raw_key"], first["raw_value"]) == (broken[0][0].hex(), value[:12].hex())
    assert (
        complaint(run(*arguments, "--findings", str(out)))
        == f"{out}: the file already exists: replace it with --overwrite"
    )
    assert run(*arguments, "--findings", str(out), "--overwrite").status == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--columns", "offset,grup"), "current_offsets has no column 'grup'; did you mean group_id?"),
        (("--columns", "offset,"), "argument --columns: 'offset,' is not a list of columns: write A,B"),
        (("--where", "offset>a"), "offset is an int64, and 'a' is not a whole number"),
        (("--sort", "ofset"), "current_offsets has no column 'ofset'; did you mean offset?"),
        (("--limit", "-1"), "argument --limit: '-1' must be a whole number of at least 0"),
        (("--processes", "0"), "argument --processes: '0' must be a whole number of at least 1"),
        (
            ("--as-of", "1700000000"),
            "argument --as-of: 1700000000 is before 1974 if taken as milliseconds since 1970: write "
            "2026-01-31, 2026-01-31T12:00 (UTC), 2026-01-31T12:00+02:00, 1769860800000 (milliseconds since 1970), "
            "now, or 90s, 30m, 2h, 7d or 1w for a time before now",
        ),
        (("--format", "parquet"), "--format parquet needs --output: a Parquet file is not text"),
        (("--format", "json", "--wide"), "--wide needs --format table; json leaves nothing out"),
        (
            ("--package", "no_such_package"),
            "--package no_such_package: Python finds no package of this name generated by kafka-records-codegen: add "
            "its directory to PYTHONPATH",
        ),
        (
            ("--package", "kafka_records.consumer_offsets"),
            "--package kafka_records.consumer_offsets: current_offsets needs the records of a folder "
            "consumer_offsets: write --package kafka_records, without a folder",
        ),
        (("--topic-filter", ""), "argument --topic-filter: is empty, and matches no topic; '*' matches all"),
        (
            ("--as-of", "\u0662h"),
            "argument --as-of: '\u0662h' is not a moment: write 2026-01-31, 2026-01-31T12:00 (UTC), "
            "2026-01-31T12:00+02:00, 1769860800000 (milliseconds since 1970), now, or 90s, 30m, 2h, 7d or 1w for a "
            "time before now",
        ),
        (
            ("--output", "-"),
            "argument --output: must be a file, not -; the result goes to standard output without this option",
        ),
        (
            ("--findings", "-"),
            "argument --findings: must be a file, not -; findings go to standard error without this option",
        ),
        (("--findings", "gone/x.jsonl"), "gone/x.jsonl: there is no directory gone"),
        (("--findings", "."), ".: is a directory, but --findings needs a file"),
    ],
)
def test_mistakes(
    segments: str, arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert complaint(run("table", "current_offsets", segments, *arguments)) == message


def test_findings_have_a_file_of_their_own(tmp_path: Path) -> None:
    segment = write_segment(tmp_path / "data", batch(0, [commit("a", 1)]))
    before = segment.read_bytes()
    result = tmp_path / "result.csv"
    link = tmp_path / "link.csv"
    link.symlink_to(result)
    arguments = ("table", "groups", str(tmp_path / "data"), "--output", str(result), "--findings")
    for path in (result, tmp_path / "data" / ".." / "result.csv"):
        message = f"{path} is also the --output file: give --findings another file"
        assert complaint(run(*arguments, str(path))) == message
        assert not result.exists()
    result.write_text("kept")
    message = f"{link} is also the --output file: give --findings another file"
    assert complaint(run(*arguments, str(link), "--overwrite")) == message
    assert result.read_text() == "kept"
    message = f"{segment}: is one of the input files: write the result to another file"
    assert complaint(run(*arguments, str(segment), "--overwrite")) == message
    onto = ("--format", "csv", "--output", str(segment), "--overwrite")
    assert complaint(run("table", "groups", str(segment.parent), *onto)) == message
    alone = ("counts", str(segment), "--topic", "__consumer_offsets", "--output", str(segment), "--overwrite")
    assert run(*alone) == (2, "", f"kafka-records: {message}\n")
    assert segment.read_bytes() == before


def test_findings_that_cannot_be_written_leave_the_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_segment(tmp_path / "data", batch(0, [(None, None)]))
    path = tmp_path / "findings.jsonl"
    path.write_text("before")

    def fail(_: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(table_run, "finding_json", fail)
    seen = run("table", "groups", str(tmp_path / "data"), "--findings", str(path), "--overwrite")
    assert seen.err.splitlines()[-1] == f"kafka-records: {path}: cannot be written: No space left on device"
    assert {each.name: each.read_text() for each in tmp_path.iterdir() if each.is_file()} == {path.name: "before"}


def test_a_pattern_that_no_topic_matches_is_told(segments: str) -> None:
    seen = run(
        "table", "current_offsets", segments, "--topic-filter", "[", "--topic-filter", "gone*", "--format", "csv"
    )
    assert seen.status == 0
    note, summary = seen.err.splitlines()[-2:]
    assert note == "note: no such row is about a topic that matches '[', 'gone*'"
    assert summary.startswith("0 rows from ")


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            UnknownTransactions("__consumer_offsets", 3, 7),
            "__consumer_offsets-3: it is unknown whether the record at offset 7 was written in a transaction, or "
            "whether that transaction was committed. To count such records as committed, although some may belong to "
            "aborted or open transactions, use --assume committed",
        ),
        (
            WorkerEnded("__consumer_offsets-3", -9),
            "the process that was reading __consumer_offsets-3 was ended by signal 9. Signal 9 usually means that the "
            "machine ran out of memory: use --processes 1 to read with one process, or --group NAME to read less",
        ),
        (ArrowMemoryError("malloc of size 8 failed"), NO_MEMORY),
    ],
)
def test_no_answer(segments: str, monkeypatch: pytest.MonkeyPatch, failure: Exception, message: str) -> None:
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr("kafka_records_tables.engines.shared_reading.SharedReading.rows", fail)
    assert run("table", "current_offsets", segments) == (2, "", f"kafka-records: {message}\n")


# -- a package of one's own --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A package of the two records that commit offsets."""
    specs, home = tmp_path_factory.mktemp("specs"), tmp_path_factory.mktemp("home")
    (specs / "consumer_offsets").mkdir()
    for path in (ROOT / "message_specs" / "consumer_offsets").glob("*OffsetCommit*.json"):
        shutil.copy(path, specs / "consumer_offsets" / path.name)
    write(home / "own_offsets", generate(load(specs), "own_offsets"))
    sys.path.insert(0, str(home))
    yield "own_offsets"
    sys.path.remove(str(home))


def test_records_of_a_package_of_ones_own(segments: str, offsets: list[dict[str, Any]], own_package: str) -> None:
    assert asked(segments, "--package", own_package) == offsets
    assert "own_offsets.schemas.consumer_offsets" in sys.modules
    assert asked(segments, "--package", own_package, "--processes", "2") == offsets
    ran = run("table", "transactions", segments, "--package", own_package)
    assert complaint(ran) == (
        "--package own_offsets: transactions needs the records of a folder transaction_state: there is no "
        "TransactionLog"
    )
