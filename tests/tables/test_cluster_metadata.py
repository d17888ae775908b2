"""The metadata log of a 4.3.1 cluster: compared with the output of Kafka's dump tool, and with the answers of the admin
client."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_records.cluster_metadata import encode_record
from kafka_records.cluster_metadata.abort_transaction_record import AbortTransactionRecord
from kafka_records.cluster_metadata.begin_transaction_record import BeginTransactionRecord
from kafka_records.cluster_metadata.config_record import ConfigRecord
from kafka_records.cluster_metadata.end_transaction_record import EndTransactionRecord
from kafka_records.cluster_metadata.topic_record import TopicRecord
from kafka_records.cluster_metadata.user_scram_credential_record import UserScramCredentialRecord
from kafka_records.control.kraft_version_record import KRaftVersionRecord
from kafka_records.control.voters_record import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from kafka_records.schemas.cluster_metadata import RECORDS
from kafka_records_engine.findings import INCOMPLETE_HISTORY, Finding
from kafka_records_engine.log.files.local_files import LOCAL
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.log.reading.metadata_checkpoints import checkpoint_from, checkpoint_names
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables import read_table
from kafka_records_tables.commands.main import main
from kafka_records_tables.engines.logs_to_read import topics_known_to
from kafka_records_tables.tables.cluster.cluster_facts import ClusterFacts
from tests.log.logs import batch, record

FOLDER = "__cluster_metadata-0"
NAMES = ("topics", "partitions", "configs", "brokers", "features")
BEFORE_STOP = 1795447081900
"""The time at which the admin client had its answers. After that, the broker stopped and was fenced."""


@pytest.fixture(scope="module")
def disk(data_dir: Path) -> Path:
    return data_dir / "metadata/kafka-4.3"


@pytest.fixture(scope="module")
def truth(disk: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress((disk / "truth.json.gz").read_bytes()))
    return found


@pytest.fixture(scope="module")
def dumped(disk: Path) -> list[dict[str, Any]]:
    return [*map(json.loads, gzip.decompress((disk / "dump.jsonl.gz").read_bytes()).splitlines())]


def rows(name: str, source: Any, **asked: Any) -> list[dict[str, Any]]:
    found = read_table(name, source, **asked)
    assert [each for each in found.findings if each.severity == "damage"] == []
    made: list[dict[str, Any]] = found.table.to_pylist()
    return made


def test_every_record_of_the_log_is_what_kafkas_dump_tool_prints(
    disk: Path, dumped: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", str(disk), "--show-secrets"]) == 0
    said = capsys.readouterr()
    assert said.err == "2075 records and 0 transaction markers in 9 files of 1 partition\n"
    assert compared(said.out, [line for line in dumped if line["file"].endswith(".log")]) == 2075


def compared(output: str, theirs: list[dict[str, Any]]) -> int:
    """Compare lines of `dump` with those of Kafka's dump tool; returns their number."""
    lines = [*map(json.loads, output.splitlines())]
    assert [line["offset"] for line in lines] == [line["offset"] for line in theirs]
    for line, their in zip(lines, theirs, strict=True):
        ours = line["value"]
        if "control" in their:
            assert line["control"].replace("_", "") == their["control"].lower()
            assert ours["data"] == their["value"]
        else:
            payload = their["payload"]
            assert RECORDS[ours["type"]].name.lower() == payload["type"].replace("_", "").lower()
            assert (ours["version"], ours["data"]) == (payload["version"], payload["data"]), line["offset"]
    return len(lines)


