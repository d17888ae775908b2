"""The message specs of a Kafka release, taken out of its jars, which Maven fetches.

The jars carry their specs as resources. Only those are kept, outside the repository, one folder per module below
`$KAFKA_RECORDS_CACHE` (by default `kafka-records` in the user's cache directory), so that the loader takes them all
at once. Two habits of old releases are put right on the way: see `modernised`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

_EVERYWHERE: Final = ("kafka-clients", "kafka-metadata", "kafka-raft", "kafka-streams")
_SINCE_3_5: Final = (*_EVERYWHERE, "kafka-group-coordinator", "kafka-storage")
_SINCE_3_9: Final = (*_SINCE_3_5, "kafka-transaction-coordinator")
_SINCE_4_0: Final = (*_SINCE_3_9, "kafka-share-coordinator")

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "2.8.2": (*_EVERYWHERE, "kafka_2.13"),
    "3.5.2": (*_SINCE_3_5, "kafka_2.13"),
    "3.7.2": (*_SINCE_3_5, "kafka_2.13"),
    # Kafka did not publish the share coordinator of 3.9.
    "3.9.1": _SINCE_3_9,
    "4.0.0": _SINCE_4_0,
    "4.1.1": _SINCE_4_0,
    "4.2.0": _SINCE_4_0,
    "4.3.1": _SINCE_4_0,
}
"""Release → the modules whose jars hold its specs."""

LATEST: Final = "4.3.1"

RECORD_MODULES: Final = frozenset(
    {"kafka_2.13", "kafka-group-coordinator", "kafka-share-coordinator", "kafka-transaction-coordinator"}
)
"""Modules that hold nothing but the records of coordinators."""

_SPEC_FOLDERS: Final = frozenset({"common/message", "common/metadata", "message"})
_COMMENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


class FetchError(Exception):
    """A jar could not be had; the text says which and what Maven said."""


def cache_folder() -> Path:
    """Where fetched specs stay: `$KAFKA_RECORDS_CACHE`, else a folder of the user's cache directory."""
    if chosen := os.environ.get("KAFKA_RECORDS_CACHE"):
        return Path(chosen)
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(user_cache) / "kafka-records"


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
            specs.rename(root / folder_name(module))
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
    # In an empty folder, so that no pom has a say.
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    jar = folder / f"{module}-{release}.jar"
    if done.returncode or not jar.is_file():
        said = (done.stdout + done.stderr).strip()
        raise FetchError(f"Maven did not deliver {module} {release}:\n{said}")
    return jar


def extract_specs(jar: Path, folder: Path) -> None:
    """Write the specs inside `jar` to `folder`, `modernised`, each under its own file name."""
    folder.mkdir(parents=True)
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            entry = PurePosixPath(name)
            if entry.suffix == ".json" and str(entry.parent) in _SPEC_FOLDERS:
                text = archive.read(name).decode("utf-8")
                (folder / entry.name).write_text(modernised(text), encoding="utf-8")


def modernised(text: str) -> str:
    """The spec as today's language wants it; text that already is so stays as it is.

    2.8 may leave `flexibleVersions` out, meaning none, and has one file with brackets behind its end. Releases with
    ZooKeeper name a listener, `zkBroker`, that is not in the language any more.
    """
    bare = _COMMENT.sub(lambda match: match[1] or " ", text).strip()
    spec: dict[str, Any]
    spec, end = json.JSONDecoder().raw_decode(bare)
    changed = end < len(bare)
    if "flexibleVersions" not in spec:
        spec["flexibleVersions"] = "none"
        changed = True
    if "zkBroker" in spec.get("listeners", ()):
        spec["listeners"] = [listener for listener in spec["listeners"] if listener != "zkBroker"]
        changed = True
    return json.dumps(spec, indent=2) + "\n" if changed else text
