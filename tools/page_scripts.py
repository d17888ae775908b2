"""Fetches Vega and Vega-Lite, which draw the plots of a report page, from npm, and stores them in the package.

    python -m tools.page_scripts            fetches the releases below, and writes the files of the package again
    python -m tools.page_scripts --check    compares the files with the digests below, without a network

For a newer release, raise its version in RELEASES, run this, and put the digests that it prints into DIGESTS.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
KEPT: Final = ROOT / "spark_udfs" / "kafka_records_tables" / "report" / "page" / "vendored"

RELEASES: Final = {"vega": "6.4.0", "vega-lite": "6.5.0", "vega-interpreter": "2.3.2"}

DIGESTS: Final = {
    "vega.min.js": "8f6a3587cf8d4f42c7e08120e3eb05d067e746d554e39d2dcf52acc0bd5ba28f",
    "vega-lite.min.js": "83e215e84e308ee8688fa6503ba0f1cf8a3c05c0d61df2841a0b92bf86809e00",
    "vega-interpreter.js": "30e005e195019a41f7e2640d62060ffa4ad84efb33bb5dc6cae228c6e6cc4530",
    "LICENSES.txt": "486df38f4086ff7e3913a4a724998e237af45afc452b7b4613cca18027f7174b",
}
"""SHA-256 of each file."""

_BUILDS: Final = {
    "vega.min.js": "vega/build/vega.min.js",
    "vega-lite.min.js": "vega-lite/build/vega-lite.min.js",
    "vega-interpreter.js": "vega-interpreter/build/vega-interpreter.js",
}
_BUNDLED: Final = re.compile(
    r"vega(-.*)?|d3-.*|topojson-client|delaunator|robust-predicates|internmap|json-stringify-pretty-compact|tslib"
)
"""The packages whose code is in these builds. npm also installs packages for their commands."""


def as_script(module: str) -> str:
    """The interpreter as a script that takes its imports from `vega`: npm only has it as a module."""
    script = re.sub(r"^import (\{[^}]*\}) from 'vega-util';", r"const \1 = vega;", module, count=1)
    script = re.sub(r"^export \{ (\w+) as (\w+) \};$", r"vega.\2 = \1;", script, count=1, flags=re.MULTILINE)
    if script.count(" = vega;") != 1 or "vega.expressionInterpreter" not in script:
        raise ValueError("vega-interpreter is built in another way: look at its build and change as_script")
    script = re.sub(r"^//# sourceMappingURL=.*$", "", script, flags=re.MULTILINE)
    return f"(() => {{\n{script.strip()}\n}})();\n"


def fetched() -> dict[str, str]:
    """The files from npm in the form in which they are stored, by name."""
    with tempfile.TemporaryDirectory() as folder:
        named = [f"{name}@{version}" for name, version in RELEASES.items()]
        subprocess.run(
            ["npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder, *named],
            check=True,
            cwd=folder,
        )
        modules = Path(folder) / "node_modules"
        files = {name: (modules / place).read_text(encoding="utf-8") for name, place in _BUILDS.items()}
        licences = "\n".join(_licences(modules))
    files["vega-interpreter.js"] = as_script(files["vega-interpreter.js"])
    return {**files, "LICENSES.txt": licences}


def _licences(modules: Path) -> Iterator[str]:
    yield "Vega, Vega-Lite and the libraries that are built into them, with their licences.\n"
    for package in sorted(each for each in modules.iterdir() if _BUNDLED.fullmatch(each.name)):
        found = sorted(package.glob("[Ll][Ii][Cc][Ee][Nn][SsCc][Ee]*"))
        if found:
            yield f"{'-' * 100}\n{package.name}\n\n{found[0].read_text(encoding='utf-8').strip()}\n"


def changed(files: Mapping[str, str]) -> list[str]:
    """A line for every file whose digest differs from the one above."""
    digests = {name: sha256(text.encode()).hexdigest() for name, text in files.items()}
    return [f'    "{name}": "{digest}",' for name, digest in digests.items() if DIGESTS.get(name) != digest]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    options = parser.parse_args(arguments)
    if options.check:
        files = {name: (KEPT / name).read_text(encoding="utf-8") for name in (*_BUILDS, "LICENSES.txt")}
    else:
        files = fetched()
        for name, text in files.items():
            (KEPT / name).write_text(text, encoding="utf-8", newline="\n")
    differences = changed(files)
    if differences:
        print("other digests than tools/page_scripts.py names:", *differences, sep="\n", file=sys.stderr)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
