"""With --bootstrap, the command prints the same as for the broker's data directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient

from kafka_records_tables.commands.main import main
from tests.broker.clients import commit, create_topics, wait_for_coordinators
from tests.cli.terminals import running_on
from tests.cli.test_command import Example, examples
from tests.kafka_needed import skipped_without_kafka
from tests.log.logs import DATA
from tools.broker import HOST, Broker, free_ports

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that only these tests use."""
    broker = Broker(tmp_path_factory.mktemp("quiet"))
    with skipped_without_kafka():
        broker.start()
    try:
        with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
            wait_for_coordinators(admin)
            create_topics(admin, orders=2)
            for number in range(20):
                commit(admin, f"group-{number}", {("orders", 0): number, ("orders", 1): 1}, "note")
            commit(admin, "group-7", {("orders", 0): 70}, "later")
        yield broker
    finally:
        broker.stop()


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, list[str]]:
    status = main([*map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err.splitlines()


@pytest.mark.parametrize("table", ["current_offsets", "groups", "offset_commits"])
def test_tables(quiet: Broker, capsys: pytest.CaptureFixture[str], table: str) -> None:
    status, out, err = run(
        capsys,
        "table",
        table,
        "--bootstrap",
        quiet.bootstrap,
        "--format",
        "json",
        "--sort",
        "offset" if table != "groups" else "group_id",
    )
    expected = run(
        capsys, "table", table, quiet.data, "--format", "json", "--sort", "offset" if table != "groups" else "group_id"
    )
    assert status == 0
    assert out == expected[1]
    assert len(out.splitlines()) == {"current_offsets": 40, "groups": 20, "offset_commits": 41}[table]
    assert err[-1].endswith("from 41 records and 0 transaction markers in 3 partitions")


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_reads_brokers_too(quiet: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("table", "offset_commits", "--bootstrap", quiet.bootstrap, "--format", "json")
    assert run(capsys, *arguments, "--engine", "spark") == run(capsys, *arguments)


def test_dump_and_counts(quiet: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    live = run(capsys, "dump", "--bootstrap", quiet.bootstrap, "--bytes")
    of_groups = ("--topic", "__consumer_offsets")
    files = run(capsys, "dump", quiet.data, "--bytes", *of_groups)
    assert live[0] == 0
    assert live[1] == files[1]
    assert live[2][-1] == "41 records and 0 transaction markers in 3 partitions"
    assert {tuple(json.loads(line)["topic_names"].values()) for line in live[1].splitlines()} == {("orders",)}
    counts = run(capsys, "counts", "--bootstrap", quiet.bootstrap, "--format", "csv")
    assert (counts[0], counts[1]) == run(capsys, "counts", quiet.data, "--format", "csv", *of_groups)[:2]


def test_only_some_offsets_are_fetched(quiet: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    live = run(capsys, "dump", "--bootstrap", quiet.bootstrap, "--offset", "3..4")
    files = run(capsys, "dump", quiet.data, "--offset", "3..4", "--topic", "__consumer_offsets")
    assert live[1] == files[1]
    assert {json.loads(line)["offset"] for line in live[1].splitlines()} == {3, 4}


def test_what_comes_later_is_followed(broker: Broker, admin: KafkaAdminClient) -> None:
    create_topics(admin, followed=1)
    commit(admin, "followed", {("followed", 0): 1})
    topic = ("--topic", "__consumer_offsets", "--group", "followed")
    with running_on(
        "dump", "--bootstrap", broker.bootstrap, "--follow", *topic, stdout="pipe", stderr="pipe"
    ) as running:
        running.wait_for("stdout", '"data":{"offset":1,')
        for number in (2, 3):
            commit(admin, "followed", {("followed", 0): number})
            running.wait_for("stdout", f'"data":{{"offset":{number},')
        running.interrupt()
        seen = running.finish()
    assert seen.status == 0
    committed = [json.loads(line)["value"]["data"]["offset"] for line in seen.out.splitlines()]
    assert committed == [1, 2, 3]
    assert seen.err.splitlines()[-1].startswith("not asked for: ")
    assert "3 records and 0 transaction markers in 3 partitions" in seen.err


@pytest.mark.matrix
def test_following_waits_for_a_broker_that_is_away(tmp_path: Path) -> None:
    stopped = Broker(tmp_path / "broker", port=free_ports(1)[0])
    with skipped_without_kafka():
        stopped.start()
    try:
        with closing(KafkaAdminClient(bootstrap_servers=stopped.bootstrap)) as admin:
            wait_for_coordinators(admin)
            create_topics(admin, t=1)
            commit(admin, "before", {("t", 0): 1})
        arguments = ("dump", "--bootstrap", stopped.bootstrap, "--follow", "--topic", "__consumer_offsets")
        with running_on(*arguments, stdout="pipe", stderr="pipe") as running:
            running.wait_for("stdout", '"before"')
            stopped.stop()
            running.wait_for("stderr", "; asking again")
            stopped.start()
            with closing(KafkaAdminClient(bootstrap_servers=stopped.bootstrap)) as admin:
                wait_for_coordinators(admin)
                commit(admin, "after", {("t", 0): 2})
            running.wait_for("stdout", '"after"')
            running.interrupt()
            seen = running.finish()
        assert seen.status == 0
        assert [json.loads(line)["offset"] for line in seen.out.splitlines() if "before" in line] == [0]
    finally:
        stopped.stop()


def test_what_does_not_go(quiet: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str | Path) -> tuple[int, str]:
        status, out, err = run(capsys, *arguments)
        assert out == ""
        return status, [line for line in err if not line.endswith(" --help lists the arguments")][-1]

    at = ("--bootstrap", quiet.bootstrap)
    (port,) = free_ports(1)
    assert said("counts", "--bootstrap", f"{HOST}:{port}") == (
        2,
        f"kafka-records: {HOST}:{port}: no broker can be reached at this address: Connection refused",
    )
    missing = tmp_path / "client.properties"
    assert said("dump", *at, "--command-config", missing) == (
        2,
        f"kafka-records: {missing}: cannot be read: No such file or directory",
    )
    missing.write_text("security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n")
    assert said("dump", *at, "--command-config", missing) == (
        2,
        f"kafka-records: {missing}: sasl.mechanism GSSAPI is not supported here: set sasl.mechanism to one of "
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
    )
    for arguments, sentence in {
        ("counts",): "the following arguments are required: SOURCE (or --bootstrap)",
        ("counts", str(quiet.data), *at): "--bootstrap reads brokers, and SOURCE reads files: give only one of them",
        (
            "counts",
            str(quiet.data),
            "--command-config",
            str(missing),
        ): "--command-config works only with --bootstrap: give both",
        ("counts", "--bootstrap", "localhost"): "argument --bootstrap: invalid broker 'localhost': write HOST:PORT",
    }.items():
        assert said(*arguments) == (2, f"kafka-records {arguments[0]}: error: {sentence}"), arguments


@pytest.mark.parametrize(
    "example",
    [each for each in examples() if each.is_live and not each.is_of_a_deletion and not each.is_of_a_transaction],
    ids=lambda each: each.line,
)
def test_the_examples_of_the_help_run(
    example: Example,
    quiet: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("client.properties").write_text("security.protocol=PLAINTEXT\n")
    if "--diff" in example.arguments:
        earlier = example.arguments[example.arguments.index("--diff") + 1]
        assert main(["report", "--bootstrap", quiet.bootstrap, "--output", earlier]) == 0
        capsys.readouterr()
    places = {
        "/var/lib/node_exporter/lag.prom": str(tmp_path / "lag.prom"),
        "/var/lib/kafka-records/lag": str(tmp_path / "lag-state"),
        "/var/lib/kafka-records/report": str(tmp_path / "report-state"),
        "billing=/checkpoints/billing": f"billing={DATA / 'spark' / 'billing'}",
    }
    places |= {"controller-1:9093": quiet.controller}
    arguments = [
        quiet.bootstrap if each.startswith("broker-1:") else places.get(each, each) for each in example.arguments
    ]
    status, out, err = run(capsys, *arguments)
    # Some of the offsets that are committed here are beyond the end of an empty topic.
    assert status == (3 if "high" in arguments else 0), err
    if "--output" in arguments:
        written = Path(arguments[arguments.index("--output") + 1])
        files = [each for each in written.rglob("*") if each.is_file()] if written.is_dir() else [written]
        assert any(each.stat().st_size for each in files), written
    else:
        assert out
