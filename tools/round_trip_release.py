#!/usr/bin/env python3
"""Generate a package from all specs of a Kafka release, and round-trip messages through it. See `--help`."""

from __future__ import annotations

import argparse
import importlib
import io
import json
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast

import fastavro

from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.spec.violations import SpecErrors
from kafka_records_codegen.tree import UntrackedFiles, write
from kafka_records_runtime.messages.avro import from_avro, read_schema, to_avro
from kafka_records_runtime.wire import walker

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the one above

from kafka_records_codegen.evolution.kafka_releases import (  # noqa: E402
    FetchError,
    fetch_specs,
    folder_name,
    is_older_dialect,
)
from tools.kafka_releases import SPEC_COUNTS  # noqa: E402
from tools.random_messages import random_message  # noqa: E402
from tools.timed_steps import TimedSteps  # noqa: E402

_EPILOG = """\
A release passes when
  - each module holds as many specs as it is known to hold, and all of them load,
  - the package generated from them can be imported, its Spark types too; fastavro takes its Avro schemas, all together,
  - every message comes back from its bytes in every version, from its JSON form and through Avro: the default one and
    N random ones,
  - the generated fast paths, without the help of the schema walker, write the same bytes and read the same message
    as the walker does; only messages with unknown tagged fields they may leave to it.

Prints one line per release, and below it one line per failure. Random messages are the same in every run.

Kafka's jars are fetched by Maven (mvn). Their specs stay in $KAFKA_RECORDS_CACHE, by default kafka-records in the
user's cache directory, and are not fetched again.

exit status: 0 all pass, 1 failures, 2 jars that cannot be fetched

examples:
  tools/round_trip_release.py 4.3.1                   one release
  tools/round_trip_release.py --all --examples 20     all of them, more thoroughly
  tools/round_trip_release.py 2.8.2 --out generated   keep the package, as generated/kafka_2_8_2
"""

_COLUMNS = ("release", "specs", "messages", "versions", "sent", "failed", "load", "generate", "import", "round trip")


@dataclass
class Report(TimedSteps):
    """The result for a release. `sent` is the number of messages that passed all checks; `seconds` is per step."""

    release: str
    specs: int = 0
    messages: int = 0
    versions: int = 0
    sent: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        counts = (self.release, self.specs, self.messages, self.versions, self.sent, len(self.failures))
        steps = (f"{self.seconds[step]:.1f} s" if step in self.seconds else "-" for step in _COLUMNS[6:])
        return _row((*(str(count) for count in counts), *steps))


def round_trip(release: str, specs: Path, home: Path, examples: int) -> Report:
    """Generate the package of a release below `home` from its `specs`, and check it with `examples` random messages.

    The package is called `kafka_4_3_1` and leaves no module behind. Raises UntrackedFiles if `home` has a folder with
    that name and files that no generator wrote.
    """
    report = Report(release)
    report.failures += _miscounted(release, specs, report)
    package = f"kafka_{release.replace('.', '_')}"
    try:
        with report.timed("load"):
            model = load(specs, older_dialect=is_older_dialect(release))
    except SpecErrors as errors:
        report.failures += [str(violation) for violation in errors.violations]
        return report
    report.messages = len(model.messages)
    with report.timed("generate"):
        files = generate(model, package)
    write(home / package, files)
    report.failures += _bad_avro(files)
    with _importable(home, package):
        with report.timed("import"):
            classes = list(_import_all(package, files, report.failures))
        with report.timed("round trip"):
            for cls in classes:
                _send_all(cls, examples, report)
    return report


def _miscounted(release: str, specs: Path, report: Report) -> Iterator[str]:
    for module, expected in SPEC_COUNTS[release].items():
        found = len(list((specs / folder_name(module)).glob("*.json")))
        report.specs += found
        if found != expected:
            yield f"{module} {release} holds {found} specs, {expected} are known"


# ---- the package


def _bad_avro(files: Mapping[str, str]) -> Iterator[str]:
    """Errors about Avro schemas: those that fastavro refuses, and equal names, which must differ within the package."""
    schemas = {path: json.loads(text) for path, text in files.items() if path.endswith(".avsc")}
    for path, schema in schemas.items():
        try:
            fastavro.parse_schema(schema)
        except Exception as error:
            yield f"{path} is no Avro schema: {type(error).__name__}: {error}"
            return
    # The schemas are in one record, because a duplicate name in a union is not detected.
    fields = [{"name": f"f{number}", "type": schema} for number, schema in enumerate(schemas.values())]
    try:
        fastavro.parse_schema({"type": "record", "name": "All", "fields": fields})
    except Exception as error:
        yield f"the Avro schemas do not go together: {type(error).__name__}: {error}"


@contextmanager
def _importable(home: Path, package: str) -> Iterator[None]:
    """Put `home` on the module path. At the end, remove it, and remove all modules of `package`."""
    sys.path.insert(0, str(home))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(home))
        for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            del sys.modules[name]


def _import_all(package: str, files: Mapping[str, str], failures: list[str]) -> Iterator[Any]:
    """Import every module of the package, then yield the class of every message."""
    for path in files:
        if path.endswith(".py"):
            module = ".".join((package, *path.removesuffix(".py").removesuffix("/__init__").split("/")))
            try:
                importlib.import_module(module.removesuffix(".__init__"))
            except Exception as error:
                failures.append(f"{path} cannot be imported: {type(error).__name__}: {error}")
    registry = importlib.import_module(f"{package}.registry")
    for name in registry.MESSAGES:
        try:
            yield registry.message_class(name)
        except Exception as error:
            failures.append(f"{name} has no class: {type(error).__name__}: {error}")


