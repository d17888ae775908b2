"""Spec files for tests, and their violations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.loader import load
from kafka_records_codegen.spec.violations import SpecErrors


def write(**texts: str) -> Path:
    """Spec files by name (`folder/Foo` or `folder__Foo` stands for folder/Foo.json) in the folder `specs`."""
    for name, text in texts.items():
        path = Path("specs", name if "/" in name else name.replace("__", "/")).with_suffix(".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Path("specs")


def spec(*fields: dict[str, Any], **attributes: Any) -> str:
    message = {"type": "data", "name": "Foo", "validVersions": "0-2", "flexibleVersions": "1+"}
    return json.dumps({**message, **attributes, "fields": list(fields)})


def field(name: str = "A", type_: str = "int32", versions: str = "0+", **attributes: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "versions": versions, **attributes}


def message(name: str, type_: str = "data", **attributes: Any) -> str:
    flexible = "none" if type_ == "coordinator-key" else "0+"
    return json.dumps({"type": type_, "name": name, "validVersions": "0", "flexibleVersions": flexible, **attributes})


def refused(folder: Path) -> SpecErrors:
    with pytest.raises(SpecErrors) as caught:
        load(folder)
    return caught.value


def short(folder: Path) -> list[str]:
    """The violations as `file: path: message`, without places."""
    return [f"{it.file}: {it.path}: {it.message}" for it in refused(folder).violations]
