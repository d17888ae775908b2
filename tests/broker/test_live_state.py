"""A day of traffic in compressed time, read with a state directory again and again.

Groups of all kinds except streams appear, commit (also in transactions), rebalance and disappear. A cleaner removes
tombstones at once, and three brokers are killed and restarted in turn. Whenever traffic pauses, a run with the state
must have the same rows as a run without it. KAFKA_RECORDS_DAY_SECONDS is the duration.
"""

from __future__ import annotations

import gc
import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import KafkaError

from examples import offset_admin
from kafka_records.rpc.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafka_records.rpc.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kafka_records.rpc.delete_groups_request import DeleteGroupsRequest
from kafka_records.rpc.delete_groups_response import DeleteGroupsResponse
from kafka_records.rpc.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafka_records.rpc.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from kafka_records_engine.sources import compaction, kept_logs
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_tables import read_table, read_tables
from tests.broker.clients import annotated, wait_until
from tests.broker.test_live_cluster import AWAY, PARTITIONS, commit, three_running
from tools.broker import HOST
from tools.faults.cluster import ProxiedBroker

pytestmark = [
    pytest.mark.broker,
    pytest.mark.matrix,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

SECONDS = float(os.environ.get("KAFKA_RECORDS_DAY_SECONDS", "300"))
RUNS_BETWEEN = 10
"""The number of runs during traffic before it pauses and rows are compared."""
OF_STATE = ["lag", "current_offsets", "pending_offsets", "groups", "members", "assignments", "share_group_topics"]
INTERNAL = ("__consumer_offsets", "__share_group_state", "__transaction_state")
_KEPT: list[Any] = []
"""Clients with threads that still connect. They are kept, because garbage collection of their sockets outside this test
would fail another test."""
PASSING = (OSError, ValueError, KafkaError, offset_admin.BrokerRefused, AssertionError)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ProxiedBroker]]:
    """Three brokers with a topic. Their logs of groups are cleaned as soon as possible."""
    with three_running(tmp_path_factory.mktemp("day")) as made:
        with closing(KafkaProducer(bootstrap_servers=made[0].bootstrap)) as producer:
            for number in range(100):
                producer.send("events", b"%d" % number, partition=number % PARTITIONS)
        wait_until(lambda: _commit(made, "first", 1), "nobody commits", AWAY)
        settings = {
            "segment.ms": "3000",
            "min.cleanable.dirty.ratio": "0.001",
            "delete.retention.ms": "1000",
            "max.compaction.lag.ms": "2000",
        }
        with closing(KafkaAdminClient(bootstrap_servers=[broker.bootstrap for broker in made])) as admin:
            admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "__consumer_offsets", settings)])
        yield made


def _port(brokers: list[ProxiedBroker]) -> int:
    return random.choice(brokers).port


def _commit(brokers: list[ProxiedBroker], group: str, offset: int) -> bool:
    with suppress(*PASSING):
        return commit(_port(brokers), group, offset)
    return False


