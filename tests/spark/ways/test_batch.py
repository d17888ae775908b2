"""In batch, in a classic session. (tests/tables has the tables in batch.)"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spark.ways import queries
from tests.spark.ways.truth import COUNTS, OFFSETS, TOPICS, in_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.spark.across_releases.reading import Record
    from tests.spark.ways.conftest import Inputs

pytestmark = pytest.mark.spark


def _rows(frame: DataFrame) -> list[Record]:
    return [row.asDict(recursive=True) for row in frame.collect()]


@pytest.mark.parametrize("topic", TOPICS)
def test_records_are_decoded_and_counted(quick: SparkSession, inputs: Inputs, topic: str) -> None:
    from pyspark.sql import Observation

    counts = Observation()
    found = _rows(queries.decoded(inputs.read(quick, topic), topic, observation=counts))

    assert in_order(found) == in_order(inputs.topics[topic].decoded)
    assert {name: count for name, count in counts.get.items() if count} == COUNTS[topic]


@pytest.mark.parametrize("topic", TOPICS)
def test_column_functions_there_and_back(quick: SparkSession, inputs: Inputs, topic: str) -> None:
    found = _rows(queries.there_and_back(inputs.read(quick, topic), topic))

    assert in_order(found) == in_order(inputs.topics[topic].there_and_back())


def test_messages_inside_of_records(quick: SparkSession, inputs: Inputs) -> None:
    raw = inputs.read(quick, OFFSETS)

    assert in_order(_rows(queries.markers(raw))) == in_order(inputs.topics[OFFSETS].markers())
    assert in_order(_rows(queries.members(raw))) == in_order(inputs.topics[OFFSETS].members())
