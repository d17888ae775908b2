"""`make follow` on a made-up release, in a copy of the repository: the tests of the tree it gives pass."""

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
from tools.follow.spec_form import spec_text, split_head

ROOT = Path(__file__).resolve().parents[2]

COPIED = ("docs", "examples", "generated", "generator", "message_specs", "spark_udfs", "tests", "tools")
FILES = ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "pyproject.toml")

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
    specs = Path(shutil.copytree(ROOT / "message_specs", tmp_path / "made_up"))
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


TAG = {"name": "Moons", "type": "[]int64", "versions": "0+", "tag": 4, "taggedVersions": "0+", "about": "Theirs."}
NAME = {"name": "Name", "type": "string", "versions": "0+", "about": "Theirs."}
MASS = {"name": "Mass", "type": "float64", "versions": "0+", "about": "Theirs."}


def change(path: Path, how: Any) -> None:
    head, body = split_head(path.read_text(encoding="utf-8"))
    spec = json.loads(body)
    how(spec)
    path.write_text(spec_text(head, spec), encoding="utf-8")


def run(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A Python module, with the packages of the copy."""
    packages = [tree, *(tree / name for name in ("generated", "generator", "spark_udfs"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, packages))}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )


def steps(tree: Path, made_up: Path) -> str:
    """What `make follow` runs before its tests; returns the page."""
    makefile = (tree / "Makefile").read_text(encoding="utf-8")
    generated, reference = (re.search(rf"^{name} := (.*)$", makefile, re.M) for name in ("GENERATED", "REFERENCE"))
    assert generated
    assert reference
    page = ""
    for command in (
        ("tools.follow", "specs", str(made_up)),
        ("kafka_records_codegen.cli", "generate", *generated[1].split()),
        ("kafka_records_codegen.cli", "docs", *reference[1].split()),
        ("tools.table_pages",),
        ("tools.follow", "vectors", str(made_up), "--since", str(ROOT / "message_specs")),
    ):
        done = run(tree, *command)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        page = done.stdout
    return page


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
    stopped = run(tree, "tools.follow", "specs", str(made_up))
    assert stopped.returncode == 1
    assert "message_specs/consumer_offsets/PlanetValue.json:14: about of Mass" in stopped.stdout.split("\n")
    write_words(tree / "message_specs")
    page = steps(tree, made_up)
    for row in (
        "| `StreamsGroupMetadataValue` | 0 | `Moons` | tag-added: []int64, tag 4 |",
        "| `PlanetValue` | 0 |  | record-added: coordinator-value 77, versions 0 |",
        "| `LeaveGroupRequest` | 0 |  | versions-dropped: 1-5, was 0-5 |",
        "| `AlterShareGroupOffsetsResponse` | 1 |  | versions-added: 0-1, was 0 |",
    ):
        assert row in page.replace("&#91;", "[").replace("\\[\\]", "[]"), page
    once = state(tree)
    assert steps(tree, made_up) == page
    assert state(tree) == once
    makefile = (tree / "Makefile").read_text(encoding="utf-8")
    followed = re.search(r"^FOLLOWED := (.*)$", makefile, re.M)
    assert followed
    only = "not (spark or broker or matrix or maven)"
    tested = run(tree, "pytest", "-q", "-p", "no:cacheprovider", "-m", only, *followed[1].split())
    assert tested.returncode == 0, tested.stdout[-4000:]