def test_every_record_of_the_checkpoints_is_what_kafkas_dump_tool_prints(
    disk: Path, dumped: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Place(LOCAL, str(disk / FOLDER))
    names = checkpoint_names(folder)
    assert [end for end, *_ in names] == [636, 1404, 2073]
    for _, _, name in names:
        assert main(["dump", str(disk / FOLDER / name), "--show-secrets"]) == 0
        assert compared(capsys.readouterr().out, [line for line in dumped if line["file"].endswith(name)]) > 200


def test_control_records_of_the_quorum_are_no_note_and_no_gap(disk: Path) -> None:
    found = read_table("features", disk, as_of=BEFORE_STOP)
    assert found.findings == ()


def test_a_checkpoint_that_is_named_alone_is_the_state_that_it_holds(disk: Path) -> None:
    (name,) = (disk / FOLDER).glob("*2073-*.checkpoint")
    assert {row["topic_id"] for row in rows("topics", name)} == {
        row["topic_id"] for row in rows("topics", disk) if row["deleted_timestamp_ms"] is None
    }
    assert {row["changed_timestamp_ms"] for row in rows("features", name)} == {None}
    with pytest.raises(LogSourceError, match="a checkpoint cannot be read together with other files"):
        read_table("features", [name, disk / FOLDER / f"{0:020}.log"])


def test_control_records_of_a_quorum_with_voters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the form that controllers write from kraft.version 1 on (`VoterSet.toVotersRecord`, KIP-853)."""
    voter = Voter(
        voter_id=3,
        voter_directory_id=A,
        endpoints=(Endpoint(name="CONTROLLER", host="localhost", port=9093),),
        kraft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
    )
    values: dict[int, Any] = {
        5: KRaftVersionRecord(version=0, kraft_version=1),
        6: VotersRecord(version=0, voters=(voter,)),
    }
    records = [
        record(number, kind.to_bytes(4, "big"), value.encode(0)) for number, (kind, value) in enumerate(values.items())
    ]
    (tmp_path / FOLDER).mkdir()
    log = tmp_path / FOLDER / f"{0:020}.log"
    log.write_bytes(batch(b"".join(records), 2, attributes=0x20))
    assert main(["dump", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert said.err == "2 records and 0 transaction markers in 1 file of 1 partition\n"
    version, voters = map(json.loads, said.out.splitlines())
    assert (version["control"], version["value"]["data"]) == ("kraft_version", {"version": 0, "kRaftVersion": 1})
    assert (voters["control"], voters["value"]["data"]["voters"][0]["voterId"]) == ("kraft_voters", 3)
    (feature,) = read_table("features", tmp_path).table.to_pylist()
    assert (feature["feature"], feature["level"]) == ("kraft.version", 1)
    log.write_bytes(batch(record(0, (5).to_bytes(4, "big"), b"\0"), 1, attributes=0x20))
    broken = read_table("features", tmp_path)
    assert (len(broken), [each.severity for each in broken.findings]) == (0, ["damage"])
    assert "the control record with the level of kraft.version cannot be read" in broken.findings[0].what
    assert not read_table("topics", tmp_path).findings
    log.write_bytes(batch(record(0, (6).to_bytes(4, "big"), b"\0\0\x05"), 1, attributes=0x20))
    assert main(["dump", str(tmp_path)]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["part"] == "value"


def test_topics_are_those_that_the_broker_described(disk: Path, truth: dict[str, Any]) -> None:
    expected = {
        each["topic"]: (each["id"], len(each["partitions"]), len(each["partitions"][0]["replicas"]))
        for each in truth["topics"]
    }
    found = {
        row["topic"]: (row["topic_id"], row["partition_count"], row["replication_factor"])
        for row in rows("topics", disk)
        if row["deleted_timestamp_ms"] is None
    }
    assert found == expected
    assert len(found) == 47


def test_times_of_topics_are_those_of_the_calls(disk: Path, truth: dict[str, Any]) -> None:
    by_id = {row["topic_id"]: row for row in rows("topics", disk)}
    kinds = set()
    for event in truth["events"]:
        kind = event["event"].removeprefix("topic ")
        at = by_id[event["result"]][f"{kind}_timestamp_ms"]
        # The clocks of two processes may differ, and a record gets its time before its batch is written.
        assert event["from_ms"] - 50 <= at <= event["until_ms"], event
        kinds.add(kind)
    assert kinds == {"created", "deleted"}
    assert sum(row["deleted_timestamp_ms"] is not None for row in by_id.values()) == 5


def test_partitions_are_those_that_the_broker_described(disk: Path, truth: dict[str, Any]) -> None:
    names = ("leader", "replicas", "isr", "elr")
    expected = {
        (topic["topic"], topic["id"], each["partition"]): [each[name] for name in names]
        for topic in truth["topics"]
        for each in topic["partitions"]
    }
    found = {
        (row["topic"], row["topic_id"], row["partition"]): [row[name] for name in names]
        for row in rows("partitions", disk, as_of=BEFORE_STOP)
    }
    assert found == expected


def test_configs_are_those_that_the_broker_described(disk: Path, truth: dict[str, Any]) -> None:
    expected = {
        (
            each["resource_type"].lower().replace("_", "-"),
            "" if each["source"] == "DYNAMIC_DEFAULT_BROKER_CONFIG" else each["resource"],
            each["name"],
        ): (each["value"], each["sensitive"])
        for each in truth["configs"]
    }
    found = {
        (row["resource_type"], row["resource_name"], row["name"]): (row["value"], row["is_sensitive"])
        for row in rows("configs", disk)
    }
    assert found == expected


def test_features_are_those_that_the_broker_described(disk: Path, truth: dict[str, Any]) -> None:
    assert {row["feature"]: row["level"] for row in rows("features", disk)} == truth["features"]


def test_brokers(disk: Path) -> None:
    (row,) = rows("brokers", disk, as_of=BEFORE_STOP)
    assert (row["broker_id"], row["is_fenced"], row["in_controlled_shutdown"]) == (1, False, False)
    assert [each["security_protocol"] for each in row["listeners"]] == ["PLAINTEXT", "SASL_PLAINTEXT"]
    (row,) = rows("brokers", disk)
    assert (row["is_fenced"], row["in_controlled_shutdown"]) == (True, True)


# -- a log that begins in the middle -----------------------------------------------------------------------------------

TIMES = ("created", "deleted", "registered", "changed")


def without_times(name: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    there = [row for row in found if row.get("deleted_timestamp") is None]
    return sorted(({key: value for key, value in row.items() if not key.startswith(TIMES)} for row in there), key=str)


@pytest.fixture
def cut(disk: Path, tmp_path: Path) -> Callable[[int], Path]:
    """A copy of the disk whose log begins with the segment at this offset."""

    def make(first: int) -> Path:
        folder = tmp_path / "cut" / FOLDER
        shutil.copytree(disk / FOLDER, folder)
        for file in folder.glob("*.log"):
            if int(file.stem) < first:
                file.unlink()
        return tmp_path / "cut"

    return make


@pytest.mark.parametrize("first", [239, 643, 1240, 1904])
@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_holds_what_the_log_has_lost(
    name: str, first: int, disk: Path, cut: Callable[[int], Path]
) -> None:
    assert without_times(name, rows(name, cut(first))) == without_times(name, rows(name, disk))


def test_times_are_null_where_the_log_does_not_go_back(cut: Callable[[int], Path]) -> None:
    created = [row["created_timestamp_ms"] for row in rows("topics", cut(643))]
    assert None in created
    assert any(created)


def test_a_damaged_checkpoint_is_refused_and_the_next_one_read(disk: Path, cut: Callable[[int], Path]) -> None:
    folder = cut(239)
    first = folder / FOLDER / "00000000000000000636-0000000002.checkpoint"
    data = bytearray(first.read_bytes())
    data[400] ^= 1
    first.write_bytes(data)
    found = read_table("features", folder)
    assert {row["feature"]: row["level"] for row in found.table.to_pylist()} == {
        row["feature"]: row["level"] for row in rows("features", disk)
    }
    (note,) = found.findings
    assert (note.severity, note.file) == ("note", str(first))
    assert note.consequence.startswith("a later checkpoint is read")


def test_every_cut_of_a_checkpoint_is_found(disk: Path, tmp_path: Path) -> None:
    name = "00000000000000000636-0000000002.checkpoint"
    data = (disk / FOLDER / name).read_bytes()
    for size in (*range(0, 400, 7), *range(len(data) - 200, len(data), 11)):
        (tmp_path / name).write_bytes(data[:size])
        found, (finding,) = checkpoint_from(Place(LOCAL, str(tmp_path)), 1, ("offset", "value"))
        assert found is None
        assert finding.severity == "damage", size


def test_without_a_checkpoint_it_says_so(cut: Callable[[int], Path]) -> None:
    folder = cut(643)
    for file in (folder / FOLDER).glob("*.checkpoint"):
        file.unlink()
    (damage,) = (each for each in read_table("topics", folder).findings if each.severity == "damage")
    assert damage.what == "this log begins at offset 643, and no intact checkpoint has the earlier state"


# -- what other tables have of it --------------------------------------------------------------------------------------


def test_names_and_partitions_of_topics_are_known(disk: Path, truth: dict[str, Any]) -> None:
    known = topics_known_to(Segments(disk))
    assert dict(known.partition_counts) == {each["topic"]: len(each["partitions"]) for each in truth["topics"]}
    assert {each["id"]: each["topic"] for each in truth["topics"]}.items() <= known.names.items()
    assert len(known.names) == 52


def test_damage_in_the_metadata_log_is_told_to_who_uses_it(disk: Path, tmp_path: Path) -> None:
    shutil.copytree(disk, tmp_path / "disk")
    log = min((tmp_path / "disk" / FOLDER).glob("*.log"))
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    found: list[Finding] = []
    assert not topics_known_to(Segments(tmp_path / "disk"), found.append).names
    (damage,) = found
    assert (damage.severity, damage.file) == ("damage", str(log))
    assert damage.consequence.startswith("names, numbers of partitions, settings and deletions of topics are not taken")


# -- made-up logs ------------------------------------------------------------------------------------------------------

A, B, C = (Uuid(bytes([number] * 16)) for number in (1, 2, 3))
PLANTED = ("TOP-SECRET-1", "TOP-SECRET-2", "TOP-SECRET-3", "TOP-SECRET-4")


def made(folder: Path, *messages: Any) -> Path:
    values = [encode_record(None, message)[1] for message in messages]
    (folder / FOLDER).mkdir(parents=True)
    (folder / FOLDER / f"{0:020}.log").write_bytes(batch_of(values))
    return folder


def batch_of(values: list[bytes]) -> bytes:
    return batch(b"".join(record(number, None, value) for number, value in enumerate(values)), len(values))


def test_records_count_when_their_metadata_transaction_has_ended(tmp_path: Path) -> None:
    begin, end, abort = BeginTransactionRecord("t"), EndTransactionRecord(), AbortTransactionRecord("no")
    log = made(
        tmp_path,
        *(begin, TopicRecord("kept", A), end),
        *(begin, TopicRecord("dropped", B), abort),
        *(begin, TopicRecord("open", C)),
    )
    assert [row["topic"] for row in rows("topics", log)] == ["kept"]


def test_a_moment_before_the_checkpoint_is_told(cut: Callable[[int], Path]) -> None:
    folder = cut(643)
    early = read_table("topics", folder, as_of="2001-01-01T00:00")
    (finding,) = [each for each in early.findings if each.reason == INCOMPLETE_HISTORY]
    assert finding.complete_from == 1404  # the end of the oldest checkpoint that is not below the log
    assert [each for each in read_table("topics", folder).findings if each.reason == INCOMPLETE_HISTORY] == []


def test_saved_rows_of_a_log_that_begins_in_the_middle_are_not_taken_for_all(
    disk: Path, cut: Callable[[int], Path]
) -> None:
    def saved(folder: Path) -> ArrowRows:
        (log,) = Segments(folder).partitions("__cluster_metadata")
        columns = ("offset", "timestamp_ms", "key", "value", "control")
        told = pa.Table.from_batches(log.batches(Context(topic="__cluster_metadata"), columns))
        return ArrowRows(told.append_column("partition", pa.array([0] * len(told), pa.int32())), "__cluster_metadata")

    assert read_table("topics", saved(disk)).findings == ()
    (finding,) = [each for each in read_table("topics", saved(cut(643))).findings if each.severity == "damage"]
    assert "begins at offset 643, and no intact checkpoint" in str(finding)
    one_file = disk / FOLDER / f"{643:020}.log"
    (alone,) = [each for each in read_table("topics", one_file).findings if each.severity == "damage"]
    assert "no intact checkpoint" in str(alone)


def planted(folder: Path) -> Path:
    return made(
        folder,
        TopicRecord("orders", A),
        ConfigRecord(2, "orders", "retention.ms", "1000"),
        ConfigRecord(2, "orders", "of.a.plugin", PLANTED[0]),
        ConfigRecord(4, "1", "listener.name.sasl.ssl.keystore.password", PLANTED[1]),
        ConfigRecord(4, "", "log.retention.ms", "2000"),
        UserScramCredentialRecord("ann", 1, b"salt", PLANTED[2].encode(), PLANTED[3].encode(), 4096),
    )


def outputs(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """All output of the command about a log."""
    said = []
    for name in NAMES:
        own = more if name in ("topics", "configs") else ()
        for form in ("table", "json", "csv"):
            main(["table", name, str(folder), "--format", form, *own])
            said.append(capsys.readouterr())
    main(["dump", str(folder), "--bytes", *more])
    said.append(capsys.readouterr())
    for value in values_of(folder):
        main(["explain", "--topic", "__cluster_metadata", "--value", value.hex(), *more])
        said.append(capsys.readouterr())
        main(["explain", "--topic", "__cluster_metadata", "--value", value[:-5].hex(), *more])
        said.append(capsys.readouterr())
    return "".join(text for pair in said for text in pair)


def values_of(folder: Path) -> list[bytes]:
    (log,) = Segments(folder).partitions("__cluster_metadata")
    return [value for part in log.batches(Context(), ("value",)) for value in part.column("value").to_pylist()]


def forms(secret: str) -> set[str]:
    data = secret.encode()
    return {secret, data.hex(), data[:8].hex(" "), b64encode(data).decode()}


def test_no_output_has_a_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = outputs(planted(tmp_path), capsys)
    assert "(redacted)" in said
    assert "1000" in said
    assert "2000" in said
    assert "ann" in said
    assert [form for secret in PLANTED for form in forms(secret) if form in said] == []


def test_secrets_are_shown_where_somebody_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = outputs(planted(tmp_path), capsys, "--show-secrets")
    for secret in PLANTED:
        assert any(form in said for form in forms(secret)), secret
    assert "(redacted)" not in said


def test_damaged_records_are_told_without_their_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = encode_record(None, ConfigRecord(4, "1", "ssl.key.password", PLANTED[0]))[1]
    (tmp_path / FOLDER).mkdir()
    bad = batch_of([secret[:-1], b"\x01\x63" + secret])
    (tmp_path / FOLDER / f"{0:020}.log").write_bytes(bad)
    assert main(["table", "configs", str(tmp_path), "--findings", str(tmp_path / "f.jsonl")]) == 1
    assert main(["dump", str(tmp_path), "--bytes"]) == 1
    said = "".join(capsys.readouterr()) + (tmp_path / "f.jsonl").read_text()
    assert [form for form in forms(PLANTED[0]) if form in said] == []
    assert len(read_table("configs", tmp_path).findings) == 2


def test_facts_for_rules(tmp_path: Path) -> None:
    folder = made(
        tmp_path,
        *(TopicRecord("orders", A), TopicRecord("table", B)),
        ConfigRecord(2, "orders", "retention.ms", "1000"),
        ConfigRecord(2, "table", "cleanup.policy", "compact"),
        ConfigRecord(2, "table", "of.a.plugin", PLANTED[0]),
        ConfigRecord(4, "", "log.retention.ms", "2000"),
        ConfigRecord(4, "", "group.share.delivery.count.limit", "7"),
        ConfigRecord(32, "workers", "share.delivery.count.limit", "9"),
        ConfigRecord(4, "", "log.cleanup.policy", "delete"),
        ConfigRecord(4, "1", "log.cleanup.policy", "compact"),
    )
    facts = ClusterFacts.of(read_table("configs", folder).table.to_pylist())
    known = topics_known_to(Segments(folder))
    assert PLANTED[0] not in str(facts)
    assert [facts.retention_ms(topic) for topic in ("orders", "table")] == [1000, 2000]
    assert [facts.is_compacted(topic) for topic in ("orders", "table")] == [None, True]
    assert [facts.group_limit(group, "share.delivery.count.limit") for group in ("workers", "g")] == [9, 7]
    assert facts.group_limit("g", "share.session.timeout.ms") is None
    assert known.retentions == {"orders": 1000}
    assert dict(known.deletions.times) == {"orders": (), "table": ()}


def test_explain_says_that_a_value_is_redacted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["dump", str(planted(tmp_path)), "--bytes"])
    monkeypatch.setattr("sys.stdin", io.StringIO(capsys.readouterr().out))
    assert main(["explain", "-"]) == 0
    said = "".join(capsys.readouterr())
    assert said.count("value (redacted): dump --bytes --show-secrets has its bytes") == 3
    assert "no value" not in said


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_the_cluster_are_about_no_group(name: str, disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", name, str(disk), "--group", "g"]) == 2
    said = capsys.readouterr().err
    assert f"--group: rows of {name} do not belong to a group; --where, --sort and --limit choose among them" in said


def test_an_option_by_its_old_name_says_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", "topics", "x", "--untold", "committed"]) == 2
    assert "unrecognized arguments: --untold; it is called --assume" in capsys.readouterr().err
