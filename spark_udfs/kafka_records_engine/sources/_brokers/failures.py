"""The ways in which a request to a broker can fail. A retry may help with some of them."""

from __future__ import annotations

from kafka_records_runtime.errors import KafkaRecordsError


class BrokerFailure(KafkaRecordsError):
    """The broker at `address` failed; `detail` says how."""

    def __init__(self, address: str, detail: str) -> None:
        super().__init__(address, detail)
        self.address = address
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.address}: {self.detail}"


class ConnectionLost(BrokerFailure, OSError):
    """A broker is unreachable, closed the connection, or did not answer in time. A retry may help."""


class PartitionUnavailable(ConnectionLost):
    """One partition cannot be read, because it has no leader or the leader's answer omits it. The broker's other
    partitions are not affected."""


class TopicUnavailable(ConnectionLost):
    """Brokers give invalid answers about one topic. Other topics are not affected."""


class NoAnswer(ConnectionLost):
    """A broker did not answer in time. `has_begun` means that part of the answer arrived."""

    has_begun = False


class AnswerTooLarge(ConnectionLost):
    """A broker announced an answer of `size` bytes, more than any answer to the request can have. It is not read."""

    size = 0


class PauseTooLong(ConnectionLost):
    """A broker requested a pause that exceeds the time limit."""


class Refused(BrokerFailure, ValueError):
    """A failure that a retry cannot fix: a wrong password, an untrusted certificate, an unknown request."""
