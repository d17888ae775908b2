#!/usr/bin/env python3
"""A real Kafka broker on this machine, for tests and for trying things. See `--help`.

It is one process in KRaft mode, listens only on loopback, and has all group protocols enabled. Maven fetches its jars,
which stay outside the repository.

    with Broker() as broker:
        connect_to(broker.bootstrap)
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, NoReturn, Self, TextIO

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the one above

from kafka_records_codegen.evolution.kafka_releases import (  # noqa: E402
    FetchError,
    alone_with_maven,
    cache_folder,
    keep,
)
from tools.class_archives import archive_options  # noqa: E402
from tools.kafka_releases import DESCRIBED, LATEST, WITHOUT_TOOLS  # noqa: E402

HOST: Final = "127.0.0.1"

_SLF4J: Final = ("org.slf4j", "slf4j-simple", "1.7.36")
"""Kafka's modules log through slf4j and do not include an implementation that writes the log."""

# A broker runs without these two. Tests of Kafka's tools and of streams groups need them.
_TOOLS: Final = ("kafka-tools", "kafka-streams")

_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY: Final = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{more}</dependency>"
)
_NO_OTHERS: Final = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"

_JVM: Final = (
    # A small heap and no second compiler, because such a broker lives for seconds and shares few cores with its tests.
    *("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
    *("-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"),
    *("-Dorg.slf4j.simpleLogger.showThreadName=false", "-Djava.awt.headless=true"),
)

_RELEASE: Final = tuple(int(part) for part in LATEST.split(".")[:2])


def _protocols(release: tuple[int, ...]) -> str:
    """A broker does not start if it does not know a named protocol. Before 3.7, no broker reads this setting.

    In 3.7, the coordinator with the new protocol (early access) refuses every TxnOffsetCommit with INVALID_TXN_STATE,
    because it cannot verify transactions.
    """
    if release >= (4, 1):
        return "classic,consumer,share,streams"
    return "classic,consumer" if release >= (3, 8) else "classic"


SETTINGS: Final[Mapping[str, str]] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "group.coordinator.rebalance.protocols": _protocols(_RELEASE),
    # Groups become stable at once.
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "auto.create.topics.enable": "false",
    # More than one partition, so that a test notices a reader that looks for a group in the wrong one.
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.index.size.max.bytes": "1048576",
}
"""The settings of a broker, without its addresses and folder; `Broker(settings=…)` adds and overrides."""

_THROWN: Final = re.compile(r"^(?:[\w$]+\.)+\w+(?:Exception|Error): (.+?)\.?$", re.MULTILINE)

Tell = Callable[[str], None]


class BrokerError(Exception):
    """The broker did not start, or ended unexpectedly. The text has the reason and the path of its log."""


class MissingPrerequisite(BrokerError):
    """This machine lacks Java, or it lacks Maven and the jars are not in the cache. The text says what to do."""


def broker_jars(tell: Tell = lambda line: None, release: str = LATEST) -> Path:
    """The folder with the jars of a broker. Maven fetches them if they are not in the cache.

    Raises MissingPrerequisite without Maven, FetchError if Maven fails.
    """
    modules = ("kafka_2.13", *(() if release in WITHOUT_TOOLS else _TOOLS))
    wanted = [*(("org.apache.kafka", module, release) for module in modules), _SLF4J]
    return jars_by_maven(cache_folder() / "broker" / release, f"Kafka {release}", wanted, tell)


def class_jars(release: str = DESCRIBED, tell: Tell = lambda line: None) -> Path:
    """The folder with the jars of the message classes and coordinators of a release, and of their dependencies. Raises
    as `broker_jars`.

    Kafka may publish them before it publishes all jars of a broker.
    """
    modules = ("kafka-clients", "kafka-group-coordinator", "kafka-share-coordinator", "kafka-transaction-coordinator")
    wanted = [("org.apache.kafka", module, release) for module in (*modules, "kafka-server")]
    return jars_by_maven(cache_folder() / "classes" / release, f"Kafka's classes {release}", [*wanted, _SLF4J], tell)


