"""A shot for README: a terminal, drawn from what commands print to one about the captured topic, in docs/img.

python -m tools.shots
"""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parents[1]
IMAGES: Final = ROOT / "docs" / "img"

SEGMENTS: Final = "tests/data/topics/kafka-4.3/segments"
COMMANDS: Final = (
    f"kafka-records table groups {SEGMENTS} --where 'state!=Empty' --sort=-member_count --limit 6",
    f"kafka-records report {SEGMENTS} --group ticket-classifiers",
)
COLUMNS: Final = 112

MOST_BYTES: Final = 300_000

_SVG: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own asks another host for a font."""


def printed(command: str) -> str:
    """What a command prints to a terminal of COLUMNS cells, escape sequences and all, and what it says below that."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, COLUMNS))
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        environment.pop(name, None)
    # Beside the terminal, so that there is no bar of progress; these commands say what they counted at the end.
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as said,
        subprocess.Popen(
            shlex.split(command), cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=said
        ) as process,
    ):
        os.close(theirs)
        found = b""
        try:
            while part := os.read(ours, 65536):
                found += part
        except OSError:
            # That is how Linux tells the end.
            pass
        status = process.wait()
        said.seek(0)
        counts = said.read()
    os.close(ours)
    if status:
        raise SystemExit(f"{command} ended with status {status}: {counts}")
    return found.decode("utf-8").replace("\r\n", "\n") + counts


def shoot_terminal(place: Path) -> None:
    """Draw the commands with what they print."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        for command in COMMANDS:
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            console.print(Text.from_ansi(printed(command)))
    place.write_text(
        console.export_svg(title="", theme=DIMMED_MONOKAI, code_format=_SVG, unique_id="terminal"), encoding="utf-8"
    )


def main() -> int:
    """Make the shots; returns the exit status."""
    place = IMAGES / "terminal.svg"
    shoot_terminal(place)
    size = place.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{place.relative_to(ROOT)} has {size} bytes, {MOST_BYTES} are the most")
    print(f"{place.relative_to(ROOT)}: {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
