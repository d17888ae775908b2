#!/usr/bin/env python3
"""Fuzz the codecs of a generated package with hostile bytes, a target for each message. See `--help`."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the one above

_EPILOG: Final = """\
Each input is read strictly and leniently, by the generated class, by the schema walker and as part of a record. It must
raise nothing outside kafka-records' own errors, all readers must agree, and memory and time must stay in proportion.

With atheris, which make fuzz installs, inputs are guided by the code they reach. Without it they are random
changes of random messages, the same in every run.

Prints a line per message with a finding, with the command that repeats it, and a line of totals.

exit status: 0 nothing found, 1 findings, 2 arguments that cannot be used

examples:
  tools/fuzz.py                                      every message of kafka_records, a second each
  tools/fuzz.py --message GroupMetadataValue --seconds 300
  tools/fuzz.py --package acme_messages              a package of your own; it must be importable
  tools/fuzz.py --message OffsetCommitKey --input 0000017f    a single input: the first byte chooses the version
"""

_SEEDS_PER_VERSION: Final = 4
_MAX_INPUT: Final = 4096
_FINDING: Final = "finding.json"

Target = Callable[[bytes], None]


def target(cls: Any) -> Target:
    """A function that reads one input: the first byte chooses the version, the others are the message."""
    from tools.hostile import check, ready

    versions = cls.VERSIONS
    ready(cls)

    def read(data: bytes) -> None:
        if data:
            check(cls, versions[data[0] % len(versions)], data[1:])

    return read


def starting_inputs(cls: Any) -> list[bytes]:
    """Inputs of `target` to start from, the same in every run."""
    from tools.hostile import seeds

    first, random = cls.VERSIONS[0], Random(cls.__name__)
    return [bytes([version - first]) + data for version, data in seeds(cls, random, _SEEDS_PER_VERSION)]


def blind(cls: Any, seconds: float) -> tuple[int, str | None]:
    """Send random changes of random messages for some seconds. Returns the number of inputs, and the failure that was
    found."""
    from tools.hostile import RuleBroken, mutated, watched

    read, inputs, random = target(cls), starting_inputs(cls), Random(cls.__name__)
    sent, data = 0, b""
    end = time.monotonic() + seconds
    with watched():
        try:
            while sent < len(inputs) or time.monotonic() < end:
                data = inputs[sent] if sent < len(inputs) else mutated(random.choice(inputs), random)
                sent += 1
                read(data)
        except RuleBroken as finding:
            return sent, _told(cls, data, finding)
    return sent, None


def single(cls: Any, data: bytes) -> str | None:
    """Send one input. Returns the failure with its traceback, or None."""
    from tools.hostile import RuleBroken, watched

    with watched():
        try:
            target(cls)(data)
        except RuleBroken as finding:
            return f"{''.join(traceback.format_exception(finding))}{_told(cls, data, finding)}"
    return None


def _told(cls: Any, data: bytes, finding: object) -> str:
    module = cls.__module__.partition(".")[0]
    return f"{finding}\n  tools/fuzz.py --package {module} --message {cls.CODEC.schema.name} --input {data.hex()}"


# ---- guided by atheris


def guided(package: str, name: str, seconds: float) -> tuple[int, str | None]:
    """The same as `blind`, with inputs that atheris chooses. It runs in a separate process, because the fuzzer ends its
    process."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, __file__, "--package", package, "--message", name]
        command += ["--seconds", str(seconds), "--guided-in", scratch]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        runs = re.search(r"Done (\d+) runs", done.stderr)
        finding = Path(scratch) / _FINDING
        if finding.exists():
            found = json.loads(finding.read_text(encoding="utf-8"))
            return found["sent"], found["told"]
        if done.returncode or runs is None:
            return 0, f"{name}: the fuzzer ended with status {done.returncode}\n{done.stderr[-2000:]}"
        return int(runs[1]), None


def _guide(package: str, name: str, seconds: float, scratch: Path) -> None:
    """Never returns: libFuzzer ends the process."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=[package, "kafka_records_runtime"]):
        from tools.hostile import RuleBroken, watched

        cls = importlib.import_module(f"{package}.registry").message_class(name)
        read, inputs = target(cls), starting_inputs(cls)
        for data in inputs:  # so that everything that is imported on demand has been imported
            with watched():
                _report_finding(cls, scratch, 0, data, read, RuleBroken)
    corpus = scratch / "corpus"
    corpus.mkdir()
    for number, data in enumerate(inputs):
        (corpus / str(number)).write_bytes(data)
    sent = 0

    def one_input(data: bytes) -> None:
        nonlocal sent
        sent += 1
        _report_finding(cls, scratch, sent, data, read, RuleBroken)

    options = [f"-max_total_time={max(1, round(seconds))}", f"-max_len={_MAX_INPUT}", "-timeout=20", "-seed=1"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={scratch}/", str(corpus)], one_input)
    with watched():
        atheris.Fuzz()


def _report_finding(cls: Any, scratch: Path, sent: int, data: bytes, read: Target, finding: type[Exception]) -> None:
    try:
        read(data)
    except finding as found:
        report = {"sent": sent, "told": _told(cls, data, found)}
        (scratch / _FINDING).write_text(json.dumps(report), encoding="utf-8")
        os._exit(1)


# ---- the command


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="fuzz.py",
        description="Fuzz the codecs of a generated package with hostile bytes, a target for each message.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--package", default="kafka_records", help="the generated package (default kafka_records)")
    parser.add_argument(
        "--message", action="append", metavar="NAME", help="a message by its spec name; may be repeated (default all)"
    )
    parser.add_argument(
        "--seconds", type=float, default=1.0, metavar="S", help="time for each message without its start (default 1)"
    )
    parser.add_argument("--blind", action="store_true", help="do not use atheris, even if it is installed")
    parser.add_argument("--input", type=bytes.fromhex, metavar="HEX", help="send this one input to the one --message")
    parser.add_argument("--guided-in", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.input is not None and len(asked.message or ()) != 1:
        parser.error("--input needs one --message")
    if asked.seconds <= 0:
        parser.error("--seconds takes more than 0")
    return asked


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    asked = _arguments(arguments)
    if asked.guided_in is not None:
        _guide(asked.package, asked.message[0], asked.seconds, asked.guided_in)
    registry = importlib.import_module(f"{asked.package}.registry")
    names = asked.message or sorted(registry.MESSAGES)
    unknown = [name for name in names if name not in registry.MESSAGES]
    if unknown:
        print(f"fuzz.py: {asked.package} has no message {', '.join(unknown)}", file=sys.stderr)
        return 2
    if asked.input is not None:
        found = single(registry.message_class(names[0]), asked.input)
        print("nothing found" if found is None else found)
        return 0 if found is None else 1
    use_atheris = not asked.blind and importlib.util.find_spec("atheris") is not None
    sent = findings = 0
    for name in names:
        if use_atheris:
            count, found = guided(asked.package, name, asked.seconds)
        else:
            count, found = blind(registry.message_class(name), asked.seconds)
        sent += count
        if found is not None:
            findings += 1
            print(found, flush=True)
    how = "guided by atheris" if use_atheris else "random changes of random messages"
    print(f"{len(names)} messages, {sent} inputs ({how}), {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
