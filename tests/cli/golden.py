"""Golden files in tests/cli/golden: if a text differs from its file, the file is rewritten, and the test fails."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent / "golden"


def check_golden(name: str, text: str) -> None:
    """Compare with `golden/<name>.txt`; the diff of the commit shows any difference."""
    path = FOLDER / f"{name}.txt"
    before = path.read_text("utf-8") if path.is_file() else None
    if before != text:
        path.write_text(text, "utf-8")
        pytest.fail(f"{path.name} was {'written' if before is None else 'changed'}: look at the difference")
