"""Makes what the tests of this folder send to workers: the wheel, a bare interpreter, an environment in an archive.

Nothing is downloaded. The libraries are copied from the interpreter that runs the tests, file by file as their
installer listed them. So a bare interpreter is made in a second, and has the versions that other tests use.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import venv
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout without access to an index."""
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def environment(folder: Path, *libraries: str) -> Path:
    """Make a virtual environment with only `libraries`, even without pip. Returns its interpreter."""
    venv.create(folder, symlinks=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    for library in libraries:
        copy_library(library, site_packages)
    return folder / "bin" / "python"


def copy_library(name: str, site_packages: Path) -> None:
    installed = distribution(name)
    for file in installed.files or ():
        # Scripts are outside site-packages, and byte code is not worth copying.
        if ".." in file.parts or "__pycache__" in file.parts:
            continue
        (site_packages / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(installed.locate_file(file)), site_packages / file)


def install_wheel(wheel: Path, python: Path) -> None:
    options = ["--quiet", "--no-deps", "--no-index"]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(wheel)], check=True)


def pack(folder: Path, archive: Path) -> Path:
    """Do the same as `tar -C folder -czf archive .`, with faster compression."""
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        packed.add(folder, arcname=".")
    return archive


def spark_home(folder: Path) -> Path:
    """PySpark's own Spark under another path, so that executors put their working folders there and not into the
    venv."""
    import pyspark

    folder.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (folder / entry.name).symlink_to(entry)
    return folder
