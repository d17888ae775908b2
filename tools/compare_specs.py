#!/usr/bin/env python3
"""Compare our message specs with those of a Kafka release. See `--help`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka_records_codegen.loader import load
from kafka_records_codegen.model.messages import Field, Message, Struct
from kafka_records_codegen.spec.attributes import read_message
from kafka_records_codegen.spec.violations import SpecErrors, SpecText

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the one above

from kafka_records_codegen.evolution.kafka_releases import (  # noqa: E402
    FetchError,
    fetch_specs,
    folder_name,
    is_older_dialect,
)
from tools.kafka_releases import DESCRIBED, RECORD_MODULES, SPEC_COUNTS  # noqa: E402

_EPILOG = """\
Prints one line per difference in meaning: message, field, what differs, our side and Kafka's. Comments, `about`,
`entityType`, `zeroCopy` and `listeners` change no byte and are left out. A message of ours that the release does not
have is a difference (but for the folders proposed, whose messages were never released, and client_protocols, of which
Kafka has classes and no specs), and so is a record of its coordinators that we do not have.

Kafka's jars are fetched by Maven (mvn). Their specs stay in $KAFKA_RECORDS_CACHE, by default kafka-records in the
user's cache directory, and are not fetched again.

exit status: 0 no difference, 1 differences, 2 specs that do not load or jars that cannot be fetched

examples:
  tools/compare_specs.py                                   our specs against the release they describe
  tools/compare_specs.py --release 3.9.1                   what has changed since 3.9.1
  tools/compare_specs.py --specs my_specs --release 4.0.0  somebody else's specs
"""


WITHOUT_SPECS = ("client_protocols", "proposed")
"""The folders of messages that Kafka implements by hand, and of messages that are described in design documents but are
in no release."""


@dataclass(frozen=True)
class Spec:
    """A message, and which of its structs are common structs. The resolved message lacks this information."""

    message: Message
    common_structs: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """A difference between two specs of a message. `path` leads to a field; it is empty for the message itself."""

    message: str
    path: str
    what: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        place = f"{self.message}: {self.path}" if self.path else self.message
        return f"{place}: {self.what}: ours {self.ours}, theirs {self.theirs}"


def read_specs(folder: Path, *, older_dialect: bool = False) -> dict[str, Spec]:
    """All messages below `folder`, by name. Raises SpecErrors."""
    return {
        message.name: Spec(message, _common_structs(folder, message, older_dialect))
        for message in load(folder, older_dialect=older_dialect).messages
    }


def compare(ours: Mapping[str, Spec], theirs: Mapping[str, Spec]) -> Iterator[Difference]:
    """All differences between our messages and the release's messages of the same name, sorted by name.

    Messages that only the release has are ignored, unless they are records of coordinators.
    """
    record_folders = {folder_name(module) for module in RECORD_MODULES}
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in theirs:
            if ours[name].message.folder not in WITHOUT_SPECS:
                yield Difference(name, "", "message", "present", "absent")
        elif name in ours:
            yield from compare_messages(ours[name], theirs[name])
        elif theirs[name].message.folder in record_folders:
            yield Difference(name, "", "message", "absent", "present")


def compare_messages(ours: Spec, theirs: Spec) -> Iterator[Difference]:
    """All differences between two specs of a message: first in its attributes, then in its fields, in our order."""
    name = ours.message.name
    for what, our_value, their_value in _unequal(_message_values(ours), _message_values(theirs)):
        yield Difference(name, "", what, our_value, their_value)
    yield from _compare_structs(ours.message, theirs.message, ours.message.root, theirs.message.root, "")


def _compare_structs(
    our_message: Message, their_message: Message, our_struct: Struct, their_struct: Struct, path: str
) -> Iterator[Difference]:
    ours = {field.name: field for field in our_struct.fields}
    theirs = {field.name: field for field in their_struct.fields}
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        place = f"{path}.{name}" if path else name
        if name not in theirs:
            yield Difference(our_message.name, place, "field", "present", "absent")
        elif name not in ours:
            yield Difference(our_message.name, place, "field", "absent", "present")
        else:
            our_field, their_field = ours[name], theirs[name]
            for what, our_value, their_value in _unequal(_field_values(our_field), _field_values(their_field)):
                yield Difference(our_message.name, place, what, our_value, their_value)
            if our_field.is_struct and their_field.is_struct:
                inner = our_message.struct(our_field.base), their_message.struct(their_field.base)
                yield from _compare_structs(our_message, their_message, *inner, place)
    our_order = [name for name in ours if name in theirs]
    their_order = [name for name in theirs if name in ours]
    if our_order != their_order:
        yield Difference(our_message.name, path, "order", ", ".join(our_order), ", ".join(their_order))


def _common_structs(folder: Path, message: Message, older_dialect: bool) -> tuple[str, ...]:
    text = (folder / message.source).read_text(encoding="utf-8")
    spec = read_message(SpecText(message.source, text, older_dialect))
    return tuple(sorted(struct.name for struct in spec.common_structs)) if spec else ()


def _message_values(spec: Spec) -> dict[str, str]:
    message = spec.message
    return {
        "type": message.type,
        "apiKey": _text(message.api_key),
        "validVersions": str(message.versions),
        "flexibleVersions": str(message.flexible),
        "latestVersionUnstable": _text(message.latest_version_unstable),
        "commonStructs": ", ".join(spec.common_structs) or "none",
    }


def _field_values(field: Field) -> dict[str, str]:
    return {
        "type": field.type,
        "versions": str(field.versions),
        "nullableVersions": str(field.nullable),
        "tag": _text(field.tag),
        "taggedVersions": str(field.tagged),
        "flexibleVersions": str(field.flexible),
        "default": repr(field.default),
        "ignorable": _text(field.ignorable),
        "mapKey": _text(field.map_key),
    }


def _unequal(ours: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for what, our_value in ours.items():
        if our_value != theirs[what]:
            yield what, our_value, theirs[what]


def _text(value: int | None) -> str:
    """A number or a boolean as it is written in a spec."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="compare_specs.py",
        description="Compare our message specs with those inside the jars of a Kafka release.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--release",
        choices=tuple(SPEC_COUNTS),
        default=DESCRIBED,
        help=f"the release to compare with (default {DESCRIBED})",
    )
    parser.add_argument(
        "--specs",
        type=Path,
        default=ROOT / "message_specs",
        metavar="DIR",
        help="the folder with our specs (default message_specs)",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    asked = _arguments(arguments)
    try:
        ours = read_specs(asked.specs)
        specs = fetch_specs(asked.release, tell=_tell)
        theirs = read_specs(specs, older_dialect=is_older_dialect(asked.release))
    except (SpecErrors, FetchError) as error:
        _tell(str(error))
        return 2
    differences = list(compare(ours, theirs))
    for difference in differences:
        print(difference)
    count = f"{len(differences)} difference{'' if len(differences) == 1 else 's'}" if differences else "no difference"
    _tell(f"{len(ours)} messages of ours, {len(theirs)} of Kafka {asked.release}: {count}")
    return 1 if differences else 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
