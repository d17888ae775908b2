"""Commands with and without each right, on a new cluster, and while logs move."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_tables import read_table
from kafka_records_tables.report.making import read_report
from tests.broker.clients import commit, create_topics, wait_for_coordinators
from tests.cli.running import Ran, run
from tests.kafka_needed import skipped_without_kafka
from tools.broker import HOST, Broker, free_ports

pytestmark = pytest.mark.broker

OFFSETS, SHARES, TRANSACTIONS = "__consumer_offsets", "__share_group_state", "__transaction_state"
READ, DESCRIBE = "READ", "DESCRIBE"
RIGHTS = {
    "all": {OFFSETS: READ, SHARES: READ, TRANSACTIONS: READ, "orders": DESCRIBE, "secret": DESCRIBE},
    "lagger": {OFFSETS: READ, "orders": DESCRIBE, "secret": DESCRIBE},
    "half": {OFFSETS: READ, SHARES: READ, TRANSACTIONS: DESCRIBE, "orders": DESCRIBE},
    "asker": {"orders": DESCRIBE},
    "nobody": {},
}
"""By user, whose password is the name: the allowed operation by topic."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rights")


@pytest.fixture(scope="module")
def new_broker(folder: Path) -> Iterator[Broker]:
    """A broker with a listener that requires passwords. No client has used it yet."""
    kinds = {"PLAINTEXT": "PLAINTEXT", "PASSWORD": "SASL_PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
    ports = dict(zip(kinds, free_ports(len(kinds)), strict=True))
    users = "".join(f' user_{name}="{name}"' for name in RIGHTS)
    at = {name: f"{name}://{HOST}:{port}" for name, port in ports.items()}
    settings = {
        "listeners": ",".join(at.values()),
        "advertised.listeners": ",".join(each for name, each in at.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in kinds.items()),
        "controller.quorum.voters": f"1@{HOST}:{ports['CONTROLLER']}",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.password.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required{users};"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    broker = Broker(folder / "broker", settings=settings, port=ports["PLAINTEXT"])
    with skipped_without_kafka():
        broker.start()
    for name in RIGHTS:
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        (folder / name).write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={module} required username="{name}" password="{name}";\n'
        )
    (folder / "password-listener").write_text(f"{HOST}:{ports['PASSWORD']}")
    try:
        yield broker
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def is_empty(new_broker: Broker, folder: Path) -> dict[str, Ran]:
    """The output of commands before the first client."""
    at = ("--bootstrap", new_broker.bootstrap)
    tables = {name: run("table", name, *at) for name in ("transactions", "groups", "checks", "lag", "log_ends")}
    return {
        **tables,
        "report": run("report", *at),
        "counts": run("counts", *at),
        "dump": run("dump", *at),
        "dump of a topic": run("dump", *at, "--topic", TRANSACTIONS),
        "snapshot": run("snapshot", *at, "--output", str(folder / "kept")),
    }


def test_a_new_cluster_is_an_empty_answer(is_empty: dict[str, Ran]) -> None:
    for name, ran in is_empty.items():
        assert ran.status == 0, (name, ran.err)
        if name != "log_ends":
            assert "there is no topic __" in ran.err + ran.out, name
            assert "brokers create it when a client first needs it" in " ".join((ran.err + ran.out).split()), name
    assert is_empty["dump"].out == ""


@pytest.fixture(scope="module")
def guarded(new_broker: Broker, is_empty: dict[str, Ran]) -> Broker:
    """The broker with two topics, a group that consumes both, a transaction, and the rights of RIGHTS."""
    from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

    with closing(KafkaAdminClient(bootstrap_servers=new_broker.bootstrap)) as admin:
        wait_for_coordinators(admin)
        create_topics(admin, orders=1, secret=1)
        with closing(KafkaProducer(bootstrap_servers=new_broker.bootstrap)) as producer:
            producer.send("orders", b"x").get(10)
        commit(admin, "shipping", {("orders", 0): 0, ("secret", 0): 0})
        with closing(KafkaProducer(bootstrap_servers=new_broker.bootstrap, transactional_id="t")) as producer:
            producer.init_transactions()
        admin.create_acls(
            [
                ACL(
                    f"User:{user}",
                    "*",
                    getattr(ACLOperation, operation),
                    ACLPermissionType.ALLOW,
                    ResourcePattern(ResourceType.TOPIC, topic),
                )
                for user, rights in RIGHTS.items()
                for topic, operation in rights.items()
            ]
            + [
                ACL(
                    "User:asker",
                    "*",
                    ACLOperation.DESCRIBE,
                    ACLPermissionType.ALLOW,
                    ResourcePattern(ResourceType.GROUP, "shipping"),
                )
            ]
        )
    return new_broker


COMMANDS = {
    "report": ("report", "--details"),
    "checks": ("table", "checks"),
    "lag": ("table", "lag"),
    "times of lag": ("table", "lag", "--times"),
    "group_lag": ("table", "group_lag"),
    "log_ends": ("table", "log_ends"),
    "groups": ("table", "groups"),
    "transactions": ("table", "transactions"),
    "open_transactions": ("table", "open_transactions"),
    "starting offsets": ("table", "current_offsets", "--format", "starting-offsets"),
    "counts": ("counts",),
    "dump": ("dump",),
    "snapshot": ("snapshot",),
}
_NOTHING = {
    **dict.fromkeys(COMMANDS, (2, DESCRIBE, OFFSETS)),
    "transactions": (2, DESCRIBE, TRANSACTIONS),
    **dict.fromkeys(("log_ends", "open_transactions"), (1, DESCRIBE, OFFSETS)),
}
LACKING = {
    "all": {"times of lag": (1, READ, "orders")},
    # This user may not see two of the coordinators' topics.
    "lagger": {
        "times of lag": (1, READ, "orders"),
        **dict.fromkeys(("report", "checks", "log_ends", "counts", "dump", "snapshot"), (1, DESCRIBE, TRANSACTIONS)),
        "transactions": (2, DESCRIBE, TRANSACTIONS),
        "open_transactions": (1, DESCRIBE, TRANSACTIONS),
    },
    "half": {
        **dict.fromkeys(("report", "checks", "counts", "dump", "snapshot"), (1, READ, TRANSACTIONS)),
        "transactions": (2, READ, TRANSACTIONS),
        "open_transactions": (1, READ, TRANSACTIONS),
        **dict.fromkeys(("lag", "times of lag", "group_lag", "starting offsets"), (1, DESCRIBE, "secret")),
    },
    "nobody": _NOTHING,
    "asker": _NOTHING,
}
"""By user and command: the exit status, and a right that the command names. Other users have all rights that they
need."""


@pytest.mark.parametrize("user", RIGHTS)
def test_each_command_names_the_right_that_it_lacks(guarded: Broker, folder: Path, user: str) -> None:
    at = ("--bootstrap", (folder / "password-listener").read_text(), "--command-config", str(folder / user))
    for name, words in COMMANDS.items():
        more = ("--output", str(folder / f"kept-by-{user}")) if name == "snapshot" else ()
        ran = run(*words, *at, *more)
        status, operation, topic = LACKING[user].get(name, (0, None, None))
        said = " ".join((ran.err + ran.out).split())
        assert ran.status == status, (name, said)
        if topic is None:
            assert "may not" not in said, (name, said)
        else:
            verb = str(operation).lower()
            needs = f"user {user} may not {verb} topic {topic}: grant it {operation} on topic {topic}"
            assert needs in said, (name, said)


def test_configs_take_a_right_of_their_own(guarded: Broker, folder: Path) -> None:
    at = ("--bootstrap", (folder / "password-listener").read_text(), "--command-config", str(folder / "half"))
    ran = run("table", "configs", *at)
    said = " ".join(ran.err.split())
    lacks = "user half may not describe the configs of"
    assert ran.status == 1
    assert f"{lacks} topic __consumer_offsets and of" in said
    assert "grant it DESCRIBE_CONFIGS on topic __consumer_offsets and the others" in said
    assert f"{lacks} brokers: grant it DESCRIBE_CONFIGS on the cluster" in said
    assert f"{lacks} groups and client metrics: grant it DESCRIBE_CONFIGS on the cluster" in said
    ran = run("table", "partitions", *at, "--format", "json")
    assert (ran.status, {json.loads(line)["topic"] for line in ran.out.splitlines()} >= {"orders"}) == (0, True)


def test_who_may_not_read_is_told_of_requests_and_they_take_other_rights(guarded: Broker, folder: Path) -> None:
    bootstrap = (folder / "password-listener").read_text()
    at = ("--bootstrap", bootstrap, "--command-config", str(folder / "asker"))
    other_way = "or ask the coordinators with --source requests"
    lacks = "grant it DESCRIBE on topic __consumer_offsets"
    assert run("table", "groups", *at).err.rstrip().endswith(f"{lacks}, {other_way}")
    ran = run("sql", "SELECT * FROM groups", *at)
    assert (ran.status, ran.err.rstrip().endswith(f"{lacks}, {other_way}")) == (2, True), ran.err
    for words in (("table", "timeline"), ("table", "checks"), ("dump",)):
        assert other_way not in run(*words, *at).err, words

    asked = (*at, "--source", "requests", "--format", "json")
    groups = run("table", "groups", *asked)
    assert [json.loads(line)["group_id"] for line in groups.out.splitlines()] == ["shipping"]
    assert groups.status == 0
    needs = "user asker may not describe the cluster: grant it DESCRIBE on the cluster"
    assert needs in groups.err
    assert needs not in run("table", "groups", *asked, "--group", "shipping").err
    # Brokers silently leave out topics that the user may not see.
    for name in ("current_offsets", "lag"):
        rows = [json.loads(line) for line in run("table", name, *asked).out.splitlines()]
        assert [(row["group_id"], row["topic"]) for row in rows] == [("shipping", "orders")], name
    nobody = ("--bootstrap", bootstrap, "--command-config", str(folder / "nobody"), "--source", "requests")
    ran = run("table", "groups", *nobody)
    assert (ran.status, "user nobody may not describe the cluster" in ran.err) == (0, True)
    (folder / "wrong").write_text((folder / "asker").read_text().replace('password="asker"', 'password="hunter2"'))
    refused = run("table", "lag", "--bootstrap", bootstrap, "--command-config", str(folder / "wrong"), *asked[4:])
    assert refused.status == 2
    assert "hunter2" not in refused.err
    assert "rejected this password for user 'asker'" in refused.err


def test_findings_and_rows_tell_of_a_hidden_topic(guarded: Broker, folder: Path) -> None:
    at = ("--bootstrap", (folder / "password-listener").read_text(), "--command-config", str(folder / "half"))
    ran = run("table", "lag", *at, "--format", "json", "--findings", str(folder / "found.jsonl"))
    rows = [json.loads(line) for line in ran.out.splitlines()]
    # Another test creates the topic `purged` on this broker.
    problems = {row["topic"]: row["problem"] for row in rows if row["topic"] != "purged"}
    assert problems == {"orders": None, "secret": "not_authorized"}
    found = [json.loads(line) for line in (folder / "found.jsonl").read_text().splitlines()]
    assert {(each["reason"], each["severity"], each["topic"]) for each in found if each["topic"] != "purged"} == {
        ("MissingRight", "damage", "secret"),
        ("ReadMoments", "note", None),
    }
    assert run("report", *at, "--format", "json", "--output", str(folder / "report.json")).status == 1
    report = json.loads((folder / "report.json").read_text())
    (finding,) = [each for each in report["findings"] if each["kind"] == "right_missing"]
    assert [topic for topic in finding["topics"] if topic != "purged"] == [TRANSACTIONS, "secret"]
    moments = report["counts"]["moments"]
    asked = [moments[name] for name in ("log_starts", "records", "topics", "log_ends")]
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(asked)), moments


