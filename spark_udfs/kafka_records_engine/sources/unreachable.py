"""The error for brokers that do not answer. If other brokers do, it becomes a finding about damage."""

from __future__ import annotations

from kafka_records_engine.findings import UNREACHABLE_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError


class UnreachableBrokers(LogSourceError):
    """No broker answers, or none answered in time."""

    def finding(self) -> Finding:
        """The damage to a result without the answers of these brokers."""
        return Finding("damage", UNREACHABLE_LOG, self.detail, "the response of that broker is missing", file=self.path)
