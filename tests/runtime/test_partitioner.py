"""Keys to partitions, against the values that Kafka's own code gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_records_runtime.kafka.partitioner import java_hash, partition_for, share_partition_key
from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid

SMALLEST = "polygenelubricants"
"""Its hash is -2^31, which has no absolute value in 32 bits."""


class TestAgreementWithKafka:
    def test_groups(self, kafka_cases: Callable[[str], Any]) -> None:
        cases = kafka_cases("segment-cases.json")["group_partition"]
        assert len(cases) == 11
        for case in cases:
            found = java_hash(case["group"]), partition_for(case["group"], 50)
            assert found == (case["java_hash"], case["partition_of_50"]), case["group"]

    def test_share_partition(self, kafka_cases: Callable[[str], Any]) -> None:
        case = kafka_cases("segment-cases.json")["share_partition"]
        group, topic, partition = case["coordinator_key"].split(":")
        key = share_partition_key(group, Uuid.from_string(topic), int(partition))
        assert key == case["coordinator_key"]
        assert (java_hash(key), partition_for(key, 50)) == (case["java_hash"], case["partition_of_50"])


class TestJavaHash:
    @pytest.mark.parametrize(
        ("text", "number"),
        [
            ("", 0),
            ("a", 97),
            ("ab", 31 * 97 + 98),
            ("Aa", 2112),
            ("BB", 2112),
            ("\x00", 0),
            ("\uffff", 65535),
            ("\ud800", 0xD800),
            (SMALLEST, -(2**31)),
        ],
    )
    def test_text(self, text: str, number: int) -> None:
        assert java_hash(text) == number

    def test_a_character_beyond_the_first_plane_counts_as_two(self) -> None:
        assert java_hash("\U0001f600") == 31 * 0xD83D + 0xDE00

    @given(st.text(st.characters()))
    def test_follows_the_formula(self, text: str) -> None:
        units = text.encode("utf-16-be", "surrogatepass")
        numbers = [units[at] << 8 | units[at + 1] for at in range(0, len(units), 2)]
        total = sum(unit * 31 ** (len(numbers) - 1 - at) for at, unit in enumerate(numbers))
        assert (java_hash(text) - total) % 2**32 == 0
        assert -(2**31) <= java_hash(text) < 2**31


class TestPartitionFor:
    def test_the_smallest_hash_counts_as_zero(self) -> None:
        assert [partition_for(SMALLEST, count) for count in (1, 3, 50, 1000)] == [0, 0, 0, 0]

    def test_a_negative_hash_loses_its_sign(self) -> None:
        assert java_hash("my-group") == -1906497762
        assert partition_for("my-group", 1000) == 762

    @given(st.text(), st.integers(1, 10_000))
    def test_lies_in_the_topic(self, key: str, partitions: int) -> None:
        assert 0 <= partition_for(key, partitions) < partitions

    @pytest.mark.parametrize("partitions", [0, -50])
    def test_no_partitions(self, partitions: int) -> None:
        with pytest.raises(ValueError, match=rf"^a topic must have at least one partition, got {partitions}$"):
            partition_for("group", partitions)


class TestSharePartitionKey:
    def test_a_group_may_have_colons(self) -> None:
        assert share_partition_key("a:b", ZERO_UUID, 12) == "a:b:AAAAAAAAAAAAAAAAAAAAAA:12"
