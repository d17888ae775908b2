"""One real broker for all tests of this folder, and CI's rule that they are not skipped."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest
from kafka.admin import KafkaAdminClient

from tests.broker.clients import wait_for_coordinators
from tests.ci import count_skip_as_failure
from tests.kafka_needed import skipped_without_kafka
from tools.broker import Broker

_LOG = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker. Without Java or the jars the tests are skipped, which CI counts as failures."""
    started = Broker(tmp_path_factory.mktemp("broker"))
    with skipped_without_kafka():
        started.start()
    request.config.stash[_LOG] = str(started.log)
    try:
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="session")
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    """kafka-python's admin client, for a broker whose group coordinators answer."""
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    wait_for_coordinators(client)
    yield client
    client.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI, turn a skipped test into a failed one. Add the place of the broker's log to a failed test."""
    report = yield
    count_skip_as_failure(report)
    if report.failed and (log := item.config.stash.get(_LOG, None)):
        report.sections.append(("Broker", f"Kafka's log is {log}"))
    return report
