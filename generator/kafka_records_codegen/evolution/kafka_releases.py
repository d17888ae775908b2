"""Gets the message specs of a Kafka release from its jars, which Maven fetches.

The jars contain their specs as resources. Only the specs are kept, outside the repository, with one folder per module
below `$KAFKA_RECORDS_CACHE` (by default `kafka-records` in the user's cache directory), so that the loader can read all
of them at once. The specs of releases before 4.0 need its `older_dialect`: see `is_older_dialect`.
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

_ALWAYS: Final = ("kafka-clients", "kafka-metadata", "kafka-raft", "kafka-streams")
_GROUPS: Final = (*_ALWAYS, "kafka-group-coordinator", "kafka-storage")
_TRANSACTIONS: Final = (*_GROUPS, "kafka-transaction-coordinator")
_SHARE: Final = (*_TRANSACTIONS, "kafka-share-coordinator")

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    # Before coordinators had their own modules, their records were in the broker's jar. Kafka did not publish the share
    # coordinator of 3.9.
    "2.8.2": (*_ALWAYS, "kafka_2.13"),
    "3.5.2": (*_GROUPS, "kafka_2.13"),
    "3.7.2": (*_GROUPS, "kafka_2.13"),
    "3.9.1": _TRANSACTIONS,
    "4.0.0": _SHARE,
    "4.1.1": _SHARE,
    "4.2.0": _SHARE,
    "4.3.1": _SHARE,
}
"""For each release, the modules whose jars contain its specs. A release that is not listed has the modules of the last
listed release before it."""

RELEASE: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:-[A-Za-z0-9]+)?")
"""The pattern of a release number."""

_FIRST: Final = "kafka-clients"
"""A module that every release has. If it does not exist, neither does the release."""

_SPEC_FOLDERS: Final = frozenset({"common/message", "common/metadata", "message"})
_ABSENT: Final = re.compile(r"(?:Could not|Unable to) find artifact")
"""Maven's message if a repository answered that it does not have the file. Without a network, the message is
different."""


class FetchError(Exception):
    """A jar could not be fetched. The text names the jar and contains Maven's message.

    `is_absent` means that the jar does not exist: a repository answered that it does not have it.
    """

    def __init__(self, text: str, *, is_absent: bool = False) -> None:
        super().__init__(text)
        self.is_absent = is_absent


def is_older_dialect(release: str) -> bool:
    """Whether the specs of a release need the loader's `older_dialect`."""
    return int(release.partition(".")[0]) < 4


def release_order(release: str) -> tuple[int, ...]:
    """The sort key of a release."""
    return tuple(int(number) for number in re.findall(r"[0-9]+", release)[:3])


def modules_of(release: str) -> tuple[str, ...]:
    """The modules with the specs of a release. A release that is not in `MODULES` has the modules of the last release
    before it."""
    if release in MODULES:
        return MODULES[release]
    before = [known for known in MODULES if release_order(known) <= release_order(release)]
    return MODULES[max(before, key=release_order)] if before else next(iter(MODULES.values()))


def cache_folder() -> Path:
    """The folder for fetched specs: `$KAFKA_RECORDS_CACHE` or, if not set, a folder in the user's cache directory."""
    if chosen := os.environ.get("KAFKA_RECORDS_CACHE"):
        return Path(chosen)
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(user_cache) / "kafka-records"


def keep(made: Path, place: Path) -> None:
    """Rename a complete folder to its place in the cache. If another process has already put a folder there, that one
    is kept."""
    try:
        made.rename(place)
    except OSError:
        if not place.is_dir():
            raise


@contextmanager
def alone_with_maven() -> Iterator[None]:
    """Waits while another process fetches with Maven, because two processes would write into the same local
    repository."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "maven.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def folder_name(module: str) -> str:
    """The folder for a module's specs: its name as an identifier, which the loader requires."""
    return re.sub(r"\W", "_", module)


def fetch_specs(release: str, tell: Callable[[str], None] = lambda line: None) -> Path:
    """Return the folder with the specs of `release`, which contains one folder per module.

    Fetches what the cache lacks. `tell` is called with a progress line per jar. For a release that is not in `MODULES`,
    a module that does not exist gets an empty folder (see `absent_modules`). Raises FetchError if Maven fails, or if
    the release does not exist.
    """
    root = cache_folder() / "specs" / release
    missing = [module for module in modules_of(release) if not (root / folder_name(module)).is_dir()]
    for number, module in enumerate(missing, start=1):
        tell(f"Fetching {module} {release} by Maven ({number} of {len(missing)})")
        root.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
            specs = Path(scratch) / "specs"
            try:
                jar = fetch_jar(module, release, Path(scratch))
            except FetchError as error:
                if module == _FIRST or release in MODULES or not error.is_absent:
                    raise
                specs.mkdir()
            else:
                extract_specs(jar, specs)
            root.mkdir(exist_ok=True)
            # The folder is renamed only when it is complete, so an interrupted run leaves no half-filled folder that
            # looks complete.
            keep(specs, root / folder_name(module))
    return root


def absent_modules(root: Path) -> tuple[str, ...]:
    """The modules' folders that Maven did not find for the release in `root`."""
    return tuple(sorted(folder.name for folder in root.iterdir() if folder.is_dir() and not any(folder.iterdir())))


def fetch_jar(module: str, release: str, folder: Path) -> Path:
    """Copy the jar of a Kafka module into `folder`. Raises FetchError."""
    maven = shutil.which("mvn")
    if maven is None:
        raise FetchError("Maven (mvn) is needed to fetch Kafka's jars, but it is not on the PATH: install it")
    command = [
        *(maven, "--batch-mode", "--quiet", "-Dstyle.color=never", "dependency:copy"),
        *(f"-Dartifact=org.apache.kafka:{module}:{release}", f"-DoutputDirectory={folder}"),
    ]
    with alone_with_maven():
        # Run Maven in an empty folder, so that it finds no pom.
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    jar = folder / f"{module}-{release}.jar"
    if done.returncode or not jar.is_file():
        said = (done.stdout + done.stderr).strip()
        is_absent = _ABSENT.search(said) is not None
        raise FetchError(f"Maven could not fetch {module} {release}:\n{said}", is_absent=is_absent)
    return jar


def extract_specs(jar: Path, folder: Path) -> dict[str, str]:
    """Write the specs in `jar` to `folder`, each with its own file name. Returns the jar entry for each file name.

    Raises zipfile.BadZipFile if the file is not a jar.
    """
    entries: dict[str, str] = {}
    with zipfile.ZipFile(jar) as archive:
        folder.mkdir(parents=True)
        for name in archive.namelist():
            entry = PurePosixPath(name)
            if entry.suffix == ".json" and str(entry.parent) in _SPEC_FOLDERS:
                (folder / entry.name).write_bytes(archive.read(name))
                entries[entry.name] = name
    return entries