@dataclass
class Traffic:
    """The actions of applications, step by step. There are none while traffic pauses."""

    brokers: list[ProxiedBroker]
    gate: threading.Lock = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)
    steps: dict[str, int] = field(default_factory=dict)
    clients: list[Any] = field(default_factory=list)
    """All clients: some never end by themselves."""

    def start(self) -> list[threading.Thread]:
        kinds: list[Callable[[], Callable[[], None]]] = [
            self._simple,
            self._heartbeats,
            self._transactions,
            self._classic,
        ]
        threads = [threading.Thread(target=self._run, args=(kind,), daemon=True) for kind in kinds]
        for thread in threads:
            thread.start()
        return threads

    def stop(self, threads: list[threading.Thread]) -> None:
        self.stopped.set()
        for thread in threads:
            thread.join(60)
        for client in self.clients:
            closing_it = threading.Thread(target=_quietly, args=(client.close,), daemon=True)
            closing_it.start()
            closing_it.join(5)
        # kafka-python leaves sockets to the garbage collector if a broker dies during a connection attempt.
        _KEPT.extend(self.clients)
        gc.collect()

    @contextmanager
    def resting(self) -> Iterator[None]:
        with self.gate:
            yield

    def _run(self, kind: Callable[[], Callable[[], None]]) -> None:
        while not self.stopped.is_set():
            with suppress(*PASSING):
                step = kind()
                while not self.stopped.is_set():
                    with self.gate:
                        step()
                        self.steps[kind.__name__] = self.steps.get(kind.__name__, 0) + 1
                    time.sleep(random.uniform(0.01, 0.1))

    def _in_time(self, step: Callable[[], object]) -> None:
        """Take a step that may never end: if a broker dies, kafka-python waits for the end of a transaction forever."""
        thread = threading.Thread(target=_quietly, args=(step,), daemon=True)
        thread.start()
        thread.join(5)
        if thread.is_alive():
            raise TimeoutError

    @property
    def _bootstrap(self) -> list[str]:
        return [broker.bootstrap for broker in self.brokers]

    def _simple(self) -> Callable[[], None]:
        """Groups that commit, many of them for a short time; offsets and groups are deleted."""

        def step() -> None:
            group = f"job-{random.randrange(400)}" if random.random() < 0.5 else f"steady-{random.randrange(8)}"
            chance = random.random()
            if chance < 0.8 or group.startswith("steady"):
                _commit(self.brokers, group, random.randrange(1, 90))
                return
            with closing(offset_admin.coordinator(HOST, _port(self.brokers), group)) as connection:
                if chance < 0.9:
                    offset_admin.delete(connection, group, [("events", random.randrange(PARTITIONS))])
                else:
                    connection.ask(DeleteGroupsRequest((group,)), DeleteGroupsResponse.decode)

        return step

    def _heartbeats(self) -> Callable[[], None]:
        """Groups of the newer protocols, whose members join and leave."""
        epochs: dict[tuple[str, str], int] = {}

        def step() -> None:
            kind = random.choice(["consumer", "share"])
            place = f"{kind}-{random.randrange(3)}", f"m{random.randrange(4):023}"
            joined = epochs.get(place)
            epoch = 0 if joined is None else -1 if random.random() < 0.3 else joined
            group, member = place
            topics = ("events",) if epoch == 0 else None
            with closing(offset_admin.coordinator(HOST, _port(self.brokers), group)) as connection:
                answer: Any
                if kind == "share":
                    asked = ShareGroupHeartbeatRequest(group, member, epoch, subscribed_topic_names=topics)
                    answer = connection.ask(asked, ShareGroupHeartbeatResponse.decode)
                else:
                    about = {"rebalance_timeout_ms": 10_000, "topic_partitions": ()} if epoch == 0 else {}
                    beat = ConsumerGroupHeartbeatRequest(
                        group, member, epoch, subscribed_topic_names=topics, **about  # type: ignore[arg-type]
                    )
                    answer = connection.ask(beat, ConsumerGroupHeartbeatResponse.decode)
            if answer.error_code or epoch == -1:
                epochs.pop(place, None)
            else:
                epochs[place] = answer.member_epoch

        return step

    def _transactions(self) -> Callable[[], None]:
        """Transactions that commit offsets. Some are aborted or stay open for a while."""
        name = f"pipeline-{random.randrange(3)}"
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, transactional_id=name, max_block_ms=5_000)
        self.clients.append(producer)
        self._in_time(producer.init_transactions)
        is_open = False

        def step() -> None:
            nonlocal is_open
            if not is_open:
                producer.begin_transaction()
                offsets = {("events", partition): random.randrange(90) for partition in range(PARTITIONS)}
                self._in_time(lambda: producer.send_offsets_to_transaction(annotated(offsets), f"{name}-group"))
            elif random.random() < 0.3:
                self._in_time(producer.abort_transaction)
            else:
                self._in_time(producer.commit_transaction)
            is_open = not is_open

        return step

    def _classic(self) -> Callable[[], None]:
        """Members of classic groups, one after another."""
        found: list[KafkaConsumer] = []

        def step() -> None:
            if not found:
                found.append(
                    KafkaConsumer(
                        "events",
                        bootstrap_servers=self._bootstrap,
                        group_id=f"classic-{random.randrange(3)}",
                        auto_offset_reset="earliest",
                        enable_auto_commit=False,
                        session_timeout_ms=6000,
                        heartbeat_interval_ms=1000,
                    )
                )
                self.clients.append(found[0])
            consumer = found[0]
            consumer.poll(timeout_ms=300, max_records=5)
            if consumer.assignment():
                consumer.commit()
            if random.random() < 0.1:
                found.pop().close()

        return step


