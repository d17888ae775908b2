"""Build the documentation as a site, into build/site.

    python -m tools.docs_site

The exit status is 1, with a message, if something cannot be built, a link is broken, or something would be loaded from
another host.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tools.docs_site.checking import troubles
from tools.docs_site.example import PAGE, PLACE, write_example
from tools.docs_site.navigation import ROOT, Section, navigation
from tools.docs_site.pages import place_of, write_pages

_HERE: Final = Path(__file__).resolve().parent
_OWN: Final = ("site.css", "own.js", "file-worker.js")
_NO_NAVIGATION: Final = "nav = []"
_MOST: Final = 50
"""The maximum number of problems that are printed."""


def build(folder: Path) -> Path:
    """Build the site in `folder`, which is replaced; returns its path.

    Raises SystemExit with a message if it cannot be built.
    """
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    write_pages(pages)
    write_example(pages)
    for name in _OWN:
        shutil.copyfile(_HERE / name, pages / name)
    shutil.copytree(_HERE / "theme", folder / "theme")
    settings = (_HERE / "zensical.toml").read_text(encoding="utf-8")
    assert settings.count(_NO_NAVIGATION) == 1
    config = folder / "zensical.toml"
    home, start, *others = navigation()
    nav = f"nav = [{nav_text([home, start])}, {json.dumps(PAGE)}, {nav_text(others)}]"
    config.write_text(settings.replace(_NO_NAVIGATION, nav), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", config.name]
    if subprocess.run(command, cwd=folder, check=False).returncode:
        raise SystemExit("The site was not built: what Zensical says above has to be fixed.")
    site = folder / "site"
    # This page works only at the root of a web server, because its links start there.
    (site / "404.html").unlink(missing_ok=True)
    if found := list(troubles(site, PLACE)):
        more = [f"and {len(found) - _MOST} more"] if len(found) > _MOST else []
        raise SystemExit("\n".join([*found[:_MOST], *more, "The site was built, and these links of it are wrong."]))
    return site


def nav_text(sections: Iterable[Section]) -> str:
    """The entries of the navigation in TOML, in which strings are written as in JSON."""
    return ", ".join(map(_section_text, sections))


def _section_text(section: Section) -> str:
    entries = [*(json.dumps(place_of(page)) for page in section.pages), *map(_section_text, section.sections)]
    return f"{{ {json.dumps(section.title)} = [{', '.join(entries)}] }}"


def main() -> int:
    """Build the site and move it to its place."""
    about = "Build the documentation as a site, into build/site."
    argparse.ArgumentParser(prog="python -m tools.docs_site", description=about).parse_args()
    built = build(ROOT / "build" / "site-made")
    place = ROOT / "build" / "site"
    shutil.rmtree(place, ignore_errors=True)
    shutil.move(built, place)
    shutil.rmtree(ROOT / "build" / "site-made")
    pages = sum(1 for _ in place.rglob("*.html"))
    print(f"{pages} pages in {place.relative_to(ROOT)}: open {place.relative_to(ROOT)}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
