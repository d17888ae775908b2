"""Compiles Java sources of this folder, with the compiler of the Java that runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path


class CompileError(Exception):
    """Java sources could not be compiled. The text has the reason."""


def compile_java(
    what: str,
    sources: Sequence[Path],
    classpath: Sequence[str | Path],
    classes: Path,
    options: Sequence[str] = (),
) -> None:
    """Compile `sources` into the folder `classes`. `what` describes them in messages; `options` are passed to javac.

    Raises CompileError without a compiler, or if it rejects a source.
    """
    command = [
        *(_compiler(what), "-proc:none", "-encoding", "UTF-8", *options, "-d", str(classes)),
        *("-cp", os.pathsep.join(map(str, classpath)), *map(str, sources)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        names = ", ".join(source.name for source in sources)
        raise CompileError(f"javac refuses {names}:\n{(done.stdout + done.stderr).strip()}")


def _compiler(what: str) -> str:
    """The compiler of JAVA_HOME, or else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("javac", path=str(Path(home) / "bin") if home else None)
    if found is None:
        raise CompileError(f"javac, which compiles {what}, is not in JAVA_HOME or on the PATH: install a JDK")
    return found
