"""How asking a broker can fail. Another try may help against some of it."""

from __future__ import annotations

from kafka_records_runtime.errors import KafkaRecordsError


class BrokerFailure(KafkaRecordsError):
    """A failure of the broker at `address`; `detail` describes it."""

    def __init__(self, address: str, detail: str) -> None:
        super().__init__(address, detail)
        self.address = address
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.address}: {self.detail}"


class ConnectionLost(BrokerFailure, OSError):
    """A broker cannot be reached, went away or does not answer in time: worth another try."""


class PartitionUnavailable(ConnectionLost):
    """One partition cannot be asked for: it has no leader, or the leader's answer leaves it out. The other partitions
    of the broker are not concerned."""


class TopicUnavailable(ConnectionLost):
    """Brokers answer, and what they say about one topic makes no sense. Other topics are not concerned."""


class NoAnswer(ConnectionLost):
    """A broker does not answer in time. `has_begun`: a part of the answer is there."""

    has_begun = False


class AnswerTooLarge(ConnectionLost):
    """A broker announces an answer of `size` bytes, more than what it was asked for can take. Nothing of it is read."""

    size = 0


class PauseTooLong(ConnectionLost):
    """A broker asks for a pause that is longer than the wait for it may be."""


class Refused(BrokerFailure, ValueError):
    """Another try does not help: a wrong password, a certificate that is not trusted, an unknown request."""
