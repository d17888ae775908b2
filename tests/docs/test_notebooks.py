"""Notebooks under `examples/` have the outputs of a kernel, which are plain HTML."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.results.html_read import HtmlRead
from tools import notebooks

pytestmark = pytest.mark.slow


def test_there_are_notebooks() -> None:
    assert [path.name for path in notebooks.NOTEBOOKS] == ["offsets.ipynb"]


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.name)
def test_a_kernel_shows_what_the_notebook_shows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert notebooks.run(path) == text
    shown = [output["data"] for cell in json.loads(text)["cells"] for output in cell.get("outputs", ())]
    assert len(shown) == sum(cell["cell_type"] == "code" for cell in json.loads(text)["cells"])
    pages = ["".join(data["text/html"]) for data in shown if "text/html" in data]
    assert any("svg" in HtmlRead(page).found for page in pages)


def test_a_notebook_that_shows_something_else_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.ipynb"
    path.write_text("{}", encoding="utf-8")
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "NOTEBOOKS", (path,))
    monkeypatch.setattr(notebooks, "run", lambda _: "other")
    assert notebooks.main(["--check"]) == 1
    assert path.read_text(encoding="utf-8") == "{}"
    assert capsys.readouterr().err == "other.ipynb shows something else: python tools/notebooks.py\n"
    assert notebooks.main([]) == 0
    assert path.read_text(encoding="utf-8") == "other"
    assert notebooks.main(["--check"]) == 0
