"""Copies pages of the repository for the site. Links between pages stay. Other files to which pages link are copied.

Pages are written for a code host, which has a page for every file and folder of the repository. On the site, a link to
a file leads to its text, and a link to a folder to a list of its files.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

from tools.docs_site.navigation import ROOT, pages

_FENCE: Final = re.compile(r"^ {0,3}(```+|~~~+)")
_SHOWN: Final = frozenset((".svg", ".png", ".html", ".css"))
"""The suffixes of files that a browser shows directly. All other files become text pages."""


def write_pages(folder: Path) -> None:
    """Write all pages, and the files to which they link, below `folder`."""
    written: set[str] = set()
    for name in pages():
        text, linked = _for_site(name, (ROOT / name).read_text(encoding="utf-8"))
        _write(folder / place_of(name), text)
        written |= linked
    for name in written - set(pages()):
        _copy(ROOT / name, folder / place_of(name))


def place_of(name: str) -> str:
    """The path on the site of a file or folder of the repository, given its path from the root."""
    if name.endswith(".md") and name in pages():
        place = name.removeprefix("docs/") if name.startswith("docs/") else f"project/{name.lower()}"
        return place.replace("README.md", "index.md")
    if Path(name).suffix in _SHOWN:
        return name.removeprefix("docs/")
    return f"files/{name}.txt"


def _for_site(name: str, text: str) -> tuple[str, set[str]]:
    """The text with its links changed for the site, and the files of the repository to which they lead."""
    linked: set[str] = set()
    links = {link: _on_site(name, link, linked) for link in _links(text)}
    lines, fence = [], None
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark is not None:
            fence = mark[1] if fence is None else None if mark[1].startswith(fence) else fence
        elif fence is None:
            for link, other in links.items():
                line = line.replace(f"]({link})", f"]({other})")
        lines.append(line)
    return "\n".join(lines), linked


def _links(text: str) -> Iterator[str]:
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for child in token.children or ():
            link = child.attrs.get("href") or child.attrs.get("src")
            if link and not re.match(r"[a-z]+:", str(link)):
                yield str(link)


def _on_site(page: str, link: str, linked: set[str]) -> str:
    target, mark, anchor = link.partition("#")
    if not target:
        return link
    name = os.path.relpath((ROOT / page).parent / target, ROOT)
    linked.add(name)
    there = os.path.relpath(place_of(name), Path(place_of(page)).parent)
    return f"{there}{mark}{anchor}"


def _copy(file: Path, place: Path) -> None:
    if file.is_dir():
        names = sorted(str(path.relative_to(ROOT)) for path in file.rglob("*") if _is_of_folder(path))
        _write(place, "\n".join([f"{file.relative_to(ROOT)} has these files:", *names, ""]))
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, place)


def _is_of_folder(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
