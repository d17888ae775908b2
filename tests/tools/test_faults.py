"""The proxy of `make faults` does what the kinds of faults say, and the comparison notices wrong answers."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.findings import DAMAGED_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._brokers.requests_sent import FETCH, METADATA
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.live import LiveBrokers
from tests.sources.fake_broker import TOPIC, FakeBroker, fake_brokers, read, records
from tools.broker import free_ports
from tools.faults import reads
from tools.faults.__main__ import figures
from tools.faults.kinds import ANSWERS, KINDS, Answer, End, Hang, Send, Sleep, exchanges, kinds_for
from tools.faults.proxy import Faults, Proxy
from tools.faults.run import EQUAL, Outcome


def sent(kind: str, answer: Answer, seed: int = 1) -> tuple[bytes, list[Any]]:
    """The bytes of an answer with a fault, and the other steps."""
    steps = ANSWERS[kind](answer, 0.01, Random(seed))
    return b"".join(step.data for step in steps if isinstance(step, Send)), [
        step for step in steps if not isinstance(step, Send)
    ]


def fetched(data: bytes = b"records of a log") -> Answer:
    by_name = {each.api.name: each for each in exchanges().values()}
    fields = {"responses": [{"topic_id": bytes(16), "partitions": [{"records": data}]}]}
    return Answer(by_name[FETCH], 13, struct.pack(">i", 7)).saying(fields)


def test_each_kind_of_fault_is_what_its_name_says() -> None:
    answer = fetched()
    whole = answer.framed
    assert sent("connection closed in place of the answer", answer) == (b"", [End()])
    assert sent("connection reset in place of the answer", answer) == (b"", [End(is_reset=True)])
    assert sent("doubled answer", answer) == (whole * 2, [])
    for seed in range(20):
        for kind, last in (("answer cut, and the connection closed", End), ("answer cut, and then silence", Hang)):
            data, (step,) = sent(kind, answer, seed)
            assert whole.startswith(data)
            assert data != whole
            assert isinstance(step, last)
        data, others = sent("late answer", answer, seed)
        assert data == whole
        assert isinstance(others[0], Sleep)
        data, others = sent("answer in pieces, slowly", answer, seed)
        assert data == whole
        assert len(others) > 1
        data, _ = sent("short answer", answer, seed)
        assert struct.unpack_from(">i", data)[0] == len(data) - 4 < len(whole) - 4
        cut = Answer(answer.api, 13, sent("Fetch that ends in a batch", answer, seed)[0][4:])
        part = cut.fields()["responses"][0]["partitions"][0]["records"]
        assert b"records of a log".startswith(part)
        assert part != b"records of a log"
        assert Answer(answer.api, 13, sent("throttled answer", answer, seed)[0][4:]).fields()["throttle_time_ms"] > 0
    assert {*kinds_for(answer, has_old=True)} <= {*KINDS}
    assert len(kinds_for(answer, has_old=True)) == len(kinds_for(answer, has_old=False)) + 1


def test_a_proxy_passes_everything_on_and_disturbs_what_it_is_told_to() -> None:
    config = ClientConfig(request_timeout_ms=200, connect_timeout_ms=200, patience_ms=3000)
    faults = Faults(1, 0.1)
    (outer,) = free_ports(1)
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end, broker.records = 3, records
        proxy = Proxy(faults, outer, broker.port)
        broker.answers[METADATA] = lambda asked: _through(broker, outer)
        try:
            for rate, count in ((0.0, 1), (0.3, 6)):
                faults.rate, answered = rate, 0
                for _ in range(count):
                    with suppress(LogSourceError):
                        (log,) = LiveBrokers(f"127.0.0.1:{outer}", config).partitions(TOPIC)
                        offsets, context = read(log)
                        assert offsets == [0, 1, 2]
                        assert [*context.findings] == []
                        answered += 1
                assert bool(faults.counts) == bool(rate)
                assert answered > count // 3
            assert faults.counts.total() == len(faults.recent)
        finally:
            proxy.close()
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", outer), 1)


def _through(broker: FakeBroker, port: int) -> dict[str, Any]:
    answer = broker.metadata([broker.topic()])
    answer["brokers"][0]["port"] = port
    return answer


def rows(*offsets: int, transaction: str = "none", value: str = "v") -> pa.Table:
    return pa.table({"offset": offsets, "transaction": [transaction] * len(offsets), "value": [value] * len(offsets)})


def damage(offset: int) -> Finding:
    return Finding("damage", DAMAGED_LOG, "it is away", "offsets are not read", "t", 0, base_offset=offset)


def test_rows_that_are_wrong_twice_or_silently_missing_are_differences() -> None:
    whole = rows(0, 1, 2, 3)
    reads.check_part(whole, whole, [], "t-0")
    reads.check_part(rows(0, 1), whole, [damage(2)], "t-0")
    for answer, found, what in (
        (rows(0, 1), [], "offsets from 2 on are missing, 2, and damage begins at None"),
        (rows(0, 1, 3), [damage(3)], "offsets from 2 on are missing, 1, and damage begins at 3"),
        (rows(0, 1, 1, 2, 3), [damage(0)], "offsets twice or out of order"),
        (rows(0, 1, 2, 3, value="w"), [damage(0)], "rows that the log does not have"),
        (rows(0, 1, 2, 3, 4), [damage(0)], r"rows that the log does not have, at \[4\]"),
    ):
        with pytest.raises(reads.Difference, match=what):
            reads.check_part(answer, whole, found, "t-0")
    open_ones, ended = rows(0, 1, transaction="open"), rows(0, 1, transaction="committed")
    with pytest.raises(reads.Difference, match="other transactions, and no finding"):
        reads.check_part(open_ones, ended, [], "t-0")


def test_tables_that_are_wrong_and_say_nothing_are_differences() -> None:
    whole = [repr(row) for row in rows(0, 1).to_pylist()]
    for answer in (rows(0), rows(0, 1, 2), rows(0, 2)):
        with pytest.raises(reads.Difference, match="table t: "):
            reads.check_table("t", SimpleNamespace(table=answer, findings=()), whole)
    assert reads.check_table("t", SimpleNamespace(table=rows(1, 0), findings=()), whole) == []
    lacks = SimpleNamespace(table=rows(0), findings=[damage(1)])
    assert reads.check_table("t", lacks, whole) == [damage(1)]
    with pytest.raises(reads.Difference, match="1 rows, and the log has 2"):
        reads.check_table("t", lacks, whole, may_lack=False)


def test_figures_of_a_run() -> None:
    outcome = Outcome(seconds=60.4, moves=7, created=3)
    outcome.answers.update({EQUAL: 5})
    outcome.faults.update({"late answer": 2, "short answer": 4})
    assert figures(outcome, 9) == {
        "answers compared": "5 in 60 seconds, seed 9: 5 equal",
        "faults": "6 of 2 kinds, each 2 to 4 times",
        "leaders moved": "7",
        "topics deleted and created again": "3",
        "brokers killed and started again": "0",
        "differences": "none",
    }
