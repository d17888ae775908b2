"""Show what a consumer group has committed, and delete such offsets, over a socket and with only the codecs.

    python examples/offset_admin.py 127.0.0.1:9092 payments              what the group has committed
    python examples/offset_admin.py 127.0.0.1:9092 payments orders:0     delete what it has committed for a partition

Speaks plain text with brokers of Kafka 3.8 or later. Exit status 1 when the broker refuses something.
"""

from __future__ import annotations

import argparse
import socket
import struct
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any, TypeVar

from kafka_records.registry import APIS
from kafka_records.rpc import offset_delete_request as offset_delete
from kafka_records.rpc.api_versions_request import ApiVersionsRequest
from kafka_records.rpc.api_versions_response import ApiVersionsResponse
from kafka_records.rpc.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafka_records.rpc.consumer_group_describe_response import ConsumerGroupDescribeResponse, DescribedGroup
from kafka_records.rpc.find_coordinator_request import FindCoordinatorRequest
from kafka_records.rpc.find_coordinator_response import FindCoordinatorResponse
from kafka_records.rpc.offset_delete_response import OffsetDeleteResponse
from kafka_records.rpc.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kafka_records.rpc.offset_fetch_response import OffsetFetchResponse
from kafka_records.rpc.request_header import RequestHeader
from kafka_records.rpc.response_header import ResponseHeader
from kafka_records_runtime.kafka.error_codes import ErrorCode

Partition = tuple[str, int]
R = TypeVar("R")


class BrokerRefused(Exception):
    """The broker answered with an error code, whose name this is."""


class Connection:
    """A connection to one broker. It uses the newest version of each request that both sides know."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=30)
        self._received = self._socket.makefile("rb")
        self._sent = 0
        self._spoken = {ApiVersionsRequest.API_KEY: range(3, 4)}  # what every broker since Kafka 2.4 understands
        for api in self.ask(ApiVersionsRequest("offset-admin", "1"), ApiVersionsResponse.decode).api_keys:
            self._spoken[api.api_key] = range(api.min_version, api.max_version + 1)

    def ask(self, request: Any, decode: Callable[[bytes, int], R], at_most: int = 32767) -> R:
        """Send a request, decode its response. Raises ConnectionError, or DecodeError for a broken response."""
        api = APIS[request.API_KEY]
        versions = set(api.versions) & set(self._spoken.get(api.key, ())) & set(range(at_most + 1))
        if not versions:
            raise ConnectionError(f"this broker speaks no version of {api.name} that we speak")
        version = max(versions)
        self._sent += 1
        header = RequestHeader(api.key, version, self._sent, "offset-admin")
        message = header.encode(api.request_header_version(version)) + request.encode(version)
        self._socket.sendall(struct.pack(">i", len(message)) + message)
        data = self._read(*struct.unpack(">i", self._read(4)))
        answered, end = ResponseHeader.decode_prefix(data, api.response_header_version(version))
        if answered.correlation_id != self._sent:
            raise ConnectionError(f"expected the response to request {self._sent}, not to {answered.correlation_id}")
        return decode(data[end:], version)

    def _read(self, size: int) -> bytes:
        data = self._received.read(size) if 0 <= size < 100_000_000 else b""
        if len(data) != size:
            raise ConnectionError(f"expected {size} more bytes: the connection was closed, or this is no Kafka broker")
        return data

    def close(self) -> None:
        self._received.close()
        self._socket.close()


def coordinator(host: str, port: int, group: str) -> Connection:
    """A connection to the broker that keeps the group. Raises BrokerRefused."""
    request = FindCoordinatorRequest(coordinator_keys=(group,))
    with closing(Connection(host, port)) as bootstrap:
        for seconds in (0.25, 0.5, 1, 2, 4, 0):
            (found,) = bootstrap.ask(request, FindCoordinatorResponse.decode).coordinators
            if found.error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE:
                break
            time.sleep(seconds)  # the first to ask waits until the offsets topic has been made
    if found.error_code:
        raise BrokerRefused(ErrorCode(found.error_code).name)
    return Connection(found.host, found.port)


def describe(connection: Connection, group: str) -> DescribedGroup:
    """State and members of a group of the consumer protocol; error code 69 for any other kind, or for none."""
    (described,) = connection.ask(ConsumerGroupDescribeRequest((group,)), ConsumerGroupDescribeResponse.decode).groups
    return described


def committed(connection: Connection, group: str) -> dict[Partition, int]:
    """What the group has committed; nothing for a group that does not exist. Raises BrokerRefused."""
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group, topics=None),))
    # From version 10 on topics have ids, whose names would take one more request.
    (answer,) = connection.ask(request, OffsetFetchResponse.decode, at_most=9).groups
    if answer.error_code:
        raise BrokerRefused(ErrorCode(answer.error_code).name)
    return {(topic.name, p.partition_index): p.committed_offset for topic in answer.topics for p in topic.partitions}


def delete(connection: Connection, group: str, partitions: Iterable[Partition]) -> dict[Partition, ErrorCode]:
    """Delete committed offsets; the outcome by partition is NONE if nothing is left, deleted or not there before."""
    asked: dict[str, list[offset_delete.OffsetDeleteRequestPartition]] = {}
    for topic, index in partitions:
        asked.setdefault(topic, []).append(offset_delete.OffsetDeleteRequestPartition(index))
    topics = tuple(offset_delete.OffsetDeleteRequestTopic(name, tuple(indexes)) for name, indexes in asked.items())
    answer = connection.ask(offset_delete.OffsetDeleteRequest(group, topics), OffsetDeleteResponse.decode)
    if answer.error_code:  # the group as a whole: no partition is listed
        return {(t.name, p.partition_index): ErrorCode(answer.error_code) for t in topics for p in t.partitions}
    return {(t.name, p.partition_index): ErrorCode(p.error_code) for t in answer.topics for p in t.partitions}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("broker", metavar="HOST:PORT")
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument("partitions", nargs="*", metavar="TOPIC:PARTITION")
    asked = parser.parse_args()
    host, _, port = asked.broker.rpartition(":")
    named = [(topic, int(index)) for topic, _, index in (text.rpartition(":") for text in asked.partitions)]
    with closing(coordinator(host, int(port), asked.group)) as connection:
        if named:
            outcomes = delete(connection, asked.group, named)
            for (topic, index), code in outcomes.items():
                print(f"{topic}:{index} {code.name if code else 'deleted'}")
            return 1 if any(outcomes.values()) else 0
        described, offsets = describe(connection, asked.group), committed(connection, asked.group)
        state = ErrorCode(described.error_code).name if described.error_code else described.group_state
        print(f"{asked.group}: {described.error_message or state}")
        for (topic, index), offset in sorted(offsets.items()):
            print(f"{topic}:{index} {offset}")
        return 1 if described.error_code and not offsets else 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except (OSError, ValueError, BrokerRefused) as error:  # the errors of the codecs are ValueErrors
        raise SystemExit(f"{type(error).__name__}: {error}") from None
