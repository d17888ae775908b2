"""Runs the notebooks under `examples/`, and writes the outputs of their cells into them.

    python tools/notebooks.py            write
    python tools/notebooks.py --check    compare only; exit status 1 if an output differs

Everything in a notebook except sources and outputs is left out, such as times and the version of Python, so that equal
outputs result in equal bytes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

ROOT: Final = Path(__file__).resolve().parents[1]
NOTEBOOKS: Final = tuple(sorted(ROOT.glob("examples/*/*.ipynb")))
_FORMAT: Final[Any] = nbformat  # its functions have no types
_SECONDS: Final = 120
"""The maximum seconds for one cell, on a machine that does other things too."""


def run(path: Path) -> str:
    """The notebook with new outputs. It runs in its folder, with the packages of this process.

    Raises `nbclient.exceptions.CellExecutionError` if a cell fails.
    """
    notebook = _FORMAT.reads(path.read_text(encoding="utf-8"), as_version=4)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    client = NotebookClient(
        notebook,
        timeout=_SECONDS,
        resources={"metadata": {"path": str(path.parent)}},
        # It warns about every kernel that it reaches by a port of this machine.
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    )
    client.execute(env=environment)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for cell in notebook.cells:
        cell.metadata = {}
    return str(_FORMAT.writes(notebook)) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    is_check = parser.parse_args(arguments).check
    status = 0
    for path in NOTEBOOKS:
        text = run(path)
        if text == path.read_text(encoding="utf-8"):
            continue
        if is_check:
            print(f"{path.relative_to(ROOT)} shows something else: python tools/notebooks.py", file=sys.stderr)
            status = 1
        else:
            path.write_text(text, encoding="utf-8")
            print(f"written: {path.relative_to(ROOT)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
