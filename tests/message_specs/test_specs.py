"""Our specs, compared with record types and with the specs of the release that they follow; and their form."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.evolution.kafka_releases import fetch_specs
from kafka_records_codegen.loader import load
from kafka_records_codegen.model.messages import Field, Message, Model, RecordPair
from kafka_records_codegen.spec.notes import NOTES
from kafka_records_codegen.spec.versions import Versions
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import EMPTY_STRUCT
from tests.runtime.kafka_enums import kafka_enum
from tools.compare_specs import WITHOUT_SPECS, compare, read_specs
from tools.follow.planning import left_out
from tools.follow.refusals import DATA as DATA_MODULES
from tools.kafka_releases import DESCRIBED

SPECS = Path(__file__).resolve().parents[2] / "message_specs"
DATA = Path(__file__).resolve().parents[1] / "data"

KEPT: dict[str, Any] = json.loads((DATA / "kafka/described.json").read_text(encoding="utf-8"))
"""The content of the specs when `make follow` last changed them. `make follow` wrote it, so it only shows what was
followed. `TestAgreementWithKafka` compares the specs with Kafka."""
RECORDS: dict[str, dict[str, str]] = KEPT["records"]
OTHERS: dict[str, list[str]] = KEPT["messages"]
FRAMED = ("cluster_metadata", "remote_log_metadata")
"""The folders whose records have no keys. The fact sheet does not have them."""
COORDINATED = [folder for folder in RECORDS if folder not in FRAMED]
TOPICS = {"__" + folder: folder for folder in COORDINATED}
RECORD_TYPES = {
    "cluster_metadata": "org.apache.kafka.common.metadata.MetadataRecordType",
    "consumer_offsets": "org.apache.kafka.coordinator.group.generated.CoordinatorRecordType",
    "remote_log_metadata": "org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataRecordType",
    "share_group_state": "org.apache.kafka.coordinator.share.generated.CoordinatorRecordType",
    "transaction_state": "org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordType",
}
"""Kafka's enumerations of the record types of a topic."""

# kafka-records.json describes a version of 4.2 before its release; `later` has the changes after it. These came after
# 4.3.1.
NOT_IN_4_3_1 = {
    ("ConsumerGroupMetadataValue", "CreationTimeMs"),
    ("ShareGroupStatePartitionMetadataValue", "CreateTimestamp"),
    ("StreamsGroupMetadataValue", "LastFailedTopologyEpoch"),
    ("StreamsGroupMetadataValue", "StoredTopologyEpoch"),
}
AFTER_THE_SHEET: dict[str, Any] = KEPT["after_the_fact_sheet"]
# For these, the fact sheet was made from the pull request, not from the file. In the released specs they are ignorable.
IGNORABLE_AFTER_ALL = {
    ("ShareGroupTargetAssignmentMetadataValue", "AssignmentTimestamp"),
    ("StreamsGroupTargetAssignmentMetadataValue", "AssignmentTimestamp"),
}

FILES = sorted(path for path in SPECS.rglob("*.json") if path.name != NOTES)


@pytest.fixture(scope="module")
def model() -> Model:
    return load(SPECS)