def jars_by_maven(
    jars: Path,
    what: str,
    wanted: Sequence[tuple[str, str, str]],
    tell: Tell = lambda line: None,
    *,
    alone: bool = False,
) -> Path:
    """A folder with the `wanted` jars (group, name, version) and their dependencies, or without these if `alone`.

    Maven fetches them if the folder does not exist; `what` describes them in messages. Raises MissingPrerequisite
    without Maven, FetchError if Maven fails.
    """
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingPrerequisite(f"Maven (mvn) is needed to fetch {what}, and it is not on the PATH: install Maven.")
    tell(f"Fetching the jars of {what} by Maven (once)")
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.parent) as scratch:
        pom = Path(scratch) / "pom.xml"
        dependencies = "".join(_DEPENDENCY.format(*jar, more=_NO_OTHERS if alone else "") for jar in wanted)
        pom.write_text(_POM.format(dependencies=dependencies), encoding="utf-8")
        fetched = Path(scratch) / "jars"
        with alone_with_maven():
            done = subprocess.run(
                [
                    *(maven, "--batch-mode", "--quiet", "dependency:copy-dependencies"),
                    *("-DincludeScope=runtime", f"-DoutputDirectory={fetched}"),
                ],
                cwd=scratch,
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode or not all((fetched / f"{name}-{version}.jar").is_file() for _, name, version in wanted):
            raise FetchError(f"Maven could not fetch {what}:\n{(done.stdout + done.stderr).strip()}")
        # The folder is renamed when it is complete, so that an interrupted run leaves no half-filled folder that looks
        # complete.
        keep(fetched, jars)
    return jars


def java() -> str:
    """The Java to use: that of JAVA_HOME, or else the one on the PATH. Raises MissingPrerequisite."""
    if home := os.environ.get("JAVA_HOME"):
        found = shutil.which("java", path=str(Path(home) / "bin"))
        if found is None:
            raise MissingPrerequisite(
                f"Kafka {LATEST} needs Java 17 or later, but JAVA_HOME is {home} and has no bin/java: "
                "set it to an installed JDK or unset it."
            )
        return found
    found = shutil.which("java")
    if found is None:
        raise MissingPrerequisite(
            f"Kafka {LATEST} needs Java 17 or later, and there is no java on the PATH: install a JDK or set JAVA_HOME."
        )
    return found


class Broker:
    """One broker: started by `start` or `with`, stopped by `stop` or the end of the block.

    `folder` is for the configuration, the log and the data. A broker that is started there again serves the data of the
    earlier one. The default is a temporary folder, which is kept only after a failure, because of its log. `settings`
    are added to `SETTINGS`. A start may take `timeout` seconds. The broker listens on `port`; the default is a free
    port at each start. If settings define other listeners, they must include one in plain text with that port. Brokers
    of one `cluster` (`cluster_id`) need settings with each other's addresses. `release` is a release of Kafka.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        timeout: float = 90,
        port: int = 0,
        cluster: str | None = None,
        release: str = LATEST,
        tell: Tell = lambda line: None,
    ) -> None:
        self._fixed_port = port
        self._cluster = cluster or cluster_id()
        self._release = release
        self._temporary = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="kafka-broker-")) if folder is None else folder.resolve()
        self.data = self.folder / "data"
        """The folder with one folder per partition, such as `__consumer_offsets-0`."""
        self.log = self.folder / "broker.log"
        """The log of the broker's process, for all starts in this folder."""
        self.port = 0
        """Its port on `HOST`; 0 before the start."""
        self.controller = ""
        """The address of the controller; empty before the start."""
        self._settings = {**SETTINGS, **(settings or {}), "log.dirs": str(self.data)}
        self._timeout = timeout
        self._tell = tell
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: TextIO | None = None
        self._log_start = 0

    @property
    def bootstrap(self) -> str:
        """The bootstrap address for clients: `127.0.0.1:PORT`."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """The id of the broker's process; None if it is not running."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the broker, and wait until it answers. Raises MissingPrerequisite, FetchError or BrokerError."""
        try:
            program = [found := java(), *_JVM, *archive_options("broker", self._release, found)]
            program += ["-cp", str(broker_jars(self._tell, self._release) / "*")]
        except BaseException:
            self._forget_folder()
            raise
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            # Ports are chosen before the broker binds them, so another process may take one first.
            for attempts_left in (2, 1, 0):
                self._lock_folder()
                self.log.touch()
                self._log_start = self.log.stat().st_size
                self._configure()
                self._format(program)
                self._launch(program)
                if self._answered():
                    return
                self._end_process()
                if not attempts_left or "Address already in use" not in self._said():
                    self._fail("did not start")
        except BaseException as error:
            self._end_process()
            if not isinstance(error, Exception):  # after Ctrl-C, the log is of no interest
                self._forget_folder()
            raise

    def wait(self) -> None:
        """Wait until the broker ends unexpectedly, and then raise BrokerError."""
        if self._process is not None:
            self._process.wait()
            self._fail("ended by itself")

    def stop(self) -> None:
        """Stop the broker and wait for its end. Raises BrokerError if it ended before."""
        crashed = self._process is not None and self._process.poll() is not None
        self._end_process()
        if crashed:
            self._fail("ended by itself")
        self._forget_folder()

    def kill(self) -> None:
        """End the broker as a power failure would. It can be started again."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._end_process()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, (KeyboardInterrupt, SystemExit)):
            self.stop()
        else:
            self._end_process()
            self._tell(f"Kafka's log stays at {self.log}")

    def _lock_folder(self) -> None:
        # Kafka's own lock is too late: a second broker damages the metadata before it finds the lock.
        self._lock = (self.folder / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise BrokerError(
                f"Another broker is running in {self.folder}: stop it or choose another folder."
            ) from None

    def _configure(self) -> None:
        free, controller = free_ports(2)
        self.port = self._fixed_port or free
        self.controller = f"{HOST}:{controller}"
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "controller.quorum.voters": f"{self._settings['node.id']}@{HOST}:{controller}",
            **self._settings,
        }
        lines = (f"{name}={value}\n" for name, value in settings.items())
        self._properties.write_text("".join(lines), encoding="utf-8")

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _format(self, program: Sequence[str]) -> None:
        if (self.data / "meta.properties").is_file():
            return
        asked = ["kafka.tools.StorageTool", "format", "-t", self._cluster, "-c", str(self._properties)]
        with self.log.open("ab") as log:
            done = subprocess.run([*program, *asked], stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
        if done.returncode:
            self._fail("could not format its storage")

    def _launch(self, program: Sequence[str]) -> None:
        command = [*program, "kafka.Kafka", str(self._properties)]
        if setpriv := shutil.which("setpriv"):
            # So the broker ends if a test run is killed. setpriv becomes the broker, with the same process id.
            command = [setpriv, "--pdeathsig", "TERM", "--", *command]
        with self.log.open("ab") as log:
            # The broker has a separate session, so that Ctrl-C in the terminal reaches only this process, which then
            # stops the broker.
            assert self._lock is not None
            # The broker inherits the lock, and holds it while it runs.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[self._lock.fileno()],
                start_new_session=True,
            )

    def _answered(self) -> bool:
        """Whether the broker answers a request; False if its process has ended or the time is up."""
        assert self._process is not None
        deadline = time.monotonic() + self._timeout
        while self._process.poll() is None and time.monotonic() < deadline:
            if _answers(self.port):
                return True
            time.sleep(0.1)
        return False

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if self._lock is not None:
            self._lock.close()
        if process is None:
            return
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _forget_folder(self) -> None:
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _said(self) -> str:
        """The broker's log since its last start."""
        return self.log.read_bytes()[self._log_start :].decode("utf-8", "replace")

    def _fail(self, what: str) -> NoReturn:
        if "UnsupportedClassVersionError" in self._said():
            self._forget_folder()
            raise MissingPrerequisite(
                f"Kafka {self._release} needs Java 17 or later, and {java()} is older: "
                "install a newer JDK or set JAVA_HOME."
            )
        thrown = _THROWN.search(self._said())
        reason = f": {thrown[1]}" if thrown else ""
        raise BrokerError(f"Kafka {self._release} {what}{reason}; its log is {self.log}")


def cluster_id() -> str:
    """The id of a new cluster: a UUID in Kafka's form. Tools would take one with a leading dash for an option."""
    return "k" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii")[1:22]


def free_ports(count: int) -> list[int]:
    """Ports on HOST that are free now."""
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in taken:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in taken]


