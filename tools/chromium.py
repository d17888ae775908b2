"""Finds a headless Chromium for the tests of pages, or unpacks Debian's packages into the user's cache folder.

    python -m tools.chromium    prints the program and the variables of its environment

Nothing is installed on the machine, and root is not needed: apt-get fetches lists and packages into the folder, and
dpkg-deb unpacks them there. KAFKA_RECORDS_CHROMIUM can name another program.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PACKAGE: Final = "chromium-headless-shell"
_ON_PATH: Final = (PACKAGE, "chromium", "chromium-browser", "google-chrome")
_PROGRAM: Final = Path("usr/lib/chromium") / PACKAGE
_FONTS: Final = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig><dir>/usr/share/fonts</dir><dir>{folder}</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
"""


class NoChromium(Exception):
    """No Chromium was found, and none could be fetched. The text has the reason, and what to do."""


@dataclass(frozen=True)
class Chromium:
    """A program, and the additional environment variables that it needs."""

    program: Path
    environment: dict[str, str] = field(default_factory=dict)


def chromium() -> Chromium:
    """The Chromium of this machine, or else one in the cache, which is fetched the first time. Raises NoChromium."""
    named = os.environ.get("KAFKA_RECORDS_CHROMIUM")
    if named:
        if not os.access(named, os.X_OK):
            raise NoChromium(f"KAFKA_RECORDS_CHROMIUM names {named}, which is not a program")
        return Chromium(Path(named))
    for name in _ON_PATH:
        if found := shutil.which(name):
            return Chromium(Path(found))
    return unpacked(_cache())


def unpacked(cache: Path) -> Chromium:
    """Debian's Chromium in the folder `cache`. It is fetched if it is missing."""
    cache.mkdir(parents=True, exist_ok=True)
    root = cache / "root"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / _PROGRAM).exists():
            _fetch(cache, root)
    libraries = sorted({str(each.parent) for each in root.rglob("*.so*")})
    fonts = cache / "fonts.conf"
    fonts.write_text(_FONTS.format(folder=root / "usr/share/fonts"), encoding="utf-8")
    environment = {"LD_LIBRARY_PATH": ":".join(libraries)}
    if (root / "usr/share/fonts").is_dir():
        environment["FONTCONFIG_FILE"] = str(fonts)
    return Chromium(root / _PROGRAM, environment)


def _fetch(cache: Path, root: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NoChromium(
            "there is no Chromium on PATH, and no apt-get to fetch Debian's: install one, or name it in "
            "KAFKA_RECORDS_CHROMIUM"
        )
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        packages, new = Path(folder, "packages"), Path(folder, "root")
        for each in (packages / "partial", Path(folder, "lists", "partial"), new):
            each.mkdir(parents=True)
        options = {
            "Dir::State::lists": f"{folder}/lists",
            "Dir::Cache::archives": packages,
            "Dir::Cache::pkgcache": "",
            "Dir::Cache::srcpkgcache": "",
            "Debug::NoLocking": "1",
            "APT::Sandbox::User": "",
        }
        apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
        _run([*apt, "update"])
        _run([*apt, "install", "--yes", "--download-only", "--no-install-recommends", PACKAGE])
        for package in sorted(packages.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(new)])
        if not (new / _PROGRAM).exists():
            raise NoChromium(f"Debian's {PACKAGE} has no {_PROGRAM}: name a Chromium in KAFKA_RECORDS_CHROMIUM")
        new.rename(root)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        why = said[-1] if said else f"status {done.returncode}"
        raise NoChromium(
            f"{command[0]} did not bring Chromium ({why}): install one, or name it in KAFKA_RECORDS_CHROMIUM"
        )


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-records" / "chromium"


def main() -> int:
    try:
        found = chromium()
    except NoChromium as missing:
        print(missing, file=sys.stderr)
        return 1
    print(*(f"{name}={value}" for name, value in found.environment.items()), found.program, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