def leading_comment(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").split("\n")
    count = next(number for number, line in enumerate(lines) if not line.startswith("//"))
    return "\n".join(line.removeprefix("//").strip() for line in lines[:count])


class TestRecords:
    @pytest.mark.parametrize("folder", RECORDS)
    def test_every_type_has_its_name_and_its_pair(self, model: Model, folder: str) -> None:
        records = folder_records(model, folder)
        assert {str(record.type): record.name for record in records} == RECORDS[folder]
        for record in records if folder in COORDINATED else ():
            assert (record.key.name, record.value.name) == (f"{record.name}Key", f"{record.name}Value")
            assert (record.key.api_key, record.value.api_key) == (record.type, record.type)

    def test_keys_have_one_version_and_no_tags(self, model: Model) -> None:
        keys = [message for message in model.messages if message.type == "coordinator-key"]
        assert len(keys) == sum(len(RECORDS[folder]) for folder in COORDINATED)
        for key in keys:
            assert (key.versions, key.flexible) == (Versions(0, 0), Versions.NONE), key.name

    @pytest.mark.parametrize(
        ("name", "versions", "flexible"),
        [
            ("LegacyOffsetCommitValue", Versions(0, 0), Versions.NONE),
            ("OffsetCommitValue", Versions(0, 4), Versions(4, 4)),
            ("GroupMetadataValue", Versions(0, 4), Versions(4, 4)),
            ("TransactionLogValue", Versions(0, 1), Versions(1, 1)),
        ],
    )
    def test_values_with_other_versions_than_a_flexible_0(
        self, model: Model, name: str, versions: Versions, flexible: Versions
    ) -> None:
        message = message_of(model, name)
        assert (message.versions, message.flexible.intersect(message.versions)) == (versions, flexible)

    @pytest.mark.parametrize("folder", OTHERS)
    def test_messages_that_are_no_records(self, model: Model, folder: str) -> None:
        found = next(it for it in model.folders if it.path == folder)
        assert sorted(message.name for message in found.messages) == OTHERS[folder]
        assert found.records == ()

    def test_there_is_nothing_else(self, model: Model) -> None:
        assert sorted(folder.path for folder in model.folders) == sorted(RECORDS | OTHERS)


class TestTraps:
    """A default of null without quotes is not a default: a missing tag is read as empty."""

    @pytest.mark.parametrize(
        ("message", "struct", "field", "default"),
        [
            ("ConsumerGroupMemberMetadataValue", None, "ClassicMemberMetadata", EMPTY_STRUCT),
            ("ConsumerGroupCurrentMemberAssignmentValue", "TopicPartitions", "AssignmentEpochs", ()),
            ("StreamsGroupCurrentMemberAssignmentValue", "TaskIds", "AssignmentEpochs", ()),
            ("StreamsGroupMetadataValue", None, "LastAssignmentConfigs", ()),
            ("StreamsGroupMemberMetadataValue", None, "UserEndpoint", None),
            ("GroupMetadataValue", "MemberMetadata", "groupInstanceId", None),
            ("ConsumerProtocolSubscription", None, "UserData", None),
        ],
    )
    def test_default(self, model: Model, message: str, struct: str | None, field: str, default: object) -> None:
        found = message_of(model, message)
        fields = (found.struct(struct) if struct else found.root).fields
        assert next(it for it in fields if it.name == field).default == default


class TestHistories:
    @pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
    def test_says_what_it_is_and_which_release_brought_it(self, path: Path) -> None:
        comment = leading_comment(path)
        first, blank, *_ = comment.split("\n")
        assert first.endswith("."), "one sentence on one line says what the message is"
        assert blank == ""
        assert re.search(r"\b[0-4]\.\d+(\.\d)?\b", comment), "the history names a release"

    @pytest.mark.parametrize(
        ("name", "mentioned"),
        [
            ("OffsetCommitValue", ["0.8.2", "0.9", "KIP-211", "KIP-320", "2.1", "KIP-915", "3.5", "4.1", "topicId"]),
            ("GroupMetadataValue", ["0.9", "0.10.1", "KIP-62", "KIP-211", "2.1", "KIP-345", "2.3", "KIP-915"]),
            ("ConsumerGroupMetadataValue", ["4.1", "KIP-1101", "metadataHash"]),
            ("ConsumerGroupPartitionMetadataValue", ["3.7", "3.8", "early access", "KIP-1101", "4.1"]),
            ("ConsumerGroupMemberMetadataValue", ["3.7", "3.8", "early access", "classicMemberMetadata"]),
            ("ConsumerGroupTargetAssignmentMemberValue", ["3.7", "3.8", "early access"]),
            ("ConsumerGroupCurrentMemberAssignmentValue", ["3.7", "3.8", "4.3", "KIP-1251", "assignmentEpochs"]),
            ("ConsumerGroupTargetAssignmentMetadataValue", ["4.3", "KIP-1263", "assignmentTimestamp"]),
            ("ShareGroupTargetAssignmentMetadataValue", ["4.3", "KIP-1263", "assignmentTimestamp"]),
            ("StreamsGroupTargetAssignmentMetadataValue", ["4.3", "KIP-1263", "assignmentTimestamp"]),
            ("ShareGroupMetadataValue", ["4.0", "4.1", "early access", "metadataHash"]),
            ("ShareGroupStatePartitionMetadataValue", ["4.0", "4.1", "early access", "initializingTopics"]),
            (
                "StreamsGroupMetadataValue",
                ["4.2", "validatedTopologyEpoch", "lastAssignmentConfigs", "4.4", "KIP-1331"],
            ),
            ("StreamsGroupCurrentMemberAssignmentValue", ["4.1", "4.2", "assignmentEpochs"]),
            ("ShareSnapshotValue", ["4.0", "4.1", "4.2", "KIP-1226", "deliveryCompleteCount", "uint16"]),
            ("ShareUpdateValue", ["4.0", "4.1", "4.2", "KIP-1226", "deliveryCompleteCount", "uint16"]),
            ("TransactionLogValue", ["0.11", "KIP-98", "KIP-915", "KIP-890", "4.0", "KIP-939", "4.1"]),
            ("ConsumerProtocolSubscription", ["2.4", "KIP-429", "KIP-792", "KIP-881", "3.4"]),
        ],
    )
    def test_tells_what_each_version_brought(self, model: Model, name: str, mentioned: list[str]) -> None:
        history = message_of(model, name).history
        assert [text for text in mentioned if text not in history] == []

    @pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
    def test_fits_the_page(self, path: Path) -> None:
        lines = path.read_text(encoding="utf-8").split("\n")
        assert [line for line in lines if len(line) > (100 if line.startswith("//") else 110)] == []

    def test_every_field_says_what_it_means(self, model: Model) -> None:
        silent = [
            f"{message.name}.{struct.name}.{field.name}"
            for message in model.messages
            for struct in message.structs
            for field in struct.fields
            if not field.about.endswith(".")
        ]
        assert silent == []


class TestAgreementWithTheFactSheet:
    """tests/data/kafka/kafka-records.json lists the fields of every record with their effective defaults."""

    @pytest.mark.parametrize("topic", TOPICS)
    def test_records(self, model: Model, kafka_cases: Callable[[str], Any], topic: str) -> None:
        sheet = kafka_cases("kafka-records.json")
        records = {record.type: record for record in folder_records(model, TOPICS[topic])}
        new = {number for number, record in records.items() if record.value.name in AFTER_THE_SHEET["messages"]}
        assert {entry["type"] for entry in sheet["topics"][topic]["records"]} == set(records) - new
        for entry in sheet["topics"][topic]["records"]:
            record = records[entry["type"]]
            assert record.name == entry["name"]
            for ours, theirs in ((record.key, entry["key"]), (record.value, entry["value"])):
                if ours.name not in AFTER_THE_SHEET["messages"]:
                    assert described(ours) == listed(theirs, sheet["later"]), ours.name

    @pytest.mark.parametrize("name", OTHERS["consumer_protocol"])
    def test_consumer_protocol(self, model: Model, kafka_cases: Callable[[str], Any], name: str) -> None:
        sheet = kafka_cases("kafka-records.json")
        assert described(message_of(model, name)) == listed(sheet["embedded"][name], sheet["later"])


@pytest.mark.maven
@pytest.mark.skipif(shutil.which("mvn") is None, reason="Maven fetches Kafka's jars and is not installed")
class TestAgreementWithKafka:
    def test_means_what_the_specs_in_the_released_jars_mean(self) -> None:
        theirs = read_specs(fetch_specs(DESCRIBED))
        assert [str(difference) for difference in compare(read_specs(SPECS), theirs)] == []

    @pytest.mark.parametrize("folder", RECORD_TYPES)
    def test_records_are_those_of_kafkas_enumeration(self, model: Model, folder: str) -> None:
        theirs = {(each.number, _folded(each.name)) for each in kafka_enum(RECORD_TYPES[folder], "id")}
        assert {(record.type, _folded(record.name)) for record in folder_records(model, folder)} == theirs

    def test_requests_have_the_numbers_of_kafkas_enumeration(self, model: Model) -> None:
        requests = {it.number: _folded(it.name) for it in kafka_enum("org.apache.kafka.common.protocol.ApiKeys", "id")}
        ours = {message.api_key: _folded(message.name) for message in model.messages if message.type == "request"}
        assert ours == {number: f"{name}request" for number, name in requests.items() if number in ours}

    def test_every_message_of_the_clients_is_carried_or_left_out(self, model: Model) -> None:
        theirs = {path.stem for path in (fetch_specs(DESCRIBED) / "kafka_clients").glob("*.json")}
        carried = {message.name for message in model.messages if message.folder not in WITHOUT_SPECS}
        others = {*RECORDS, *DATA_MODULES.values()}
        elsewhere = {message.name for message in model.messages if message.folder in others}
        assert theirs - carried == left_out() & theirs
        assert carried - elsewhere <= theirs


def _folded(name: str) -> str:
    """The common spelling of `OffsetCommit` and `OFFSET_COMMIT`."""
    return name.replace("_", "").lower()


def folder_records(model: Model, folder: str) -> tuple[RecordPair, ...]:
    return next(it for it in model.folders if it.path == folder).records


def message_of(model: Model, name: str) -> Message:
    return next(message for message in model.messages if message.name == name)


def described(message: Message) -> dict[str, Any]:
    """Our message in the form of the fact sheet, with ranges clipped to the versions of the message."""
    later = AFTER_THE_SHEET["fields"].get(message.name, ())
    return {
        "name": message.name,
        "versions": message.versions,
        "flexible": message.flexible.intersect(message.versions),
        "fields": [field for field in our_fields(message, message.root.name, "") if field[0] not in later],
    }


def our_fields(message: Message, struct: str, path: str) -> Iterator[tuple[Any, ...]]:
    for field in message.struct(struct).fields:
        yield (
            *(path + field.name, field.type, field.versions, field.nullable, field.tag, field.tagged),
            *(default_of(field), field.ignorable, field.map_key),
        )
        if field.is_struct:
            yield from our_fields(message, field.base, f"{path}{field.name}.")


def default_of(field: Field) -> object:
    """The default as JSON has it: arrays as lists, structs as objects, uuids and bytes as texts."""
    if isinstance(field.default, Uuid):
        return str(field.default)
    if field.default is EMPTY_STRUCT:
        return {}
    if field.default == ():
        return []
    return "" if field.default == b"" else field.default


def listed(entry: dict[str, Any], later: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """A message of the fact sheet, with what 4.3.1 added to it."""
    versions = Versions.parse(entry["valid_versions"], Versions.NONE)
    name = entry["message"]
    return {
        "name": name,
        "versions": versions,
        "flexible": Versions.parse(entry["flexible_versions"], Versions.NONE).intersect(versions),
        "fields": list(their_fields(name, entry["fields"], None, versions, "", later.get(name, []))),
    }


def their_fields(
    message: str,
    fields: list[dict[str, Any]],
    struct: str | None,
    versions: Versions,
    path: str,
    later: list[dict[str, Any]],
) -> Iterator[tuple[Any, ...]]:
    for field in with_later(message, fields, struct, later):
        text = field.get("versions") or field["tagged_versions"]
        present = Versions.parse(text, Versions.NONE).intersect(versions)
        nullable = Versions.parse(field.get("nullable"), Versions.NONE).intersect(present)
        tagged = Versions.parse(field.get("tagged_versions"), Versions.NONE).intersect(present)
        ignorable = field.get("ignorable", False) or (message, field["name"]) in IGNORABLE_AFTER_ALL
        yield (
            *(path + field["name"], field["type"], present, nullable, field.get("tag"), tagged),
            *(field["default"], ignorable, field.get("mapKey", False)),
        )
        if "fields" in field:
            inner = field["type"].removeprefix("[]")
            yield from their_fields(message, field["fields"], inner, present, f"{path}{field['name']}.", later)


def with_later(
    message: str, fields: list[dict[str, Any]], struct: str | None, later: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    result = list(fields)
    for addition in later:
        added = addition["add"]
        if added.get("struct") != struct or (message, added["name"]) in NOT_IN_4_3_1:
            continue
        names = [field["name"] for field in result]
        result.insert(names.index(added["after"]) + 1 if "after" in added else len(result), added)
    return result
