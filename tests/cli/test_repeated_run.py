"""If nothing has changed since a run with `--state`, its output is printed again, before any slow module is loaded."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_records_tables.commands import repeated_run
from tests.cli.running import Ran, run
from tests.cli.segment_bytes import batch, commit
from tests.sources.fake_broker import TOPIC, FakeBroker, fake_brokers

REPEATED = "no log has changed since "
HEAVY = ("numpy", "pyarrow", "kafka_records_tables.tables", "http.client", "prometheus_client")


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    """A broker whose only log has two commits."""
    with fake_brokers(FakeBroker()) as (made,):
        made.end = 2
        made.records = lambda partition, offset: b"".join(
            batch(each, [commit(f"g{each}", 0)]) for each in range(offset, made.end)
        )
        yield made


def _asked(broker: FakeBroker, folder: Path, *more: str, table: str = "lag", name: str = "out.csv") -> Ran:
    output = ("--output", str(folder / name), "--overwrite")
    return run("table", table, "--bootstrap", broker.address, "--state", str(folder / "state"), *output, *more)


def _is_repeated(ran: Ran) -> bool:
    assert ran.status == 0, ran.err
    return REPEATED in ran.err


def test_the_same_output_and_lines(broker: FakeBroker, tmp_path: Path) -> None:
    first = _asked(broker, tmp_path)
    written = (tmp_path / "out.csv").read_bytes()
    assert written.count(b"\n") == 3
    (tmp_path / "out.csv").unlink()
    asked = len(broker.asked)
    second = _asked(broker, tmp_path)
    assert not _is_repeated(first)
    assert _is_repeated(second)
    assert (tmp_path / "out.csv").read_bytes() == written
    assert (
        second.err.splitlines()[-1]
        == first.err.splitlines()[-1]
        == "2 rows from 2 records and 0 transaction markers in 1 partition"
    )
    assert "asked for at" in first.err
    assert "asked for at" not in second.err
    # Metadata and ListOffsets of the log that is read, then of all logs, and all topics.
    assert broker.asked[asked:] == [
        *("Metadata", "ListOffsets", "ListOffsets"),
        *("Metadata", "ListOffsets", "ListOffsets", "ListOffsets", "ListOffsets"),
        "Metadata",
        "Metadata",
    ]


def test_what_changes_is_read(broker: FakeBroker, tmp_path: Path) -> None:
    _asked(broker, tmp_path)
    broker.end = 3
    assert not _is_repeated(_asked(broker, tmp_path))
    assert (tmp_path / "out.csv").read_text().count("\n") == 4
    assert _is_repeated(_asked(broker, tmp_path))
    broker.leaders = {0: 1, 1: 1}  # a new partition, whose log has the same end as the other
    assert not _is_repeated(_asked(broker, tmp_path))
    assert _is_repeated(_asked(broker, tmp_path))
    told = [broker.topic(), broker.topic("new")]
    broker.answers["Metadata"] = lambda asked: broker.metadata(
        told if asked["topics"] is None else [broker.topic(each["name"]) for each in asked["topics"]]
    )
    assert not _is_repeated(_asked(broker, tmp_path))


def test_a_right_that_is_lost(broker: FakeBroker, tmp_path: Path) -> None:
    _asked(broker, tmp_path)
    allowed = broker.topic(TOPIC)
    broker.answers["Metadata"] = lambda asked: broker.metadata([{**allowed, "topic_authorized_operations": 1 << 8}])
    ran = _asked(broker, tmp_path)
    assert ran.status == 2
    assert "may not read topic __consumer_offsets" in ran.err


def test_other_arguments_are_another_run(broker: FakeBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _asked(broker, tmp_path)
    assert not _is_repeated(_asked(broker, tmp_path, "--limit", "1"))
    assert (tmp_path / "out.csv").read_text().count("\n") == 2
    assert _is_repeated(_asked(broker, tmp_path))
    assert (tmp_path / "out.csv").read_text().count("\n") == 3
    monkeypatch.chdir(tmp_path)  # relative paths refer to this directory
    assert not _is_repeated(_asked(broker, tmp_path))


@pytest.mark.parametrize("fault", ["damage", "another form", "old", "clock put back", "no state"])
def test_what_is_kept_is_doubted(
    broker: FakeBroker, tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _asked(broker, tmp_path)
    expected = (tmp_path / "out.csv").read_bytes()
    (kept,) = (tmp_path / "state" / "answers").glob("*.run")
    if fault == "damage":
        content = kept.read_bytes()
        kept.write_bytes(content.replace(b"g0", b"g7"))
    elif fault == "another form":
        monkeypatch.setattr(repeated_run, "_FORM", 0)
    elif fault == "no state":
        kept.unlink()
    else:
        later = time.time() + (86_401 if fault == "old" else -60)
        monkeypatch.setattr(repeated_run, "time", lambda: later)
    assert not _is_repeated(_asked(broker, tmp_path))
    assert (tmp_path / "out.csv").read_bytes() == expected


def test_what_follows_the_clock_is_not_kept(broker: FakeBroker, tmp_path: Path) -> None:
    for table, *more in (("expirations", "--within", "24h"), ("expirations", "--at", "now"), ("progress",)):
        for _ in range(2):
            assert not _is_repeated(_asked(broker, tmp_path, *more, table=table)), (table, more)


def test_metrics_have_the_time_of_the_last_run(broker: FakeBroker, tmp_path: Path) -> None:
    texts = []
    for repeated in (False, True):
        before = time.time()
        assert _is_repeated(_asked(broker, tmp_path, name="lag.prom")) == repeated
        lines = (tmp_path / "lag.prom").read_text().splitlines()
        (at,) = (line for line in lines if line.startswith("kafka_records_last_run_timestamp_seconds{"))
        assert before <= float(at.rpartition(" ")[2]) <= time.time()
        texts.append([line for line in lines if line != at])
    assert texts[0] == texts[1]


def test_an_output_that_may_not_be_replaced(broker: FakeBroker, tmp_path: Path) -> None:
    output = ("--output", str(tmp_path / "out.csv"))
    words = ("table", "lag", "--bootstrap", broker.address, "--state", str(tmp_path / "state"), *output)
    assert not _is_repeated(run(*words))
    ran = run(*words)
    assert ran.status == 2
    assert "out.csv: the file already exists: replace it with --overwrite" in ran.err


def test_standard_output_without_heavy_modules(broker: FakeBroker, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from kafka_records_tables.commands.main import main\n"
        "status = main()\n"
        f"print(*(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)\n"
        "sys.exit(status)"
    )
    words = ("table", "lag", "--bootstrap", broker.address, "--state", str(tmp_path), "--format", "json")
    first, second = (
        subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert first.stdout.count("\n") == 2
    assert second.stdout == first.stdout
    assert REPEATED in second.stderr
    assert REPEATED not in first.stderr
    assert second.stderr.splitlines()[-1] == ""
    assert "pyarrow" in first.stderr.splitlines()[-1]
