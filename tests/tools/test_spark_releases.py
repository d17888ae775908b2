"""How the matrix of PySpark releases makes its environments and reports the results; and a run of the oldest release.

All other tests run on the newest.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pyspark
import pytest
from packaging.version import Version

from tools import spark_releases as tool
from tools.spark_releases import RELEASES, Release, SetUpError, environment, main

ROOT = Path(__file__).resolve().parents[2]

HEAD = "release  pyspark    numpy   pandas  pyarrow    tests   failed   set-up      run\n"
ROW = r"9\.9        9\.9\.9    1\.0\.0    2\.0\.0    3\.0\.0 {tests:8} {failed:8}  +\d+ s  +\d+ s\n"
SETTING_UP = "Setting up pyspark 9.9.9, numpy 1.0.0, pandas 2.0.0, pyarrow 3.0.0 (a minute or two)"
RUNNING = "Running the tests on PySpark 9.9.9"

NINE = Release("9.9.9", numpy="1.0.0", pandas="2.0.0", pyarrow="3.0.0", noise=("ignore:old habits",))

# A fake pytest, which records its call, and reports the results that the test wants.
FAKE_PYTEST = """\
import json, os, sys
from pathlib import Path

fake = json.loads(os.environ["FAKE_PYTEST"])
Path(fake["calls"]).write_text(json.dumps({"arguments": sys.argv[1:], "environment": dict(os.environ)}))
if fake["results"]:
    (place,) = [each.partition("=")[2] for each in sys.argv if each.startswith("--junitxml=")]
    Path(place).write_text(fake["results"])
