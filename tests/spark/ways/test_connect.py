"""In Spark Connect: one client asks a server on this machine for everything, and the tests check its answers."""

from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records_engine.spark.decode import COUNTS as COUNTED
from kafka_records_tables import TABLES, read_table
from tests.spark.ways import queries
from tests.spark.ways.truth import (
    BROKEN_PARTITION,
    COUNTS,
    CUT_VALUE,
    FILES,
    OFFSETS,
    SHARE,
    TOPICS,
    counts_of,
    in_order,
)

if TYPE_CHECKING:
    from tests.spark.ways.conftest import Inputs, Server

pytestmark = [pytest.mark.spark, pytest.mark.matrix]  # other tests run the same queries without a server

Outcome = dict[str, Any]


@pytest.fixture(scope="module")
def segments(topics_dir: Path) -> str:
    return str(topics_dir / "kafka-4.3" / "segments")


@pytest.fixture(scope="module", params=["python", pytest.param("jvm", marks=pytest.mark.matrix)])
def outcome(
    request: pytest.FixtureRequest,
    server: Server,
    inputs: Inputs,
    segments: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Outcome:
    """The results of `connect_client`: one with decoding in Python, and one with the functions in the JVM."""
    if request.param == "jvm":
        request.getfixturevalue("built")
    scratch = tmp_path_factory.mktemp("client")
    module = "tests.spark.ways.connect_client"
    arguments = [server.remote, str(inputs.folder), segments, str(scratch), request.param]
    server.client([sys.executable, "-m", module, *arguments])
    found: Outcome = pickle.loads((scratch / "outcome").read_bytes())
    return found | {"engine": request.param}


ONCE = pytest.mark.parametrize("outcome", ["python"], indirect=True)
"""The results that do not depend on the engine."""


def _place(row: dict[str, Any]) -> tuple[int, int]:
    return row["partition"], row["offset"]


def _filled(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


@pytest.mark.parametrize("topic", TOPICS)
def test_records_are_decoded_and_counted(outcome: Outcome, inputs: Inputs, topic: str) -> None:
    assert in_order(outcome["rows"][f"decoded {topic}"]) == in_order(inputs.topics[topic].decoded)
    assert list(outcome["counted"][topic]) == list(COUNTED)
    assert _filled(outcome["counted"][topic]) == COUNTS[topic]


@pytest.mark.parametrize("topic", TOPICS)
def test_column_functions_there_and_back(outcome: Outcome, inputs: Inputs, topic: str) -> None:
    assert in_order(outcome["rows"][f"there and back {topic}"]) == in_order(inputs.topics[topic].there_and_back())


def test_messages_inside_of_records(outcome: Outcome, inputs: Inputs) -> None:
    assert in_order(outcome["rows"]["markers"]) == in_order(inputs.topics[OFFSETS].markers())
    assert in_order(outcome["rows"]["members"]) == in_order(inputs.topics[OFFSETS].members())


@ONCE
@pytest.mark.parametrize("name", queries.TABLES)
def test_tables(outcome: Outcome, inputs: Inputs, name: str) -> None:
    rows = outcome["rows"][f"table {name}"]
    assert sorted(tuple(row.values()) for row in rows) == inputs.tables[name]


@ONCE
def test_records_that_a_table_could_not_use(outcome: Outcome) -> None:
    """These are the records whose keys could be of any type; the broken ones with a type are not commits."""
    found = {(row["partition"], row["offset"]): row["reason"] for row in outcome["rows"]["findings"]}
    assert found == {(BROKEN_PARTITION, 0): "NullKey", (BROKEN_PARTITION, 1): "MissingRecordType"}


@ONCE
def test_tables_over_files(outcome: Outcome, inputs: Inputs, segments: str) -> None:
    found = outcome["over files"]
    expected = read_table("groups", segments).table.to_pylist()
    assert found["run"] == expected
    for way in ("frame", "source"):
        assert sorted(found[way], key=lambda row: row["group_id"]) == expected
    assert [tuple(row.values()) for row in in_order(found["sql"])] == _snapshots(inputs)
    assert found["functions"] > 100


@pytest.mark.matrix
@pytest.mark.parametrize("outcome", ["jvm"], indirect=True)
def test_sql_has_qualified_names_in_the_jvm(outcome: Outcome, inputs: Inputs) -> None:
    assert [tuple(row.values()) for row in in_order(outcome["rows"]["sql"])] == _snapshots(inputs)
    assert {"kafka_records.from_share_snapshot", "record_type"} <= {*outcome["functions"]}


def _snapshots(inputs: Inputs) -> list[tuple[Any, ...]]:
    return [
        (
            row["partition"],
            row["offset"],
            row["share_snapshot"]["value"] and row["share_snapshot"]["value"]["snapshot_epoch"],
        )
        for row in in_order(inputs.topics[SHARE].decoded)
        if row["record_type"] == 0 and row["partition"] < BROKEN_PARTITION
    ]


@ONCE
def test_a_stream_is_refused_without_asking_the_server(outcome: Outcome) -> None:
    found = outcome["over files"]
    assert found["calls"] == []
    assert found["refused"].startswith("groups needs a log from its start, but a streaming DataFrame returns it in ")


def test_defining_queries_asks_the_server_nothing_about_them(outcome: Outcome) -> None:
    """Two properties of the session are looked up, each once: one of Spark's, and the catalog of the functions."""
    assert set(outcome["calls"]) <= {"Config"}
    assert len(outcome["calls"]) <= 2


def test_dropmalformed_counts_what_it_leaves_out(outcome: Outcome, inputs: Inputs) -> None:
    rows, counts = outcome["dropped"]
    assert in_order(rows) == in_order(row for row in inputs.topics[SHARE].decoded if row["error"] is None)
    assert _filled(counts) == COUNTS[SHARE]


@ONCE
def test_raw_rows_of_a_saved_topic(outcome: Outcome, inputs: Inputs) -> None:
    saved = outcome["saved"]
    assert saved["calls to ask"] == ["AnalyzePlan schema"]
    assert saved["calls when told"] == []
    expected = [
        {name: row[name] for name in ("partition", "offset", "record_type", "error")}
        for row in in_order(inputs.topics[SHARE].decoded)
    ]
    assert [in_order(rows) for rows in saved["rows"]] == [expected, expected]


def test_a_stream(outcome: Outcome, inputs: Inputs) -> None:
    streamed = outcome["streamed"]
    truth = inputs.topics[SHARE].decoded
    assert in_order(streamed["rows"]) == in_order(truth)
    # PySpark's Connect client returns the names and values of observed metrics separately.
    found = [
        _filled(dict(zip((field["name"] for field in each["schema"]["fields"]), each["values"], strict=True)))
        for each in streamed["observed"]
    ]
    assert found == [counts_of(truth[number::FILES], SHARE) for number in range(FILES)]


def test_failfast_names_the_record(outcome: Outcome, inputs: Inputs) -> None:
    (broken,) = [row for row in inputs.topics[SHARE].decoded if _place(row) == (BROKEN_PARTITION, CUT_VALUE)]
    text = broken["error"]["message"]
    by_rows, by_column = outcome["failures"]["failfast"], outcome["failures"]["failfast in a column"]
    where = f"{SHARE}-99 offset {CUT_VALUE}"
    if outcome["engine"] == "python":
        assert by_rows.startswith("PythonException: ")
        assert f"kafka_records_engine.spark.errors.UndecodableRecord: {where}: {text}\n" in by_rows
        assert f"kafka_records_runtime.errors.BufferUnderflow: {text}\n" in by_column
    else:
        for failure, said in ((by_rows, f"{where}: {text}"), (by_column, text)):
            assert failure.startswith("SparkException: Job aborted due to stage failure: ")
            assert f": java.lang.IllegalArgumentException: {said}\n" in failure
        in_driver = outcome["failures"]["failfast of rows in the driver"]
        assert in_driver.startswith(
            "IllegalArgumentException: ShareSnapshotValue v0 at byte 0: snapshot_epoch needs 4 "
        )


@ONCE
@pytest.mark.parametrize(("name", "missing"), [("no raw rows", "topic"), ("no raw rows for a table", "partition")])
def test_rows_of_another_shape_fail_when_the_query_runs(outcome: Outcome, name: str, missing: str) -> None:
    expected = (
        "AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name "
        f"`{missing}` cannot be resolved. Did you mean one of the following? [`id`]. SQLSTATE: 42703;\n"
    )
    assert re.match(re.escape(expected), outcome["failures"][name])


@pytest.mark.slow
@pytest.mark.matrix
def test_a_table_is_followed(server: Server, inputs: Inputs, segments: str, tmp_path: Path) -> None:
    module = "tests.spark.ways.connect_changes"
    server.client([sys.executable, "-m", module, server.remote, str(inputs.folder / OFFSETS), str(tmp_path)])
    batches, found = pickle.loads((tmp_path / "outcome").read_bytes())
    assert batches == 2
    table = TABLES["current_offsets"]
    expected = read_table(table, segments).table.to_pylist()
    for rows in found.values():
        # Spark returns times without a zone; the rows also have them as numbers.
        ordered = sorted(rows, key=lambda row: tuple(row[name] for name in table.identity))
        assert [_numbers(row) for row in ordered] == [_numbers(row) for row in expected]
    assert set(found) == {"sink", "foreachBatch"}


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.endswith("_timestamp")}
