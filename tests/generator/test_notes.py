"""The notes next to specs: which are refused and how, and their effect in a user's package."""

from __future__ import annotations

import importlib
import inspect
import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.generate import generate, generate_docs
from kafka_records_codegen.loader import load
from kafka_records_codegen.tree import write as write_tree
from kafka_records_runtime.errors import BufferUnderflow
from kafka_records_runtime.records.explain import explain_key, explain_record, explain_text
from kafka_records_runtime.schema import RetiredType
from kafka_records_runtime.wire import walker
from kafka_records_tables.commands.catalog import catalog_of
from tests.generator.markdown_pages import read_page
from tests.generator.spec_files import field, message, refused, short, write

SPECS = {
    "accounts/AccountKey": message("AccountKey", "coordinator-key", apiKey=7, fields=[field("Id", "int64", "0")]),
    "accounts/AccountValue": message(
        "AccountValue", "coordinator-value", apiKey=7, validVersions="0-3", fields=[field("Owner", "string")]
    ),
    "accounts/Note": message("Note", validVersions="0-1", fields=[field("Text", "string")]),
}
NOTES = """\
// Read like a spec: comments are fine.
{
  "retiredTypes": [ { "type": 9, "name": "Ledger", "why": "moved  to\\n \\"books\\"" } ],
  "versionNotes": [
    { "message": "AccountValue", "versions": "1-2", "note": "the import of 2021 wrote\\nthis version without a length" }
  ],
  "newerAsHighest": [ "Note" ],
  "enums": [
    { "name": "Kind", "about": "Whose account it is. One \\\\ and \\"\\"\\" more.\\n\\nSee the ledger.",
      "values": [
        { "name": "PRIVATE", "value": -1, "about": "Ends with \\"quotes\\"" },
        { "name": "JOINT_ONE", "value": 2 }
      ] }
  ]
}
"""


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def noted(**attributes: Any) -> Path:
    return write(**SPECS, **{"accounts/_notes": json.dumps(attributes)})


# ---- what is refused


def test_violations_have_their_place() -> None:
    folder = write(
        **SPECS,
        **{"accounts/_notes": """\
// Of accounts.
{
  "retiredTypes": [
    { "type": 7, "name": "Ledger", "why": "gone" }
  ],
  "versionNote": []
}
"""},
    )
    assert str(refused(folder)) == """\
specs/accounts/_notes.json:4:15: retiredTypes[0].type: the type 7 cannot be retired: the spec AccountKey has it
        { "type": 7, "name": "Ledger", "why": "gone" }
                  ^
specs/accounts/_notes.json:6:3: versionNote: unknown attribute; did you mean versionNotes?
      "versionNote": []
      ^"""


def test_a_file_that_is_no_object_or_cannot_be_read() -> None:
    assert short(write(**SPECS, **{"accounts/_notes": "[]"})) == [
        "specs/accounts/_notes.json: $: the notes of a folder must be one JSON object, found an array"
    ]
    assert short(write(**{"accounts/_notes": '{"retiredTypes": [}'})) != []
    Path("specs/accounts/_notes.json").write_bytes(b"{}\xff")
    assert short(Path("specs")) == ["specs/accounts/_notes.json: $: the file is not UTF-8: byte 0xff at 2"]


def test_notes_without_a_spec_beside_them() -> None:
    folder = write(**{"other/Foo": message("Foo"), "lonely/_notes": "{}"})
    assert str(refused(folder)) == "specs/lonely/_notes.json: these notes have no spec next to them"


def test_a_message_in_a_file_of_that_name_is_no_message() -> None:
    first = short(write(Foo=message("Foo"), **{"sub/Bar": message("Bar"), "sub/_notes": message("Baz")}))[0]
    assert first == (
        "specs/sub/_notes.json: type: unknown attribute; "
        "a file of notes takes framing, retiredTypes, versionNotes, newerAsHighest, enums"
    )


@pytest.mark.parametrize(
    ("retired", "path", "problem"),
    [
        ({"type": 9, "name": "Ledger"}, "why", "is missing; write briefly why the type was retired"),
        ({"type": 9, "why": "x"}, "name", "is missing"),
        ({"name": "Ledger", "why": "x"}, "type", "is missing; write a whole number between -32768 and 32767"),
        (
            {"type": 40000, "name": "Ledger", "why": "x"},
            "type",
            "must be a whole number between -32768 and 32767, found the number 40000",
        ),
        (
            {"type": 9, "name": "1st", "why": "x"},
            "name",
            "'1st' is not a valid name; a name consists of letters, digits and underscores, starting with a letter",
        ),
        (
            {"type": 9, "name": "Account", "why": "x"},
            "name",
            "Account cannot be retired: the spec AccountKey describes it",
        ),
        ({"type": 9, "name": "Ledger", "why": ["x"]}, "why", "must be a string, found an array"),
    ],
)
def test_retired_types(retired: dict[str, Any], path: str, problem: str) -> None:
    assert short(noted(retiredTypes=[retired])) == [f"specs/accounts/_notes.json: retiredTypes[0].{path}: {problem}"]