print("what pytest says")
sys.exit(fake["status"])
"""


def wheel(folder: Path, name: str, version: str, code: str = "", needs: str = "") -> None:
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as packed:
        packed.writestr(f"{name}/__init__.py", "")
        packed.writestr(f"{name}/__main__.py", code)
        packed.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}")
        packed.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        packed.writestr(f"{info}/RECORD", "")


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that pip fills in the first test which needs it."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, one release called 9.9, and pip with only the wheels of this folder."""
    monkeypatch.setattr(tool, "RELEASES", {"9.9": NINE})
    monkeypatch.setenv("KAFKA_RECORDS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "wheels"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    for name, version in (*NINE.pins.items(), ("hypothesis", "6.150.0")):
        wheel(folder, name, version)
    wheel(folder, "pytest", "9.0.0", FAKE_PYTEST)
    return folder


@pytest.fixture
def reports(wheels: Path, shared_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Sets the report of the fake pytest: names of tests with their outcomes. Returns the file with its call."""
    monkeypatch.setenv("KAFKA_RECORDS_CACHE", str(shared_cache))
    environment(NINE, lambda line: None)

    def set_up(status: int, outcomes: dict[str, str] | None) -> Path:
        cases = "".join(
            f'<testcase classname="tests.some" name="{name}">{outcome}</testcase>'
            for name, outcome in (outcomes or {}).items()
        )
        results = None if outcomes is None else f"<testsuites><testsuite>{cases}</testsuite></testsuites>"
        calls = tmp_path / "call.json"
        monkeypatch.setenv("FAKE_PYTEST", json.dumps({"results": results, "status": status, "calls": str(calls)}))
        return calls

    return set_up


def told(tag: str, message: str) -> str:
    return f"<{tag} message={quoteattr(message)}>and more</{tag}>".replace("\n", "&#10;")


class TestReports:
    def test_a_release_that_passes(
        self, reports: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("PYSPARK_PYTHON", "PYTHONPATH", "SPARK_HOME"):
            monkeypatch.setenv(name, "elsewhere")
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dof=mine")
        calls = reports(0, {"one": "", "two": ""})

        assert main(["--all", "-k", "one or two"]) == 0

        out, err = capsys.readouterr()
        assert re.fullmatch(re.escape(HEAD) + ROW.format(tests=2, failed=0) + "1 of 1 pass\n", out)
        assert err.splitlines() == [RUNNING]
        call: dict[str, Any] = json.loads(calls.read_text(encoding="utf-8"))
        assert not {"PYSPARK_PYTHON", "PYTHONPATH", "SPARK_HOME"} & {*call["environment"]}
        assert call["environment"]["JAVA_TOOL_OPTIONS"] == "-Dof=mine -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        quiet, no, cache, _, *rest = call["arguments"]
        assert (quiet, no, cache) == ("--quiet", "-p", "no:cacheprovider")
        assert rest == ["-W", "ignore:old habits", "-k", "one or two", *tool.TESTS]

    def test_a_release_is_tried_once(self, reports: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
        reports(0, {"one": ""})
        assert main(["--releases", "9.9", "9.9"]) == 0
        assert capsys.readouterr().out.endswith("\n1 of 1 pass\n")

    def test_tests_that_do_not_pass(self, reports: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
        outcomes = {
            "good": "<system-out>talk</system-out>",
            "wrong[1]": told("failure", "assert 1 == 2\n  and so on"),
            "broken": told("error", "no such fixture"),
            "left_out": told("skipped", "no Java"),
        }
        reports(1, outcomes)

        assert main(["--releases", "9.9"]) == 1

        out, err = capsys.readouterr()
        failures = (
            "  tests.some::wrong[1]: failure: assert 1 == 2\n"
            "  tests.some::broken: error: no such fixture\n"
            "  tests.some::left_out: skipped: no Java\n"
        )
        ending = re.escape(failures + "0 of 1 pass; not 9.9\n")
        assert re.fullmatch(re.escape(HEAD) + ROW.format(tests=4, failed=3) + ending, out)
        assert err.splitlines() == [RUNNING, "what pytest says"]

    def test_a_skip_alone_is_no_pass(self, reports: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
        reports(0, {"good": "", "left_out": told("skipped", "no Java")})
        assert main(["--all"]) == 1
        assert capsys.readouterr().out.endswith("\n  tests.some::left_out: skipped: no Java\n0 of 1 pass; not 9.9\n")

    @pytest.mark.parametrize("outcomes", [None, {}])
    def test_no_tests_at_all(
        self, reports: Callable[..., Path], outcomes: dict[str, str] | None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        reports(5, outcomes)
        assert main(["--all"]) == 1
        out = capsys.readouterr().out
        ending = re.escape("  pytest ended with status 5\n0 of 1 pass; not 9.9\n")
        assert re.fullmatch(re.escape(HEAD) + ROW.format(tests=0, failed=1) + ending, out)


class TestEnvironments:
    def test_what_pip_says_when_it_fails(
        self, wheels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (wheels / "pandas-2.0.0-py3-none-any.whl").unlink()

        assert main(["--all"]) == 2

        out, err = capsys.readouterr()
        first, command, *_, last = err.splitlines()
        assert (out, first) == (HEAD, SETTING_UP)
        assert re.fullmatch(r"\S+ -m pip --python \S+ install .* pandas==2\.0\.0 .* failed:", command)
        assert last == "ERROR: No matching distribution found for pandas==2.0.0"
        assert list((tmp_path / "cache" / "pyspark").iterdir()) == []

    def test_msgspec_is_not_wanted(self, wheels: Path) -> None:
        wheel(wheels, "pyarrow", "3.0.0", needs="msgspec")
        wheel(wheels, "msgspec", "1.0.0")
        with pytest.raises(SetUpError, match=r"failed:\nmsgspec is there$"):
            environment(NINE, lambda line: None)

    def test_one_per_set_of_versions(self, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made: list[Sequence[str]] = []

        def make(home: Path, wanted: Sequence[str]) -> None:
            made.append(wanted)
            home.mkdir()

        monkeypatch.setattr(tool, "_make", make)
        other = Release("9.9.9", numpy="1.0.1", pandas="2.0.0", pyarrow="3.0.0")

        homes = [environment(release, lambda line: None).name for release in (NINE, other, NINE)]

        assert homes[0] == homes[2] != homes[1]
        assert {home.partition("-")[0] for home in homes} == {"9.9.9"}
        assert made == [
            ["pyspark==9.9.9", f"numpy=={numpy}", "pandas==2.0.0", "pyarrow==3.0.0", *tool.TEST_TOOLS]
            for numpy in ("1.0.0", "1.0.1")
        ]

    def test_another_run_was_faster(self, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def slow(home: Path, wanted: object) -> None:
            monkeypatch.setattr(tool, "_make", lambda home, wanted: home.mkdir())
            (environment(NINE, lambda line: None) / "first").touch()
            home.mkdir()

        monkeypatch.setattr(tool, "_make", slow)
        home = environment(NINE, lambda line: None)
        assert (home / "first").is_file()
        assert [each.name for each in home.parent.iterdir()] == [home.name]

    def test_no_python_of_that_release(self, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tool, "_PYTHON", (3, 99))
        with pytest.raises(SetUpError) as failure:
            environment(NINE, lambda line: None)
        assert str(failure.value) == "python3.99 is not on the PATH: PySpark 3.5 knows no newer Python"


class TestCommand:
    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            ([], "name releases, or give --all"),
            (["--releases", "4.0", "--all"], "name releases, or give --all"),
            (["--releases", "4.0", "2.4"], "not a release this knows: 2.4; it knows 3.5, 4.0, 4.1, 4.2, 4.3"),
        ],
    )
    def test_wrong_usage(self, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        assert capsys.readouterr().err.splitlines()[-1] == f"spark_releases.py: error: {complaint}"

    def test_it_starts_as_a_script(self) -> None:
        script = ROOT / "tools" / "spark_releases.py"
        done = subprocess.run([sys.executable, str(script), "--help"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert "exit status: 0 all pass" in done.stdout


class TestReleases:
    def test_the_oldest_has_the_oldest_of_everything_that_is_allowed(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        asked = ",".join(part for extra in ("tables", "spark") for part in project["optional-dependencies"][extra])
        lowest = dict(re.findall(r"(\w+)>=([\d.]+)", asked))
        oldest = next(iter(RELEASES.values())).pins
        for name in ("numpy", "pandas", "pyarrow"):
            assert Version(oldest[name]) == Version(lowest[name])
        assert oldest["pyspark"].startswith(f"{lowest['pyspark']}.")

    def test_all_other_tests_run_on_the_newest(self) -> None:
        minor = [tuple(map(int, version.split(".")[:2])) for version in (*RELEASES, pyspark.__version__)]
        assert minor == sorted(minor)

    def test_names_are_minor_releases(self) -> None:
        assert all(release.pyspark.startswith(f"{name}.") for name, release in RELEASES.items())

    def test_the_tests_are_there(self) -> None:
        assert [path for path in tool.TESTS if not (ROOT / path).exists()] == []


@pytest.mark.spark
@pytest.mark.releases
@pytest.mark.matrix
def test_the_oldest_release(capfd: pytest.CaptureFixture[str]) -> None:
    try:
        tool._base_python()
    except SetUpError as missing:
        pytest.skip(str(missing))
    oldest = next(iter(RELEASES))

    status = main(["--releases", oldest])

    out, err = capfd.readouterr()
    assert status == 0, out + err
    assert out.endswith("\n1 of 1 pass\n")
