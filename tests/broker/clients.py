"""Helpers of the tests of this folder that use kafka-python, so that our own codecs are not involved."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping

from kafka import OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import BrokerResponseError, NoError

from tools.broker import Broker, broker_jars, java

PATIENCE = 30
"""After this many seconds, something that should happen at once counts as not happening."""

Offsets = Mapping[tuple[str, int], int]


def wait_until(happened: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Call `happened` until it returns true; fail with `what` after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < deadline, f"after {patience:g} s {what}"
        time.sleep(0.05)


def wait_for_coordinators(admin: KafkaAdminClient) -> None:
    """Wait until every partition of a new cluster's offsets topic is served: kafka-python's admin does not retry."""

    def served() -> bool:
        try:
            # Groups that hash to partitions 1, 2 and 0 of 3.
            admin.list_group_offsets(["a", "b", "c"])
        except BrokerResponseError as error:
            if error.retriable:
                return False
            raise
        return True

    wait_until(served, "the group coordinators do not answer")


def annotated(offsets: Offsets, metadata: str = "") -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets by topic and partition, in the form that kafka-python's clients accept."""
    return {TopicPartition(*place): OffsetAndMetadata(offset, metadata, -1) for place, offset in offsets.items()}


def create_topics(admin: KafkaAdminClient, copies: int = 1, **partitions: int) -> None:
    """Create topics with the given numbers of partitions, and wait until clients see them."""
    shapes = {name: {"num_partitions": count, "replication_factor": copies} for name, count in partitions.items()}
    admin.create_topics(shapes, wait_for_metadata=True)


def commit(admin: KafkaAdminClient, group: str, offsets: Offsets, metadata: str = "") -> None:
    """Commit without being a member of the group, as admin tools do."""
    outcomes = admin.alter_group_offsets(group, annotated(offsets, metadata))
    assert set(outcomes.values()) == {NoError}, outcomes


def consumer_groups(broker: Broker, *arguments: str) -> str:
    """The output of Kafka's tool `kafka-consumer-groups`."""
    program = [java(), "-cp", str(broker_jars() / "*"), "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"]
    asked = [*program, "--bootstrap-server", broker.bootstrap, *arguments]
    return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=120).stdout