def test_retired_types_that_clash() -> None:
    one, other = ({"type": 9, "name": name, "why": "x"} for name in ("Ledger", "Book"))
    assert short(noted(retiredTypes=[one, other])) == [
        "specs/accounts/_notes.json: retiredTypes[1].type: there is already a retired type 9"
    ]
    folder = write(**{"plain/Foo": message("Foo"), "plain/_notes": json.dumps({"retiredTypes": [one]})})
    Path("specs/accounts/_notes.json").unlink()
    assert short(folder) == [
        "specs/plain/_notes.json: retiredTypes: this folder has no specs of records, so it cannot retire types"
    ]


@pytest.mark.parametrize(
    ("note", "path", "problem"),
    [
        (
            {"message": "AcountValue", "versions": "0", "note": "x"},
            "message",
            "this folder has no message AcountValue; did you mean AccountValue?",
        ),
        ({"message": "Foo", "versions": "0", "note": "x"}, "message", "this folder has no message Foo"),
        (
            {"message": "AccountValue", "versions": "3-4", "note": "x"},
            "versions",
            "may name only versions of AccountValue (0-3), found 3-4",
        ),
        (
            {"message": "AccountValue", "versions": "0+", "note": "x"},
            "versions",
            "may name only versions of AccountValue (0-3), found 0+",
        ),
        (
            {"message": "AccountValue", "versions": "2-1", "note": "x"},
            "versions",
            "may name only versions of AccountValue (0-3), found none",
        ),
        ({"message": "AccountValue", "note": "x"}, "versions", "is missing; write a range such as 0-2"),
        (
            {"message": "AccountValue", "versions": "0", "note": " "},
            "note",
            "is missing; write the remark that errors about these versions append",
        ),
    ],
)
def test_version_notes(note: dict[str, Any], path: str, problem: str) -> None:
    assert short(noted(versionNotes=[note])) == [f"specs/accounts/_notes.json: versionNotes[0].{path}: {problem}"]


def test_two_notes_about_one_version() -> None:
    notes = [{"message": "AccountValue", "versions": versions, "note": "x"} for versions in ("0-1", "3", "1-2")]
    assert short(noted(versionNotes=notes)) == [
        "specs/accounts/_notes.json: versionNotes[2].versions: there is already a note about versions 1 of AccountValue"
    ]


def test_messages_that_are_not_read_as_a_higher_version() -> None:
    assert short(noted(newerAsHighest=["Note", "Nota", "AccountValue", "Note", 3])) == [
        "specs/accounts/_notes.json: newerAsHighest[1]: this folder has no message Nota; did you mean Note?",
        "specs/accounts/_notes.json: newerAsHighest[2]: AccountValue is a coordinator-value; a version precedes "
        "only messages of the types data and metadata",
        "specs/accounts/_notes.json: newerAsHighest[3]: Note is listed twice",
        "specs/accounts/_notes.json: newerAsHighest[4]: must be a string, found the number 3",
    ]


def test_what_a_broken_spec_is_called_is_not_known() -> None:
    folder = noted(versionNotes=[{"message": "Broken", "versions": "0", "note": "x"}], newerAsHighest=["Broken"])
    write(**{"accounts/Broken": "[]"})
    assert short(folder) == ["specs/accounts/Broken.json: $: a spec must be one JSON object, found an array"]


@pytest.mark.parametrize(
    ("enum", "path", "problem"),
    [
        ({"name": "Kind", "about": "x"}, "values", "an enum must have at least one value"),
        (
            {"name": "Kind", "values": [{"name": "A", "value": 1}]},
            "about",
            "is missing; write what the numbers mean",
        ),
        (
            {"name": "kind", "about": "x", "values": [{"name": "A", "value": 1}]},
            "name",
            "'kind' is not a valid name; a name consists of letters and digits, starting with an upper-case letter; "
            "did you mean Kind?",
        ),
        (
            {"name": "OpenIntEnum", "about": "x", "values": [{"name": "A", "value": 1}]},
            "name",
            "OpenIntEnum is a name that the generated module uses itself",
        ),
        (
            {"name": "Kind", "about": "x", "values": [{"name": "A"}]},
            "values[0].value",
            "is missing; write a whole number between -2147483648 and 2147483647",
        ),
        (
            {"name": "Kind", "about": "x", "values": [{"name": "A", "value": 1}, {"name": "B", "value": 1}]},
            "values[1].value",
            "1 is already A",
        ),
        (
            {"name": "Kind", "about": "x", "values": [{"name": "A", "value": 1}, {"name": "A", "value": 2}]},
            "values[1].name",
            "there is already a value A",
        ),
        (
            {"name": "Kind", "about": "x", "values": [{"name": "UNKNOWN_7", "value": 1}]},
            "values[0].name",
            "UNKNOWN_7 is reserved for numbers without a name",
        ),
        (
            {"name": "Kind", "about": "x", "values": [{"name": "value", "value": 1}]},
            "values[0].name",
            "'value' is not a valid name; a name consists of upper-case letters, digits and underscores, starting "
            "with a letter",
        ),
    ],
)
def test_enums(enum: dict[str, Any], path: str, problem: str) -> None:
    assert short(noted(enums=[enum])) == [f"specs/accounts/_notes.json: enums[0].{path}: {problem}"]


