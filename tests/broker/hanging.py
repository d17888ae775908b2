"""Makes a transaction hang on a real broker, with batches that kafka-python builds.

If a producer still writes after its transaction has ended, it leaves a transaction that no coordinator knows. This
happened before Kafka 3.6, which verifies each transaction (KIP-890). A dynamic setting of brokers turns this
verification off.
"""

from __future__ import annotations

import socket
import struct
from contextlib import closing
from typing import Final, NamedTuple

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.record.default_records import DefaultRecordBatchBuilder

from tests.broker.clients import wait_until

_SETTING: Final = "transaction.partition.verification.enable"


class Hanging(NamedTuple):
    """A hanging transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    first_offset: int
    timestamp_ms: int


def verify_transactions(admin: KafkaAdminClient, enabled: bool) -> None:
    """Whether brokers ask the coordinator about a transaction before they write (KIP-890)."""
    value = "true" if enabled else "false"
    admin.alter_configs(
        [ConfigResource(ConfigResourceType.BROKER, "1", configs={_SETTING: value})], raise_on_unknown=False
    )


def hang(bootstrap: str, topic: str, partition: int, transactional_id: str, timestamp_ms: int) -> Hanging:
    """Commit a transaction with one record, and write two more records in a transaction that no coordinator has
    begun."""
    with closing(
        KafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id, linger_ms=0)
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        written = producer.send(topic, b"committed", b"key", partition=partition).get(10).offset
        producer.commit_transaction()
        pair = producer._transaction_manager.producer_id_and_epoch
        producer_id, epoch = int(pair.producer_id), int(pair.epoch)
    # The coordinator answers before its marker is written. Wait for the marker, because it would end transactional
    # records before it.
    with closing(KafkaConsumer(bootstrap_servers=bootstrap)) as consumer:
        place = TopicPartition(topic, partition)
        wait_until(lambda: consumer.end_offsets([place])[place] >= written + 2, "the marker is not written")
    # The previous record had sequence 0. kafka-python uses transactions of version 1, which do not change the epoch.
    builder = DefaultRecordBatchBuilder(2, 0, True, producer_id, epoch, 1, 1 << 20)
    for offset in range(2):
        builder.append(offset, timestamp_ms, b"key", b"left", [])
    first = _produce(bootstrap, topic, partition, transactional_id, bytes(builder.build()))
    return Hanging(transactional_id, producer_id, epoch, first, timestamp_ms)


def _produce(bootstrap: str, topic: str, partition: int, transactional_id: str, batch: bytes) -> int:
    """Send version 3 of Produce, which every broker knows. Returns the offset of the first record."""
    head = struct.pack(">hhi", 0, 3, 1) + _text("hanging")
    body = _text(transactional_id) + struct.pack(">hii", -1, 10_000, 1) + _text(topic)
    body += struct.pack(">iii", 1, partition, len(batch)) + batch
    host, port = bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(struct.pack(">i", len(head + body)) + head + body)
        answer = connection.makefile("rb")
        (size,) = struct.unpack(">i", answer.read(4))
        answered = answer.read(size)
    at = 4 + 4 + 2 + len(topic) + 4
    _, code, offset = struct.unpack_from(">ihq", answered, at)
    assert code == 0, f"Produce: error {code}"
    return int(offset)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
