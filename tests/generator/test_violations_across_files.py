"""Messages about specs that do not fit together, and about folders that cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka_records_codegen.loader import load, unread
from kafka_records_runtime.text.casing import upper_snake_case
from tests.generator.spec_files import message, refused, short, write


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_one_name_twice_in_the_tree() -> None:
    assert short(write(a__Foo=message("Foo"), b__Other=message("Foo"))) == [
        "specs/b/Other.json: name: there is already a message Foo in a/Foo.json"
    ]


def test_orphans_and_duplicates_of_a_record_type() -> None:
    folder = write(
        a__OneKey=message("OneKey", "coordinator-key", apiKey=1),
        a__TwoKey=message("TwoKey", "coordinator-key", apiKey=2),
        a__TwoMoreKey=message("TwoMoreKey", "coordinator-key", apiKey=2),
        a__TwoValue=message("TwoValue", "coordinator-value", apiKey=2),
        b__OneValue=message("OneValue", "coordinator-value", apiKey=1),
    )
    rule = "a record type has a key and a value"
    assert short(folder) == [
        f"specs/a/OneKey.json: apiKey: no coordinator-value with apiKey 1 in this folder; {rule}",
        "specs/a/TwoMoreKey.json: apiKey: 2 is already used by the coordinator-key TwoKey in a/TwoKey.json",
        f"specs/b/OneValue.json: apiKey: no coordinator-key with apiKey 1 in this folder; {rule}",
    ]


def test_a_file_that_cannot_be_read_makes_no_orphans() -> None:
    folder = write(OneKey=message("OneKey", "coordinator-key", apiKey=1), OneValue="{")
    assert [it.file for it in refused(folder).violations] == ["specs/OneValue.json"]


def test_half_a_record_retired() -> None:
    folder = write(
        OneKey=message("OneKey", "coordinator-key", apiKey=1),
        OneValue=message("OneValue", "coordinator-value", apiKey=1, validVersions="none"),
    )
    assert short(folder) == [
        "specs/OneKey.json: validVersions: "
        "OneValue of the same record type is retired (validVersions none), but this one is not"
    ]


def test_requests_and_responses() -> None:
    folder = write(
        ARequest=message("ARequest", "request", apiKey=1),
        AResponse=message("BResponse", "response", apiKey=1),
        Again=message("AgainRequest", "request", apiKey=1, validVersions="none"),
    )
    assert short(folder) == [
        "specs/AResponse.json: name: the response to ARequest must be called AResponse",
        "specs/Again.json: apiKey: 1 is already used by the request ARequest in ARequest.json",
    ]


def test_messages_that_become_one_module() -> None:
    folder = write(
        A=message("FooBar"),
        B=message("Foo_Bar"),
        C=message("FooBarKey", "coordinator-key", apiKey=1),
        D=message("FooBarValue", "coordinator-value", apiKey=1),
        E=message("Sub"),
        F=message("Registry"),
        G=message("DecodeRecord"),
        sub__H=message("Spark"),
    )
    assert short(folder) == [
        "specs/B.json: name: Foo_Bar would become the module foo_bar, as does FooBar in A.json",
        "specs/C.json: name: FooBarKey would become the module foo_bar, as does FooBar in A.json",
        "specs/E.json: name: Sub would become the module sub, next to the folder sub",
        "specs/F.json: name: Registry would become the module registry, a name that every generated package uses",
        "specs/G.json: name: DecodeRecord would become the module decode_record, "
        "a name that every generated package uses",
    ]


def test_messages_that_become_one_constant() -> None:
    folder = write(
        A=message("FooKey", "coordinator-key", apiKey=1),
        B=message("FooValue", "coordinator-value", apiKey=1),
        C=message("Foo_Value"),
    )
    assert short(folder) == [
        "specs/C.json: name: Foo_Value would become the constant FOO_VALUE, as does FooValue in B.json"
    ]


@pytest.mark.parametrize("name", ["Records", "EmptyStruct", "ZeroUuid", "TypeChecking"])
def test_messages_that_hide_what_a_module_uses(name: str) -> None:
    constant = upper_snake_case(name)
    assert short(write(A=message(name))) == [
        f"specs/A.json: name: {name} would become the constant {constant}, a name that generated modules use themselves"
    ]


@pytest.mark.parametrize("folder", ["FOO_KEY", "from_foo_key", "to_foo_key"])
def test_folders_that_hide_what_a_message_gives(folder: str) -> None:
    key = message("FooKey", "coordinator-key", apiKey=1)
    value = message("FooValue", "coordinator-value", apiKey=1)
    assert short(write(A=key, B=value, **{f"{folder}/C": message("C")})) == [
        f"specs/A.json: name: FooKey would become the module {folder}, which the folder {folder} would hide"
    ]


@pytest.mark.parametrize("way", ["From", "To"])
def test_modules_that_hide_functions(way: str) -> None:
    module = f"{way.lower()}_foo_value"
    folder = write(
        A=message("FooKey", "coordinator-key", apiKey=1),
        B=message("FooValue", "coordinator-value", apiKey=1),
        C=message(f"{way}FooValue"),
        D=message(f"{way}FooKeys"),
    )
    assert short(folder) == [
        f"specs/B.json: name: FooValue would export {module}, which the module {module} of {way}FooValue in C.json "
        "would hide"
    ]


@pytest.mark.parametrize("name", ["RECORDS", "RECORD_TYPES", "decode_record", "decode_records", "encode_record"])
def test_folders_that_hide_what_a_topic_has(name: str) -> None:
    assert str(refused(write(**{f"below/{name}/Foo": message("Foo")}))) == (
        f"specs/below/{name}: every package of records already contains the name {name}; "
        "give the folder another name"
    )


# ---- folders and files


@pytest.mark.parametrize("name", ["my-folder", "class", "1st", "__pycache__", "größe"])
def test_folders_become_packages(name: str) -> None:
    folder = write(**{f"{name}/Foo": message("Foo")})
    assert str(refused(folder)) == (
        f"specs/{name}: a folder of specs becomes a Python package, so its name must be an identifier (letters, "
        "digits and underscores) and not a keyword"
    )


@pytest.mark.parametrize("name", ["enums", "registry", "schemas", "spark"])
def test_folders_that_every_package_has(name: str) -> None:
    load(write(**{f"below/{name}/Foo": message("Foo")}))
    assert str(refused(write(**{f"{name}/Bar": message("Bar")}))) == (
        f"specs/{name}: every generated package has its own modules enums, registry, schemas, spark; "
        "give the folder another name"
    )


def test_folders_without_specs_may_have_any_name() -> None:
    folder = write(Foo=message("Foo"))
    (folder / "my-notes").mkdir()
    (folder / "my-notes" / "readme.txt").write_text("x", encoding="utf-8")
    assert len(load(folder).messages) == 1


def test_nothing_to_read() -> None:
    assert str(refused(Path("specs"))) == "specs: no such folder"
    Path("specs").mkdir()
    assert str(refused(Path("specs"))) == (
        "specs: contains no spec: there is no file that ends with .json in it or in a folder below it"
    )
    Path("file.json").write_text("{}", encoding="utf-8")
    assert str(refused(Path("file.json"))) == "file.json: is not a folder"


def test_not_utf_8() -> None:
    Path("specs").mkdir()
    Path("specs", "Foo.json").write_bytes(b'{\n  "type": "d\xe4ta"}')
    assert str(refused(Path("specs"))) == (
        "specs/Foo.json:2:13: $: the file is not UTF-8: byte 0xe4 at 14\n"
        '      "type": "d\N{REPLACEMENT CHARACTER}ta"}\n'
        "                ^"
    )


def test_a_file_name_that_is_not_utf_8() -> None:
    folder = write(Foo=message("Foo"))
    try:
        Path(os.fsdecode(b"specs/B\xe4r.json")).write_text("{}", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes no such name")
    assert str(refused(folder)) == "specs/B\\xe4r.json: the name of the file is not UTF-8"


def test_a_link_that_leads_nowhere_is_not_passed_over() -> None:
    folder = write(Foo=message("Foo"))
    os.symlink("gone.json", folder / "Bar.json")
    with pytest.raises(FileNotFoundError):
        load(folder)


def test_files_that_only_look_like_specs() -> None:
    folder = write(Foo=message("Foo"))
    for name in ("A.jsonc", "B.yaml", "C.JSON", "notes.md"):
        (folder / name).write_text("", encoding="utf-8")
    assert [path.name for path in unread(folder)] == ["A.jsonc", "B.yaml", "C.JSON"]


def test_a_folder_that_leads_back_to_itself() -> None:
    folder = write(sub__Foo=message("Foo"))
    os.symlink("..", folder / "sub" / "loop")
    assert [it.path for it in load(folder).folders] == ["sub"]
