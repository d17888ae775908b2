"""The command `kafka-records-codegen`."""

from __future__ import annotations

import argparse
import keyword
import sys
from collections.abc import Sequence
from pathlib import Path

_EXAMPLES = """examples:
  kafka-records-codegen generate --specs message_specs --out generated/kafka_records --package kafka_records
      write the package, delete what earlier runs wrote and this one does not
  kafka-records-codegen generate --specs specs --out src/acme_messages --package acme_messages --check
      write nothing; exit with 1 and a diff when the folder is not what the specs give

Every folder below --specs becomes a subpackage. Specs are JSON files in Kafka's own message language.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status: 0 done or unchanged, 1 refused or different, 2 wrong usage."""
    options = _parser().parse_args(arguments)
    if options.out.exists() and not options.out.is_dir():
        print(f"{options.out} is a file; --out names the folder of the package", file=sys.stderr)
        return 1
    from kafka_records_codegen.generate import generate
    from kafka_records_codegen.loader import load
    from kafka_records_codegen.tree import UntrackedFiles, write
    from kafka_records_codegen.violations import SpecErrors
    from kafka_records_runtime.errors import plural

    try:
        model = load(options.specs)
    except SpecErrors as errors:
        print(errors, file=sys.stderr)
        print(f"{plural(len(errors.violations), 'violation')}; nothing was written", file=sys.stderr)
        return 1
    files = generate(model, options.package)
    if options.check:
        return _check(options, files)
    try:
        before = write(options.out, files)
    except UntrackedFiles as error:
        print(error, file=sys.stderr)
        return 1
    written, deleted = len(before.missing) + len(before.changed), len(before.extra)
    print(
        f"{plural(len(model.messages), 'message')}, {plural(len(files), 'file')} in {options.out}: "
        f"{written} written, {deleted} deleted, {len(files) - written} unchanged",
        file=sys.stderr,
    )
    return 0


def _check(options: argparse.Namespace, files: dict[str, str]) -> int:
    from kafka_records_codegen.tree import compare, differences

    found = compare(options.out, files)
    if found.is_clean:
        print(f"{options.out} is what the specs give", file=sys.stderr)
        return 0
    for what in ("missing", "extra", "changed", "untracked"):
        for name in getattr(found, what):
            print(f"{what}: {options.out / name}")
    for line in differences(options.out, files, found):
        print(line)
    command = f"kafka-records-codegen generate --specs {options.specs} --out {options.out} --package {options.package}"
    print(f"{options.out} is not what the specs give. To fix it: {command}", file=sys.stderr)
    if found.untracked:
        print("First move the untracked files away: they were not written by the generator.", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-records-codegen",
        description="Turn Kafka message specs into Python codecs, schemas and Spark types.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    generate = commands.add_parser(
        "generate",
        help="write a package from specs, or check that it is up to date",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    generate.add_argument("--specs", type=Path, required=True, metavar="DIR", help="folder with the spec files")
    generate.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder the package is written to")
    generate.add_argument(
        "--package", type=_package, required=True, metavar="NAME", help="name the package is imported by"
    )
    generate.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 when the folder differs from the specs"
    )
    return parser


def _package(name: str) -> str:
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split(".")):
        raise argparse.ArgumentTypeError(f"{name!r} cannot be imported; use identifiers with dots between them")
    return name


if __name__ == "__main__":
    sys.exit(main())
