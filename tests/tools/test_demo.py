"""`make demo`: its output, what it installs and when, and its messages if something is missing.

pip and the interpreter of the demo are replaced by fakes, which record how they were called.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from kafka_records_tables import TABLES, read_table
from tools import demo
from tools.demo import SEGMENTS, difference, main

ROOT = Path(__file__).resolve().parents[2]

# Its pip fails if a file `offline` exists.
INTERPRETER = """#!/bin/sh
echo "$@" >>calls
case "$*" in *"pip install"*) [ ! -e offline ] || { echo "pip's own words" >&2; exit 1; } ;; esac
[ "$1" != tools/demo.py ] || echo "tables by $2"
"""

NO_JAVA = """\
Spark needs Java 17 or later, but there is no java on PATH: install a JDK or set JAVA_HOME.
So the same tables by PySpark are not shown. Run make demo again when Java is there.
"""

SETTING_UP = "Setting up .venv-demo with python3: this clone, numpy, pyarrow, google-crc32c and rich, once.\n"
INSTALLING = "Installing PySpark and pandas into .venv-demo, once; pip fetches some 450 MB.\n"


class Ran(NamedTuple):
    """The output of a run, and the arguments of its interpreters."""

    status: int
    out: str
    err: str
    calls: list[str]


class Clone:
    """A clone with only the files that the demo's script uses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        self.bin = folder / "bin"
        (self.folder / "tools").mkdir(parents=True)
        self.bin.mkdir()
        for name in ("demo.sh", "prerequisites.sh"):
            shutil.copy(ROOT / "tools" / name, self.folder / "tools")
        (self.folder / "pyproject.toml").touch()
        for tool in ("cat", "cp", "dirname", "find", "head", "mkdir", "sed", "touch"):
            found = shutil.which(tool)
            assert found is not None
            (self.bin / tool).symlink_to(found)
        self.program("interpreter", INTERPRETER)
        self.program(
            "python3",
            '#!/bin/sh\ncase "$*" in *version_info*) echo 3.12 ;; *"-m venv"*) '
            'echo "$@" >>calls; mkdir -p .venv-demo/bin; cp "${0%/*}/interpreter" .venv-demo/bin/python ;; esac\n',
        )

    def program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def add_java(self) -> None:
        self.program("java", "#!/bin/sh\necho 'openjdk version \"17.0.15\" 2025-04-15' >&2\n")

    def run(self) -> Ran:
        calls = self.folder / "calls"
        calls.write_text("", encoding="utf-8")
        done = subprocess.run(
            ["/bin/sh", str(self.folder / "tools" / "demo.sh")],
            env={"PATH": str(self.bin)},
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr, calls.read_text(encoding="utf-8").splitlines())


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def pip(extra: str) -> str:
    return f"-m pip install --quiet --disable-pip-version-check --editable .[{extra}]"


def test_tables_come_before_pyspark_is_installed_and_a_second_run_installs_nothing(clone: Clone) -> None:
    clone.add_java()
    both = ["tools/demo.py local", "tools/demo.py spark"]
    assert clone.run() == (
        0,
        f"{SETTING_UP}tables by local\n\n{INSTALLING}tables by spark\n",
        "",
        ["-m venv --clear .venv-demo", pip("tables"), both[0], pip("spark"), both[1]],
    )
    assert clone.run() == (0, "tables by local\n\ntables by spark\n", "", both)


def test_without_java_the_local_part_is_shown_and_pyspark_is_not_fetched(clone: Clone) -> None:
    ran = clone.run()
    assert (ran.status, ran.out, ran.err) == (1, f"{SETTING_UP}tables by local\n\n", NO_JAVA)
    assert ran.calls[-1] == "tools/demo.py local"
    clone.add_java()
    assert clone.run().out == f"tables by local\n\n{INSTALLING}tables by spark\n"


