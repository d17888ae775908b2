"""The pip command that installs an extra of this project, for messages about missing packages.

The project may not be in a package index. If it was installed from a clone, a wheel or a repository, the command uses
the same source.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

_PROJECT: Final = "kafka-records"
_TABLES: Final = "tables"
_PIP: Final = "pip install"
_UVX: Final = "uvx --from"
_BY_MARK: Final = {
    "pipx_metadata.json": "pipx install --force",
    "uv-receipt.toml": "uv tool install --force",
}
"""The install command of a tool, by the file that the tool leaves in its environments."""
_SOURCE_TREE: Final = Path(__file__).resolve().parents[3]
"""The clone, if this module was imported from one: it contains `generator/kafka_records_runtime`."""


def install_command(extra: str) -> str:
    """The line to type into a shell, such as `pip install -e '.[tables]'` in a clone."""
    command = _command()
    # pipx and uv reinstall the whole program, so the command must also name the extra for its tables.
    both = extra if command == _PIP or extra == _TABLES else f"{_TABLES},{extra}"
    options, requirement = _requirement(both)
    quoted = "'" + requirement.replace("'", "'\\''") + "'"
    return " ".join([command, *options, quoted, *([_PROJECT] if command == _UVX else [])])


def with_hint(missing: ModuleNotFoundError, extra: str) -> ModuleNotFoundError:
    """The error for a missing package, with an install command in its text. Its `name` is unchanged."""
    hint = f"{missing.name} is not installed: {install_command(extra)}"
    return ModuleNotFoundError(hint, name=missing.name, path=missing.path)


def _requirement(extra: str) -> tuple[list[str], str]:
    """Options for pip, and the requirement to install."""
    if _is_clone(_SOURCE_TREE):
        return ["-e"], f"{_from_here(_SOURCE_TREE)}[{extra}]"
    origin = _origin()
    url = str(origin.get("url", ""))
    if url.startswith("file:"):
        # imported here because this module loads the HTTP client, which is slow
        from urllib.request import url2pathname

        # The installed clone or wheel may have been deleted since.
        path = Path(url2pathname(urlsplit(url).path))
        if path.is_file() or _is_clone(path):
            return [], f"{_from_here(path)}[{extra}]"
    elif url:
        repository = origin.get("vcs_info")
        if repository:
            url = f"{repository['vcs']}+{url}@{repository.get('requested_revision') or repository['commit_id']}"
        return [], f"{_PROJECT}[{extra}] @ {url}"
    return [], f"{_PROJECT}[{extra}]"


def _command() -> str:
    """The tool that manages the current environment. pipx and uv create an environment for each program."""
    for mark, command in _BY_MARK.items():
        if os.path.exists(os.path.join(sys.prefix, mark)):
            return command
    # uvx runs a program in an environment in uv's cache, into which nothing can be installed.
    return _UVX if Path(sys.prefix).parent.name.startswith("archive-v") else _PIP


def _is_clone(folder: Path) -> bool:
    try:
        return f'\nname = "{_PROJECT}"\n' in (folder / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _from_here(path: Path) -> str:
    try:
        return "." if os.path.samefile(path, os.curdir) else str(path)
    except OSError:
        return str(path)


def _origin() -> dict[str, Any]:
    """Where pip installed the project from: the "direct URL" of PEP 610. Empty after an installation from an index."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution(_PROJECT).read_text("direct_url.json")
        found = json.loads(text or "{}")
    except (PackageNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
