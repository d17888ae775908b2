"""The command `kafka-records-codegen`."""

from __future__ import annotations

import argparse
import io
import keyword
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafka_records_codegen.model.messages import Model
    from kafka_records_codegen.spec.violations import Violation

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_PAGES = Path("docs/reference")

_EXAMPLES = """examples:
  kafka-records-codegen generate --specs message_specs --out generated/kafka_records --package kafka_records
      write the package, and delete files of earlier runs that it no longer has
  kafka-records-codegen docs --specs message_specs --out docs/reference --package kafka_records
      write the reference pages: fields by version and bytes of every message, Spark columns of stored ones
  kafka-records-codegen generate --specs specs --out src/acme_messages --package acme_messages --check --strict
      for CI: write nothing; exit with 1 and a diff if the folder differs from what the specs give, and with 1 if there
      is a warning
  kafka-records-codegen compare main message_specs
      compare the specs with those of another state and list what breaks; compare --help says more

Every folder below --specs becomes a subpackage. Specs are JSON files in Kafka's own message language. The folder --out
belongs to one package and contains only its modules or its pages: any other file, known by its first line, stops the
run. Only one run at a time writes to it. A run that fails leaves the folder unchanged, or in a state that the next run
fixes, and says which.

exit status:
  0    done, or nothing to do
  1    specs rejected, foreign files in the folder, or --check found a difference; nothing was written
  2    wrong usage, a missing extra, a file or folder that cannot be read or written, or another run that took longer
       than a minute
  130  Ctrl-C
"""

_DIFFERENT: Final = 1
_UNUSABLE: Final = 2
_INTERRUPTED: Final = 130

