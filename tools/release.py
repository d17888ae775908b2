#!/usr/bin/env python3
"""Build wheel and sdist of the last commit, twice, and try both in empty environments. See `--help`."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]

_EPILOG = """\
What is built is the last commit, out of two copies of it in different folders, each with the jar of Spark's functions,
which needs a JDK; the wheel once by way of the sdist and once without it. All have to be the same bytes. twine checks
what an index would show. Then the wheel, and after it the sdist, is installed into an empty virtual environment, which
needs an index of packages: alone, where a record has to be decoded and encoded, and with the extras tables and codegen.
There tables of the captured topic in the sdist have to be those of this checkout, the example of own specs is generated
and used, and the whole package is generated again and compared with itself.

Files that pass are left in --out, with SHA256SUMS. Nothing is uploaded and no tag is set: docs/releasing.md goes on.

exit status: 0 ready, 1 something is not as it has to be, which is told in the last line

examples:
  tools/release.py                  the release that pyproject.toml names
  tools/release.py --draft          the same of a commit whose changelog has no heading for it yet
"""

CODECS: Final = """\
from kafka_records.consumer_offsets import decode_record

key = bytes.fromhex("0001000e6c6f79616c74792d706f696e747300066f726465727300000001")
value = bytes.fromhex("0004000000000000003dffffffff01000001a1fbe28d21010010338ff64effbe4f41aff2dea989a79471")
record = decode_record(key, value)
assert record.value.offset == 61 and record.value.encode(4) == value[2:]
"""

OWN_SPECS: Final = """\
import sys
sys.path.insert(0, sys.argv[1])
from acme_messages.accounts import decode_record

