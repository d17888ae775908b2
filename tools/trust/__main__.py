"""Write docs/trust.md from recorded figures, or record figures. See `--help`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.trust.figures import kept, record
from tools.trust.page import page

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "trust.md"

_EPILOG: Final = """\
Figures are in docs/trust.json, one entry for each measurement. A run of a slow ring records its own; --record replaces
an entry by hand with what a run printed. Figures about branches and releases come from docs/judge-reach.json and
docs/support.json. What a measurement proves is in tools/trust/measurements.py.

exit status: 0 done, 1 with --check the page is not what the figures give, 2 a name or figure is invalid

examples:
  python -m tools.trust
  python -m tools.trust --check
  python -m tools.trust --record fuzz "processor hours=3.2" "messages=281" --day 2026-11-27
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.trust",
        description="Write docs/trust.md from recorded figures, or record figures.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="write nothing; compare the page with the figures")
    parser.add_argument("--record", metavar="NAME", help="replace the figures of this measurement")
    parser.add_argument("--day", metavar="DATE", help="day of the measurement (default: today)")
    parser.add_argument("figures", nargs="*", metavar="LABEL=FIGURE", help="what was measured, for --record")
    asked = parser.parse_args(arguments)
    pairs = [figure.partition("=") for figure in asked.figures]
    if bool(asked.record) != bool(pairs) or not all(label and figure for label, _, figure in pairs):
        parser.error("--record takes a name and figures: --record fuzz 'processor hours=3.2'")
    try:
        if asked.record:
            record(asked.record, {label: figure for label, _, figure in pairs}, day=asked.day)
        text = page(kept())
    except ValueError as error:
        parser.error(str(error))
    if asked.check:
        if PAGE.exists() and PAGE.read_text("utf-8") == text:
            return 0
        print("docs/trust.md is not what the recorded figures give: run python -m tools.trust", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
