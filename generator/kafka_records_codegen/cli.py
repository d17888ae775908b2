"""The command `kafka-records-codegen`."""

from __future__ import annotations

import argparse
import keyword
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_records_codegen.model import Model

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_EXAMPLES = """examples:
  kafka-records-codegen generate --specs message_specs --out generated/kafka_records --package kafka_records
      write the package, delete what earlier runs wrote and this one does not
  kafka-records-codegen docs --specs message_specs --out docs/reference --package kafka_records
      write the reference pages: fields by version, bytes and Spark columns of every message
  kafka-records-codegen generate --specs specs --out src/acme_messages --package acme_messages --check
      write nothing; exit with 1 and a diff when the folder is not what the specs give

Every folder below --specs becomes a subpackage. Specs are JSON files in Kafka's own message language.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status: 0 done or unchanged, 1 refused or different, 2 wrong usage."""
    options = _parser().parse_args(arguments)
    if options.out.exists() and not options.out.is_dir():
        print(f"{options.out} is a file; --out names the folder of the {options.product}", file=sys.stderr)
        return 1
    from kafka_records_codegen.loader import load
    from kafka_records_codegen.tree import UntrackedFiles, write
    from kafka_records_codegen.violations import SpecErrors
    from kafka_records_runtime.errors import plural

    try:
        model = load(options.specs, older_dialect=options.older_dialect)
    except SpecErrors as errors:
        print(errors, file=sys.stderr)
        print(f"{plural(len(errors.violations), 'violation')}; nothing was written", file=sys.stderr)
        return 1
    files: dict[str, str] = options.run(model, options)
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


def _generate(model: Model, options: argparse.Namespace) -> dict[str, str]:
    from kafka_records_codegen.generate import generate

    return generate(model, options.package, None if options.docs is None else options.docs.as_posix())


def _docs(model: Model, options: argparse.Namespace) -> dict[str, str]:
    from kafka_records_codegen.backends.reference import Links
    from kafka_records_codegen.generate import generate_docs

    specs = _relative(options.specs, options.out)
    code = None if options.code is None else _relative(options.code, options.out)
    return generate_docs(model, options.package, Links(specs, code))


def _relative(target: Path, start: Path) -> str:
    return Path(os.path.relpath(target, start)).as_posix()


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
    print(f"{options.out} is not what the specs give. To fix it: {_command(options)}", file=sys.stderr)
    if found.untracked:
        print("First move the untracked files away: they were not written by the generator.", file=sys.stderr)
    return 1


def _command(options: argparse.Namespace) -> str:
    """The command line that writes what was only compared."""
    words = ["kafka-records-codegen", options.command]
    for name in ("specs", "out", "package", "docs", "code"):
        value = getattr(options, name, None)
        if value is not None:
            words += [f"--{name}", str(value)]
    if options.older_dialect:
        words.append("--older-dialect")
    return shlex.join(words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-records-codegen",
        description="Turn Kafka message specs into Python codecs, schemas, Spark types and reference pages.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    generate = _add_command(commands, "generate", "write a package from specs, or check that it is up to date")
    generate.set_defaults(run=_generate, product="package")
    generate.add_argument(
        "--docs", type=Path, metavar="DIR", help="folder of the reference pages: docstrings then name them"
    )
    docs = _add_command(commands, "docs", "write reference pages from specs, or check that they are up to date")
    docs.set_defaults(run=_docs, product="pages")
    docs.add_argument("--code", type=Path, metavar="DIR", help="folder of the package: pages then link to its modules")
    return parser


def _add_command(commands: Commands, name: str, summary: str) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name, help=summary, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--specs", type=Path, required=True, metavar="DIR", help="folder with the spec files")
    command.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder to write to; it holds nothing else"
    )
    command.add_argument(
        "--package", type=_package, required=True, metavar="NAME", help="name the package is imported by"
    )
    command.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 when the folder differs from the specs"
    )
    command.add_argument(
        "--older-dialect",
        action="store_true",
        help="read specs as Kafka wrote them before 4.0: flexibleVersions left out, listener zkBroker, text at the end",
    )
    return command


def _package(name: str) -> str:
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split(".")):
        raise argparse.ArgumentTypeError(f"{name!r} cannot be imported; use identifiers with dots between them")
    return name


if __name__ == "__main__":
    sys.exit(main())
