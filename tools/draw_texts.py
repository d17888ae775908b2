"""Draw texts of the packages by seed, to be read by somebody who has not seen them: tests/data/plain_words has a draw.

tools/draw_texts.py --seed 28                      # thirty texts of this tree, as Markdown
tools/draw_texts.py --seed 28 --root OTHER_TREE    # the same of another tree, such as an older checkout

A third are messages, a third docstrings of public things; the others are comments and help texts. A reader puts each
into one sentence, and somebody who knows the code says whether it was understood.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Final

from tools.texts import SHIPPED, Kind, Text, tree_texts

_SHARES: Final[dict[Kind, int]] = {"message": 10, "docstring": 10, "comment": 6, "help": 4}
_FEWEST_WORDS: Final = 5


def main() -> int:
    """Print a draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True, help="number that decides which texts are drawn")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="tree to draw from")
    options = parser.parse_args()
    for number, text in enumerate(drawn(options.root, options.seed), 1):
        print(f"{number}. {text.kind}, {text.path}:{text.line}\n")
        print("\n".join(f"   > {line}".rstrip() for line in text.text.splitlines()) + "\n")
    return 0


def drawn(root: Path, seed: int) -> list[Text]:
    """Thirty texts of a tree, of each kind as many as _SHARES says, in the order of kinds; equal for equal seeds."""
    chooser = random.Random(seed)
    found = [text for text in tree_texts(root, SHIPPED) if len(text.text.split()) >= _FEWEST_WORDS]
    return [
        text
        for kind, share in _SHARES.items()
        for text in chooser.sample([text for text in found if text.kind == kind], share)
    ]


if __name__ == "__main__":
    raise SystemExit(main())
