"""Specs of a coordinator's record and of a request, and folders of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from kafka_records_codegen.evolution.changes import SpecComparison
from kafka_records_codegen.evolution.comparing import compare
from kafka_records_codegen.evolution.spec_sets import read_spec_set

Json = dict[str, Any]


def key(number: int = 3, **attributes: Any) -> Json:
    return {
        "type": "coordinator-key",
        "apiKey": number,
        "name": "TeamKey",
        "validVersions": "0",
        "flexibleVersions": "none",
        "fields": [{"name": "Team", "type": "string", "versions": "0"}],
        **attributes,
    }


def value(number: int = 3, **attributes: Any) -> Json:
    return {
        "type": "coordinator-value",
        "apiKey": number,
        "name": "TeamValue",
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": [{"name": "Epoch", "type": "int32", "versions": "0+"}],
        **attributes,
    }


def request(**attributes: Any) -> Json:
    return {
        "type": "request",
        "apiKey": 40,
        "listeners": ["broker"],
        "name": "AskRequest",
        "validVersions": "0-2",
        "flexibleVersions": "1+",
        "fields": [{"name": "Who", "type": "string", "versions": "0+"}],
        **attributes,
    }


def response(**attributes: Any) -> Json:
    spec = request(type="response", name="AskResponse", **attributes)
    del spec["listeners"]
    return spec


def folder(path: Path, *specs: Json) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for spec in specs:
        (path / f"{spec['name']}.json").write_text(json.dumps(spec, indent=2), encoding="utf-8")
    return path


def compared(tmp_path: Path, older: list[Json], newer: list[Json]) -> SpecComparison:
    sides = [folder(tmp_path / name / "teams", *specs).parent for name, specs in (("older", older), ("newer", newer))]
    return compare(read_spec_set(str(sides[0]), str(sides[1])), read_spec_set(str(sides[1]), str(sides[0])))


def found(comparison: SpecComparison) -> list[str]:
    """Each change as `rank rule message field`."""
    return [
        f"{change.rank.value} {change.rule.name} {change.message} {change.field}".rstrip()
        for change in comparison.changes
    ]


def git(path: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=path, check=True, capture_output=True)
