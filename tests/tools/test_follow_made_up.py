"""`make follow` on a synthetic release, in a copy of the repository: the tests of the resulting tree pass."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_needed import skipped_without_kafka
from tools.broker import class_jars
from tools.follow import vectors
from tools.follow.spec_form import spec_text, split_head

ROOT = Path(__file__).resolve().parents[2]

COPIED = ("docs", "examples", "generated", "generator", "message_specs", "spark_udfs", "tests", "tools")
FILES = ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md", "pyproject.toml")

pytestmark = [pytest.mark.maven, pytest.mark.slow, pytest.mark.matrix]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in COPIED:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, tree)
    return tree


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    """Our specs with a new record type, a new tag, a new version and a version that is gone."""
    specs, _ = (
        Path(shutil.copytree(ROOT / "message_specs", tmp_path / name, ignore=shutil.ignore_patterns(*NOT_KAFKAS)))
        for name in ("made_up", "since")
    )
    change(specs / "consumer_offsets" / "StreamsGroupMetadataValue.json", lambda spec: spec["fields"].append(TAG))
    for side in ("Request", "Response"):
        change(specs / "rpc" / f"LeaveGroup{side}.json", lambda spec: spec.update(validVersions="1-5"))
    change(specs / "rpc" / "AlterShareGroupOffsetsRequest.json", lambda spec: spec.update(validVersions="0-1"))
    change(specs / "rpc" / "AlterShareGroupOffsetsResponse.json", lambda spec: spec.update(validVersions="0-1"))
    for kind, name, fields in (("key", "PlanetKey", [NAME]), ("value", "PlanetValue", [NAME, MASS])):
        spec = {"apiKey": 77, "type": f"coordinator-{kind}", "name": name, "validVersions": "0"}
        spec |= {"flexibleVersions": "none" if kind == "key" else "0+", "fields": fields}
        (specs / "consumer_offsets" / f"{name}.json").write_text(spec_text("", spec), encoding="utf-8")
    return specs


NOT_KAFKAS = ("proposed", "client_protocols")
"""Folders of messages for which no release of Kafka has a spec."""

TAG = {"name": "Moons", "type": "[]int64", "versions": "0+", "tag": 4, "taggedVersions": "0+", "about": "Theirs."}
NAME = {"name": "Name", "type": "string", "versions": "0+", "about": "Theirs."}
MASS = {"name": "Mass", "type": "float64", "versions": "0+", "about": "Theirs."}


def change(path: Path, how: Any) -> None:
    head, body = split_head(path.read_text(encoding="utf-8"))
    spec = json.loads(body)
    how(spec)
    path.write_text(spec_text(head, spec), encoding="utf-8")


def follow(tree: Path, made_up: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run `make follow` in the copy, with its packages and this interpreter, so that nothing has to be set up."""
    (tree / "installed").touch()
    packages = [tree, *(tree / name for name in ("generated", "generator", "spark_udfs"))]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, packages))
    variables: dict[str, object] = {
        "RELEASE": made_up,
        "SINCE": made_up.with_name("since"),
        "BIN": Path(sys.executable).parent,
    }
    variables |= {"INSTALLED": "installed", "WORKERS": 0}
    command = ["make", "follow", *(f"{name}={value}" for name, value in variables.items()), *more]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


def write_words(specs: Path) -> None:
    for path in specs.rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        text = text.replace("// ? what it is, in one line", "// A planet.")
        text = re.sub(r"^// \? .*$", "// Made up after 4.4.", text, flags=re.M)
        path.write_text(text.replace('"about": "?"', '"about": "Made up."'), encoding="utf-8")


def state(tree: Path) -> dict[str, str]:
    folders = ("docs", "generated", "message_specs", "tests/data/kafka", "tests/data/vectors", "tools")
    files = (path for folder in folders for path in (tree / folder).rglob("*") if path.suffix != ".pyc")
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()}


def test_a_release_that_nobody_made(tree: Path, made_up: Path) -> None:
    with skipped_without_kafka():
        class_jars()
    stopped = follow(tree, made_up)
    assert stopped.returncode == 2
    assert "message_specs/consumer_offsets/PlanetValue.json:14: about of Mass" in stopped.stdout.split("\n")
    write_words(tree / "message_specs")
    done = follow(tree, made_up)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    page = (tree / "docs" / "releases" / "made_up.md").read_text(encoding="utf-8")
    for row in (
        "`Moons` tag-added: []int64, tag 4",
        "- `PlanetValue`: record-added: coordinator-value 77, versions 0",
        "| `LeaveGroupRequest` | 0 |  | versions-dropped: 1-5, was 0-5 |",
        "- `AlterShareGroupOffsetsResponse`: versions-added: 0-1, was 0",
    ):
        assert row in page.replace("&#91;", "[").replace("\\[\\]", "[]"), page
    given_up = vectors.read(tree / "tests" / "data" / "vectors" / "given_up.jsonl.gz")
    assert {(line["message"], line["version"]) for line in given_up} == {
        (f"LeaveGroup{side}", 0) for side in ("Request", "Response")
    }
    assert f"{len(given_up)} vectors of versions that made_up no longer has" in page
    once = state(tree)
    again = follow(tree, made_up, "FOLLOWED=tests/message_specs")
    assert again.returncode == 0, again.stdout[-4000:] + again.stderr[-2000:]
    assert state(tree) == once
