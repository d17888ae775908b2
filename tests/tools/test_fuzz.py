"""The fuzzer: what it accepts, what it finds, its output; and a short run of every kind of message."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from tools import fuzz, hostile
from tools.hostile import RuleBroken, check, mutated, ready, seeds, watched

ROOT = Path(__file__).resolve().parents[2]
V3 = bytes.fromhex("00000000000000640000000a00086d6574616461746100000000000004d2")


def finding(cls: Any, version: int, data: bytes) -> str:
    hostile.ready(cls)
    with watched(), pytest.raises(RuleBroken) as caught:
        check(cls, version, data)
    return str(caught.value)


def give(monkeypatch: pytest.MonkeyPatch, reader: Any) -> None:
    """Replace OffsetCommitValue.decode by `reader`, after the class is ready."""
    ready(OffsetCommitValue)
    monkeypatch.setattr(hostile, "ready", lambda cls: None)
    monkeypatch.setattr(OffsetCommitValue, "decode", reader)


class TestCheck:
    def test_good_and_bad_bytes_are_fine(self) -> None:
        ready(OffsetCommitValue)
        with watched():
            for data in (V3, V3[:-1], V3 + b"x", b"", b"\xff" * 50, V3.replace(b"m", b"\xff")):
                check(OffsetCommitValue, 3, data)

    def test_another_value(self, monkeypatch: pytest.MonkeyPatch) -> None:
        give(monkeypatch, lambda data, version: OffsetCommitValue())
        assert finding(OffsetCommitValue, 3, V3).startswith(
            "OffsetCommitValue v3: decode gives the value OffsetCommitValue(offset=0, "
        )

    def test_an_exception_from_elsewhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(data: bytes, version: int) -> None:
            raise IndexError("out of range")

        give(monkeypatch, broken)
        assert finding(OffsetCommitValue, 3, V3) == "OffsetCommitValue v3: decode raises IndexError: out of range"

    def test_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def greedy(data: bytes, version: int) -> bytes:
            return bytes(1_000_000)

        give(monkeypatch, greedy)
        assert finding(OffsetCommitValue, 3, V3).endswith("bytes of memory for 30 bytes")

    def test_a_hang(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def hanging(data: bytes, version: int) -> None:
            while True:
                time.process_time()

        give(monkeypatch, hanging)
        monkeypatch.setattr(hostile, "SPARE_SECONDS", 0.02)
        assert finding(OffsetCommitValue, 3, V3) == "OffsetCommitValue v3: decode takes more than 0.03 s for 30 bytes"

    def test_a_leniency_without_a_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ready(OffsetCommitKey)
        codec = type(OffsetCommitKey.CODEC)
        monkeypatch.setattr(codec, "decode_lenient", lambda self, data, version, found: (OffsetCommitKey(), 0))
        said = finding(OffsetCommitKey, 0, b"")
        assert said.startswith("OffsetCommitKey v0: a lenient reader takes what is refused with BufferUnderflow: ")
        assert said.endswith(", and names no leniency")


def test_changed_messages_differ_and_come_back_with_the_seed() -> None:
    first, second = ([mutated(V3, random) for _ in range(50)] for random in (Random(1), Random(1)))
    assert first == second
    assert len(set(first)) > 40


def test_every_version_has_inputs_to_start_from() -> None:
    found = {version for version, _ in seeds(OffsetCommitValue, Random(1), 1)}
    assert found == set(OffsetCommitValue.VERSIONS)
    assert len(fuzz.starting_inputs(OffsetCommitValue)) == 10 * len(OffsetCommitValue.VERSIONS)


class TestCommand:
    def test_a_short_run(self, capsys: pytest.CaptureFixture[str]) -> None:
        asked = ["--message", "OffsetCommitKey", "--message", "FetchRequest", "--seconds", "0.2", "--blind"]
        assert fuzz.main(asked) == 0
        out = capsys.readouterr().out
        assert out.startswith("2 messages, ")
        assert out.endswith(" inputs (random changes of random messages), 0 findings\n")

    def test_a_finding_says_how_to_repeat_it(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        give(monkeypatch, lambda data, version: OffsetCommitValue(offset=7))
        asked = ["--message", "OffsetCommitValue"]
        assert fuzz.main([*asked, "--seconds", "0.1", "--blind"]) == 1
        first, again, totals = capsys.readouterr().out.splitlines()
        assert first.startswith("OffsetCommitValue v0: decode gives the value OffsetCommitValue(offset=7, ")
        assert again.startswith("  tools/fuzz.py --package kafka_records --message OffsetCommitValue --input 00")
        assert totals == "1 messages, 1 inputs (random changes of random messages), 1 findings"
        assert fuzz.main([*asked, "--input", again.split()[-1]]) == 1
        repeated = capsys.readouterr().out
        assert repeated.startswith("Traceback (most recent call last):\n")
        assert repeated.endswith(f"{first}\n{again}\n")

    def test_a_single_input(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert fuzz.main(["--message", "OffsetCommitValue", "--input", "03" + V3.hex()]) == 0
        assert capsys.readouterr().out == "nothing found\n"

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--input", "00"], "--input needs one --message"),
            (["--seconds", "0"], "--seconds takes more than 0"),
            (["--message", "Nope"], "fuzz.py: kafka_records has no message Nope"),
        ],
    )
    def test_mistakes(self, arguments: list[str], said: str) -> None:
        done = subprocess.run(
            [sys.executable, str(ROOT / "tools" / "fuzz.py"), *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert said in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
def test_guided_by_atheris() -> None:
    sent, found = fuzz.guided("kafka_records", "OffsetCommitKey", 1)
    assert sent > 10
    assert found is None
