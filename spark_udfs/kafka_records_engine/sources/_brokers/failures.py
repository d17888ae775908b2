"""How asking a broker can fail: with a hope that asking again helps, or without."""

from __future__ import annotations

from kafka_records_runtime.errors import KafkaRecordsError


class BrokerFailure(KafkaRecordsError):
    """What went wrong with the broker at `address`; `detail` says what."""

    def __init__(self, address: str, detail: str) -> None:
        super().__init__(address, detail)
        self.address = address
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.address}: {self.detail}"


class ConnectionLost(BrokerFailure, OSError):
    """A broker cannot be reached, went away or does not answer in time: worth another try."""


class Refused(BrokerFailure, ValueError):
    """What no other try mends: the wrong password, a certificate that is not trusted, a missing right."""
