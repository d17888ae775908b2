"""The versions that releases of Kafka read, compared with the specs in their jars."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.evolution.kafka_releases import fetch_specs, folder_name
from kafka_records_tables.tables.checking.release_versions import RELEASES, highest_version, reads_by_default
from kafka_records_tables.tables.checks import TABLE as CHECKS
from tests.kafka_needed import skipped_without_kafka
from tools.kafka_releases import RECORD_MODULES, SPEC_COUNTS

_NEWER_COORDINATOR = 4
"""Before this release the default coordinator knows only commits and classic groups, regardless of the specs in its
jars."""


def _specs(release: str) -> dict[str, dict[str, Any]]:
    exact = [each for each in SPEC_COUNTS if each.startswith(f"{release}.")][-1]
    with skipped_without_kafka():
        root = fetch_specs(exact)
    found = {}
    for module in RECORD_MODULES & set(SPEC_COUNTS[exact]):
        for file in (root / folder_name(module)).glob("*.json"):
            spec = json.loads(re.sub(r"^\s*//.*$", "", Path(file).read_text("utf-8"), flags=re.MULTILINE))
            found[spec["name"]] = spec
    return found


def _topic(name: str) -> str:
    if name.startswith("TransactionLog"):
        return "__transaction_state"
    return "__share_group_state" if name.startswith(("ShareSnapshot", "ShareUpdate")) else "__consumer_offsets"


def test_the_releases_are_those_that_were_followed() -> None:
    assert list(RELEASES) == list(dict.fromkeys(".".join(each.split(".")[:2]) for each in SPEC_COUNTS))


def test_the_rules_and_the_option_name_them() -> None:
    assert f"{', '.join(RELEASES[:-1])} and {RELEASES[-1]}" in " ".join(CHECKS.rules.split())
    assert f"no Kafka up to {RELEASES[-1]} knows these records" in CHECKS.rules
    (option,) = (each for each in CHECKS.options if each.name == "loads_in")
    assert option.about.endswith(f"from {RELEASES[0]} on")


@pytest.mark.maven
@pytest.mark.parametrize(
    "release",
    [*(pytest.param(each, marks=[pytest.mark.slow, pytest.mark.matrix]) for each in RELEASES[:-1]), RELEASES[-1]],
)
def test_the_declared_facts_are_those_of_the_specs(release: str) -> None:
    specs = _specs(release)
    types: dict[str, set[int]] = {}
    for name, spec in specs.items():
        if not name.endswith("Key"):
            continue
        numbers = [spec["apiKey"]] if "apiKey" in spec else [*map(int, spec["validVersions"].split("-"))]
        value = specs[name.removesuffix("Key") + "Value"]
        for number in numbers:
            types.setdefault(_topic(name), set()).add(number)
            is_legacy = _topic(name) == "__consumer_offsets" and number == 0
            highest = int(value["validVersions"].rpartition("-")[2])
            if number in reads_by_default(release, _topic(name)) and not is_legacy:
                assert highest_version(release, _topic(name), number) == highest, name
    is_newer = int(release[0]) >= _NEWER_COORDINATOR
    expected = types["__consumer_offsets"] if is_newer else {0, 1, 2}
    assert reads_by_default(release, "__consumer_offsets") == expected
    assert reads_by_default(release, "__share_group_state") == (types["__share_group_state"] if is_newer else set())
    assert reads_by_default(release, "__transaction_state") == types["__transaction_state"]
