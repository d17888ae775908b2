"""Changes of whole messages: those of coordinators, of requests, renamed ones, those that come and go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.evolution.changes import SpecComparison
from kafka_records_codegen.evolution.comparing import compare
from kafka_records_codegen.evolution.spec_sets import read_spec_set
from kafka_records_codegen.spec.versions import Versions
from tests.evolution.spec_texts import Json, compared, folder, found, key, request, response, value

IN_DEVELOPMENT = "// KIP-1 is in development. This schema is subject to non-backwards-compatible changes.\n"


class TestCoordinators:
    def test_a_value_that_loses_a_version_stops_brokers(self, tmp_path: Path) -> None:
        newer = [key(), value(validVersions="1")]
        assert found(compared(tmp_path, [key(), value()], newer)) == ["bytes record-version-dropped TeamValue"]

    def test_a_value_with_a_new_version(self, tmp_path: Path) -> None:
        comparison = compared(tmp_path, [key(), value()], [key(), value(validVersions="0-2")])
        (change,) = comparison.changes
        assert found(comparison) == ["adds record-version-added TeamValue"]
        assert change.versions == (Versions(2, 2),)
        assert "stops loading" in change.rule.sentence

    def test_record_types_that_come_and_go(self, tmp_path: Path) -> None:
        another = [key(4, name="ClubKey"), value(4, name="ClubValue")]
        ours = [key(), value()]
        assert found(compared(tmp_path / "1", ours, [*ours, *another])) == [
            "adds record-added ClubKey",
            "adds record-added ClubValue",
        ]
        assert found(compared(tmp_path / "2", [*ours, *another], ours)) == [
            "versions record-removed ClubKey",
            "versions record-removed ClubValue",
        ]

    def test_another_type_of_record(self, tmp_path: Path) -> None:
        comparison = compared(tmp_path, [key(), value()], [key(4), value(4)])
        assert found(comparison) == ["bytes api-key TeamKey", "bytes api-key TeamValue"]

    def test_data_that_becomes_a_record_has_the_same_bytes(self, tmp_path: Path) -> None:
        """As in Kafka 4.1: the version of a key was the type of the record."""
        fields: list[Json] = [{"name": "Team", "type": "string", "versions": "3"}]
        older = [_data(key(), validVersions="3", fields=fields), _data(value())]
        comparison = compared(tmp_path, older, [key(), value()])
        assert found(comparison) == ["words spec-form TeamKey", "words spec-form TeamValue"]

    def test_a_key_that_stood_for_two_types(self, tmp_path: Path) -> None:
        older = [_data(key(), validVersions="2-3", fields=[{"name": "Team", "type": "string", "versions": "2+"}])]
        newer = [key(), value(), key(2, name="OldTeamKey"), value(2, name="OldTeamValue")]
        assert found(compared(tmp_path, [*older, _data(value())], newer)) == [
            "adds record-added OldTeamValue",
            "words spec-form OldTeamKey",
            "words spec-form TeamKey",
            "words spec-form TeamValue",
        ]

    def test_a_key_that_stood_for_two_types_and_changes_one(self, tmp_path: Path) -> None:
        older = [_data(key(), validVersions="2-3", fields=[{"name": "Team", "type": "string", "versions": "2+"}])]
        other = key(2, name="OldTeamKey", fields=[{"name": "Team", "type": "int32", "versions": "0"}])
        comparison = compared(
            tmp_path, [*older, _data(value())], [key(), value(), other, value(2, name="OldTeamValue")]
        )
        assert "bytes field-type OldTeamKey Team" in found(comparison)


class TestRequests:
    @pytest.mark.parametrize(
        ("attributes", "expected"),
        [
            ({"validVersions": "1-2"}, ["versions versions-dropped AskRequest"]),
            ({"validVersions": "0-1"}, ["versions versions-dropped AskRequest"]),
            ({"validVersions": "none"}, ["versions message-retired AskRequest"]),
            ({"latestVersionUnstable": True}, ["readers version-unstable AskRequest"]),
            ({"listeners": ["controller"]}, ["words attribute AskRequest"]),
        ],
    )
    def test_attributes(self, tmp_path: Path, attributes: Json, expected: list[str]) -> None:
        assert found(compared(tmp_path, [request()], [request(**attributes)])) == expected

    def test_a_version_that_becomes_stable(self, tmp_path: Path) -> None:
        comparison = compared(tmp_path, [request(latestVersionUnstable=True)], [request()])
        assert found(comparison) == ["adds version-stable AskRequest"]

    def test_another_name(self, tmp_path: Path) -> None:
        comparison = compared(tmp_path, [request()], [request(name="AskMoreRequest")])
        assert found(comparison) == ["names message-renamed AskMoreRequest"]
        (change,) = comparison.changes
        assert change.downstream.avro_backward.text.endswith("so it reads no file of the older state")

    def test_another_number(self, tmp_path: Path) -> None:
        (change,) = compared(tmp_path, [request()], [request(apiKey=request()["apiKey"] + 1)]).changes
        assert change.downstream.python.text.startswith("API_KEY is ")

    def test_a_field_that_stays_for_other_versions(self, tmp_path: Path) -> None:
        """As for AcceptableRecoveryLag in Kafka 4.4: version 0 fills another attribute."""
        newer = request(
            validVersions="0-3",
            fields=[
                {"name": "WhoBefore", "type": "string", "versions": "0-2"},
                {"name": "Who", "type": "uuid", "versions": "3+"},
            ],
        )
        comparison = compared(tmp_path, [request()], [newer])
        renamed = next(change for change in comparison.changes if change.rule.name == "field-renamed")
        assert renamed.downstream.python.text == "who_before has the values of who, which stays for other versions"

    @pytest.mark.parametrize(("older", "newer"), [("0+", "0-1"), ("0-1", "0+")])
    def test_a_field_in_other_versions(self, tmp_path: Path, older: str, newer: str) -> None:
        """Attribute and column exist on both sides."""
        specs = (request(fields=[{"name": "Who", "type": "uuid", "versions": versions}]) for versions in (older, newer))
        (change,) = compared(tmp_path, *([spec] for spec in specs)).changes
        assert change.downstream.python.text == "who stays, and has its default if the bytes lack it"
        assert change.newer_place is not None
        assert change.newer_place.path == "fields[0].versions"


class TestEarlyAccess:
    def test_an_unstable_version(self, tmp_path: Path) -> None:
        wider: list[Json] = [
            {"name": "Who", "type": "string", "versions": "0+"},
            {"name": "Why", "type": "string", "versions": "2+"},
        ]
        older = [request(latestVersionUnstable=True), response()]
        comparison = compared(tmp_path, older, [request(fields=wider), response(fields=wider)])
        assert found(comparison) == [
            "early-access field-inserted AskRequest Why",
            "early-access field-inserted AskResponse Why",
            "adds version-stable AskRequest",
        ]
        assert comparison.changes[1].early_access == "version 2 of the request was unstable"

    def test_a_stable_version_beside_it(self, tmp_path: Path) -> None:
        wider = [*request()["fields"], {"name": "Why", "type": "string", "versions": "1+"}]
        comparison = compared(tmp_path, [request(latestVersionUnstable=True)], [request(fields=wider)])
        assert found(comparison)[0] == "bytes field-inserted AskRequest Why"

    def test_a_spec_that_says_so(self, tmp_path: Path) -> None:
        older = tmp_path / "older" / "teams"
        narrow: Any = [{"name": "Epoch", "type": "int16", "versions": "0+"}]
        compared(tmp_path, [key(), value()], [key(), value()])
        path = older / "TeamValue.json"
        path.write_text(IN_DEVELOPMENT + path.read_text(encoding="utf-8"), encoding="utf-8")
        comparison = compared_again(tmp_path, value(fields=narrow))
        assert found(comparison) == ["early-access field-type TeamValue Epoch", "words comment TeamValue"]


def compared_again(tmp_path: Path, changed: Json) -> SpecComparison:
    """As `compared`, after a spec on the newer side was rewritten."""
    sides = str(tmp_path / "older"), str(folder(tmp_path / "newer" / "teams", changed).parent)
    return compare(read_spec_set(*sides), read_spec_set(*sides[::-1]))


def _data(spec: Json, **attributes: Any) -> Json:
    """A record as Kafka described it before 4.1."""
    made = {**spec, "type": "data", **attributes}
    del made["apiKey"]
    return made
