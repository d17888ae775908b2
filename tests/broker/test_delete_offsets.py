"""`kafka-records delete-offsets` on a real broker: exactly the offsets that the dry run lists are deleted, and they can
be restored."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from kafka_records_engine.sources.group_requests import AnswerLost, GroupRequests
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_tables import read_table
from kafka_records_tables.commands import restore_run
from kafka_records_tables.commands.main import main
from kafka_records_tables.console import asking
from kafka_records_tables.deletion import deletion_run
from tests.broker.clients import annotated, commit, create_topics, wait_until
from tests.broker.members import Asking, ClassicMember
from tests.cli.test_command import Example, examples
from tools.broker import Broker, broker_jars, java

pytestmark = pytest.mark.broker

Ran = tuple[int, str, list[str]]
TOPICS = {"del-orders": 2, "del-returns": 2}


@pytest.fixture(scope="module", autouse=True)
def topics(admin: KafkaAdminClient) -> None:
    create_topics(admin, **TOPICS)


@pytest.fixture
def living(broker: Broker, request: pytest.FixtureRequest) -> Iterator[tuple[str, ClassicMember]]:
    """A classic group whose member subscribes to `del-orders` and has committed for `del-returns` as well."""
    group = f"living-{request.node.name}"
    member = ClassicMember(Asking(broker.bootstrap), group, {"del-orders": TOPICS["del-orders"]})
    member.joins()
    member.commit({("del-orders", 0): 1, ("del-returns", 0): 2, ("del-returns", 1): 3}, "a note")
    yield group, member
    member.leaves()


def run(capsys: pytest.CaptureFixture[str], broker: Broker, *arguments: str | Path) -> Ran:
    capsys.readouterr()
    status = main(["delete-offsets", "--bootstrap", broker.bootstrap, *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err.splitlines()


def listed(broker: Broker, path: Path, group: str) -> Path:
    """Write the table `deletable_offsets` of a group with the command. The ending of the path decides the format."""
    form = path.suffix.removeprefix(".")
    table = ["table", "deletable_offsets", "--bootstrap", broker.bootstrap, "--group", group]
    assert main([*table, "--format", form, "--output", str(path)]) == 0
    return path


def held(admin: KafkaAdminClient, group: str) -> dict[tuple[str, int], tuple[int, str]]:
    """The offsets and metadata of a group on the broker, read with kafka-python."""
    (offsets,) = admin.list_group_offsets([group]).values()
    return {(of.topic, of.partition): (told.offset, told.metadata) for of, told in offsets.items() if told.offset >= 0}


def all_offsets(broker: Broker) -> dict[tuple[str, str, int], Mapping[str, Any]]:
    rows = read_table("current_offsets", LiveBrokers(broker.bootstrap), processes=1).table.to_pylist()
    return {(row["group_id"], row["topic"], row["partition"]): row for row in rows}


def without_times(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("offset", "leader_epoch", "metadata")}


def test_what_the_dry_run_says_goes_and_nothing_else_and_comes_back(
    broker: Broker,
    admin: KafkaAdminClient,
    living: tuple[str, ClassicMember],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    group, member = living
    commit(admin, "bystander", {("del-orders", 0): 9, ("del-returns", 0): 9})
    path, deleted = listed(broker, tmp_path / "list.json", group), tmp_path / "deleted.jsonl"
    before = all_offsets(broker)

    status, out, err = run(capsys, broker, path)
    assert (status, all_offsets(broker)) == (0, before)
    assert out.splitlines() == [
        "",
        f"GROUP {group} (classic, Stable)",
        "TOPIC           PARTITION    STATUS",
        "del-returns     0            to be deleted (offset 2)",
        "del-returns     1            to be deleted (offset 3)",
    ]
    assert err[0] == "skipped: 1 row that the list calls not deletable"
    assert "dry run: 2 offsets of 1 group would be deleted; --execute deletes" in err

    status, out, err = run(capsys, broker, path, "--execute", "--yes", "--output", deleted)
    gone = {(group, "del-returns", 0), (group, "del-returns", 1)}
    assert status == 0
    assert [line.split("  ")[-1].strip() for line in out.splitlines()[-2:]] == [
        "Successful (offset 2)",
        "Successful (offset 3)",
    ]
    assert all_offsets(broker) == {key: row for key, row in before.items() if key not in gone}
    assert held(admin, group) == {("del-orders", 0): (1, "a note")}

    assert run(capsys, broker, path)[:2] == (1, changed(group, (2, 3)))

    restoring = ("--restore", deleted, "--execute", "--yes")
    status, out, _ = run(capsys, broker, *restoring)
    assert status == 1
    assert out.count("Error: UNKNOWN_MEMBER_ID: the group has members") == 2
    member.leaves()
    status, out, err = run(capsys, broker, "--restore", deleted)
    assert (status, out.count("to be restored")) == (0, 2)
    assert (run(capsys, broker, *restoring)[0], run(capsys, broker, *restoring)[1].count("there already")) == (0, 2)
    assert held(admin, group) == {place: (before[(group, *place)]["offset"], "a note") for place in held(admin, group)}
    after = all_offsets(broker)
    assert {key: without_times(row) for key, row in after.items()} == {
        key: without_times(row) for key, row in before.items()
    }
    assert all(after[key]["commit_timestamp_ms"] > before[key]["commit_timestamp_ms"] for key in gone)


def changed(group: str, offsets: tuple[int, ...]) -> str:
    lines = [
        f"del-returns     {number}            Error: CHANGED: another commit came after the list was written: the "
        f"offset is left out "
        f"(offset {offset} in the list, nothing now)"
        for number, offset in enumerate(offsets)
    ]
    return "\n".join(["", f"GROUP {group} (classic, Stable)", "TOPIC           PARTITION    STATUS", *lines, ""])


def test_what_a_broker_refuses(
    broker: Broker, living: tuple[str, ClassicMember], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group, _ = living
    deleted = tmp_path / "deleted.jsonl"
    asked = ("--group", group, "--topic", "del-orders:0,1", "--topic", "del-returns", "--topic", "nowhere")
    expected = [
        "del-orders      0            Error: GROUP_SUBSCRIBED_TO_TOPIC: the group subscribes to the topic",
        "del-orders      1            nothing committed",
        "del-returns     0            Successful (offset 2)",
        "del-returns     1            Successful (offset 3)",
        "nowhere         Not Provided Error: UNKNOWN_TOPIC_OR_PARTITION: there is no such topic or partition, or the "
        "right to DESCRIBE it is missing",
    ]
    status, out, err = run(capsys, broker, *asked)
    assert status == 1
    assert out.splitlines()[3:] == [line.replace("Successful", "to be deleted") for line in expected]
    status, out, err = run(capsys, broker, *asked, "--execute", "--yes", "--output", deleted)
    assert status == 1
    assert out.splitlines()[3:] == expected
    kinds = [json.loads(line)["kind"] for line in deleted.read_text(encoding="utf-8").splitlines()]
    assert kinds == ["offset", "offset"]
    # Items that were refused must not be restored.
    assert run(capsys, broker, "--restore", deleted)[1].count("Error: UNKNOWN_MEMBER_ID") == 2

    status, out, err = run(capsys, broker, "--group", "no such", "--topic", "del-orders:0", "--execute", "--yes")
    assert status == 1
    assert out.splitlines()[1:3] == [
        "GROUP no such",
        "Error: Deletion of offsets failed due to: GROUP_ID_NOT_FOUND: there is no such group, or the right to "
        "DESCRIBE it is missing",
    ]
    assert err == ["nothing is deleted, 1 offset left out, 1 group refused"]

    status, out, err = run(capsys, broker, "--group", group, "--whole-groups", "--execute", "--yes")
    assert status == 1
    assert "Error: Deletion of the group failed due to: NON_EMPTY_GROUP: the group has members" in out
    assert list(tmp_path.iterdir()) == [deleted]


@pytest.mark.slow
@pytest.mark.matrix
def test_kafkas_own_tool_refuses_and_deletes_the_same(
    broker: Broker,
    admin: KafkaAdminClient,
    living: tuple[str, ClassicMember],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Kafka's tool runs after ours. The offsets that the first run deleted are committed again before."""
    group, member = living
    asked = ("--group", group, "--topic", "del-orders:0,1", "--topic", "del-returns:0", "--topic", "nowhere:0")
    deleted = tmp_path / "deleted.jsonl"
    commit(admin, "other", {("del-returns", 0): 1})
    _, ours, _ = run(capsys, broker, *asked, "--execute", "--yes", "--output", deleted)
    member.commit({("del-returns", 0): 2}, "a note")
    tool = ["org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", broker.bootstrap]
    command = [java(), "-cp", f"{broker_jars()}/*", *tool]
    theirs = subprocess.run([*command, "--delete-offsets", *asked], capture_output=True, text=True, check=True).stdout
    assert statuses(ours) == {
        ("del-orders", "0"): "Error",
        ("del-orders", "1"): "nothing",
        ("del-returns", "0"): "Successful",
        ("nowhere", "0"): "Error",
    }
    # The tool also asks the broker about missing offsets; the broker refuses subscribed topics before it looks for an
    # offset.
    assert statuses(theirs) == statuses(ours) | {("del-orders", "1"): "Error"}
    assert held(admin, group) == {("del-orders", 0): (1, "a note"), ("del-returns", 1): (3, "a note")}

    member.leaves()
    assert run(capsys, broker, "--restore", deleted, "--execute", "--yes")[0] == 0
    told = subprocess.run([*command, "--describe", "--group", group], capture_output=True, text=True, check=True).stdout
    rows = {tuple(line.split()[1:4]) for line in told.splitlines() if line.startswith(group)}
    assert rows == {("del-orders", "0", "1"), ("del-returns", "0", "2"), ("del-returns", "1", "3")}


