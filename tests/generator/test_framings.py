"""How the records of a folder begin: by its specs, by its notes, what is refused, and what is generated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.generate import generate, generate_docs
from kafka_records_codegen.loader import load
from tests.generator.spec_files import field, message, short, write
from tests.ledger import SPECS

KEY = message("AccountKey", "coordinator-key", apiKey=7, fields=[field("Id", "int64", "0")])
VALUE = message("AccountValue", "coordinator-value", apiKey=7, fields=[field("Owner", "string")])
TRANSFER = message("TransferRecord", "metadata", apiKey=0, fields=[field("Cents", "int64")])
REMARK = message("Remark", fields=[field("Text", "string")])
NOTES = "specs/bank/_notes.json: framing"


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def bank(framing: str | None = None, **texts: str) -> Path:
    notes = {} if framing is None else {"bank/_notes": f'{{ "framing": "{framing}" }}'}
    return write(**{f"bank/{name}": text for name, text in texts.items()}, **notes)


def found(specs: Path) -> tuple[Any, list[tuple[int, str, str]]]:
    (folder,) = load(specs).folders
    return folder.framing, [(record.type, record.name, record.python_name) for record in folder.records]


@pytest.mark.parametrize(
    ("framing", "texts", "expected"),
    [
        (None, {"AccountKey": KEY, "AccountValue": VALUE}, ("coordinator", [(7, "Account", "Account")])),
        ("coordinator", {"AccountKey": KEY, "AccountValue": VALUE}, ("coordinator", [(7, "Account", "Account")])),
        (None, {"TransferRecord": TRANSFER}, ("metadata", [(0, "TransferRecord", "FramedTransferRecord")])),
        ("metadata", {"TransferRecord": TRANSFER}, ("metadata", [(0, "TransferRecord", "FramedTransferRecord")])),
        ("none", {"TransferRecord": TRANSFER}, (None, [])),
        (None, {"Remark": REMARK}, (None, [])),
        ("none", {"Remark": REMARK}, (None, [])),
        (
            "coordinator",
            {"AccountKey": KEY, "AccountValue": VALUE, "TransferRecord": TRANSFER},
            ("coordinator", [(7, "Account", "Account")]),
        ),
        (
            None,
            {"TransferRecord": TRANSFER, "Remark": REMARK},
            ("metadata", [(0, "TransferRecord", "FramedTransferRecord")]),
        ),
    ],
)
def test_what_a_folder_has(framing: str | None, texts: dict[str, str], expected: Any) -> None:
    assert found(bank(framing, **texts)) == expected


@pytest.mark.parametrize(
    ("framing", "texts", "problem"),
    [
        (
            "metdata",
            {"TransferRecord": TRANSFER},
            f"{NOTES}: must be one of coordinator, metadata, none; found 'metdata'",
        ),
        (
            "coordinator",
            {"Remark": REMARK},
            f"{NOTES}: coordinator records have specs of type coordinator-key and coordinator-value, "
            "but this folder has none",
        ),
        (
            "metadata",
            {"Remark": REMARK},
            f"{NOTES}: metadata records have specs of type metadata, but this folder has none",
        ),
        (
            "none",
            {"AccountKey": KEY, "AccountValue": VALUE},
            f"{NOTES}: AccountKey is a coordinator-key, so the framing is coordinator, not none",
        ),
        (
            "metadata",
            {"AccountKey": KEY, "AccountValue": VALUE, "TransferRecord": TRANSFER},
            f"{NOTES}: AccountKey is a coordinator-key, so the framing is coordinator, not metadata",
        ),
        (
            None,
            {"AccountKey": KEY, "AccountValue": VALUE, "TransferRecord": TRANSFER},
            "specs/bank/TransferRecord.json: type: TransferRecord is taken for a metadata record, but AccountKey in "
            "the same folder is a coordinator-key, and the two begin with different bytes: move one of them to another "
            'folder or, if TransferRecord is not a metadata record, write "framing": "coordinator" into _notes.json',
        ),
        (
            None,
            {"TransferRecord": message("TransferRecord", "metadata", apiKey=-1)},
            "specs/bank/TransferRecord.json: apiKey: the api key of a metadata record must be 0 or more, found -1",
        ),
    ],
)
def test_what_is_refused(framing: str | None, texts: dict[str, str], problem: str) -> None:
    assert short(bank(framing, **texts)) == [problem]


def test_other_notes_know_the_framing() -> None:
    retired = """"retiredTypes": [ { "type": 0, "name": "Old", "why": "gone" } ]"""
    notes = f"""{{ {retired}, "newerAsHighest": [ "TransferRecord" ] }}"""
    assert short(write(**{"bank/TransferRecord": TRANSFER, "bank/_notes": notes})) == [
        "specs/bank/_notes.json: retiredTypes[0].type: the type 0 cannot be retired: the spec TransferRecord has it",
        "specs/bank/_notes.json: newerAsHighest[0]: TransferRecord is a metadata record, and its readers do not "
        "treat newer versions as known ones",
    ]
    notes = """{ "retiredTypes": [ { "type": 9, "name": "Old", "why": "gone" } ] }"""
    write(**{"bank/_notes": notes})
    files = generate(load(Path("specs")), "bank_messages")
    assert '9: "Old"' in files["bank/__init__.py"]


def test_a_record_that_is_called_as_a_class_of_its_own_is() -> None:
    fields = [field("Parts", "[]FramedTransferRecord", "0+", fields=[field("Cents", "int64")])]
    assert found(bank(TransferRecord=message("TransferRecord", "metadata", apiKey=0, fields=fields))) == (
        "metadata",
        [(0, "TransferRecord", "FramedTransferRecord_")],
    )


def test_pages_say_how_a_record_begins() -> None:
    pages = generate_docs(load(SPECS), "acme_messages")
    assert (
        "Metadata record with api key 200. It has no key. Its value starts with `01 c8 01`, frame version 1 and the "
        "api key,\nand its version, each a varint; the offsets below are counted from the next byte.\n"
    ) in pages["ledger/correction_record.md"]
    assert "Record type 7. A key starts with `00 07`" in pages["accounts/account.md"]
    assert (
        "A record has no key. Its value begins with frame version 1, the api key (which is the record type) and the "
        "version of\nthe message, each an unsigned varint.\n"
    ) in pages["README.md"]
    assert "| 200 | [`CorrectionRecord`](ledger/correction_record.md) |" in pages["README.md"]


def test_the_text_for_the_jvm_says_it() -> None:
    lines = generate(load(SPECS), "acme_messages")["spark/jvm_schemas.txt"].splitlines()
    assert [line for line in lines if line.startswith(("folder", "record"))] == [
        "folder\taccounts\tcoordinator",
        "record\t7\tAccount\taccount\tAccountKey\tAccountValue",
        "folder\tledger\tmetadata",
        "record\t0\tTransferRecord\ttransfer_record\t\tTransferRecord",
        "record\t200\tCorrectionRecord\tcorrection_record\t\tCorrectionRecord",
    ]
    assert "message\tCorrectionRecord\tcorrection_record\t0\t0\t0-0\trecord\t200\t0" in lines