def _answers(port: int) -> bool:
    """Whether a broker answers an ApiVersions request, version 0, correlation id 1, without a client id."""
    request = struct.pack(">hhih", 18, 0, 1, -1)
    try:
        with socket.create_connection((HOST, port), timeout=5) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as answers:
                answer = answers.read(10)  # size, correlation id, error code
            return len(answer) == 10 and struct.unpack_from(">ih", answer, 4) == (1, 0)
    except OSError:
        return False


_EPILOG: Final = """\
The jars are fetched once by Maven (mvn) and stay in $KAFKA_RECORDS_CACHE, by default kafka-records in the user's
cache directory. Java 17 or later is taken from JAVA_HOME or the PATH.

examples:
  python tools/broker.py run                   a broker that forgets everything when it stops
  python tools/broker.py run --dir /tmp/kafka  keep data and log there; the next start goes on with them
  kafka-records dump /tmp/kafka/data           read what it has written, while it runs or later
"""


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="broker.py",
        description=f"Start a Kafka {LATEST} broker on free loopback ports.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    run = commands.add_parser(
        "run",
        help="run a broker until Ctrl-C",
        description="Run a broker until Ctrl-C. Its address is the only line on standard output.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("--dir", type=Path, metavar="DIR", help="folder for data and log (default a temporary one)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 0 if it was asked to stop, 1 if there is no broker."""
    asked = _arguments(arguments)
    # A signal that ends this process must end the broker as well.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Broker(asked.dir, tell=_tell) as broker:
            _tell(
                f"Kafka {LATEST} is process {broker.pid}, data in {broker.data}, log in {broker.log}; Ctrl-C stops it"
            )
            print(broker.bootstrap, flush=True)
            broker.wait()
    except KeyboardInterrupt:
        _tell("Stopped.")
    except (BrokerError, FetchError, OSError) as error:
        _tell(str(error))
        return 1
    return 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