@contextmanager
def console(broker: Broker, tool: str, *arguments: str) -> Iterator[None]:
    """Run one of Kafka's console consumers, which is a member of a group within the context."""
    command = [java(), "-Xmx96m", "-cp", f"{broker_jars()}/*", f"org.apache.kafka.tools.consumer.{tool}"]
    started = [*command, "--bootstrap-server", broker.bootstrap, *arguments]
    process = subprocess.Popen(started, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def test_the_dry_run_agrees_with_the_table(
    broker: Broker,
    admin: KafkaAdminClient,
    living: tuple[str, ClassicMember],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """For groups of all kinds that Kafka's consumers make, with topics to which they subscribe, and others."""
    named, matching, shared = groups = ("agree-names", "agree-regex", "agree-share")
    for group in (named, matching):
        commit(admin, group, {("del-orders", 0): 1, ("del-returns", 0): 2})
    kip_848 = ("--consumer-property", "group.protocol=consumer", "--group")
    requests = GroupRequests(broker.bootstrap)

    def settled() -> bool:
        there = requests.groups()
        if any(group not in there or there[group].state != "Stable" for group in groups):
            return False
        # The coordinator resolves a regular expression after it has answered the member, which has no partitions until
        # then.
        members = requests.describe({matching: "consumer"})[matching].fields["members"]
        return all(member["assignment"]["topic_partitions"] for member in members)

    with (
        console(broker, "ConsoleConsumer", *kip_848, named, "--topic", "del-orders"),
        console(broker, "ConsoleConsumer", *kip_848, matching, "--include", "del-o.*"),
        console(broker, "ConsoleShareConsumer", "--group", shared, "--topic", "del-orders"),
    ):
        wait_until(settled, "the groups have not settled", 120)
        rows = read_table("deletable_offsets", LiveBrokers(broker.bootstrap), processes=1).table.to_pylist()
        told = {(row["group_id"], row["topic"], row["partition"]): row for row in rows if row["kind"] == "offset"}
        for group in (living[0], named, matching):
            _, out, _ = run(capsys, broker, "--group", group, "--topic", "del-orders", "--topic", "del-returns")
            shown = {(words[0], int(words[1])): " ".join(words[2:]) for words in map(str.split, out.splitlines()[3:])}
            assert len(shown) >= 2
            for place, said in shown.items():
                row = told[(group, *place)]
                is_said = said.startswith("to be deleted")
                assert is_said == row["is_deletable"], (row, said)
                assert is_said or said.startswith(f"Error: {row['error']}: ")

        deleted = tmp_path / "deleted.jsonl"
        asked = ("--group", matching, "--topic", "del-orders:0", "--execute", "--yes", "--output", deleted)
        status, out, err = run(capsys, broker, *asked)
        assert (status, "Error: GROUP_SUBSCRIBED_TO_TOPIC" in out) == (1, True)
        assert err == ["nothing is deleted, 1 offset left out"]
        assert not deleted.exists()

        status, out, _ = run(capsys, broker, "--group", shared, "--topic", "del-orders")
        assert (status, out.splitlines()[1]) == (1, f"GROUP {shared} (share, Stable)")
        assert "Error: Deletion of offsets failed due to: SHARE_GROUP: a share group has no committed offsets" in out

    wait_until(lambda: requests.groups()[matching].state == "Empty", "the members have not left", 120)
    whole = ("--group", named, "--group", matching, "--whole-groups", "--execute", "--yes", "--output", deleted)
    assert run(capsys, broker, *whole)[0] == 0


def test_mistyped_names_are_errors(broker: Broker, admin: KafkaAdminClient, capsys: pytest.CaptureFixture[str]) -> None:
    commit(admin, "typed", {("del-orders", 0): 1})
    for topic, more in (("del-ordrs", " (did you mean del-orders?)"), ("del-orders:7", "")):
        status, out, _ = run(capsys, broker, "--group", "typed", "--topic", topic)
        assert (status, "Error: UNKNOWN_TOPIC_OR_PARTITION: there is no such topic" in out) == (1, True)
        assert out.endswith(f"the right to DESCRIBE it is missing{more}\n")
    status, out, _ = run(capsys, broker, "--group", "typd", "--topic", "del-orders")
    assert (status, out.splitlines()[2].endswith("(did you mean typed?)")) == (1, True)


def statuses(printed: str) -> dict[tuple[str, str], str]:
    """The first word of the status of each partition."""
    table = (line.split() for line in printed[printed.index("TOPIC ") :].splitlines()[1:])
    return {(words[0], words[1]): words[2].rstrip(":") for words in table if len(words) > 2}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_offset_that_was_committed_again_is_left_out(
    broker: Broker, admin: KafkaAdminClient, tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    group = f"\u2028 'odd', \"{ending}\" group"
    commit(admin, group, {("del-orders", 0): 1, ("del-orders", 1): 2}, 'a "note",\nof two lines')
    path, deleted = listed(broker, tmp_path / f"list.{ending}", group), tmp_path / "deleted.jsonl"
    commit(admin, group, {("del-orders", 1): 5})
    status, _, err = run(capsys, broker, path)
    assert (status, err[0]) == (
        0,
        "left out: 2 rows with other reasons than not_subscribed (2 simple_group); --also simple_group takes them",
    )
    also = ("--also", "simple_group")
    status, out, _ = run(capsys, broker, path, *also, "--execute", "--yes", "--output", deleted)
    assert status == 1
    assert "(offset 2 in the list, offset 5 now)" in out
    assert held(admin, group) == {("del-orders", 1): (5, "")}
    assert run(capsys, broker, "--restore", deleted, "--execute", "--yes")[0] == 0
    assert held(admin, group)["del-orders", 0] == (1, 'a "note",\nof two lines')


def test_an_offset_that_is_committed_while_somebody_is_asked_is_left_out(
    broker: Broker,
    admin: KafkaAdminClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group, deleted = "asked", tmp_path / "deleted.jsonl"
    commit(admin, group, {("del-orders", 0): 1, ("del-orders", 1): 2})

    def answer(question: str) -> bool:
        commit(admin, group, {("del-orders", 1): 5})
        return question == "2 offsets of 1 group will be deleted."

    monkeypatch.setattr(asking, "can_ask", lambda: True)
    monkeypatch.setattr(deletion_run, "confirmed", answer)
    arguments = ("--group", group, "--topic", "del-orders", "--execute", "--output", deleted)
    status, out, err = run(capsys, broker, *arguments)
    assert (status, held(admin, group)) == (1, {("del-orders", 1): (5, "")})
    assert "(offset 2 in the dry run, offset 5 now)" in out
    assert "1 offset of 1 group deleted, 1 offset left out" in err

    # A restore does not overwrite a newer offset unless the user requests it.
    commit(admin, group, {("del-orders", 0): 8})
    status, out, _ = run(capsys, broker, "--restore", deleted, "--execute", "--yes")
    assert (status, "(offset 8 there, 1 in the file)" in out) == (1, True)
    assert held(admin, group)["del-orders", 0] == (8, "")
    over = tmp_path / "over.jsonl"
    overwriting = ("--execute", "--yes", "--overwrite", "--output")
    assert run(capsys, broker, "--restore", deleted, *overwriting, over)[0] == 0
    assert held(admin, group)["del-orders", 0] == (1, "")
    assert run(capsys, broker, "--restore", over, *overwriting, tmp_path / "again.jsonl")[0] == 0
    assert held(admin, group)["del-orders", 0] == (8, "")


def test_what_an_open_transaction_commits_is_left_alone(
    broker: Broker, admin: KafkaAdminClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker would delete such an offset, and drop the commit of the transaction."""
    commit(admin, "pending", {("del-orders", 0): 1, ("del-orders", 1): 2})
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="deleting")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction(annotated({("del-orders", 0): 7, ("del-returns", 0): 7}), "pending")
        path = listed(broker, tmp_path / "list.json", "pending")
        try:
            asked = (path, "--also", "simple_group", "--execute", "--yes", "--output", tmp_path / "deleted.jsonl")
            status, out, _ = run(capsys, broker, *asked)
            whole = run(capsys, broker, path, "--whole-groups", "--execute", "--yes")
        finally:
            producer.commit_transaction()
    assert (status, out.count("Error: UNSTABLE_OFFSET_COMMIT"), out.count("Successful (offset 2)")) == (1, 2, 1)
    assert (whole[0], whole[1].count("Deletion of the group failed")) == (1, 1)
    kept = {("del-orders", 0): (7, ""), ("del-returns", 0): (7, "")}
    wait_until(lambda: held(admin, "pending") == kept, "the transaction has not been committed")


def test_whole_groups_go_and_their_offsets_come_back(
    broker: Broker, admin: KafkaAdminClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for group in ("whole-a", "whole-b"):
        commit(admin, group, {("del-orders", 0): 1, ("del-returns", 1): 2}, group)
    path = listed(broker, tmp_path / "list.json", "whole-a")
    path.write_text(
        path.read_text(encoding="utf-8") + listed(broker, tmp_path / "b.json", "whole-b").read_text(encoding="utf-8"),
        encoding="utf-8",
    )
    commit(admin, "whole-b", {("del-orders", 1): 3})
    deleted = tmp_path / "deleted.jsonl"
    status, out, _ = run(capsys, broker, path, "--whole-groups", "--execute", "--yes", "--output", deleted)
    assert status == 1
    assert "the group as a whole: Successful" in out
    assert (
        "CHANGED: another commit came after the list was written: the offset is left out (it is not in the list)" in out
    )
    assert (held(admin, "whole-a"), len(held(admin, "whole-b"))) == ({}, 3)
    groups = {each.group_id if hasattr(each, "group_id") else each["group_id"] for each in admin.list_groups()}
    assert ("whole-a" in groups, "whole-b" in groups) == (False, True)
    assert run(capsys, broker, "--restore", deleted, "--execute", "--yes")[0] == 0
    assert held(admin, "whole-a") == {("del-orders", 0): (1, "whole-a"), ("del-returns", 1): (2, "whole-a")}


@pytest.mark.parametrize("is_done", [True, False])
def test_an_answer_that_is_lost_is_looked_after(
    broker: Broker,
    admin: KafkaAdminClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    is_done: bool,
) -> None:
    group = f"lost-{is_done}"
    commit(admin, group, {("del-orders", 0): 1})
    delete, lost = GroupRequests.delete_offsets, [True]

    def losing(requests: GroupRequests, *arguments: Any) -> Any:
        if not lost:
            return delete(requests, *arguments)
        lost.clear()
        if is_done:
            delete(requests, *arguments)
        raise AnswerLost("the connection broke")

    monkeypatch.setattr(GroupRequests, "delete_offsets", losing)
    asked = ("--group", group, "--topic", "del-orders:0", "--execute", "--yes", "--output", tmp_path / "deleted.jsonl")
    status, out, err = run(capsys, broker, *asked)
    assert (status, held(admin, group)) == (0, {})
    assert "Successful (offset 1)" in out
    assert f"note: group {group}: the connection broke; checking whether it was done" in err


def test_what_was_about_to_be_deleted_is_in_the_file_of_a_run_that_dies(
    broker: Broker,
    admin: KafkaAdminClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit(admin, "dying", {("del-orders", 0): 1, ("del-orders", 1): 2})
    deleted = tmp_path / "deleted.jsonl"

    def die(requests: GroupRequests, group: str, places: Any) -> Any:
        assert deleted.read_text(encoding="utf-8").count('"kind": "offset"') == len(places) == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(GroupRequests, "delete_offsets", die)
    asked = ("--group", "dying", "--topic", "del-orders", "--execute", "--yes", "--output", deleted)
    status, _, err = run(capsys, broker, *asked)
    assert (status, err[-1]) == (130, f"interrupted; {deleted} has what was deleted until now, or was about to be")
    status, out, err = run(capsys, broker, "--restore", deleted, "--execute", "--yes")
    assert (status, out.count("there already"), err[0]) == (0, 2, "0 offsets restored")


def test_the_examples_of_the_help_run_one_after_another(
    broker: Broker,
    admin: KafkaAdminClient,
    living: tuple[str, ClassicMember],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group, member = living
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(asking, "can_ask", lambda: True)
    for module in (deletion_run, restore_run):
        monkeypatch.setattr(module, "confirmed", lambda question: True)
    commit(admin, "billing", {("del-orders", 0): 1})
    commit(admin, "old-billing", {("del-orders", 0): 1})
    shown = [each for each in examples() if each.is_of_a_deletion]
    make, look, delete, restore, some, whole = shown[1:]
    assert look.arguments == ("delete-offsets", "list", "--bootstrap", "broker-1:9092")

    def runs(example: Example) -> bool:
        topics = {name: f"del-{name}" for name in ("orders", "orders:0,1", "returns")}
        places = {"broker-1:9092": broker.bootstrap, "/var/lib/kafka/data": str(broker.data), **topics}
        return main([places.get(each, each) for each in example.arguments]) == 0

    assert all(map(runs, (make, look, delete)))
    assert held(admin, group) == {("del-orders", 0): (1, "a note")}
    member.leaves()
    assert all(map(runs, (restore, some, whole, shown[0])))
    assert len(held(admin, group)) == 3
    assert held(admin, "old-billing") == {("del-orders", 0): (1, "")}


def test_a_topic_that_was_recreated_gets_no_offsets_of_the_former_one(
    broker: Broker, admin: KafkaAdminClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(admin, "anew", {("del-orders", 0): 1})
    deleted = tmp_path / "deleted.jsonl"
    assert (
        run(capsys, broker, "--group", "anew", "--topic", "del-orders:0", "--execute", "--yes", "--output", deleted)[0]
        == 0
    )
    line = json.loads(deleted.read_text(encoding="utf-8"))
    deleted.write_text(json.dumps(line | {"topic_id": "M4_2Tv--T0Gv8t6piaeUcQ"}) + "\n", encoding="utf-8")
    status, out, _ = run(capsys, broker, "--restore", deleted, "--execute", "--yes")
    assert (status, held(admin, "anew")) == (1, {})
    assert "Error: OTHER_TOPIC: the topic was recreated since" in out
