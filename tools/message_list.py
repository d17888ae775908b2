"""Write all messages of the packages to one file, tests/data/messages.txt, so that they can be read in one go; --check
compares it.

tools/message_list.py            # write the file
tools/message_list.py --check    # report whether the file is up to date

Messages are the texts of raised errors, findings, notes and usage errors, the help of commands, and the sentences of
the report. Expressions are in braces, as the source has them.
"""

from __future__ import annotations

import argparse
import sys
from itertools import groupby
from pathlib import Path
from typing import Final

from tools.texts import SHIPPED, tree_texts

ROOT: Final = Path(__file__).resolve().parents[1]
LIST: Final = ROOT / "tests/data/messages.txt"
_SENTENCES: Final = "spark_udfs/kafka_records_tables/report/rules/"


def main() -> int:
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the file would change")
    options = parser.parse_args()
    text = messages(ROOT)
    if not options.check:
        LIST.write_text(text, encoding="utf-8")
        return 0
    if LIST.exists() and LIST.read_text(encoding="utf-8") == text:
        return 0
    print(f"{LIST.relative_to(ROOT)} is out of date: run make generate", file=sys.stderr)
    return 1


def messages(root: Path) -> str:
    """All messages of a tree: a line for each, below the path of its module, in the order of the source."""
    chosen = [
        text
        for text in tree_texts(root, SHIPPED)
        if text.kind in ("message", "help") or (text.kind == "text" and text.path.startswith(_SENTENCES))
    ]
    lines: list[str] = []
    for path, texts in groupby(chosen, key=lambda text: text.path):
        lines += ["", path] if lines else [path]
        lines += [f"    {' '.join(text.text.split())}" for text in texts]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