key, value = bytes.fromhex("00076163636f756e74206f6620416e6e2e2e"), bytes.fromhex("000104416e6e00000000000004b00100")
assert decode_record(key, value).value.owner == "Ann"
"""

_TABLES: Final = ("current_offsets", "groups")


class NotReady(Exception):
    """Something must be fixed before the release. The text says what."""


def version(tree: Path) -> str:
    """The version in pyproject.toml."""
    with (tree / "pyproject.toml").open("rb") as file:
        named: str = tomllib.load(file)["project"]["version"]
    return named


def check_changelog(text: str, version: str) -> None:
    """Check that the first heading is that of the version, with a date. Raises NotReady."""
    first = next((line for line in text.splitlines() if line.startswith("## ")), "## nothing")
    if not re.fullmatch(rf"## {re.escape(version)} \([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}\)", first):
        raise NotReady(
            f"CHANGELOG.md begins with {first.removeprefix('## ')!r} where '{version} (YYYY-MM-DD)' has to be: write "
            "it, or try with --draft"
        )


# ---- building


def copy_of_commit(folder: Path) -> Path:
    """Copy the files of the last commit to `folder`. Raises NotReady."""
    changed = _run("git", "-C", str(ROOT), "status", "--porcelain")
    if changed:
        raise NotReady(f"files differ from the last commit, which is what would be built: commit them\n{changed}")
    folder.mkdir(parents=True)
    archive = folder.with_suffix(".tar")
    _run("git", "-C", str(ROOT), "archive", "--format=tar", f"--output={archive}", "HEAD")
    _unpack(archive, folder)
    archive.unlink()
    return folder


def build_jar(tree: Path) -> None:
    """Build the jar with Spark's functions in the JVM in `tree`, from which the wheel takes it. Raises NotReady without
    a JDK."""
    _run(sys.executable, str(tree / "tools" / "jar.py"), cwd=tree)


def build(tree: Path, out: Path, *kinds: str) -> dict[str, Path]:
    """Run `python -m build` on `tree`. Returns its files by name. Without `kinds`, the wheel is built from the
    sdist."""
    _run(sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", str(out), str(tree))
    return {file.name: file for file in out.iterdir() if file.suffix in (".whl", ".gz")}


def check_same(first: Mapping[str, Path], second: Mapping[str, Path]) -> None:
    """Check that both have the same files with the same bytes. Raises NotReady."""
    if first.keys() != second.keys():
        raise NotReady(f"one build makes {', '.join(sorted(first))} and the next {', '.join(sorted(second))}")
    for name, file in first.items():
        if file.read_bytes() != second[name].read_bytes():
            raise NotReady(f"{name} has other bytes in a second build: compare {file} with {second[name]}")


def checksums(files: Mapping[str, Path]) -> str:
    """Lines for `sha256sum --check`."""
    return "".join(f"{hashlib.sha256(files[name].read_bytes()).hexdigest()}  {name}\n" for name in sorted(files))


# ---- trying


def try_in_empty_environment(artifact: Path, tree: Path, folder: Path) -> list[str]:
    """Install `artifact` into an environment below `folder` and use it, with the files of the sdist unpacked at `tree`.
    Returns the packages that were installed with it. Raises NotReady."""
    environment = folder / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    python = str(environment / "bin" / "python")
    _install(python, str(artifact))
    _run(python, "-I", "-c", CODECS)
    _install(python, f"{artifact}[tables,codegen]")
    _run(python, "-I", "-c", CODECS)
    for table in _TABLES:
        words = ["table", table, str(tree / "tests/data/topics/kafka-4.3/segments"), "--format", "json"]
        if _run(str(environment / "bin" / "kafka-records"), *words) != _run(_beside("kafka-records"), *words):
            raise NotReady(f"the table {table} has other rows than in this checkout")
    codegen = str(environment / "bin" / "kafka-records-codegen")
    specs = str(tree / "examples/own_specs/message_specs")
    package = folder / "generated" / "acme_messages"
    _run(codegen, "generate", "--specs", specs, "--out", str(package), "--package", package.name)
    _run(python, "-I", "-c", OWN_SPECS, str(package.parent))
    whole = ["--specs", "message_specs", "--out", "generated/kafka_records", "--package", "kafka_records"]
    _run(codegen, "generate", *whole, "--docs", "docs/reference", "--check", cwd=tree)
    return _run(sys.executable, "-m", "pip", "--python", python, "list", "--format=freeze").split()


def _install(python: str, what: str) -> None:
    _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check", what)


def _beside(command: str) -> str:
    return str(Path(sys.executable).parent / command)


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")


def _run(*command: str, cwd: Path = ROOT) -> str:
    """The output of a command. Raises NotReady with all of it if the command fails."""
    # Without these variables, hatchling sets the dates in archives, and nothing is imported from this checkout.
    others = ("SOURCE_DATE_EPOCH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    variables = {name: value for name, value in os.environ.items() if name not in others}
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotReady(
            f"{' '.join(command)}\nended with status {done.returncode}:\n{(done.stdout + done.stderr).strip()}"
        )
    return done.stdout


# ---- the command


def release(out: Path, *, draft: bool) -> None:
    """Build the files, compare and try them, and leave them in `out`. Raises NotReady."""
    with tempfile.TemporaryDirectory() as scratch:
        first, second = (copy_of_commit(Path(scratch) / name / "kafka-records") for name in ("one", "another"))
        named = version(first)
        if not draft:
            check_changelog((first / "CHANGELOG.md").read_text(encoding="utf-8"), named)
        print(f"kafka-records {named}: building twice", flush=True)
        for tree in (first, second):
            build_jar(tree)
        built = build(first, Path(scratch) / "built")
        check_same(built, build(second, Path(scratch) / "again", "--sdist", "--wheel"))
        _run(sys.executable, "-m", "twine", "check", "--strict", *map(str, built.values()))
        (sdist,) = (file for file in built.values() if file.suffix == ".gz")
        _unpack(sdist, Path(scratch))
        tree = Path(scratch) / sdist.name.removesuffix(".tar.gz")
        for number, artifact in enumerate(sorted(built.values(), reverse=True)):
            print(f"trying {artifact.name} in an empty environment", flush=True)
            brought = try_in_empty_environment(artifact, tree, Path(scratch) / f"tried-{number}")
            print(f"  works, with {', '.join(sorted(brought))}", flush=True)
        out.mkdir(parents=True, exist_ok=True)
        for name, file in built.items():
            shutil.copyfile(file, out / name)
        (out / "SHA256SUMS").write_text(checksums(built), encoding="utf-8")
    print(f"{out}:\n{checksums({name: out / name for name in built})}", end="")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="release.py",
        description="Build wheel and sdist of the last commit, twice, and try both in empty environments.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for the files (default: dist)")
    parser.add_argument("--draft", action="store_true", help="do not require a heading for the version in CHANGELOG.md")
    options = parser.parse_args(arguments)
    try:
        release(options.out.resolve(), draft=options.draft)
    except NotReady as problem:
        print(f"not ready: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
