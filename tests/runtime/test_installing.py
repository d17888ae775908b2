"""What to type when a package is missing, in a clone and after every kind of installation."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kafka_records_runtime.text import installing
from kafka_records_runtime.text.installing import install_command

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the project is installed instead: this module is in no clone, and pip kept what it keeps here."""
    folder = tmp_path / "lib" / "python3.11" / "site-packages"
    record = folder / "kafka_records-0.1.0.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text("Metadata-Version: 2.4\nName: kafka-records\nVersion: 0.1.0\n", encoding="utf-8")
    monkeypatch.setattr(installing, "_SOURCE_TREE", folder.parents[1])
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(tmp_path)
    return record


def came_from(site: Path, **origin: Any) -> None:
    (site / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")


def a_clone(folder: Path) -> Path:
    folder.mkdir()
    (folder / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    return folder


def test_in_a_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert install_command("tables") == "pip install -e '.[tables]'"


def test_beside_a_clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert install_command("codegen") == f"pip install -e '{ROOT}[codegen]'"


@pytest.mark.usefixtures("site")
def test_from_an_index() -> None:
    assert install_command("spark") == "pip install 'kafka-records[spark]'"


@pytest.mark.parametrize("name", ["clone", "it's here", "grün #1 100%41"])
def test_from_a_clone_without_editable(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    clone = a_clone(tmp_path / name)
    came_from(site, url=clone.as_uri(), dir_info={})
    command = install_command("kafka")
    assert subprocess.check_output(["sh", "-c", f"printf '%s|' {command}"], text=True) == (
        f"pip|install|{clone}[kafka]|"
    )
    monkeypatch.chdir(clone)
    assert install_command("kafka") == "pip install '.[kafka]'"


def test_from_a_wheel(site: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "kafka_records-0.1.0-py3-none-any.whl"
    wheel.touch()
    came_from(site, url=wheel.as_uri(), archive_info={})
    assert install_command("tables") == f"pip install '{wheel}[tables]'"


@pytest.mark.parametrize(
    ("vcs_info", "revision"),
    [
        ({"vcs": "git", "requested_revision": "v1", "commit_id": "6e1f"}, "v1"),
        ({"vcs": "git", "commit_id": "6e1f"}, "6e1f"),
    ],
)
def test_from_a_repository(site: Path, vcs_info: dict[str, str], revision: str) -> None:
    came_from(site, url="https://example.org/kafka-records.git", vcs_info=vcs_info)
    assert install_command("tables") == (
        f"pip install 'kafka-records[tables] @ git+https://example.org/kafka-records.git@{revision}'"
    )


def test_from_an_address(site: Path) -> None:
    came_from(site, url="https://example.org/kafka_records-0.1.0-py3-none-any.whl", archive_info={})
    assert install_command("tables") == (
        "pip install 'kafka-records[tables] @ https://example.org/kafka_records-0.1.0-py3-none-any.whl'"
    )


@pytest.mark.parametrize("what", ["gone", "another project"])
def test_from_a_folder_that_is_no_clone_any_more(site: Path, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "clone"
    if what == "another project":
        folder.mkdir()
        (folder / "pyproject.toml").write_text('[project]\nname = "something-else"\n', encoding="utf-8")
    came_from(site, url=folder.as_uri(), dir_info={"editable": True})
    assert install_command("tables") == "pip install 'kafka-records[tables]'"


@pytest.mark.parametrize("text", ["{", "[]", "null"])
def test_from_a_record_that_is_no_direct_url(site: Path, text: str) -> None:
    (site / "direct_url.json").write_text(text, encoding="utf-8")
    assert install_command("tables") == "pip install 'kafka-records[tables]'"


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("mark", "command"),
    [("pipx_metadata.json", "pipx install --force"), ("uv-receipt.toml", "uv tool install --force")],
)
def test_as_a_program_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str, command: str) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    (tmp_path / mark).touch()
    assert install_command("sql") == f"{command} 'kafka-records[tables,sql]'"
    assert install_command("tables") == f"{command} 'kafka-records[tables]'"


@pytest.mark.usefixtures("site")
def test_in_an_environment_of_uvx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path / "archive-v0" / "WVmDCIK4855olV4Z"))
    assert install_command("sql") == "uvx --from 'kafka-records[tables,sql]' kafka-records"