def test_without_a_network(clone: Clone) -> None:
    said = (
        "pip's own words\n"
        "pip could not install the extra {}; its own words are above. It fetches packages from an index: look at the "
        "network or the proxy, name an index of your own with PIP_INDEX_URL, or set PIP_NO_INDEX=1 and PIP_FIND_LINKS "
        "to a folder that has the wheels. Then run make demo again.\n"
    )
    clone.add_java()
    offline = clone.folder / "offline"
    offline.touch()
    assert clone.run()[:3] == (1, SETTING_UP, said.format("tables"))
    offline.unlink()
    assert clone.run().status == 0
    (clone.folder / ".venv-demo" / ".spark").unlink()
    offline.touch()
    assert clone.run()[:3] == (1, f"tables by local\n\n{INSTALLING}", said.format("spark"))


def test_without_a_python_that_is_new_enough(clone: Clone) -> None:
    clone.program("python3", "#!/bin/sh\necho 3.9\n")
    assert clone.run()[:3] == (
        1,
        "",
        "Python 3.11 or later is needed, found Python 3.9 (python3): install one, or name it with "
        "PYTHON=/path/to/python3.\n",
    )


def test_a_folder_that_cannot_be_made(clone: Clone) -> None:
    clone.program("python3", '#!/bin/sh\ncase "$*" in *version_info*) echo 3.12 ;; *"-m venv"*) exit 1 ;; esac\n')
    assert clone.run()[:3] == (
        1,
        SETTING_UP,
        "python3 could not make the folder .venv-demo; its own words are above. Fix that, or name another Python with "
        "PYTHON=/path/to/python3, and run make demo again.\n",
    )


def test_what_was_set_up_elsewhere_or_for_other_extras_is_set_up_anew(clone: Clone) -> None:
    clone.add_java()
    clone.run()
    clone.folder = clone.folder.rename(clone.folder.with_name("moved"))
    assert clone.run().calls[:2] == ["-m venv --clear .venv-demo", pip("tables")]
    assert len(clone.run().calls) == 2
    later = (clone.folder / ".venv-demo" / ".spark").stat().st_mtime + 5
    os.utime(clone.folder / "pyproject.toml", (later, later))
    assert len(clone.run().calls) == 5


# -- what it shows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [("current_offsets", "group_lag", "brokers"), pytest.param(tuple(TABLES), marks=pytest.mark.matrix)],
    ids=["usual", "all"],
)
def test_every_table_is_shown_by_the_command(
    names: tuple[str, ...], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "TABLES", {name: TABLES[name] for name in names})
    monkeypatch.chdir(ROOT)
    assert main(["local"]) == 0
    printed = capfd.readouterr().out
    for name in names:
        is_of_metadata = TABLES[name].topic == "__cluster_metadata"
        place = "tests/data/metadata/kafka-4.3" if is_of_metadata else "tests/data/topics/kafka-4.3/segments"
        assert f"\n$ kafka-records table {name} {place} --limit 3 --columns " in printed
    assert "\nbasket-totaliser   baskets  " in printed
    assert len(printed.splitlines()) < 300


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "names", [("groups",), pytest.param(tuple(TABLES), marks=pytest.mark.matrix)], ids=["usual", "all"]
)
@pytest.mark.matrix
def test_every_table_by_spark_is_equal(
    names: tuple[str, ...], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "TABLES", {name: TABLES[name] for name in names})
    assert main(["spark"]) == 0
    lines = capfd.readouterr().out.splitlines()
    for name in names:
        rows = len(read_table(name, SEGMENTS).table)
        assert f"{name}: all {rows} rows are equal to those of the local engine" in lines
    assert lines[-1] == f"All {len(names)} tables are equal."


def test_rows_that_differ_are_not_called_equal() -> None:
    here = pa.table({"group_id": ["a", "b"], "offset": [1, 2]})
    assert difference(here, here) is None
    assert difference(here, here.slice(0, 1)) == "NOT EQUAL: 1 rows by Spark, 2 by the local engine"
    there = pa.table({"group_id": ["a", "b"], "offset": [1, None]})
    assert difference(here, there) == "NOT EQUAL, first in row 1: offset None by Spark, 2 here"
