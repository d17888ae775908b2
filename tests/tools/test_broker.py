"""tools/broker.py with a fake Java and Maven; tests/broker uses the real ones."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kafka_records_codegen.evolution.kafka_releases import FetchError
from tools import broker as tool
from tools.broker import Broker, BrokerError, MissingPrerequisite
from tools.kafka_releases import LATEST

ROOT = Path(__file__).resolve().parents[2]

NO_JAVA = f"Kafka {LATEST} needs Java 17 or later, and there is no java on the PATH: install a JDK or set JAVA_HOME."

_JAVA = """\
#!{python}
import os, re, socket, struct, sys, time
from pathlib import Path

def setting(name):
    return re.search(name + "=(.*)", Path(sys.argv[-1]).read_text())[1]

if "kafka.tools.StorageTool" in sys.argv:
    {format}
    Path(setting("log.dirs")).mkdir()
    Path(setting("log.dirs"), "meta.properties").touch()
else:
    {serve}
"""

_SERVE = """\
port = int(re.search("PLAINTEXT://127.0.0.1:([0-9]+)", setting("listeners"))[1])
    with socket.create_server(("127.0.0.1", port)) as server:
        while True:
            connection, _ = server.accept()
            with connection:
                assert connection.recv(100) == bytes.fromhex("0000000a" "00120000" "00000001" "ffff")
                connection.sendall(bytes.fromhex("00000006" "00000001" "0000"))
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, nothing on the PATH, and a separate place for temporary folders."""
    monkeypatch.setenv("KAFKA_RECORDS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "bin").mkdir()
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kafka"


class FakeJava:
    """Writes a `java` with the requested behavior, and puts jars into the cache, so that nothing is fetched."""

    def __init__(self, cache: Path, home: Path) -> None:
        (cache / "broker" / LATEST).mkdir(parents=True)
        (home / "bin").mkdir(parents=True)
        self.path = home / "bin" / "java"

    def does(self, serve: str = _SERVE, *, format_: str = "pass") -> None:
        self.path.write_text(_JAVA.format(python=sys.executable, serve=serve, format=format_))
        self.path.chmod(0o755)


@pytest.fixture
def java(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJava:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    return FakeJava(cache, tmp_path / "jdk")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class TestLife:
    def test_it_answers_until_the_block_ends(self, java: FakeJava, folder: Path) -> None:
        java.does()
        with Broker(folder) as broker:
            assert broker.bootstrap == f"127.0.0.1:{broker.port}"
            assert broker.port > 0
            pid = broker.pid
            assert pid is not None
            assert is_running(pid)
        assert not is_running(pid)
        assert broker.pid is None
        assert broker.log.is_file()

    def test_a_failing_block_ends_it_and_keeps_its_log(self, java: FakeJava) -> None:
        java.does()
        told: list[str] = []
        pids: list[int | None] = []

        def use(broker: Broker) -> None:
            with broker:
                pids.append(broker.pid)
                raise ZeroDivisionError

        broker = Broker(tell=told.append)
        with pytest.raises(ZeroDivisionError):
            use(broker)
        assert pids[0] is not None
        assert not is_running(pids[0])
        assert told == [f"Kafka's log stays at {broker.log}"]
        assert broker.log.is_file()

    def test_a_temporary_folder_goes_with_it(self, java: FakeJava) -> None:
        java.does()
        with Broker() as broker:
            assert broker.data.is_dir()
        assert not broker.folder.exists()

    def test_it_goes_on_with_what_is_in_its_folder(self, java: FakeJava, folder: Path) -> None:
        java.does()
        with Broker(folder):
            pass
        java.does(format_="sys.exit('formatted twice')")
        with Broker(folder, settings={"log.cleaner.enable": "false"}) as broker:
            settings = (broker.folder / "server.properties").read_text().splitlines()
        assert "log.cleaner.enable=false" in settings
        assert "group.coordinator.rebalance.protocols=classic,consumer,share,streams" in settings

    def test_one_broker_per_folder(self, java: FakeJava, folder: Path) -> None:
        java.does()
        with Broker(folder):
            with pytest.raises(BrokerError) as refused:
                Broker(folder).start()
            assert str(refused.value) == (f"Another broker is running in {folder}: stop it or choose another folder.")
        with Broker(folder):
            pass

    def test_one_that_ends_by_itself(self, java: FakeJava, folder: Path) -> None:
        java.does()
        broker = Broker(folder)
        broker.start()
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGKILL)
        message = f"Kafka {LATEST} ended by itself; its log is {folder}/broker.log"
        with pytest.raises(BrokerError, match=f"^{re.escape(message)}$"):
            broker.wait()
        with pytest.raises(BrokerError, match=f"^{re.escape(message)}$"):
            broker.stop()


class TestFailedStarts:
    def test_the_reason_and_the_log(self, java: FakeJava, folder: Path) -> None:
        java.does("sys.exit('org.apache.kafka.common.config.ConfigException: Nothing is right.\\n\\tat a.B')")
        with pytest.raises(BrokerError) as failed:
            Broker(folder).start()
        assert str(failed.value) == (f"Kafka {LATEST} did not start: Nothing is right; its log is {folder}/broker.log")

    def test_storage(self, java: FakeJava, folder: Path) -> None:
        java.does(format_="sys.exit('no')")
        with pytest.raises(BrokerError) as failed:
            Broker(folder).start()
        assert str(failed.value) == (f"Kafka {LATEST} could not format its storage; its log is {folder}/broker.log")

    def test_a_port_that_somebody_else_took(self, java: FakeJava, folder: Path) -> None:
        java.does("sys.exit(setting('listeners') + ' java.net.BindException: Address already in use')")
        with pytest.raises(BrokerError, match="did not start"):
            Broker(folder).start()
        tried = re.findall(r"PLAINTEXT://\S+:\d+", (folder / "broker.log").read_text())
        assert len(tried) == 3
        assert len(set(tried)) > 1

    def test_one_that_never_answers(self, java: FakeJava, folder: Path) -> None:
        java.does("print(os.getpid(), flush=True); time.sleep(60)")
        with pytest.raises(BrokerError, match="did not start"):
            Broker(folder, timeout=1).start()
        assert not is_running(int((folder / "broker.log").read_text()))


class TestPrerequisites:
    def test_no_java(self, cache: Path) -> None:
        with pytest.raises(MissingPrerequisite) as missing:
            Broker().start()
        assert str(missing.value) == NO_JAVA

    def test_a_java_home_without_java(self, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        broker = Broker()
        with pytest.raises(MissingPrerequisite) as missing:
            broker.start()
        assert str(missing.value) == (
            f"Kafka {LATEST} needs Java 17 or later, but JAVA_HOME is {tmp_path} and has no bin/java: "
            "set it to an installed JDK or unset it."
        )
        assert not broker.folder.exists()

    def test_an_old_java(self, java: FakeJava, folder: Path) -> None:
        java.does(format_="sys.exit('java.lang.UnsupportedClassVersionError: kafka/tools/StorageTool')")
        with pytest.raises(MissingPrerequisite) as missing:
            Broker(folder).start()
        assert str(missing.value) == (
            f"Kafka {LATEST} needs Java 17 or later, and {java.path} is older: install a newer JDK or set JAVA_HOME."
        )

    def test_no_maven(self, cache: Path) -> None:
        with pytest.raises(MissingPrerequisite) as missing:
            tool.broker_jars()
        assert str(missing.value) == (
            f"Maven (mvn) is needed to fetch Kafka {LATEST}, and it is not on the PATH: install Maven."
        )

    def test_what_maven_says_when_it_fails(self, cache: Path, tmp_path: Path) -> None:
        maven = tmp_path / "bin" / "mvn"
        maven.write_text("#!/bin/sh\necho no such thing\nexit 1\n")
        maven.chmod(0o755)
        told: list[str] = []
        with pytest.raises(FetchError, match=f"^Maven could not fetch Kafka {re.escape(LATEST)}:\nno such thing$"):
            tool.broker_jars(told.append)
        assert told == [f"Fetching the jars of Kafka {LATEST} by Maven (once)"]
        assert list((cache / "broker").iterdir()) == []


class TestCommand:
    def script(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(ROOT / "tools" / "broker.py"), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
    def test_it_runs_until_it_is_told_to_end(self, java: FakeJava, folder: Path, ending: signal.Signals) -> None:
        java.does()
        with self.script("run", "--dir", str(folder)) as script:
            assert script.stdout is not None
            assert re.fullmatch(r"127\.0\.0\.1:\d+\n", script.stdout.readline())
            script.send_signal(ending)
            _, said = script.communicate(timeout=20)
        found = re.match(rf"Kafka {re.escape(LATEST)} is process (\d+), data in {folder}/data, log in ", said)
        assert found
        assert said.endswith("\nStopped.\n")
        assert script.returncode == 0
        assert not is_running(int(found[1]))

    def test_no_broker_is_one_line_and_status_1(self, cache: Path) -> None:
        with self.script("run") as script:
            said = script.communicate(timeout=20)
        assert script.returncode == 1
        assert said == ("", f"{NO_JAVA}\n")

    @pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]])
    def test_help_has_examples(self, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit, match=r"^0$"):
            tool.main(arguments)
        assert "examples:\n  python tools/broker.py run " in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("ci", "status", "outcome"), [("", 0, "1 skipped"), ("true", 1, "1 error")])
def test_ci_takes_a_skipped_broker_test_for_a_failed_one(
    cache: Path, monkeypatch: pytest.MonkeyPatch, ci: str, status: int, outcome: str
) -> None:
    monkeypatch.setenv("CI", ci)
    command = ["-m", "pytest", "-p", "no:cacheprovider", "tests/broker/test_log_directory.py"]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert outcome in done.stdout.splitlines()[-1]
    assert NO_JAVA in done.stdout
