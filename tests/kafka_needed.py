"""Common to the tests with real Kafka classes: without Java or the jars they are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafka_records_codegen.evolution.kafka_releases import FetchError
from tools.broker import MissingPrerequisite


@contextmanager
def skipped_without_kafka() -> Iterator[None]:
    """Skip the test if Java or the jars are not available. In CI, a skip fails (`tests.ci`)."""
    try:
        yield
    except (MissingPrerequisite, FetchError) as missing:
        pytest.skip(str(missing))
