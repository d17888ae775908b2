"""Runs the judge's program under JaCoCo, and reads JaCoCo's counts."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from kafka_records_codegen.evolution.kafka_releases import cache_folder, keep
from tools.broker import broker_jars, jars_by_maven
from tools.judge.coordinators import SOURCES, CoordinatorsError, command
from tools.kafka_releases import LATEST

JACOCO: Final = "0.8.14"

_MODULES: Final = ("kafka-group-coordinator", "kafka-share-coordinator")
_MEASURED: Final = "org.apache.kafka.coordinator.group.*:org.apache.kafka.coordinator.share.*"
_AGENT: Final = "jacocoagent.jar"

Tell = Callable[[str], None]


def measured_program(tell: Tell) -> list[str]:
    """The command of `coordinators.program` under JaCoCo. When it ends, it writes files for `report` into its folder.

    Raises as `coordinators.program`.
    """
    agent = _agent(tell)
    return _command("judge.Reached", tell, f"-javaagent:{agent}=output=none,includes={_MEASURED}")


def report(folders: Sequence[Path], tell: Tell) -> dict[str, Any]:
    """The coverage of all programs that left files in these folders: phase → class → methods, each with its lines.

    A line has its number, the counts of missed and executed instructions, and the same for branches. Raises
    CoordinatorsError if JaCoCo cannot read the files.
    """
    jars = [str(broker_jars(tell) / f"{module}-{LATEST}.jar") for module in _MODULES]
    done = subprocess.run(
        [*_command("judge.Report", tell), ":".join(map(str, folders)), *jars],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CoordinatorsError(f"JaCoCo failed:\n{done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _command(main: str, tell: Tell, *options: str) -> list[str]:
    sources = sorted((SOURCES / "reach").glob("*.java"))
    return command(main, tell, sources=sources, places=[_agent(tell), _jars(tell) / "*"], options=options)


def _jars(tell: Tell) -> Path:
    wanted = [("org.jacoco", module, JACOCO) for module in ("org.jacoco.agent", "org.jacoco.core")]
    return jars_by_maven(cache_folder() / "jacoco" / JACOCO, f"JaCoCo {JACOCO}", wanted, tell)


def _agent(tell: Tell) -> Path:
    """The jar of the agent, which is inside the jar of its module."""
    agent = cache_folder() / "jacoco" / f"{JACOCO}-{_AGENT}"
    if not agent.exists():
        with zipfile.ZipFile(_jars(tell) / f"org.jacoco.agent-{JACOCO}.jar") as jar:
            unpacked = agent.with_name(agent.name + ".new")
            unpacked.write_bytes(jar.read(_AGENT))
            keep(unpacked, agent)
    return agent
