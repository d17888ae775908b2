"""Both checksums, with the wheel and without it."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_records_engine.log.format import crc
from tests.log.logs import segment_cases


def test_check_value_of_kafka() -> None:
    check = segment_cases()["crc32c"]
    data = check["input_ascii"].encode()
    assert crc.crc32c(data) == check["value"]
    assert crc.crc32c_by_table(data) == check["value"]


@given(st.binary(max_size=300))
def test_table_and_wheel_agree(data: bytes) -> None:
    assert crc.crc32c_by_table(data) == crc.crc32c(data)


def test_the_wheel_is_used_where_it_is() -> None:
    assert crc.crc32c is not crc.crc32c_by_table


def test_the_table_serves_where_the_wheel_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    assert crc._fastest() is crc.crc32c_by_table
