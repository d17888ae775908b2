"""The message specs of a Kafka release, taken out of its jars, which Maven fetches.

The jars carry their specs as resources. Only those are kept, outside the repository, one folder per module below
`$KAFKA_RECORDS_CACHE` (by default `kafka-records` in the user's cache directory), so that the loader takes them all
at once. Those of releases before 4.0 need its `older_dialect`: see `is_older_dialect`.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

SPEC_COUNTS: Final[Mapping[str, Mapping[str, int]]] = {
    # The records of coordinators were in the jar of the broker before they had modules of their own. Kafka did not
    # publish the share coordinator of 3.9.
    "2.8.2": {
        "kafka-clients": 136,
        "kafka-metadata": 14,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka_2.13": 6,
    },
    "3.5.2": {
        "kafka-clients": 146,
        "kafka-metadata": 20,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 16,
        "kafka-storage": 4,
        "kafka_2.13": 2,
    },
    "3.7.2": {
        "kafka-clients": 158,
        "kafka-metadata": 25,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 16,
        "kafka-storage": 4,
        "kafka_2.13": 2,
    },
    "3.9.1": {
        "kafka-clients": 186,
        "kafka-metadata": 25,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 22,
        "kafka-storage": 4,
        "kafka-transaction-coordinator": 2,
    },
    "4.0.0": {
        "kafka-clients": 186,
        "kafka-metadata": 26,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 32,
        "kafka-storage": 5,
        "kafka-transaction-coordinator": 2,
        "kafka-share-coordinator": 4,
    },
    "4.1.1": {
        "kafka-clients": 197,
        "kafka-metadata": 26,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 44,
        "kafka-storage": 5,
        "kafka-transaction-coordinator": 2,
        "kafka-share-coordinator": 4,
    },
    "4.2.0": {
        "kafka-clients": 197,
        "kafka-metadata": 26,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 44,
        "kafka-storage": 5,
        "kafka-transaction-coordinator": 2,
        "kafka-share-coordinator": 4,
    },
    "4.3.1": {
        "kafka-clients": 198,
        "kafka-metadata": 26,
        "kafka-raft": 1,
        "kafka-streams": 1,
        "kafka-group-coordinator": 44,
        "kafka-storage": 5,
        "kafka-transaction-coordinator": 2,
        "kafka-share-coordinator": 4,
    },
}
"""Release → the modules whose jars hold its specs → how many."""

MODULES: Final[Mapping[str, tuple[str, ...]]] = {release: tuple(counts) for release, counts in SPEC_COUNTS.items()}
"""Release → the modules whose jars hold its specs."""

LATEST: Final = "4.3.1"

RECORD_MODULES: Final = frozenset(
    {"kafka_2.13", "kafka-group-coordinator", "kafka-share-coordinator", "kafka-transaction-coordinator"}
)
"""Modules that hold nothing but the records of coordinators."""

_SPEC_FOLDERS: Final = frozenset({"common/message", "common/metadata", "message"})


class FetchError(Exception):
    """A jar could not be fetched; the text says which one, and what Maven said."""


def is_older_dialect(release: str) -> bool:
    """Whether the specs of a release need the loader's `older_dialect`."""
    return int(release.partition(".")[0]) < 4


def cache_folder() -> Path:
    """Where fetched specs stay: `$KAFKA_RECORDS_CACHE`, else a folder of the user's cache directory."""
    if chosen := os.environ.get("KAFKA_RECORDS_CACHE"):
        return Path(chosen)
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(user_cache) / "kafka-records"


def keep(made: Path, place: Path) -> None:
    """Rename a complete folder to its place in the cache. If another process was faster, keep its folder instead."""
    try:
        made.rename(place)
    except OSError:
        if not place.is_dir():
            raise


@contextmanager
def alone_with_maven() -> Iterator[None]:
    """Wait while another process fetches with Maven: two at once would write into one local repository."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "maven.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def folder_name(module: str) -> str:
    """The folder of a module's specs: its name as an identifier, which the loader asks of folders."""
    return re.sub(r"\W", "_", module)


def fetch_specs(release: str, tell: Callable[[str], None] = lambda line: None) -> Path:
    """The folder with the specs of `release`, which holds one folder per module.

    Fetches what the cache does not have yet; `tell` gets a line of progress per jar. Raises KeyError for a release
    that is not in `MODULES` and FetchError when Maven fails.
    """
    root = cache_folder() / "specs" / release
    missing = [module for module in MODULES[release] if not (root / folder_name(module)).is_dir()]
    for number, module in enumerate(missing, start=1):
        tell(f"Fetching {module} {release} by Maven ({number} of {len(missing)})")
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
            jar = fetch_jar(module, release, Path(scratch))
            specs = Path(scratch) / "specs"
            extract_specs(jar, specs)
            # Renamed as a whole: an interrupted run leaves no half-filled folder that looks complete.
            keep(specs, root / folder_name(module))
    return root


def fetch_jar(module: str, release: str, folder: Path) -> Path:
    """Copy the jar of a module of Kafka into `folder`. Raises FetchError."""
    maven = shutil.which("mvn")
    if maven is None:
        raise FetchError("Maven (mvn) is needed to fetch Kafka's jars; it is not on the PATH")
    command = [
        *(maven, "--batch-mode", "--quiet", "dependency:copy"),
        *(f"-Dartifact=org.apache.kafka:{module}:{release}", f"-DoutputDirectory={folder}"),
    ]
    with alone_with_maven():
        # In an empty folder, so that Maven finds no pom.
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    jar = folder / f"{module}-{release}.jar"
    if done.returncode or not jar.is_file():
        said = (done.stdout + done.stderr).strip()
        raise FetchError(f"Maven did not deliver {module} {release}:\n{said}")
    return jar


def extract_specs(jar: Path, folder: Path) -> None:
    """Write the specs inside `jar` to `folder`, each under its own file name."""
    folder.mkdir(parents=True)
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            entry = PurePosixPath(name)
            if entry.suffix == ".json" and str(entry.parent) in _SPEC_FOLDERS:
                (folder / entry.name).write_bytes(archive.read(name))
