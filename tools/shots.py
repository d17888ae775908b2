"""Writes pictures for README and docs/command.md into docs/img: a terminal, the report and the site, all of the
captured topic.

    python -m tools.shots               all pictures; report and site need a Chromium (tools/chromium.py)
    python -m tools.shots terminal      only this one

The terminal is drawn from the output of the commands. The pages are those of `build/site`, which `make docs` builds.
"""

from __future__ import annotations

import argparse
import os
import pty
import shlex
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PIL import Image
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from tools.chromium import NoChromium, chromium

ROOT: Final = Path(__file__).resolve().parents[1]
IMAGES: Final = ROOT / "docs" / "img"
SITE: Final = ROOT / "build" / "site"

SEGMENTS: Final = "tests/data/topics/kafka-4.3/segments"
COMMANDS: Final = (
    f"kafka-records table groups {SEGMENTS} --where 'state!=Empty' --sort=-member_count --limit 6",
    f"kafka-records report {SEGMENTS} --group ticket-classifiers",
)
COLUMNS: Final = 112

PAGES: Final = {"report": "example/report.html", "site": "start/who-is-behind.html"}
"""The pages of the site, by the names of their pictures."""
SIZE: Final = (1280, 800)
MOST_BYTES: Final = 300_000
_COLORS: Final = 128
_SECONDS: Final = 60

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
"""The SVG format; Rich's own loads a font from another host."""


def printed(command: str) -> str:
    """The output of a command to a terminal of COLUMNS cells, with escape sequences, followed by its standard error."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, COLUMNS))
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        environment.pop(name, None)
    # Standard error is not a terminal, so that there is no progress bar; these commands print their counts at the end.
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
            # On Linux, this error marks the end of the output.
            pass
        status = process.wait()
        said.seek(0)
        counts = said.read()
    os.close(ours)
    if status:
        raise SystemExit(f"{command} ended with status {status}: {counts}")
    return found.decode("utf-8").replace("\r\n", "\n") + counts


def shoot_terminal(place: Path) -> None:
    """Draw the commands and their output."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        for command in COMMANDS:
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            console.print(Text.from_ansi(printed(command)))
    place.write_text(
        console.export_svg(title="", theme=DIMMED_MONOKAI, code_format=_SVG, unique_id="terminal"), encoding="utf-8"
    )


def shoot_page(page: Path, place: Path) -> None:
    """Take a picture of the upper end of a page, in few colors."""
    if not page.is_file():
        raise SystemExit(f"there is no {page.relative_to(ROOT)}: make docs builds it")
    browser = chromium()
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder, "shot.png")
        command = [
            str(browser.program),
            "--no-sandbox",
            "--hide-scrollbars",
            "--virtual-time-budget=5000",
            f"--window-size={SIZE[0]},{SIZE[1]}",
            f"--screenshot={shot}",
            page.as_uri(),
        ]
        subprocess.run(
            command, env={**os.environ, **browser.environment}, timeout=_SECONDS, capture_output=True, check=True
        )
        Image.open(shot).convert("RGB").quantize(_COLORS, dither=Image.Dither.NONE).save(place, optimize=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the pictures; returns the exit status."""
    names = ("terminal", *PAGES)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(names)}; all without any")
    chosen = parser.parse_args(arguments).names or names
    if unknown := sorted(set(chosen) - set(names)):
        parser.error(f"there is no shot {', '.join(unknown)}; there are {', '.join(names)}")
    IMAGES.mkdir(exist_ok=True)
    for name in chosen:
        place = IMAGES / (f"{name}.svg" if name == "terminal" else f"{name}.png")
        try:
            if name == "terminal":
                shoot_terminal(place)
            else:
                shoot_page(SITE / PAGES[name], place)
        except NoChromium as missing:
            raise SystemExit(str(missing)) from None
        size = place.stat().st_size
        if size > MOST_BYTES:
            raise SystemExit(f"{place.relative_to(ROOT)} has {size} bytes, {MOST_BYTES} are the most")
        print(f"{place.relative_to(ROOT)}: {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
