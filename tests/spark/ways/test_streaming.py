"""In Structured Streaming: several micro-batches, the progress of a running query, checkpoints, and tables for each
batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.ways import queries
from tests.spark.ways.streams import counts, run, stream_of
from tests.spark.ways.truth import COUNTS, FILES, OFFSETS, SHARE, TOPICS, TRANSACTIONS, Topic, counts_of, in_order
from tests.variants import one_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.spark.across_releases.reading import Record
    from tests.spark.ways.conftest import Inputs

pytestmark = pytest.mark.spark


def _sunk(spark: SparkSession, sink: Path) -> list[Record]:
    return in_order([row.asDict(recursive=True) for row in spark.read.parquet(str(sink)).collect()])


def _decoded_files(topic: Topic, *numbers: int) -> list[Record]:
    return in_order([row for number in numbers for row in topic.decoded[number::FILES]])


@pytest.mark.parametrize("topic", one_in(len(TOPICS), TOPICS))
def test_every_micro_batch_is_decoded_and_counted(
    quick: SparkSession, inputs: Inputs, tmp_path: Path, topic: str
) -> None:
    rows = queries.decoded(stream_of(quick, inputs.folder / topic), topic, observation="decoded")

    query = run(rows, tmp_path / "sink", tmp_path / "checkpoint")

    truth = inputs.topics[topic]
    assert _sunk(quick, tmp_path / "sink") == in_order(truth.decoded)
    found = counts(query, "decoded")
    assert found == [counts_of(_decoded_files(truth, number), topic) for number in range(FILES)]
    assert {name: sum(batch.get(name, 0) for batch in found) for name in COUNTS[topic]} == COUNTS[topic]


def test_a_restart_goes_on_where_the_checkpoint_is(quick: SparkSession, inputs: Inputs, tmp_path: Path) -> None:
    truth = inputs.topics[TRANSACTIONS]
    places = tmp_path / "sink", tmp_path / "checkpoint"

    for number in range(FILES):
        truth.write(tmp_path / "raw", number)
        stream = stream_of(quick, tmp_path / "raw")
        query = run(queries.decoded(stream, TRANSACTIONS, observation="decoded"), *places)

        assert counts(query, "decoded") == [counts_of(_decoded_files(truth, number), TRANSACTIONS)]
        assert _sunk(quick, tmp_path / "sink") == _decoded_files(truth, *range(number + 1))


def test_failfast_ends_a_stream_which_another_mode_takes_up(
    quick: SparkSession, inputs: Inputs, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    truth = inputs.topics[SHARE]
    places = tmp_path / "sink", tmp_path / "checkpoint"
    sound = [raw for raw, row in zip(truth.raw, truth.decoded, strict=True) if row["error"] is None]
    Topic(SHARE, sound, []).write(tmp_path / "raw", 0)
    truth.write(tmp_path / "raw", 1)
    expected = [_decoded_files(truth, number) for number in range(FILES)]
    first = next(row for row in truth.decoded[1::FILES] if row["error"])

    stream = stream_of(quick, tmp_path / "raw")
    with pytest.raises(StreamingQueryException) as failure:
        run(queries.decoded(stream, SHARE, mode="FAILFAST"), *places)

    where = f"{first['topic']}-{first['partition']} offset {first['offset']}"
    in_jvm = quick.conf.get("spark.sql.catalog.kafka_records", None)
    raised = "java.lang.IllegalArgumentException" if in_jvm else "UndecodableRecord"
    assert f"{raised}: {where}: {first['error']['message']}" in str(failure.value)
    sunk = _sunk(quick, tmp_path / "sink")
    assert len(sunk) == len(sound[0::FILES])

    rows = queries.decoded(stream, SHARE, mode="DROPMALFORMED", observation="decoded")
    query = run(rows, *places)

    kept = [row for row in expected[1] if row["error"] is None]
    assert _sunk(quick, tmp_path / "sink") == in_order([*sunk, *kept])
    assert counts(query, "decoded") == [counts_of(expected[1], SHARE)]


def test_column_functions(quick: SparkSession, inputs: Inputs, tmp_path: Path) -> None:
    offsets = stream_of(quick, inputs.folder / OFFSETS, files=2)
    share = stream_of(quick, inputs.folder / SHARE, files=2)
    wanted = {
        "there_and_back": (queries.there_and_back(share, SHARE), inputs.topics[SHARE].there_and_back()),
        "members": (queries.members(offsets), inputs.topics[OFFSETS].members()),
    }

    for name, (rows, expected) in wanted.items():
        run(rows, tmp_path / name, tmp_path / "checkpoints" / name)

        assert _sunk(quick, tmp_path / name) == in_order(expected)


def test_a_table_over_all_that_has_come(quick: SparkSession, inputs: Inputs, tmp_path: Path) -> None:
    """A table needs a whole log: store the raw rows of each micro-batch, and make the table again."""
    seen: list[int] = []

    def renew(rows: DataFrame, batch: int) -> None:
        rows.write.mode("append").parquet(str(tmp_path / "saved"))
        saved = rows.sparkSession.read.parquet(str(tmp_path / "saved"))
        queries.table("current_offsets", saved).write.mode("overwrite").parquet(str(tmp_path / "table"))
        seen.append(batch)

    query = (
        stream_of(quick, inputs.folder / OFFSETS, files=2)
        .writeStream.foreachBatch(renew)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(300)

    assert seen == [0, 1]
    rows = quick.read.parquet(str(tmp_path / "table")).collect()
    assert sorted(map(tuple, rows)) == inputs.tables["current_offsets"]
