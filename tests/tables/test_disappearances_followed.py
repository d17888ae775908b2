"""Tombstones that are explained while the log arrives in pieces: at the end as over the whole log, and before that
never certain and wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_records_tables import TABLES, read_table
from kafka_records_tables.engines.checked_request import request_of
from kafka_records_tables.engines.incremental import IncrementalTable
from kafka_records_tables.tables.tombstones.kept_objects import UnexpectedContent, from_bytes, to_bytes
from tests.tables.histories import NAMES, history
from tests.tables.test_changes import Followed, Row, pieces
from tests.tables.test_disappearances import HOUR_MS, STEP_MS, Log, commit, group, member

HIGH = "high"
MORE = 4
"""Records of STEP_MS each, which are more than a minute."""


def told(log: pa.Table) -> dict[Any, Row]:
    return {row["log_offset"]: row for row in read_table("disappearances", log).table.to_pylist()}


def gone_on(log: pa.Table) -> pa.Table:
    """A log with some more records in separate batches, after which nothing depends on later records any more."""
    last, offset = pc.max(log["timestamp_ms"]).as_py(), pc.max(log["offset"]).as_py()
    value = log.filter(pc.and_(pc.is_null(log["control"]), pc.is_valid(log["value"]))).slice(0, 1).to_pylist()[0]
    more = [
        value | {"offset": offset + step, "base_offset": offset + step, "timestamp_ms": last + step * STEP_MS}
        for step in range(1, MORE + 1)
    ]
    return pa.concat_tables([log, pa.Table.from_pylist(more, log.schema)])


def check(name: str, most: int) -> None:
    log = gone_on(history(name).rows)
    # The last records are a separate piece: they only end the write before them.
    parts = [*pieces(log.slice(0, log.num_rows - MORE), (name, "gone"), most), (log.slice(log.num_rows - MORE), log)]
    expected, followed = told(log), Followed("disappearances")
    for piece, so_far in parts:
        followed.take(piece)
        rows = {row["log_offset"]: row for row in followed.rows.values()}
        assert rows == told(so_far), name
        for offset, row in rows.items():
            in_the_end = expected[offset]
            assert set(in_the_end["possible_causes"]) <= set(row["possible_causes"]), (name, row, in_the_end)
            if row["confidence"] == HIGH:
                assert (row["cause"], HIGH) == (in_the_end["cause"], in_the_end["confidence"]), (name, row)
    assert rows == expected, name


def test_tombstones_are_explained_as_over_the_whole_log() -> None:
    for name in NAMES[::20]:
        check(name, most=4)


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("name", NAMES)
def test_tombstones_of_all_histories_are_explained_as_over_the_whole_log(name: str) -> None:
    check(name, most=40)


# -- what is kept ------------------------------------------------------------------------------------------------------


def kept(followed: Followed) -> bytes:
    assert followed.state is not None
    content: bytes = followed.state.rows.column("kept")[0].as_py()
    return content


def clean_ups(groups: int) -> pa.Table:
    """Groups that appear and disappear one after another, an hour each, and one that stays."""
    log = Log()
    log.write(0, group("stays"), commit("stays", "topic", 0, 0))
    for number in range(groups):
        name, begins = f"g-{number:03}", number * HOUR_MS
        log.write(begins, group(name), commit(name, "topic", number, begins), member(name, "m", ["topic"]))
        log.write(begins + 1000, member(name, "m", None))
        log.write(begins + 2000, commit(name, "topic", number, None), group(name, None))
    return log.table()


def test_what_is_kept_follows_what_is_there() -> None:
    sizes = []
    for groups in (20, 100):
        log, followed = clean_ups(groups), Followed("disappearances")
        for begin in range(0, log.num_rows, 60):
            followed.take(log.slice(begin, 60))
        assert len(followed.rows) == 3 * groups
        sizes.append(len(kept(followed)))
    # Only numbers in them grow by a digit.
    assert abs(sizes[1] - sizes[0]) < 100


@pytest.mark.parametrize("outcome", ["aborted", "unknown"])
def test_commits_that_never_take_effect_are_not_kept(outcome: str) -> None:
    sizes = []
    for topics in (20, 300):
        log, followed = Log(), Followed("disappearances")
        for number in range(topics):
            log.write(number * STEP_MS, commit("g", f"topic-{number:03}", 0, 0), transaction=outcome)
        rows = log.table()
        for begin in range(0, rows.num_rows, 10):
            followed.take(rows.slice(begin, 10))
        sizes.append(len(kept(followed)))
    # Only numbers in them grow by a digit.
    assert abs(sizes[1] - sizes[0]) < 100


def test_a_write_that_was_cut_is_not_judged_by_its_half() -> None:
    log = Log()
    log.write(0, group("g"), commit("g", "topic", 0, 0))
    log.write(2000, commit("g", "topic", 0, None), group("g", None))
    rows, followed = log.table(goes_on=False), Followed("disappearances")
    followed.take(rows.slice(0, 3))
    (offset,) = followed.rows.values()
    assert (offset["confidence"] != HIGH, "group_deleted" in offset["possible_causes"]) == (True, True)
    assert [change["change"] for change in followed.take(rows.slice(3))] == ["upsert", "upsert"]
    followed.take(gone_on(rows).slice(4))
    assert {(row["cause"], row["confidence"]) for row in followed.rows.values()} == {("group_deleted", HIGH)}


def test_rows_of_some_groups_come_out_of_all_records() -> None:
    log = clean_ups(3)
    followed = Followed("disappearances", IncrementalTable(request_of("disappearances", group="g-001")))
    for begin in range(0, log.num_rows, 4):
        followed.take(log.slice(begin, 4))
    assert {row["log_offset"]: row for row in followed.rows.values()} == {
        offset: row for offset, row in told(log).items() if row["group_id"] == "g-001"
    }


class Hostile:
    def __reduce__(self) -> Any:
        return print, ("run by a checkpoint",)


def test_what_is_kept_names_no_other_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnexpectedContent, match=r"refers to builtins\.print: give the query a new checkpoint"):
        from_bytes(to_bytes(Hostile(), {}), {})
    imported = b"\x80\x05ckafka_records_tables.tables.declaration\nimport_module\n(Vos\ntR."
    with pytest.raises(UnexpectedContent, match=r"refers to .*declaration\.import_module: give"):
        from_bytes(imported, {})
    assert capsys.readouterr().out == ""


def shapes(found: object, seen: dict[int, object], told: dict[str, str]) -> dict[str, str]:
    """The classes of an object and of everything to which it refers, with the names of their attributes."""
    if id(found) in seen or isinstance(found, str | bytes | int | float | pa.RecordBatch | np.ndarray):
        return told
    seen[id(found)] = found
    if type(found).__module__.startswith("kafka_records_tables."):
        kind = type(found)
        slots = getattr(kind, "_fields", getattr(kind, "__slots__", None))
        names = list(vars(found) if slots is None else slots)
        told[type(found).__name__] = " ".join(names)
        parts: Iterable[object] = [getattr(found, name) for name in names]
    elif isinstance(found, dict):
        parts = [*found, *found.values()]
    else:
        parts = found if isinstance(found, Iterable) else ()
    for part in list(parts):
        shapes(part, seen, told)
    return told


SHAPES = {
    "Boundaries": "_held _behind",
    "ConsumerGroupCurrentMemberAssignmentValue": "member_epoch state",
    "ConsumerGroupMemberMetadataValue": "subscribed_topic_names instance_id rebalance_timeout_ms "
    "classic_member_metadata_session_timeout_ms",
    "ConsumerGroupMetadataValue": "epoch",
    "ConsumerGroupRegularExpressionValue": "topics",
    "ConsumerGroupTargetAssignmentMemberValue": "",
    "ConsumerGroupTargetAssignmentMetadataValue": "assignment_epoch",
    "Event": "offset record key value is_broken is_past timestamp_ms",
    "TombstoneExplainer": "_schemas _context _retention_ms _session_ms _types _live _bulk _log _groups _told_up_to "
    "_boundaries _came _count _whole_up_to _is_whole _new_from _clock_ms _passed_ms _longest_ms _cases _begun",
    "Group": "group_id kind made_at has_record epoch target_epoch topology_epoch validated_topology "
    "protocol_type protocol classic_members members reached broken records named told_ms told_at",
    "GroupBefore": "state told_ms told_at protocol_type has_record since_ms members",
    "GroupLog": "_picked _schemas _shared _groups _group_types _states",
    "GroupMetadataValue": "generation protocol_type protocol members_count current_state_timestamp "
    "members_subscription",
    "GroupState": "kind state epoch member_count topics is_settled",
    "GroupsBefore": "_groups _waiting",
    "Groups": "_tombstones_make_groups _groups _ended",
    "KeyNumbers": "keys _numbers _free _new_ones",
    "LiveOffsets": "_numbers _before _pending _waits _lot",
    "Member": "epoch state made_at metadata current target",
    "Verdict": "cause possible confidence evidence",
    "Evidence": "shows log_offset",
    "StreamsGroupCurrentMemberAssignmentValue": "member_epoch state",
    "StreamsGroupMemberMetadataValue": "instance_id rebalance_timeout_ms",
    "StreamsGroupMetadataValue": "epoch validated_topology_epoch",
    "StreamsGroupTargetAssignmentMemberValue": "",
    "StreamsGroupTargetAssignmentMetadataValue": "assignment_epoch",
    "StreamsGroupTopologyValue": "epoch subtopologies_source_topics subtopologies_repartition_source_topics_name",
    "BulkDeletions": "_retention_ms group_ids swept watched _rows _removed _kept",
    "Swept": "case begin now_ms is_log_whole is_known told_ms has_since since_ms has_base may_expire is_empty "
    "are_topics_known is_ended end may_end_unseen has_offsets waits_at never_word never_at not_yet_word not_yet_at "
    "refused_word refused_at has_topics are_deleted are_near have_stayed_always have_stayed due_at is_due longest_ms",
    "Watched": "row kind number log_offset is_gone",
    "Write": "records timestamp_ms is_whole tombstones",
    "_Case": "write passed_ms is_last told",
    "_Commits": "keys values producers",
}


def test_another_form_of_what_is_kept_has_another_number() -> None:
    """A checkpoint of another form is refused. If you change a class below, raise `form_of_kept` of the reader."""
    found: dict[str, str] = {}
    for name in NAMES[::15]:
        followed = Followed("disappearances")
        for piece, _ in pieces(history(name).rows, (name, "form"), most=3):
            followed.take(piece)
            explaining = from_bytes(kept(followed), {"schemas": None, "context": None})
            shapes(explaining, {}, found)
    assert (TABLES["disappearances"].reader.form_of_kept, found) == (11, SHAPES)