_TAKEN: Final = frozenset(
    {
        *("kafka_records_codegen", "kafka_records_engine", "kafka_records_runtime", "kafka_records_tables"),
        *("msgspec", "numpy", "pandas", "pyarrow", "pyspark"),
    }
)
"""Packages that a generated package imports, directly or indirectly, and the other packages of this project."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status (see `_EXAMPLES`)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    try:
        status = int(options.job(options))
        sys.stdout.flush()
    except ModuleNotFoundError as error:
        if error.name not in ("black", "jinja2"):
            raise
        from kafka_records_runtime.text.installing import install_command

        return _unusable(f"{error.name} is not installed: {install_command('codegen')}")
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does. Flushing the buffered output at exit must not raise the same error
        # again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _DIFFERENT
    except KeyboardInterrupt:
        return _INTERRUPTED
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        return _unusable(f"{place}{error.strerror or error}")
    return status


def _unusable(problem: str) -> int:
    from kafka_records_runtime.text.printable import printable

    print(f"kafka-records-codegen: {printable(problem)}", file=sys.stderr)
    return _UNUSABLE


def _run(options: argparse.Namespace) -> int:
    if not options.specs.is_dir():
        problem = "is not a folder" if options.specs.exists() else "no such folder"
        return _unusable(f"{options.specs}: {problem}; give --specs the folder with the spec files")
    if os.path.lexists(options.out) and not options.out.is_dir():
        return _unusable(f"{options.out}: is not a folder; give --out the folder of the {options.written}")
    model = _load(options)
    if model is None:
        return _DIFFERENT
    files: dict[str, str] = options.run(model, options)
    _note_long_modules(options.out, files)
    return _check(options, files) if options.check else _write(options, model, files)


def _load(options: argparse.Namespace) -> Model | None:
    """The model of the specs. If they are rejected, None, and their problems are printed."""
    from kafka_records_codegen.loader import load, unread
    from kafka_records_codegen.spec.violations import SpecErrors
    from kafka_records_runtime.errors import plural
    from kafka_records_runtime.text.printable import printable

    ignored = unread(options.specs)
    if ignored:
        print(
            f"note: these files are ignored, because the name of a spec ends with .json: "
            f"{printable(', '.join(map(str, ignored)))}",
            file=sys.stderr,
        )
    warnings: list[Violation] = []
    try:
        model = load(options.specs, older_dialect=options.older_dialect, strict=options.strict, warnings=warnings)
    except SpecErrors as errors:
        print(errors, file=sys.stderr)
        counts = [plural(len(errors.violations), "violation")]
        if errors.warnings:
            counts.append(plural(len(errors.warnings), "warning"))
        print(f"{', '.join(counts)}; nothing was written", file=sys.stderr)
        return None
    for warning in warnings:
        print(warning, file=sys.stderr)
    if warnings:
        them = "it a violation" if len(warnings) == 1 else "them violations"
        print(f"{plural(len(warnings), 'warning')}; --strict makes {them}", file=sys.stderr)
    return model


def _note_long_modules(out: Path, files: dict[str, str]) -> None:
    """Print the names of very long modules. They work, so this is only a note, which --strict accepts."""
    from kafka_records_codegen.generate import long_modules
    from kafka_records_codegen.python.codecs import MOST_LINES
    from kafka_records_runtime.text.printable import printable

    for path, lines in long_modules(files).items():
        print(
            f"note: {printable(str(out / path))} has {lines} lines, more than the usual limit of {MOST_LINES}, "
            "because a class or function is never split. To make the module shorter, use fewer fields or "
            "versions in one message",
            file=sys.stderr,
        )


def _write(options: argparse.Namespace, model: Model, files: dict[str, str]) -> int:
    from kafka_records_codegen.tree import UntrackedFiles, write
    from kafka_records_runtime.errors import plural

    try:
        before = write(options.out, files, lambda: _say_waiting(options.out))
    except UntrackedFiles as error:
        print(error, file=sys.stderr)
        return _DIFFERENT
    written, deleted = len(before.missing) + len(before.changed), len(before.extra)
    print(
        f"{plural(len(model.messages), 'message')}, {plural(len(files), 'file')} in {options.out}: "
        f"{written} written, {deleted} deleted, {len(files) - written} unchanged",
        file=sys.stderr,
    )
    return 0


def _say_waiting(out: Path) -> None:
    print(f"{out}: another run is writing to this folder; waiting for it", file=sys.stderr)


def _generate(model: Model, options: argparse.Namespace) -> dict[str, str]:
    from kafka_records_codegen.generate import generate

    docs = options.docs or _own_pages(options.package)
    return generate(model, options.package, None if docs is None else docs.as_posix())


def _own_pages(package: str) -> Path | None:
    """The folder docs/reference, if it contains reference pages of this package. `generate` refers to them even without
    --docs."""
    from kafka_records_codegen.text.mark import Mark
    from kafka_records_codegen.tree import read_mark

    index = _PAGES / "README.md"
    return _PAGES if index.is_file() and read_mark(index) == Mark("pages", package) else None


def _docs(model: Model, options: argparse.Namespace) -> dict[str, str]:
    from kafka_records_codegen.generate import generate_docs
    from kafka_records_codegen.text.page import Links

    specs = _relative(options.specs, options.out)
    code = None if options.code is None else _relative(options.code, options.out)
    return generate_docs(model, options.package, Links(specs, code))


def _relative(target: Path, start: Path) -> str:
    return Path(os.path.relpath(target, start)).as_posix()


def _check(options: argparse.Namespace, files: dict[str, str]) -> int:
    from kafka_records_codegen.tree import compare, differences, mark_of
    from kafka_records_runtime.text.printable import printable

    found = compare(options.out, files, lambda: _say_waiting(options.out))
    if found.is_clean:
        print(f"{options.out} matches the specs", file=sys.stderr)
        return 0
    for what in ("missing", "extra", "changed", "untracked"):
        for name in getattr(found, what):
            print(f"{what}: {printable(str(options.out / name))}")
    for line in differences(options.out, files, found):
        print(line)
    print(f"{options.out} does not match the specs. To fix it: {_command(options)}", file=sys.stderr)
    if found.untracked:
        whose = f"are not the {mark_of(files)}" if found.marks else "were not written by the generator"
        print(f"First move the untracked files away: they {whose}.", file=sys.stderr)
    return _DIFFERENT


def _command(options: argparse.Namespace) -> str:
    """The command line that writes the files that this run only compared."""
    words = ["kafka-records-codegen", options.command]
    for name in ("specs", "out", "package", "docs", "code"):
        value = getattr(options, name, None)
        if value is not None:
            words += [f"--{name}", str(value)]
    words += [f"--{name.replace('_', '-')}" for name in ("older_dialect", "strict") if getattr(options, name)]
    return shlex.join(words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-records-codegen",
        description="Turn Kafka message specs into Python codecs, schemas, Spark types, Avro and reference pages.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    generate = _add_command(commands, "generate", "write a package from specs, or check that it is up to date")
    generate.set_defaults(run=_generate, written="package")
    generate.add_argument(
        "--docs",
        type=_path,
        metavar="DIR",
        help="folder of the reference pages that docstrings refer to (default: docs/reference, if it contains them)",
    )
    docs = _add_command(commands, "docs", "write reference pages from specs, or check that they are up to date")
    docs.set_defaults(run=_docs, written="pages")
    docs.add_argument(
        "--code", type=_path, metavar="DIR", help="folder of the generated package; pages then link to its modules"
    )
    _add_compare(commands)
    return parser


_RANKS: Final = ("bytes", "readers", "early-access", "versions", "names", "adds", "words")
"""The ranks of changes, as in `evolution.change_rules`, which only the subcommand `compare` imports."""

_COMPARE_EXAMPLES = """OLD and NEW are each one of
  a folder of specs            message_specs
  a jar, a folder of jars      kafka-clients-4.3.1.jar, kafka_2.13-4.3.1/libs
  a release of Kafka           4.3.1 (its jars are fetched once by Maven, mvn; their specs stay in $KAFKA_RECORDS_CACHE,
                               by default kafka-records in the user's cache directory)
  a revision of git            main, HEAD~1: the folder of the other side in that revision; main:message_specs names one

Every change is listed with file, line and column, its rule and the source of the rule, and what it does to attributes,
Spark columns, Avro schemas and Parquet files. _notes.json, which changes no byte, is not compared.
Ranks, the worst first:
  bytes         breaks existing bytes
  readers       breaks readers of the older state
  early-access  changes a layout that nobody could rely on yet
  versions      drops versions
  names         changes names, types or defaults of attributes and columns, and no byte
  adds          adds
  words         only words

examples:
  kafka-records-codegen compare main message_specs
      what the working tree would break, compared with the branch main
  kafka-records-codegen compare 4.2.0 4.3.1 --show versions
      what Kafka 4.3.1 breaks or drops
  kafka-records-codegen compare v1.0 message_specs --fail-on versions --format json
      for CI: exit with 1 when versions are dropped or worse, and tell a program why

exit status:
  0    nothing as bad as --fail-on
  1    a change as bad as --fail-on, or worse
  2    wrong usage, a side that cannot be read, specs that are rejected
  130  Ctrl-C
"""


def _add_compare(commands: Commands) -> None:
    command = commands.add_parser(
        "compare",
        help="list the differences between two sets of specs, and what they break",
        epilog=_COMPARE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "older",
        metavar="OLD",
        help="first set of specs: a folder, a jar, a folder of jars, a Kafka release or a git revision",
    )
    command.add_argument("newer", metavar="NEW", help="second, newer set of specs, in any of the same forms")
    command.add_argument(
        "--fail-on",
        type=_rank,
        metavar="RANK",
        default="readers",
        help="exit with 1 if a change is as bad as this or worse (default: readers)",
    )
    command.add_argument(
        "--show",
        type=_rank,
        metavar="RANK",
        default="words",
        help="list only changes that are as bad as this or worse (default: all)",
    )
    command.add_argument("--format", choices=("text", "json"), default="text", help="output format (default: text)")
    _add_older_dialect(command)
    command.set_defaults(job=_compare)


def _compare(options: argparse.Namespace) -> int:
    from kafka_records_codegen.evolution.compare_command import run

    return run(options)


def _add_command(commands: Commands, name: str, summary: str) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name, help=summary, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--specs", type=_path, required=True, metavar="DIR", help="folder with the spec files")
    command.add_argument(
        "--out", type=_path, required=True, metavar="DIR", help="folder to write to, which must contain nothing else"
    )
    command.add_argument(
        "--package", type=_package, required=True, metavar="NAME", help="name under which the package is imported"
    )
    command.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if the folder differs from the specs"
    )
    _add_older_dialect(command)
    command.set_defaults(job=_run)
    command.add_argument(
        "--strict",
        action="store_true",
        help="treat warnings as errors: undefined types, fields that exist in no version, arrays of structs "
        "without fields, fields that may be null in versions in which they do not exist",
    )
    return command


def _add_older_dialect(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--older-dialect",
        action="store_true",
        help="also accept what specs before Kafka 4.0 contain: no flexibleVersions, the listener zkBroker, text after "
        "the JSON object",
    )


def _rank(word: str) -> str:
    from kafka_records_runtime.text.close_names import close_name

    if word in _RANKS:
        return word
    close = close_name(word, _RANKS)
    meant = f"did you mean {close}?" if close else f"choose one of {', '.join(_RANKS)}"
    raise argparse.ArgumentTypeError(f"{word!r} is not a rank of changes; {meant}")


def _package(name: str) -> str:
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split(".")):
        raise argparse.ArgumentTypeError(f"{name!r} cannot be imported: use identifiers separated by dots")
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names:
        raise argparse.ArgumentTypeError(
            f"{top!r} is a module of Python's standard library, which the package would hide: choose another name"
        )
    if top in _TAKEN:
        raise argparse.ArgumentTypeError(
            f"{top!r} is a package that generated code imports, which the new package would hide: choose "
            f"another name"
        )
    return name


def _path(text: str) -> Path:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not UTF-8: use another path, because paths are written into generated files"
        ) from None
    return Path(text)


class _Version(argparse.Action):
    """Looks up the version only when it is requested."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("kafka-records")
        except PackageNotFoundError:
            number = "(not installed)"
        print(f"kafka-records-codegen {number}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