# ---- its messages


def _send_all(cls: Any, examples: int, report: Report) -> None:
    name = cls.CODEC.schema.name
    for version in cls.VERSIONS:
        report.versions += 1
        for number in range(examples + 1):
            # Every other message has parts that Kafka's JSON form lacks.
            plain = number % 2 == 0
            if number:
                what = f"random message {number}"
                message = random_message(cls, version, Random(f"{name} {version} {number}"), plain=plain)
            else:
                what, message = "default message", cls()
            report.sent += 1
            report.failures += [
                f"{name} v{version}, {what}: {failure}" for failure in failures_of(message, version, plain=plain)
            ]


def failures_of(message: Any, version: int, *, plain: bool) -> Iterator[str]:
    """The checks that fail for a message. All ways to write and to read it must agree.

    `plain` says that Kafka's JSON form has all parts of the message: it has no unknown tagged fields, and no bytes of
    `records`.
    """
    try:
        for what, found, expected in _outcomes(message, version, plain):
            if found != expected:
                yield f"{what} gives {_shortened(found)}, expected {_shortened(expected)}"
    except Exception as error:
        yield f"{type(error).__name__}: {error}"


def _outcomes(message: Any, version: int, plain: bool) -> Iterator[tuple[str, Any, Any]]:
    cls = type(message)
    schema, classes = cls.CODEC.schema, cls.CODEC.classes
    encoded = walker.encode(schema, message, version)
    whole = message, len(encoded)
    yield "the walker's decode", walker.decode(schema, encoded, version, classes=classes), whole
    yield "encode", message.encode(version), encoded
    yield "decode", cls.decode(encoded, version), message
    yield "the fast reader", _alone(cls, lambda: cls.decode(encoded, version)), message
    yield "Avro", _through_avro(message), message
    text = json.dumps(message.to_json(version))
    yield "the JSON form", cls.from_json(json.loads(text), version), message
    if plain:
        # Unknown tagged fields are rare, so the fast writers leave them to the schema walker.
        yield "the fast writer", _alone(cls, lambda: message.encode(version)), encoded


def _through_avro(message: Any) -> Any:
    """The message that is read from the bytes that fastavro writes."""
    cls = type(message)
    schema = _avro_schema(cls.__module__, cls.__name__)
    file = io.BytesIO()
    fastavro.schemaless_writer(file, schema, to_avro(message), strict=True)
    file.seek(0)
    return from_avro(cls, cast("dict[str, Any]", fastavro.schemaless_reader(file, schema, None)))


@cache
def _avro_schema(module: str, name: str) -> Any:
    return fastavro.parse_schema(read_schema(module, name))


class GaveUpError(Exception):
    """A fast path tried to use the schema walker."""


class _NoHelp:
    """Replaces `CODEC` without a fallback: it raises GaveUpError."""

    def __getattr__(self, name: str) -> Any:
        raise GaveUpError(name)


def _alone(cls: Any, call: Callable[[], Any]) -> Any:
    """The result or error of `call` while the fast paths of `cls` cannot use the schema walker."""
    codec = cls.CODEC
    cls.CODEC = _NoHelp()
    try:
        return call()
    except Exception as error:
        return error
    finally:
        cls.CODEC = codec


def _shortened(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else repr(value)
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text)} characters)"


# ---- the command


def _row(cells: Sequence[str]) -> str:
    widths = (7, 5, 8, 8, 5, 6, 6, 8, 6, 10)
    first, *rest = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join((first.strip().ljust(widths[0]), *rest))


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="round_trip_release.py",
        description="Generate a package from all specs of a Kafka release, and round-trip messages through it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help=f"one of {', '.join(SPEC_COUNTS)}")
    parser.add_argument("--all", action="store_true", help="all of these releases")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep the packages in this folder")
    parser.add_argument(
        "--examples", type=int, default=4, metavar="N", help="random messages for each message and version (default 4)"
    )
    asked = parser.parse_args(arguments)
    unknown = [release for release in asked.releases if release not in SPEC_COUNTS]
    if unknown:
        parser.error(f"not a release this knows: {', '.join(unknown)}; it knows {', '.join(SPEC_COUNTS)}")
    if bool(asked.releases) == asked.all:
        parser.error("name releases, or give --all")
    if asked.examples < 0:
        parser.error("--examples takes 0 or more")
    return asked


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    asked = _arguments(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        home = asked.out or Path(scratch)
        try:
            return _run(list(SPEC_COUNTS) if asked.all else asked.releases, home, asked.examples, _tell)
        except (FetchError, UntrackedFiles) as error:
            _tell(str(error))
            return 2


def _run(releases: Sequence[str], home: Path, examples: int, tell: Callable[[str], None]) -> int:
    print(_row(_COLUMNS), flush=True)
    passed = True
    for release in releases:
        report = round_trip(release, fetch_specs(release, tell), home, examples)
        print(report, flush=True)
        for failure in report.failures:
            print(textwrap.indent(failure, "  "), flush=True)
        passed = passed and not report.failures
    return 0 if passed else 1


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