@dataclass
class Watcher:
    """Compares runs with a state and runs without one."""

    bootstrap: str
    state: Path
    compared: int = 0
    moved: int = 0
    """How often something was written while traffic paused: coordinators write, for example, if a member is missing."""
    damaged: int = 0
    """How often a broker was down so long that an answer was incomplete."""
    rows: int = 0
    runs: int = 0
    """The number of runs with a state."""
    killed: int = 0
    """How many runs were killed before their end."""

    def run_killed(self) -> None:
        """Start the command during traffic, and kill it at a random moment."""
        words = ["table", "lag", "--bootstrap", self.bootstrap, "--state", str(self.state)]
        places = os.pathsep.join(place for place in sys.path if place)
        with subprocess.Popen(
            [sys.executable, "-m", "kafka_records_tables.commands.main", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": places},
        ) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(random.uniform(0.5, 4))
            self.killed += process.returncode is None
            process.kill()

    def run(self) -> None:
        """A run during traffic. Its rows are not compared, but its state is used by all later runs."""
        read_table("lag", LiveBrokers(self.bootstrap), processes=1, state=self.state)
        self.runs += 1

    def compare(self, tables: list[str]) -> None:
        """Compare once or, while something changes, a few times."""
        wanted = self.compared + 1
        for _ in range(4):
            self._compare(tables)
            if self.compared == wanted:
                return

    def _compare(self, tables: list[str]) -> None:
        before = read_tables(tables, LiveBrokers(self.bootstrap), processes=1)
        found = read_tables(tables, LiveBrokers(self.bootstrap), processes=1, state=self.state)
        self.runs += 1
        after = read_tables(tables, LiveBrokers(self.bootstrap), processes=1)
        if not (before.is_complete and found.is_complete and after.is_complete):
            self.damaged += 1
            return
        if any(not before[name].table.equals(after[name].table) for name in tables):
            self.moved += 1
            return
        for name in tables:
            self._equal(name, before[name].table.to_pylist(), found[name].table.to_pylist())
            self.rows += found[name].table.num_rows
        self.compared += 1

    def _equal(self, name: str, expected: list[dict[str, Any]], found: list[dict[str, Any]]) -> None:
        if name == "groups":
            # A group whose last record a cleaner removed stays until its log is read from the start again, as in the
            # memory of a coordinator.
            known = {row["group_id"] for row in expected}
            assert {(row["group_kind"], row["epoch"]) for row in found if row["group_id"] not in known} <= {
                ("simple", None)
            }
            bare = [{**row, "log_offset": 0} for row in expected if row["epoch"] is None]
            assert [
                {**row, "log_offset": 0} for row in found if row["group_id"] in known and row["epoch"] is None
            ] == bare
            expected = [row for row in expected if row["epoch"] is not None]
            found = [row for row in found if row["epoch"] is not None]
        assert found == expected, f"{name}, after {self.compared} comparisons"


def test_a_day(brokers: list[ProxiedBroker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "_FEW_ROWS", 200)
    monkeypatch.setattr(kept_logs, "OLDEST_MS", 60_000)
    bootstrap = ",".join(broker.bootstrap for broker in brokers)
    traffic = Traffic(brokers)
    watcher = Watcher(bootstrap, tmp_path / "state")
    threads = traffic.start()
    kills, early_kb, sizes, resident_kb = 0, 0, [], []
    try:
        deadline, next_kill, away = time.monotonic() + SECONDS, time.monotonic() + 20, None
        order = iter(brokers[1:] * 1000)  # the first one is the only controller
        runs = 0
        while time.monotonic() < deadline:
            runs += 1
            if away is not None and time.monotonic() > next_kill + 8:
                away.start()
                away, next_kill = None, time.monotonic() + 40
            elif away is None and time.monotonic() > next_kill:
                away = next(order)
                away.kill()
                kills += 1
            for _ in range(RUNS_BETWEEN):
                watcher.run()
            if runs % 2 == 0:
                watcher.run_killed()
            with traffic.resting():
                watcher.compare(["offset_commits", "expirations"] if runs % 25 == 0 else OF_STATE)
            sizes.append(sum(file.stat().st_size for file in (tmp_path / "state").rglob("*") if file.is_file()))
            resident_kb.append(_resident_kb())
            if time.monotonic() > deadline - SECONDS * 0.6 and not early_kb:
                early_kb = resident_kb[-1]
            time.sleep(random.uniform(0.05, 0.4))
        if away is not None:
            away.start()
    finally:
        traffic.stop(threads)
    grown_kb = _resident_kb() - early_kb
    print(
        f"{watcher.runs} runs, {watcher.compared} compared ({watcher.rows} rows), {watcher.moved} moved, "
        f"{watcher.damaged} not complete, {kills} brokers and {watcher.killed} runs killed, steps {traffic.steps}, "
        f"{grown_kb / 1024:.0f} MB more memory, state at most "
        f"{max(sizes) / 1e6:.1f} MB, {sizes[-1] / 1e6:.1f} MB in the end\n"
        f"MB resident after each round: {' '.join(str(kb // 1024) for kb in resident_kb)}"
    )
    assert watcher.compared > runs / 3
    assert set(traffic.steps) == {"_simple", "_heartbeats", "_transactions", "_classic"}
    assert grown_kb < 64 * 1024
    _leaves_no_trace(bootstrap, watcher)


def _leaves_no_trace(bootstrap: str, watcher: Watcher) -> None:
    """Check that runs write nothing to any topic, and create no group."""

    def ends() -> list[Any]:
        rows = read_table("log_ends", LiveBrokers(bootstrap)).table.to_pylist()
        return [(row["topic"], row["partition"], row["log_end_offset"], row["high_watermark"]) for row in rows]

    def groups() -> set[str]:
        found: list[Any] = []

        def is_told() -> bool:
            with suppress(KafkaError), closing(KafkaAdminClient(bootstrap_servers=bootstrap.split(","))) as admin:
                found[:] = [str(getattr(group, "group_id", group)) for group in admin.list_groups()]
                return True
            return False

        wait_until(is_told, "the coordinators do not list groups", AWAY)
        return {*found}

    for _ in range(10):
        before, there = ends(), groups()
        compared = watcher.compared
        for _ in range(3):
            watcher.compare(OF_STATE)
        if watcher.compared == compared + 3 and ends() == before:
            assert groups() == there
            return
        time.sleep(3)  # coordinators remove missing members only after a while
    pytest.fail("the logs do not rest")


def _quietly(step: Callable[[], object]) -> None:
    with suppress(Exception):
        step()


def _resident_kb() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024
