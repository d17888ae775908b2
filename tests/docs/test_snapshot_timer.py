"""The examples for cron and systemd in docs/snapshots.md: systemd accepts the units, and the parser accepts the
command."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from kafka_records_tables.commands import snapshot, table
from kafka_records_tables.commands.parser import Parser
from tests.docs.pages import blocks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "snapshots.md"
PROGRAM = "/opt/kafka-records/bin/kafka-records"


def units() -> tuple[str, str]:
    """The timer and the service."""
    timer, service = blocks(PAGE, "ini")
    return timer, service


def check_command(words: list[str]) -> None:
    """Fail unless the parser of the command accepts these words."""
    assert words[:2] == [PROGRAM, "snapshot"]
    parser = Parser(prog="kafka-records")
    snapshot.add_parser(parser.add_subparsers())
    options = parser.parse_args(words[1:])
    assert (options.bootstrap, options.output) == ("broker-1:9092", "/backup/kafka")
    assert options.command_config == "/etc/kafka-records/client.properties"


def test_the_line_of_the_crontab() -> None:
    (block,) = blocks(PAGE, "crontab")
    (line,) = block.splitlines()
    *when, command = line.split(maxsplit=5)
    for field, largest in zip(when, (59, 23, 31, 12, 7), strict=True):
        assert field == "*" or (re.fullmatch("[0-9]+", field) and int(field) <= largest)
    assert "%" not in command  # cron reads this as a line end
    command, _, standard_output = command.partition(" >")
    assert standard_output == "/dev/null"
    check_command(shlex.split(command))


def test_the_recipe_of_metrics_with_a_state() -> None:
    page = PAGE.with_name("state.md")
    (block,) = blocks(page, "crontab")
    *when, command = block.strip().split(maxsplit=5)
    assert when == ["*"] * 5
    started = shlex.split(command.removesuffix(" 2>/dev/null"))
    assert started[0] == PROGRAM
    parser = Parser(prog="kafka-records")
    table.add_parser(parser.add_subparsers())
    options = parser.parse_args(started[1:])
    assert options.state == "/var/lib/kafka-records/lag"
    assert options.output.suffix == ".prom"


def test_the_service_runs_the_command() -> None:
    service = configparser.ConfigParser(interpolation=None)
    service.optionxform = str  # type: ignore[assignment,method-assign]
    service.read_string(units()[1])
    check_command(shlex.split(service["Service"]["ExecStart"]))
    assert service["Service"]["Type"] == "oneshot"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    timer, service = units()
    program = tmp_path / "kafka-records"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    paths = [tmp_path / f"kafka-records-snapshot.{kind}" for kind in ("timer", "service")]
    paths[0].write_text(timer)
    paths[1].write_text(service.replace(PROGRAM, str(program)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *paths], capture_output=True, text=True, check=False
    )
    # Messages about other units of this machine do not matter.
    about_these = [line for line in done.stderr.splitlines() if "kafka-records-snapshot" in line]
    assert about_these == []
    (when,) = re.findall(r"^OnCalendar=(.*)$", timer, re.MULTILINE)
    assert subprocess.run(["systemd-analyze", "calendar", when], capture_output=True, check=False).returncode == 0


def test_systemd_would_not_take_anything(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    wrong = tmp_path / "kafka-records-snapshot.service"
    wrong.write_text("[Service]\nType=oneshott\nExecStart=nowhere\n")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", wrong], capture_output=True, text=True, check=False)
    assert "kafka-records-snapshot" in done.stderr
