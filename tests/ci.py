"""CI's rule: a test that needs Kafka's jars or a broker may not be skipped there."""

from __future__ import annotations

import os

import pytest


def count_skip_as_failure(report: pytest.TestReport) -> None:
    """In CI (`CI=true`), turn a skipped test into a failed one."""
    if report.skipped and os.environ.get("CI", "").lower() in ("true", "1"):
        assert isinstance(report.longrepr, tuple)
        report.outcome = "failed"
        report.longrepr = f"CI has to run this, but: {report.longrepr[2]}"
