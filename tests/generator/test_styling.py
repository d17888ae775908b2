"""Pages keep black's style: the quick way, which runs black only on long lines, has the same result as black on the
whole page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.text import page as pages
from kafka_records_codegen.text.styling import in_style, with_long_lines_in_style
from tests.generator.language_specs import write_language_specs
from tests.variants import one_in

ROOT = Path(__file__).resolve().parents[2]

LONG = "LongNamesAreNoReasonToLeaveTheStyleOfAllTheOtherPages"


def raw_pages(specs: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The pages of codecs as the template produces them."""
    monkeypatch.setattr(pages, "with_long_lines_in_style", lambda page: f"{page}# raw\n")
    files = generate(load(specs), "some_package")
    return {name: text.removesuffix("# raw\n") for name, text in files.items() if text.endswith("# raw\n")}


def specs_with_long_names(folder: Path) -> Path:
    """A message with names and a comment that are too long for any line."""
    member = {"name": "Flag", "type": "bool", "versions": "0+"}

    def fields(*more: dict[str, Any]) -> list[dict[str, Any]]:
        plain = [{"name": f"{LONG}{number}", "type": "int64", "versions": "0+", "default": "77"} for number in range(3)]
        return [*plain, *more]

    inner = {"name": f"Inner{LONG}", "type": f"[]Struct{LONG}{LONG}", "versions": "0+", "fields": fields(member)}
    text = {"name": f"Text{LONG}", "type": "string", "versions": "0+", "nullableVersions": "0+", "tag": 0}
    tagged = {**text, "taggedVersions": "1+", "default": 'it\'s "quoted"', "about": 'It\'s "quoted".'}
    spec = {"type": "data", "name": f"Message{LONG}", "validVersions": "0-1", "flexibleVersions": "1+"}
    folder.mkdir()
    comment = f'// It\'s   \n//\n//   indented """ {LONG} \\\n'
    (folder / "it's.json").write_text(
        comment + json.dumps({**spec, "fields": fields(inner, tagged)}, indent=2), encoding="utf-8"
    )
    empty = {"type": "data", "name": "Empty", "validVersions": "0", "flexibleVersions": "none", "fields": []}
    (folder / "Empty.json").write_text(json.dumps(empty), encoding="utf-8")
    return folder


def specs_of(what: str, data_dir: Path, scratch: Path) -> Path:
    match what:
        case "our records":
            return ROOT / "message_specs" / "transaction_state"
        case "all kinds of fields":
            return data_dir / "specs" / "acme"
        case "Kafka's test messages":
            return write_language_specs(data_dir, scratch / "language")
        case _:
            return specs_with_long_names(scratch / "long")


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", one_in(2, ["our records", "all kinds of fields", "Kafka's test messages", "long names"])
)
def test_the_quick_way_gives_the_same(
    what: str, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = raw_pages(specs_of(what, data_dir, tmp_path), monkeypatch)
    assert raw
    for name, text in raw.items():
        assert with_long_lines_in_style(text) == in_style(text), name


@pytest.mark.slow
@pytest.mark.matrix
def test_black_has_nothing_to_change_in_our_package() -> None:
    # Every fifth page: running black on all of them takes longer than generating them.
    for path in sorted((ROOT / "generated" / "kafka_records").rglob("*.py"))[::5]:
        text = path.read_text(encoding="utf-8")
        assert in_style(text) == text, path


class TestLongLines:
    def test_lines_that_fit_are_left_alone(self) -> None:
        assert with_long_lines_in_style("x  =  1\n") == "x  =  1\n"

    def test_a_statement_is_broken_where_it_stands(self) -> None:
        names = [f"argument_{number}" for number in range(8)]
        text = f"def f():\n    if x:\n        return g({', '.join(names)})\n"
        assert with_long_lines_in_style(text) == in_style(text)
        assert f"        return g(\n            {', '.join(names)}\n        )\n" in with_long_lines_in_style(text)

    def test_the_head_of_a_block(self) -> None:
        text = f"def f({', '.join(f'argument_{number}: int' for number in range(9))}) -> None:\n    return None\n"
        assert with_long_lines_in_style(text) == in_style(text)

    def test_a_single_quote(self) -> None:
        assert with_long_lines_in_style("class A:\n    b: bytes = b'\\x00'\n") == 'class A:\n    b: bytes = b"\\x00"\n'

    @pytest.mark.parametrize("line", ["    {0},", "if y:\n    z\nelif {0}:\n    z"])
    def test_other_long_lines_send_the_page_to_black(self, line: str) -> None:
        line = line.format(" + ".join(["argument"] * 20))
        text = f"x  =  (\n{line}\n)\n" if line.endswith(",") else f"x  =  1\n{line}\n"
        assert with_long_lines_in_style(text) == in_style(text)

    def test_texts_keep_their_lines(self) -> None:
        text = f'x = 1\n"""It\'s {"long " * 40}\n\n  and has a second line.\n"""\n'
        assert with_long_lines_in_style(text) == text
