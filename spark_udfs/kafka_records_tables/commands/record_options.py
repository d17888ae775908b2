"""The options that select records for `dump`."""

from __future__ import annotations

import argparse
import re
from typing import Final

_LARGEST: Final = (1 << 63) - 1


def add_record_options(parser: argparse.ArgumentParser) -> None:
    """Add the options --type, --group, --transactional-id and --offset."""
    what = parser.add_argument_group(
        "which records",
        "A record is shown if it matches every given option; a repeated option matches if one of its values does.\n"
        "All except --offset leave out transaction markers.",
    )
    what.add_argument(
        "--type", action="append", default=[], metavar="TYPE", help="records of this type, by number or name"
    )
    what.add_argument(
        "--group", action="append", default=[], metavar="ID", help="records of this group, including share groups"
    )
    what.add_argument(
        "--transactional-id", action="append", default=[], metavar="ID", help="records of this transactional id"
    )
    what.add_argument(
        "--offset",
        type=_offsets,
        metavar="RANGE",
        help="records at this offset, or in a range FROM..TO (both ends included), FROM.. or ..TO",
    )


def _offsets(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,19})|([0-9]{1,19})?\.\.([0-9]{1,19})?", text)
    if match is None or text == "..":
        raise argparse.ArgumentTypeError(f"{text!r} is neither an offset nor FROM..TO, FROM.. or ..TO")
    first, last = (int(match[1]), int(match[1])) if match[1] else (int(match[2] or 0), int(match[3] or _LARGEST))
    if first > last:
        raise argparse.ArgumentTypeError(f"{text!r} is an empty range: it ends before it begins")
    return first, min(last, _LARGEST)
