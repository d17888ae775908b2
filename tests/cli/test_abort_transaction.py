"""`kafka-records abort-transaction` without a broker: wrong usage, and the owner of a transaction."""

from __future__ import annotations

import pytest

from kafka_records_tables.commands.command import run_command
from kafka_records_tables.deletion.aborting import refusal_of

AT = ("abort-transaction", "--bootstrap", "localhost:1")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("abort-transaction", "--topic", "t:0"), "the following arguments are required: --bootstrap"),
        (AT, "the following arguments are required: --topic"),
        ((*AT, "--topic", "t"), "argument --topic: invalid partition 't': write NAME:P, such as orders:0"),
        ((*AT, "--topic", "t:x"), "argument --topic: invalid partition 't:x': write NAME:P, such as orders:0"),
        (
            (*AT, "--topic", "t:0", "--execute"),
            "--execute needs --start-offset or --producer-id: one transaction is aborted at a time",
        ),
        ((*AT, "--topic", "t:0", "--yes"), "--yes needs --execute"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[0]) == ("", f"kafka-records abort-transaction: error: {complaint}")


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort", None])
def test_what_has_ended_for_its_coordinator_owns_nothing(state: str | None) -> None:
    assert refusal_of({"transactional_id": "t", "state": state, "timeout_ms": 1}) is None


def test_what_a_transactional_id_owns_is_refused() -> None:
    ongoing = refusal_of({"transactional_id": "t", "state": "Ongoing", "timeout_ms": 60_000})
    assert ongoing is not None
    assert "InitProducerId" in ongoing
    assert refusal_of({"transactional_id": "t", "state": "PrepareAbort", "timeout_ms": 60_000}) == (
        "transactional id t is in state PrepareAbort: its coordinator is about to write the marker; wait for it"
    )
