"""The lag of share groups, compared with what a 4.3.1 broker answered about them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_records_engine.sources import Context
from kafka_records_tables import read_table
from kafka_records_tables.tables.share_lag import TABLE
from tests.log.logs import DATA

TIMED = DATA / "timed"


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str, int], dict[str, Any]]:
    found = read_table("share_lag", TIMED / "data").table.to_pylist()
    return {(row["group_id"], row["topic"], row["partition"]): row for row in found}


def test_lag_is_what_the_broker_answered(rows: dict[tuple[str, str, int], dict[str, Any]]) -> None:
    answers = map(json.loads, (TIMED / "share_group_offsets.jsonl").read_text("utf-8").splitlines())
    told = {(each["group"], each["topic"], each["partition"]): (each["start_offset"], each["lag"]) for each in answers}
    assert len(told) == 11
    # These include some with only acknowledged records left, and some without a start offset.
    assert {(277, 0), (417, 3), (None, None)} <= {*told.values()}
    assert {key: (row["start_offset"], row["lag"]) for key, row in rows.items()} == told


def test_since_when_the_first_record_waits(rows: dict[tuple[str, str, int], dict[str, Any]]) -> None:
    since = {
        ("sh-set", "timed.plain", 0): 1795440136338,
        ("sh-set", "timed.plain", 1): 1795443967338,
        ("sh-all", "timed.plain", 0): 1795443976338,
        ("sh-all", "timed.plain", 1): None,
        ("sh-late", "timed.plain", 1): None,
    }
    """The time at which the producer made the record at the start offset."""
    assert {key: rows[key]["unread_timestamp_ms"] for key in since} == since
    assert rows["sh-set", "timed.plain", 0]["lag_ms"] > 0


def test_state_of_an_older_kafka_and_of_deleted_topics() -> None:
    state = read_table("share_partitions", TIMED / "data").table
    older = state.set_column(
        state.schema.get_field_index("delivery_complete_count"),
        state.schema.field("delivery_complete_count"),
        pa.nulls(state.num_rows, pa.int32()),
    )
    ends = read_table("log_ends", TIMED / "data").table
    ends = ends.filter(pc.not_equal(ends["topic"], "timed.txn"))
    found = pa.Table.from_batches(TABLE.joined({"share_partitions": older, "log_ends": ends}, Context()))
    lags = {(row["group_id"], row["topic"], row["partition"]): row["lag"] for row in found.to_pylist()}
    assert (lags["sh-all", "timed.plain", 1], lags["sh-all", "timed.plain", 2]) == (0, 0)
    assert [lags["sh-part", None, partition] for partition in range(3)] == [None] * 3
