"""docs/trust.json: one entry for each measurement, by name, with the day and the figures as a run gave them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypedDict

from tools.trust.measurements import MEASUREMENTS

FIGURES: Final = Path(__file__).resolve().parents[2] / "docs" / "trust.json"


class Measured(TypedDict):
    """What one run measured. `figures` are texts by label, in the order of the page."""

    day: str
    figures: dict[str, str]


def kept(file: Path = FIGURES) -> dict[str, Measured]:
    """All entries by name. Raises ValueError for a name that no measurement has."""
    entries: dict[str, Measured] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    for name in entries:
        check_name(name)
    return entries


def record(name: str, figures: Mapping[str, str], *, day: str | None = None, file: Path = FIGURES) -> None:
    """Replace the entry of a measurement. Raises ValueError for a name that no measurement has.

    `day` is an ISO date, today in UTC if there is none. The page is written by `python -m tools.trust`.
    """
    check_name(name)
    entry: Measured = {"day": day or datetime.now(UTC).date().isoformat(), "figures": dict(figures)}
    entries = kept(file) | {name: entry}
    file.write_text(json.dumps(dict(sorted(entries.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def check_name(name: str) -> None:
    """Raise ValueError unless a measurement that keeps its figures in docs/trust.json has this name."""
    known = [each.name for each in MEASUREMENTS if not each.taken_from]
    if name not in known:
        raise ValueError(
            f"docs/trust.json has no measurement {name!r}: add it to tools/trust/measurements.py, or use one of "
            f"{', '.join(known)}"
        )
