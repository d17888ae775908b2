"""Kept texts in tests/cli/golden: one that differs is rewritten, and its test still fails."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent / "golden"


def check_golden(name: str, text: str) -> None:
    """Compare with `golden/<name>.txt`; the difference is for whoever reads the change."""
    path = FOLDER / f"{name}.txt"
    before = path.read_text("utf-8") if path.is_file() else None
    if before != text:
        path.write_text(text, "utf-8")
        pytest.fail(f"{path.name} was {'written' if before is None else 'changed'}: look at the difference")
