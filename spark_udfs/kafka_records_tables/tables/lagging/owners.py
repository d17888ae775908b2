"""Whose partition it is: the member that has it now, or nobody where the group has left the topic."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_TOPIC: Final = ["group_id", "log_partition", "topic"]
_PARTITION: Final = [*_TOPIC, "partition"]
_OWNER: Final = ["member_id", "client_id", "client_host"]


def with_owners(rows: pa.Table, assigned: pa.Table, left: pa.Table) -> pa.Table:
    """The rows of lag with `member_id`, `client_id`, `client_host` and `has_left`. `assigned` are the partitions that
    members have, `left` the topics that groups have left."""
    if assigned.num_rows:
        rows = rows.join(assigned.select([*_PARTITION, *_OWNER]), _PARTITION, use_threads=False)
    else:
        for name in _OWNER:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.string()))
    if left.num_rows:
        rows = rows.join(left.select([*_TOPIC, "has_left"]), _TOPIC, use_threads=False)
    else:
        rows = rows.append_column("has_left", pa.nulls(rows.num_rows, pa.bool_()))
    no = pa.scalar(False, pa.bool_())
    has_left = pc.if_else(pc.is_valid(rows["member_id"]), no, rows["has_left"])
    return rows.set_column(rows.schema.get_field_index("has_left"), "has_left", has_left)
