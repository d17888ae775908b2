"""Write the kept vectors again with the message classes of a release. See `--help`."""

from __future__ import annotations

import argparse
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kafka_records_codegen.evolution.kafka_releases import FetchError, release_order
from kafka_records_codegen.evolution.spec_sets import UnusableSpecs, read_spec_set
from tools.broker import MissingPrerequisite
from tools.follow import vectors
from tools.follow.classes import message_classes
from tools.follow.refusals import FollowError
from tools.follow.vectors import Line, MessageClasses
from tools.java_compiler import CompileError
from tools.kafka_releases import DESCRIBED

KEPT: Final = Path("tests/data/vectors")

_EPILOG: Final = """\
Every message of messages.jsonl.gz is written from its JSON and its unknown tags, and every one of negative.jsonl.gz is
read, into files of the same names in --out. The last line says how many have the bytes, the JSON and the verdict that
they have in tests/data/vectors; the others are listed. 4.3.1 wrote those that name no release. Lines and verdicts of
later releases than the one that is asked are left out; a message that one of them changed is kept under the names of
that one, and differs.

exit status: 0 all are the same, 1 some differ, 2 classes that cannot be had
"""


def rewritten(lines: Sequence[Line], classes: MessageClasses) -> list[Line]:
    """Lines of messages.jsonl.gz as the classes write them. A line that they refuse has their answer as `refused`."""
    asked = [
        {"message": line["message"], "version": line["version"], "json": _filled(line)}
        | ({"tags": line["tags"]} if "tags" in line else {})
        for line in lines
    ]
    return [_written(*pair) for pair in zip(lines, classes.asked(asked), strict=True)]


def judged_anew(lines: Sequence[Line], classes: MessageClasses, release: str) -> list[Line]:
    """Lines of negative.jsonl.gz with the verdict of the release as the last verdict."""
    asked = [{name: line[name] for name in ("message", "version", "hex")} for line in lines]
    return [vectors.judged(*pair, release) for pair in zip(lines, classes.asked(asked), strict=True)]


def _as_of(path: Path, release: str) -> list[Line]:
    """The kept lines, without lines and verdicts of later releases."""

    def is_later(each: Line) -> bool:
        return release_order(each.get("release", release)) > release_order(release)

    lines = [line for line in vectors.read(path) if not is_later(line)]
    later = ([verdict for verdict in line.get("later", ()) if not is_later(verdict)] for line in lines)
    return [
        {name: value for name, value in line.items() if name != "later"} | ({"later": kept} if kept else {})
        for line, kept in zip(lines, later, strict=True)
    ]


def _written(line: Line, answer: Line) -> Line:
    if "hex" not in answer:
        return {**line, "refused": answer}
    return {**line, "hex": answer["hex"], "json": _emptied(answer["json"], line)}


def _filled(line: Line) -> Any:
    """The JSON with the bytes of `records` fields, which a line stores separately, in the form that Kafka's converter
    accepts."""
    held = iter(line.get("records", ()))
    return _with_records(line["json"], held) if "records" in line else line["json"]


def _with_records(value: Any, held: Iterator[str | None]) -> Any:
    if isinstance(value, list):
        return [_with_records(item, held) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {name: _bytes(held) if name == "records" else _with_records(it, held) for name, it in value.items()}


def _bytes(held: Iterator[str | None]) -> str | None:
    found = next(held)
    return None if found is None else b64encode(bytes.fromhex(found)).decode()


def _emptied(value: Any, line: Line) -> Any:
    return _with_records(value, iter(lambda: "", None)) if "records" in line else value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.follow.rewritten",
        description="Write the vectors of tests/data again, with Kafka's own message classes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "release", nargs="?", default=DESCRIBED, help=f"release whose classes write (default {DESCRIBED})"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write to")
    asked = parser.parse_args(arguments)
    messages, negative = (_as_of(KEPT / f"{name}.jsonl.gz", asked.release) for name in ("messages", "negative"))
    try:
        with message_classes(read_spec_set(asked.release, "message_specs"), lambda line: None) as classes:
            written, judged = rewritten(messages, classes), judged_anew(negative, classes, asked.release)
    except (UnusableSpecs, FetchError, MissingPrerequisite, CompileError, FollowError) as error:
        print(error, file=sys.stderr)
        return 2
    asked.out.mkdir(parents=True, exist_ok=True)
    vectors.write(asked.out / "messages.jsonl.gz", written)
    vectors.write(asked.out / "negative.jsonl.gz", judged)
    pairs = [*zip(messages, written, strict=True), *zip(negative, judged, strict=True)]
    other = [now for kept, now in pairs if kept != now]
    for line in other:
        print(f"{line['message']} version {line['version']}: {line.get('refused', 'differs')}")
    print(f"{len(pairs) - len(other)} of {len(pairs)} are as they are kept, by Kafka {asked.release}, in {asked.out}")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
