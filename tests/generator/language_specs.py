"""Converts Kafka's four test messages from the form of `language-cases.json` back to spec files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_RENAMED = {"nullable": "nullableVersions", "tagged_versions": "taggedVersions"}
_KEPT = ("name", "type", "versions", "tag", "ignorable", "zeroCopy")


def write_language_specs(data_dir: Path, folder: Path) -> Path:
    """Write one spec file per message of `data_dir/kafka/language-cases.json` into `folder` and return that."""
    cases = json.loads((data_dir / "kafka" / "language-cases.json").read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    for name, message in cases["specs"].items():
        text = json.dumps(spec_of(message), indent=2, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def spec_of(message: Mapping[str, Any]) -> Json:
    """The spec of one message: a common struct is once in commonStructs, defaults are texts."""
    common: dict[str, Json] = {}
    fields = _fields(message["fields"], common)
    return {
        "type": "data",
        "name": message["message"],
        "validVersions": message["valid_versions"],
        "flexibleVersions": message["flexible_versions"],
        "fields": fields,
        "commonStructs": list(common.values()),
    }


def _fields(fields: Iterable[Mapping[str, Any]], common: dict[str, Json]) -> list[Json]:
    return [_field(field, common) for field in fields]


def _field(field: Mapping[str, Any], common: dict[str, Json]) -> Json:
    spec: Json = {name: field[name] for name in _KEPT if name in field}
    spec |= {new: field[old] for old, new in _RENAMED.items() if old in field}
    spec |= _default(field)
    if "fields" in field:
        members = _fields(field["fields"], common)
        if field["struct"] == "common":
            name = field["type"].removeprefix("[]")
            common[name] = {"name": name, "versions": field["struct_versions"], "fields": members}
        else:
            spec["fields"] = members
    return spec


def _default(field: Mapping[str, Any]) -> Json:
    """The `default` attribute; left out if it would only repeat the default of the type."""
    value = field.get("default")
    if "default" not in field or value in ("", [], {}):
        return {}
    if value is None:
        return {"default": "null"}
    return {"default": value if isinstance(value, str) else json.dumps(value)}