def test_enums_of_one_name() -> None:
    enums = json.dumps({"enums": [{"name": "Kind", "about": "x", "values": [{"name": "A", "value": 1}]}]})
    folder = write(**SPECS, **{"accounts/_notes": enums, "other/Foo": message("Foo"), "other/_notes": enums})
    assert short(folder) == [
        "specs/other/_notes.json: enums[0].name: there is already an enum Kind in accounts/_notes.json"
    ]


# ---- what becomes of them


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The package of SPECS and NOTES, with a different name for each test."""
    name = f"bank_{tmp_path.name.rstrip('0123456789_')}"
    specs = write(**SPECS, **{"accounts/_notes": NOTES})
    write_tree(tmp_path / name, generate(load(specs), name))
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield name
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[module]


def test_errors_about_these_versions_say_so(bank: str) -> None:
    schema = importlib.import_module(f"{bank}.schemas.accounts").ACCOUNT_VALUE
    value_class = importlib.import_module(f"{bank}.accounts.account").AccountValue
    plain = "AccountValue v{} at byte 1: owner needs 4 bytes, but 0 are left"
    note = "; the import of 2021 wrote this version without a length"
    for version, wanted in enumerate((plain, plain + note, plain + note, plain)):
        for decode in (lambda data, version: walker.decode(schema, data, version), value_class.decode):
            with pytest.raises(BufferUnderflow) as caught:
                decode(b"\x05", version)
            assert str(caught.value) == wanted.format(version)
            assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert pickle.loads(pickle.dumps(schema)).note(1) == note.removeprefix("; ")


def test_retired_types_have_a_name(bank: str) -> None:
    record = importlib.import_module(f"{bank}.accounts").decode_record(b"\x00\x09abc", None)
    assert (record.name, record.is_known_type, record.key) == ("Ledger", False, b"\x00\x09abc")
    schemas = importlib.import_module(f"{bank}.schemas.accounts")
    retired: dict[int, RetiredType] = schemas.RETIRED_TYPES
    assert retired == {9: RetiredType("Ledger", 'moved to "books"')}
    line = '     0  00 09                      int16        record type  9 (Ledger, moved to "books")\n'
    assert line in explain_text(explain_key(schemas.RECORDS, b"\x00\x09abc", schemas.RETIRED_TYPES))
    assert line in explain_text(explain_record(schemas.RECORDS, b"\x00\x09abc", None, schemas.RETIRED_TYPES))
    catalog = catalog_of(bank)
    assert catalog.retired("__accounts") == schemas.RETIRED_TYPES
    assert catalog.record_names == {"Account", "Ledger"}


def test_numbers_have_names(bank: str) -> None:
    enums = importlib.import_module(f"{bank}.enums")
    assert enums.__all__ == ["Kind"]
    assert [(kind.name, kind.value, kind.label) for kind in enums.Kind] == [
        ("PRIVATE", -1, "Private"),
        ("JOINT_ONE", 2, "JointOne"),
    ]
    assert (enums.Kind(3).name, enums.Kind(3).label, enums.Kind(3).is_known) == ("UNKNOWN_3", "3", False)
    about = 'Whose account it is.\n\nOne \\ and """ more. See the ledger.'
    assert inspect.getdoc(enums.Kind) == about
    assert pickle.loads(pickle.dumps(enums.Kind(2))) is enums.Kind.JOINT_ONE
    assert "enums.py" not in generate(load(write(**SPECS, **{"accounts/_notes": "{}"})), "bank")


def test_functions_read_newer_versions_as_the_highest(bank: str) -> None:
    text = Path(bank, "spark", "accounts", "note.py").read_text(encoding="utf-8")
    assert "newer_as_highest: bool = True" in text
    assert "above the highest known one as that one, like the message's own readers. " in " ".join(text.split())


def test_pages_show_them() -> None:
    pages = generate_docs(load(write(**SPECS, **{"accounts/_notes": NOTES})), "bank")
    assert (
        "Versions 0–3, flexible. Versions 1–2: the import of 2021 wrote this version without a length."
        in read_page(pages["accounts/account.md"]).paragraphs
    )
    index = read_page(pages["README.md"])
    assert index.tables_with("Type") == [[["7", "Account", "0–3", "0–3", ""]]]
    assert 'Retired types, which no spec describes: 9 Ledger (moved to "books").' in index.paragraphs
