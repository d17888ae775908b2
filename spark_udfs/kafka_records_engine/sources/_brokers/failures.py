"""How asking a broker can fail: for now, or for good."""

from __future__ import annotations

from kafka_records_runtime.errors import KafkaRecordsError


class ConnectionLost(KafkaRecordsError, OSError):
    """A broker cannot be reached, went away or does not answer in time: worth another try. `detail` says how."""

    def __init__(self, address: str, detail: str) -> None:
        super().__init__(address, detail)
        self.address = address
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.address}: {self.detail}"


class Refused(KafkaRecordsError, ValueError):
    """What no other try mends: the wrong password, a certificate that is not trusted, a missing right."""

    def __init__(self, address: str, detail: str) -> None:
        super().__init__(address, detail)
        self.address = address
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.address}: {self.detail}"
