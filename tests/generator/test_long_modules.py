"""No generated module is long, and no spec is refused because its module would be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.cli import main
from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.python import codecs
from kafka_records_codegen.tree import write as write_tree
from tests.generator.spec_files import field, spec, write

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

MOST_LINES = 1500


def test_no_module_of_ours_is_longer() -> None:
    home = ROOT / "generated" / "kafka_records"
    lengths = {
        path.relative_to(home).as_posix(): path.read_text(encoding="utf-8").count("\n") for path in home.rglob("*.py")
    }
    assert len(lengths) > 100
    assert {name: lines for name, lines in lengths.items() if lines >= MOST_LINES} == {}


def test_a_long_module_keeps_its_classes_and_gives_its_functions_away() -> None:
    home = ROOT / "generated" / "kafka_records" / "rpc"
    main = (home / "fetch_request.py").read_text(encoding="utf-8")
    readers = (home / "_fetch_request_readers.py").read_text(encoding="utf-8")
    writers = (home / "_fetch_request_writers.py").read_text(encoding="utf-8")
    assert ("class FetchTopic(" in main, "class " in readers, "class " in writers) == (True, False, False)
    assert [text.count("\ndef _read_") > 10 for text in (main, readers, writers)] == [False, True, False]
    assert [text.count("\ndef _write_") > 10 for text in (main, readers, writers)] == [False, False, True]


def in_another_process(code: str, *homes: Path) -> str:
    paths = [str(home) for home in (*homes, ROOT / "generator")]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("first", ["fetch_request", "_fetch_request_readers", "_fetch_request_writers"])
def test_its_parts_are_imported_in_any_order(first: str) -> None:
    code = f"""
import kafka_records.rpc.{first}
from kafka_records.rpc.fetch_request import FetchRequest, FetchTopic
from kafka_records_runtime.wire import walker
message = FetchRequest(topics=(FetchTopic("t"),))
walker.encode = walker.decode = None
print([FetchRequest.decode(message.encode(version), version) == message for version in (4, 11)])
"""
    assert in_another_process(code, ROOT / "generated") == "[True, True]"


def specs_of_many_layouts() -> Path:
    """A message whose only struct has another field in each of 60 versions: its readers alone pass the limit."""
    flags: list[dict[str, Any]] = [field(f"Flag{number}", "string", f"{number}+") for number in range(60)]
    return write(Foo=spec(*flags, validVersions="0-59", flexibleVersions="none"))


def test_a_users_module_may_be_as_long_as_it_has_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = generate(load(specs_of_many_layouts()), "acme_long")
    lines = {name: files[name].count("\n") for name in ("foo.py", "_foo_readers.py", "_foo_writers.py")}
    assert lines["foo.py"] < MOST_LINES < lines["_foo_readers.py"]
    write_tree(tmp_path / "acme_long", files)
    code = """
from acme_long.foo import Foo
message = Foo(**{f"flag{number}": str(number) for number in range(60)})
print(Foo.CODEC.readers[59](message.encode(59)) == message, len(message.encode(59)))
"""
    assert in_another_process(code, tmp_path) == f"True {sum(2 + len(str(number)) for number in range(60))}"


def test_a_users_long_module_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    specs = specs_of_many_layouts()
    arguments = ["generate", "--specs", str(specs), "--out", "acme_long", "--package", "acme_long", "--strict"]
    for more in ([], ["--check"]):
        assert main([*arguments, *more]) == 0
        lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in Path("acme_long").rglob("*.py")}
        longer = sorted(path for path, lines in lengths.items() if lines >= MOST_LINES)
        assert Path("acme_long/_foo_readers.py") in longer
        notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
        assert sorted(notes) == [
            f"note: {path} has {lengths[path]} lines, more than the usual limit of 1500, because a class or function "
            "is never split. To make the module shorter, use fewer fields or versions in one message"
            for path in longer
        ]


def test_the_limit_is_that_of_the_generator() -> None:
    assert codecs.MOST_LINES == MOST_LINES