def test_logs_that_are_purged_all_the_time_lose_nothing(guarded: Broker) -> None:
    """As Kafka Streams does with a repartition topic: produce, commit, delete what is committed."""
    stopped, rounds = threading.Event(), 0
    place = TopicPartition("purged", 0)

    def purge() -> None:
        nonlocal rounds
        with (
            closing(KafkaAdminClient(bootstrap_servers=guarded.bootstrap)) as admin,
            closing(KafkaProducer(bootstrap_servers=guarded.bootstrap, linger_ms=0)) as producer,
        ):
            while not stopped.is_set():
                end = [producer.send("purged", b"x", partition=0) for _ in range(5)][-1].get(30).offset + 1
                commit(admin, "streams", {("purged", 0): end})
                admin.delete_records({place: end})
                rounds += 1

    with closing(KafkaAdminClient(bootstrap_servers=guarded.bootstrap)) as admin:
        create_topics(admin, purged=1)
    thread = threading.Thread(target=purge)
    thread.start()
    try:
        problems, seen = set(), 0
        source = LiveBrokers(guarded.bootstrap)
        for number in range(12):
            rows = read_table("lag", source, processes=1).table.to_pylist()
            mine = [row for row in rows if row["topic"] == "purged"]
            problems |= {(row["problem"], row["lost"]) for row in mine}
            seen += len(mine)
            if number % 6 == 0:
                report = read_report(source, processes=1)
                assert "offsets_below_log_start" not in {each.kind for each in report.findings}
                assert "offsets_beyond_end" not in {each.kind for each in report.findings}
    finally:
        stopped.set()
        thread.join(60)
        with closing(KafkaAdminClient(bootstrap_servers=guarded.bootstrap)) as admin:
            admin.delete_groups(["streams"])  # other tests know the groups of this broker
            admin.delete_topics(["purged"])
    assert problems == {(None, 0)}
    assert seen >= 10
    assert rounds >= 12
