"""Damage kept vectors, and write the results of Kafka's classes for them. See `--help`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from random import Random
from typing import Any, Final

from kafka_records_codegen.evolution.kafka_releases import FetchError
from kafka_records_codegen.evolution.spec_sets import UnusableSpecs, read_spec_set
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.wire import walker
from tools.broker import MissingPrerequisite
from tools.follow import vectors
from tools.follow.classes import message_classes
from tools.follow.refusals import FollowError
from tools.follow.rewritten import KEPT
from tools.follow.vectors import Line
from tools.java_compiler import CompileError
from tools.kafka_releases import DESCRIBED

FOLDERS: Final = ("cluster_metadata", "log_files", "remote_log_metadata", "streams_protocol")
"""The packages whose messages are damaged here. Messages of other packages were damaged by code that is not in
`tools`."""
BY: Final = "by seed: "
"""The prefix of `how` in each line that is made here."""

_CLAIMS: Final = ("length", "count", "tag count", "tag size", "tag")
_VERDICT: Final = ("ok", "json", "left", "tags", "reencode_hex", "reencode_error", "error")
_EPILOG: Final = """\
Every message and version of some packages is cut, continued, changed in a byte and in what it claims of lengths and
counts, by its name as the seed, out of lines of messages.jsonl.gz. Those in negative.jsonl.gz that an earlier run made
are replaced.

exit status: 0 they are written, 2 classes that cannot be had
"""


def damaged(messages: Iterable[Line]) -> Iterator[Line]:
    """Damaged forms of one kept message for each name and version: the shortest one that is not too short to damage."""
    schemas = {schema.name: schema for folder in FOLDERS for schema in _schemas(folder)}
    chosen: dict[tuple[str, int], Line] = {}
    for line in sorted(messages, key=lambda line: (len(line["hex"]) < 32, len(line["hex"]), line["hex"])):
        if line["message"] in schemas:
            chosen.setdefault((line["message"], line["version"]), line)
    for (name, version), line in sorted(chosen.items()):
        data = bytes.fromhex(line["hex"])
        for how, changed in _forms(schemas[name], version, data, Random(f"damage {name} {version}")):
            first = {"message": name, "module": line["module"], "version": version, "how": BY + how}
            yield first | {"hex": changed.hex()}


def _schemas(folder: str) -> list[MessageSchema]:
    module: Any = import_module(f"kafka_records.schemas.{folder}")
    found = [getattr(module, name) for name in module.__all__]
    return [each for each in found if isinstance(each, MessageSchema)]


def _forms(schema: MessageSchema, version: int, data: bytes, random: Random) -> Iterator[tuple[str, bytes]]:
    yield "more behind", data + b"\0"
    for size in sorted(random.sample(range(len(data)), min(2, len(data)))):
        yield f"cut to {size} of {len(data)}", data[:size]
    if data:
        at = random.randrange(len(data))
        yield f"byte {at} changed", data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]
    claims = [step for step in walker.walk(schema, version, data) if step.type in _CLAIMS]
    for step in random.sample(claims, min(2, len(claims))):
        choices = [b"\xff\xff\xff\xff\x07", b"\x80\x80\x01"]
        if step.type != "tag count":  # releases before 4.4 accept a negative tag count
            choices.append(b"\xff\xff\xff\xff\x0f")
        claim = random.choice(choices)
        if not schema.is_flexible(version):
            claim = random.choice((b"\x7f" + b"\xff" * (step.length - 1), b"\x80" + bytes(step.length - 1)))
        rest = data[step.offset + step.length :]
        yield f"{step.type} at {step.offset} is {claim.hex()}", data[: step.offset] + claim + rest


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit status."""
    argparse.ArgumentParser(
        prog="python -m tools.follow.damaged",
        description="Damage kept vectors, and keep the results of Kafka's own message classes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args(arguments)
    negative = KEPT / "negative.jsonl.gz"
    kept = [line for line in vectors.read(negative) if not line["how"].startswith(BY)]
    made = [*damaged(vectors.read(KEPT / "messages.jsonl.gz"))]
    try:
        with message_classes(read_spec_set(DESCRIBED, "message_specs"), lambda line: None) as classes:
            answers = classes.asked([{name: line[name] for name in ("message", "version", "hex")} for line in made])
    except (UnusableSpecs, FetchError, MissingPrerequisite, CompileError, FollowError) as error:
        print(error, file=sys.stderr)
        return 2
    judged = [_judged(*pair) for pair in zip(made, answers, strict=True)]
    vectors.write(negative, [*kept, *judged])
    refused = sum(not line["ok"] for line in judged)
    print(f"{len(judged)} messages in {negative}, {refused} of them refused by Kafka {DESCRIBED}")
    return 0


def _judged(line: Line, answer: Line) -> Line:
    if "ok" not in answer:
        raise FollowError(f"no class of Kafka {DESCRIBED} is called {line['message']}")
    return (
        line | {name: answer[name] for name in _VERDICT if answer.get(name) not in (None, [])} | {"release": DESCRIBED}
    )


if __name__ == "__main__":
    sys.exit(main())
