"""Quotas of clients as a cause of groups that read slowly or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_records.cluster_metadata import encode_record
from kafka_records.cluster_metadata.client_quota_record import ClientQuotaRecord, EntityData
from kafka_records_tables.report.facts.client_quotas import lacking_quotas, quotas_of
from kafka_records_tables.report.facts.cluster_settings import lacking_settings
from kafka_records_tables.report.facts.quota_changes import TABLE
from kafka_records_tables.report.lost_files import cut_metadata
from kafka_records_tables.report.rules.throttled_clients import Reading, weigh_quotas
from tests.log.logs import batch, record
from tests.report.test_rules_in_detail import _context, _read

BYTES = "consumer_byte_rate"
T0 = 1_700_000_000_000
MEMBERS = [{"client_id": "loader"}]
Row = dict[str, Any]


def _set(
    value: float | None, client_id: str | None = "loader", user: str | None = None, at_ms: int | None = T0, **more: Any
) -> Row:
    """A row of `quota_changes`."""
    row = {"user": user, "client_id": client_id, "ip": None, "name": BYTES, "value": value, "at_timestamp_ms": at_ms}
    return row | {"log_offset": 7} | more


def _log(of_bytes: int = 10_000) -> Row:
    """A row of `log_sizes`: 100 records."""
    row = {"topic": "orders", "partition": 0, "log_start_offset": 0, "log_end_offset": 100, "bytes": of_bytes}
    return row | {"sizes": [{"offset": 0, "bytes": of_bytes, "timestamp_ms": None}]}


def test_quotas_are_read_from_the_metadata_log(tmp_path: Path) -> None:
    """Later records replace or remove earlier ones. A default entity has no name."""
    loader, default = EntityData("client-id", "loader"), EntityData("user", None)
    told = [
        ClientQuotaRecord((loader,), BYTES, 2048.0, False),
        ClientQuotaRecord((default, loader), BYTES, 4096.0, False),
        ClientQuotaRecord((loader,), BYTES, 0.0, True),
    ]
    values = [encode_record(None, each)[1] for each in told]
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    parts = [batch(record(0, None, each), 1, offset=at, timestamp=T0 + at) for at, each in enumerate(values)]
    (folder / f"{0:020}.log").write_bytes(b"".join(parts))
    rows = _read(TABLE, tmp_path)
    names = ("user", "client_id", "value", "at_timestamp_ms", "log_offset")
    assert [tuple(each[name] for name in names) for each in rows] == [
        (None, "loader", 2048.0, T0, 0),
        ("", "loader", 4096.0, T0 + 1, 1),
        (None, "loader", None, T0 + 2, 2),
    ]
    (quota,) = quotas_of(_context({"quota_changes": rows}), ["loader"], T0 + 5)
    assert (quota.value, quota.whose) == (
        4096,
        'all users without a quota of their own with client id "loader"',
    )


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([_set(1), _set(2, at_ms=T0 + 1)], [(2, 1)]),
        ([_set(1), _set(None, at_ms=T0 + 1)], []),
        ([_set(1), _set(2, at_ms=T0 + 100)], [(1, None)]),
        ([_set(1, "other")], []),
        ([_set(1, "")], [(1, None)]),
        ([_set(1, ""), _set(2)], [(2, None)]),
        ([_set(1), _set(2, None, "")], [(2, None)]),
        ([_set(1), _set(2, None, "ann")], [(1, None), (2, None)]),
        ([_set(1, "other", "ann")], []),
        ([_set(1, None, ip="10.0.0.1")], []),
        ([_set(1, name="producer_byte_rate")], []),
        ([_set(1, at_ms=None)], [(1, None)]),
    ],
    ids=[
        "replaced",
        "removed",
        "later",
        "of_another_client",
        "default",
        "own_before_default",
        "user_before_client",
        "of_one_user",
        "of_a_user_with_another_client",
        "of_an_address",
        "of_producers",
        "in_a_checkpoint",
    ],
)
def test_which_quotas_apply_to_a_client(rows: list[Row], found: list[tuple[float, float | None]]) -> None:
    quotas = quotas_of(_context({"quota_changes": rows}), ["loader", None], T0 + 50)
    assert [(each.value, each.before) for each in quotas] == found


@pytest.mark.parametrize(
    ("row", "per_second", "since_ms", "outcome"),
    [
        (_set(1000), 9.0, T0 + 2000, (2, 0, True, False)),
        (_set(1000), 4.5, T0 + 120_000, (1, 0, False, False)),
        (_set(1000), 3.0, T0 + 2000, (1, 0, False, False)),
        (_set(1000), 1.0, T0 + 120_000, (0, 1, False, True)),
        (_set(1000), 9.0, T0 - 30_000, (1, 0, False, True)),
        (_set(1000), None, T0 + 2000, (1, 0, False, False)),
        (_set(1000, user="ann"), 9.0, T0 + 2000, (2, 0, False, False)),
        (_set(5, name="request_percentage"), 1.0, T0 + 2000, (1, 0, False, False)),
    ],
    ids=["time_and_rate", "rate", "time", "neither", "set_later", "reads_nothing", "of_one_user", "share_of_time"],
)
def test_what_speaks_for_a_quota(
    row: Row, per_second: float | None, since_ms: int, outcome: tuple[int, int, bool, bool]
) -> None:
    """Records have 100 bytes. Before, the group kept up for a minute."""
    context = _context({"quota_changes": [row], "log_sizes": [_log()]})
    reading = Reading("g", "orders", since_ms, per_second, since_ms - 60_000)
    found = weigh_quotas(context, reading, MEMBERS)
    assert found is not None
    against = len(found.evidence_against)
    assert (len(found.evidence_for), against, found.is_certain, found.refuted_by is not None) == outcome
    assert ("if they have this user" in found.statement) is bool(found.lacked) is (row["user"] is not None)
    assert ("throttles" in found.statement) is (len(found.evidence_for) == 2)
    assert "--entity-type clients --entity-name loader" in str(found.steps[0].command)


def test_another_group_with_the_client_id_may_use_up_its_quota() -> None:
    looks = {"quota_changes": [_set(1000)], "log_sizes": [_log()]}
    reading = Reading("g", "orders", T0 + 2000, 1.0)
    members = [{"group_id": each, "client_id": "loader"} for each in ("g", "h")]
    for rows, is_refuted in ((members[:1], True), (members, False)):
        found = weigh_quotas(_context(looks, members=rows), reading, MEMBERS)
        assert found is not None
        assert (found.refuted_by is not None) is is_refuted


def test_without_a_quota_none_is_the_cause() -> None:
    """If the source has the metadata log; otherwise quotas are unknown."""
    reading = Reading("g", "orders", T0, 1.0)
    assert weigh_quotas(_context(), reading, MEMBERS) is None
    assert lacking_quotas(_context())
    log = {"topic": "__cluster_metadata", "partition": 0, "log_start_offset": 0, "log_end_offset": 9}
    found = weigh_quotas(_context(log_ends=[log]), reading, MEMBERS)
    assert found is not None
    assert found.refuted_by is not None


def test_a_metadata_log_that_is_cut_refutes_no_quota() -> None:
    end = {"topic": "__cluster_metadata", "partition": 0, "is_cut": True}
    cut = _context({"configs": []}, log_ends=[end])
    assert weigh_quotas(cut, Reading("g", "orders", T0, 10.0), MEMBERS) is None
    assert lacking_quotas(cut)
    assert "cut off" in lacking_settings(cut)[0]
    (note,) = cut_metadata(cut.table("log_ends"))
    assert (note.severity, note.topic) == ("note", "__cluster_metadata")
    whole = _context(log_ends=[{**end, "is_cut": False}])
    assert not lacking_quotas(whole)
    assert cut_metadata(whole.table("log_ends")) == cut_metadata(None) == []
