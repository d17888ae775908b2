"""List what the upgrade notes of a release say about coordinators. See `--help`."""

from __future__ import annotations

import argparse
import re
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import Final

SUBJECTS: Final = {
    "groups": re.compile(r"\bgroups?\b|\brebalance|\bassignor|\bKIP-(?:848|1071)\b", re.I),
    "offsets": re.compile(r"__consumer_offsets|\boffsets?\.retention|\bcommitted offsets?\b|\boffset commit", re.I),
    "transactions": re.compile(r"\btransaction|\btwo.phase|\bKIP-(?:890|939)\b", re.I),
    "share groups": re.compile(
        r"\bshare (?:group|consumer|partition|coordinator)|__share_group_state|\bKIP-932\b", re.I
    ),
}
"""The subjects on which this project depends, with the words by which a note about each is recognized."""

_HEADING: Final = re.compile(r"<h[1-6][^>]*>(.*?)</h[1-6]>|^#+ +([^\n]*)$", re.I | re.S | re.M)
_ITEM: Final = re.compile(r"<(?:li|p)\b[^>]*>|^\s*(?:[-*]|\d+\.) +|\n\s*\n", re.I | re.M)
_TAG: Final = re.compile(r"<[^>]+>")
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")

_EPILOG: Final = """\
The notes are the page on upgrading in the documentation that is part of the sources of Kafka, HTML or, in newer
releases, Markdown: a file or an address. Each paragraph under a heading that names the release and has a word of a
subject is printed once, with its subjects.

exit status: 0 printed, 1 no heading names the release, 2 the notes cannot be read

example:
  python -m tools.follow.upgrade_notes 4.4.0 ../kafka/upgrade.md
"""


def concerning(text: str, release: str) -> list[tuple[tuple[str, ...], str]] | None:
    """The paragraphs about our subjects in the notes on a release, each with its subjects; None if no heading names the
    release.

    `release` has three numbers. Headings have 4.4.0 or 4.4.
    """
    major, minor, patch = release.split(".")
    name = re.compile(rf"(?<![\d.]){major}\.{minor}(?:\.(?:{patch}|x|0))?(?![\d.]*\d)")
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    found: dict[str, tuple[str, ...]] = {}
    is_named = False
    for heading, end in zip(headings, ends, strict=True):
        title = _plain(heading[1] or heading[2] or "")
        versions = re.findall(r"\d+\.\d+(?:\.\w+)?", title)
        # "Upgrading to 4.4.0 from any version 3.3.x through 4.3.x" is about the first version.
        if not versions or not name.fullmatch(versions[0]):
            continue
        is_named = True
        for item in _paragraphs(text[heading.end() : end]):
            subjects = tuple(subject for subject, words in SUBJECTS.items() if words.search(item))
            if subjects:
                found.setdefault(item, subjects)
    return [(subjects, item) for item, subjects in found.items()] if is_named else None


def _paragraphs(text: str) -> Iterator[str]:
    for part in _ITEM.split(text):
        plain = _plain(part)
        if plain:
            yield plain


def _plain(text: str) -> str:
    return " ".join(unescape(_LINK.sub(r"\1", _TAG.sub(" ", text))).split())


def _read(place: str) -> str:
    if re.match(r"https?://", place):
        with urllib.request.urlopen(place, timeout=60) as answer:
            text: str = answer.read().decode()
            return text
    return Path(place).read_text(encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.follow.upgrade_notes",
        description="List what the upgrade notes of a release say about coordinators.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("release", help="such as 4.4.0")
    parser.add_argument("notes", help="Kafka's page on upgrading: a file or an address")
    asked = parser.parse_args(arguments)
    if not re.fullmatch(r"\d+\.\d+\.\d+", asked.release):
        parser.error(f"not a release: {asked.release!r}; write three numbers, such as 4.4.0")
    try:
        found = concerning(_read(asked.notes), asked.release)
    except (OSError, UnicodeDecodeError) as error:
        print(f"{asked.notes}: cannot be read: {error}", file=sys.stderr)
        return 2
    if found is None:
        print(f"{asked.notes}: no heading names {asked.release}: are these the notes of that release?", file=sys.stderr)
        return 1
    for subjects, item in found:
        print(f"- {', '.join(subjects)}: {item}")
    print(f"{len(found)} notes on {asked.release} are about groups, offsets, transactions or share groups")
    return 0


if __name__ == "__main__":
    sys.exit(main())
