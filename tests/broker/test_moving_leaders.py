"""Three brokers with groups of every kind, two of which are killed and started again, so that leaders and coordinators
move. Whenever nothing changes, requests, the log, and the log with a state directory have the same rows."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.live_requests import LiveRequests
from kafka_records_tables import TABLES, read_table, read_tables
from kafka_records_tables.tables.requested.what_requests_tell import UNKNOWN
from tests.broker.clients import wait_until
from tests.broker.every_group import every_group
from tests.broker.test_live_cluster import AWAY, three_running
from tests.broker.test_live_requests import differences, is_seen_by_requests
from tools.faults.cluster import ProxiedBroker

pytestmark = [
    pytest.mark.broker,
    pytest.mark.matrix,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

# progress compares two moments; configs, brokers and features are requested from each broker, and one of them is down.
NAMES: Final = [name for name in UNKNOWN if name not in ("progress", "configs", "brokers", "features")]
TRIES: Final = 10
PROTOCOLS: Final = {"classic", "simple", "consumer", "share", "streams"}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ProxiedBroker]]:
    with three_running(tmp_path_factory.mktemp("moving")) as made:
        yield made


def _same_rows(bootstrap: str, state: Path) -> int:
    """Compare until the log does not change meanwhile. Returns the number of compared rows."""
    for _ in range(TRIES):
        before = read_tables(NAMES, LiveBrokers(bootstrap))
        asked = read_tables(NAMES, LiveRequests(bootstrap))
        kept = read_tables([name for name in NAMES if TABLES[name].inputs], LiveBrokers(bootstrap), state=state)
        after = read_tables(NAMES, LiveBrokers(bootstrap))
        if not all(each.is_complete for each in (before, asked, kept, after)):
            continue
        if any(differences(name, _rows(before[name]), _rows(after[name]), all_known=True) for name in NAMES):
            continue
        compared = 0
        for name in NAMES:
            expected = [row for row in _rows(before[name]) if is_seen_by_requests(row)]
            assert expected, name
            assert differences(name, expected, _rows(asked[name])) == [], name
            compared += len(expected)
        for name, result in kept.items():
            assert differences(name, _rows(before[name]), _rows(result), all_known=True) == [], name
        assert {row["group_kind"] for row in _rows(asked["groups"])} == PROTOCOLS
        return compared
    pytest.fail("the logs do not rest")


def _rows(result: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = result.table.to_pylist()
    return rows


def _leaders(bootstrap: str) -> dict[tuple[str, int], str | None]:
    rows = read_table("log_ends", LiveBrokers(bootstrap)).table.to_pylist()
    return {(row["topic"], row["partition"]): row["place"] for row in rows}


def test_sources_agree_when_leaders_have_moved(brokers: list[ProxiedBroker], tmp_path: Path) -> None:
    bootstrap = ",".join(broker.bootstrap for broker in brokers)
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap.split(","))) as admin:
        wait_until(lambda: _serves(admin), "the coordinators do not answer", AWAY)
        with every_group(bootstrap, admin, copies=3):
            rows, moved = [_same_rows(bootstrap, tmp_path / "state")], 0
            for broker in brokers[1:]:  # the first one is the only controller
                led = _leaders(bootstrap)
                broker.kill()
                wait_until(
                    lambda dead=broker.bootstrap: dead not in _leaders(bootstrap).values(),  # type: ignore[misc]
                    "leaders do not move",
                    AWAY,
                )
                moved += sum(place != led[at] for at, place in _leaders(bootstrap).items())
                rows.append(_same_rows(bootstrap, tmp_path / "state"))
                broker.start()
                wait_until(lambda led=led: _leaders(bootstrap) == led, "leaders do not return", AWAY)  # type: ignore[misc]
                rows.append(_same_rows(bootstrap, tmp_path / "state"))
            gc.collect()  # kafka-python leaves sockets to the garbage collector if a broker dies
            print(f"{len(rows)} comparisons of {rows} rows, {moved} leaders moved and came back")
            assert moved > 5


def _serves(admin: KafkaAdminClient) -> bool:
    with suppress(KafkaError):
        admin.list_group_offsets([chr(letter) for letter in range(97, 123)])
        return True
    return False
