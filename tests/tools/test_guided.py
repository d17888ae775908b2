"""Targets of guided fuzzing: what they accept and what they find; the kept inputs; and their readers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka_records import registry
from tests.kafka_needed import skipped_without_kafka
from tools.broker import java
from tools.guided import __main__ as command
from tools.guided import archives, fuzzing, kept_inputs, saved, segments
from tools.guided.jvm import __main__ as functions_in_jvm
from tools.guided.jvm import functions
from tools.guided.target import DATA, PACKAGES, Target, target
from tools.hostile import check, mutated, ready, watched

VECTORS = DATA / "vectors"
HAS_ATHERIS = importlib.util.find_spec("atheris") is not None


@pytest.mark.parametrize("name", PACKAGES)
def test_every_target_reads_its_seeds_and_changes_of_them(name: str) -> None:
    made, random = target(name), Random(f"test {name}")
    seeds = made.seeds()
    assert seeds == made.seeds()
    for data in random.sample(list(seeds), 4):
        made.read(data)
        made.read(mutated(data, random))


READERS = {
    "codecs": "tools.hostile.check",
    "columns": "tools.guided.columns.check",
    "segments": "tools.guided.segments.read_in_every_way",
    "archives": "tools.guided.archives.find_logs",
    "saved": "tools.guided.saved.read_rows",
    "requests": "tools.guided.requests._read_logs",
}


@pytest.mark.parametrize("name", PACKAGES)
def test_every_target_reads_what_it_is_given(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a check that does nothing would pass."""

    def broken(*_: Any) -> Any:
        raise Broken

    made = target(name)
    seeds = made.seeds()
    monkeypatch.setattr(READERS[name], broken)
    with pytest.raises(Broken):
        made.read(seeds[0])


class Broken(Exception):
    pass


def _breaks(data: bytes) -> None:
    if data.startswith(b"ab"):
        raise Broken("it starts with ab")


def test_a_finding_is_shown_with_the_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Target(lambda: [b"a", b"abc"], _breaks)
    monkeypatch.setattr(fuzzing, "target", lambda name: broken)
    assert command.main(["--target", "saved", "--blind", "--seconds", "0.1"]) == 1
    out = capsys.readouterr().out
    assert "saved: 2 inputs" in out
    assert "Broken: it starts with ab" in out
    assert "python -m tools.guided --target saved --input 616263" in out
    monkeypatch.setattr(command, "target", lambda name: broken)
    assert command.main(["--target", "saved", "--input", "616263"]) == 1
    assert command.main(["--target", "saved", "--input", "61"]) == 0


@pytest.mark.matrix
@pytest.mark.skipif(not HAS_ATHERIS, reason="atheris is not installed")
def test_a_guided_run_grows_its_corpus(tmp_path: Path) -> None:
    done = fuzzing.run("archives", 3, tmp_path / "archives")
    assert done.found is None
    assert done.inputs > 10
    assert done.corpus >= 10


@pytest.mark.matrix
@pytest.mark.maven
def test_a_guided_run_in_the_jvm_grows_its_corpus(tmp_path: Path) -> None:
    with skipped_without_kafka():
        done = functions_in_jvm.run(5, tmp_path / "jvm")
    assert done.found is None
    assert done.inputs > 1000
    assert done.corpus > len(list(functions.seeds()))


def test_seeds_of_the_functions_in_the_jvm_say_what_they_give() -> None:
    lines = [functions.described(data) for data in functions.seeds()]
    assert {line["function"] for line in lines} >= {"decode_consumer_offsets", "from_offset_commit_value"}
    decoded = [line for line in lines if line["function"] == "decode_share_group_state"]
    assert any(line["value"] is None for line in decoded)
    assert all(str(line["key"]).startswith("000") for line in decoded)


def test_inputs_that_were_kept_are_read() -> None:
    random = Random()
    messages, files = list(kept_inputs.lines(kept_inputs.MESSAGES)), list(kept_inputs.lines(kept_inputs.FILES))
    assert len(messages) > 60
    assert len(files) > 50
    for line in random.sample(messages, 25):
        cls = registry.message_class(line["message"])
        ready(cls)
        with watched():
            check(cls, line["version"], bytes.fromhex(line["hex"]))
    for line in random.sample(files, 12):
        _read_file(line)


def _read_file(line: dict[str, Any]) -> None:
    name, content = line["file"], bytes.fromhex(line["hex"])
    if name == "segment.log":
        segments.read(b"\0" + content)
    elif name.startswith("data") or name.endswith(".zip"):
        archives.read_file(name, content)
    else:
        saved.read_file(name, content)


def test_both_readers_of_vectors_read_the_same() -> None:
    for file in ("negative.jsonl.gz", "fuzzed-messages.jsonl.gz"):
        command = [sys.executable, str(VECTORS / "read_vectors.py"), str(VECTORS / file)]
        by_python = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert len(by_python.splitlines()) == len(list(kept_inputs.lines(VECTORS / file)))
        with skipped_without_kafka():
            program = [java(), "-XX:TieredStopAtLevel=1", str(VECTORS / "ReadVectors.java"), str(VECTORS / file)]
        assert subprocess.run(program, capture_output=True, text=True, check=True).stdout == by_python
