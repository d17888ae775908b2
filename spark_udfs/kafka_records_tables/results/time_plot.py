"""A small bar chart of rows over time, as SVG in HTML without scripts, style sheets or fonts."""

from __future__ import annotations

from html import escape
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_runtime.errors import plural
from kafka_records_tables.results.cell_texts import plain_texts

_WIDTH: Final = 720
_HEIGHT: Final = 72
_BARS: Final = 90
_GAP: Final = 1


def time_plot(table: pa.Table) -> str:
    """The chart for the first time column with two different times, with a sentence that says the same; empty if there
    is no such column.

    Each bar counts the rows in one of 90 equally long spans between the first and the last time.
    """
    for field in table.schema:
        if pa.types.is_timestamp(field.type):
            times = table.column(field.name).drop_null()
            if len(times) and (ends := pc.min_max(times))["min"] != ends["max"]:
                return _drawn(field.name, times, len(table) - len(times))
    return ""


def _drawn(name: str, times: pa.ChunkedArray, without: int) -> str:
    moments = times.cast(pa.int64()).to_numpy()
    counts, _ = np.histogram(moments, _BARS)
    first, last = plain_texts(pa.array([int(moments.min()), int(moments.max())], times.type)).to_pylist()
    most = int(counts.max())
    step = _WIDTH / _BARS
    bars = "".join(
        f"M{at * step:.1f} {_HEIGHT}v-{max(count * _HEIGHT / most, 1):.1f}h{step - _GAP:.1f}V{_HEIGHT}z"
        for at, count in enumerate(counts.tolist())
        if count
    )
    said = f"{plural(len(times), 'row')} by {name}, from {first} to {last}, at most {most} per bar"
    said += f"; {plural(without, 'row')} without it" if without else ""
    return (
        f'<figure style="margin:0.5em 0"><svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT + 1}" width="{_WIDTH}" height="{_HEIGHT + 1}" style="max-width:100%">'
        f"<title>{escape(said)}</title>"
        f'<path d="{bars}" fill="#4c78a8"/>'
        f'<path d="M0 {_HEIGHT + 0.5}H{_WIDTH}" stroke="currentColor" stroke-width="0.5"/></svg>'
        f"<figcaption>{escape(said)}</figcaption></figure>"
    )
