"""Writes the page: a single HTML file that contains its scripts, styles and data and makes no requests.

The HTML contains no text of a record: all data is deflated and base64-encoded, and scripts unpack it and show it as
text nodes. A content security policy allows only the scripts of this package, by their digests, and forbids requests,
`eval`, and scripts or styles from the data.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from kafka_records_tables.report.first_screen import incident_lines, needs_somebody, note_lines
from kafka_records_tables.report.page.cut_tables import CutTables, command_words
from kafka_records_tables.report.page.incident_axis import incident_axes
from kafka_records_tables.report.page.packed_columns import packed_text
from kafka_records_tables.report.report_json import plain
from kafka_records_tables.report.report_parts import Report, ReportFinding
from kafka_records_tables.report.report_text import not_judged
from kafka_records_tables.report.thresholds import known_thresholds
from kafka_records_tables.tables import TABLES

_SCRIPTS: Final = (
    "unpacking.js",
    "elements.js",
    "formats.js",
    "event_words.js",
    "rows.js",
    "conditions.js",
    "row_table.js",
    "plots.js",
    "incident_axis.js",
    "findings.js",
    "overview.js",
    "details.js",
    "search.js",
    "start.js",
)
"""The scripts, each after the scripts it depends on. The page joins them into one script."""

_PLOT_SCRIPTS: Final = ("vega.min.js", "vega-lite.min.js", "vega-interpreter.js")

_EXACT: Final = 2**53
_PLACE: Final = re.compile(r"\{\{(\w+)\}\}")


def write_page(report: Report, path: Path | str) -> None:
    """Write a report as a page that opens straight from disk, without a network, in any browser from 2023 or later.

    Parameters
    ----------
    report
        The report to show. Rows of large tables are left out so that the file stays under 15 MB; the page says how
        many, and which command prints them.
    path
        The file to write. An existing file is replaced.
    """
    Path(path).write_bytes(page_bytes(report))


def page_bytes(report: Report) -> bytes:
    """The bytes of the page that `write_page` writes."""
    cut = CutTables(report)
    script = "\n".join(["(() => {", '"use strict";', *map(_asset, _SCRIPTS), "})();"])
    plots = "\n;\n".join(map(_vendored, _PLOT_SCRIPTS))
    style = _asset("page.css")
    policy = (
        f"default-src 'none'; script-src {_digest(script)} {_digest(plots)}; style-src {_digest(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    blocks = {
        "plots": packed_text(plots),
        "document": packed_text(json.dumps(_document(report, cut), ensure_ascii=False, separators=(",", ":"))),
        **{f"table-{name}": content for name, (_, content) in cut.packed.items()},
        **{f"texts-{name}": content for name, content in cut.texts.items()},
    }
    data = "\n".join(
        f'<script type="application/octet-stream" id="{name}">{content.decode("ascii")}</script>'
        for name, content in blocks.items()
    )
    parts = {"policy": policy, "style": style, "script": script, "data": data}
    return _PLACE.sub(lambda place: parts[place[1]], _asset("page.html")).encode()


def _document(report: Report, cut: CutTables) -> dict[str, Any]:
    notes = note_lines(report.findings)
    return {
        "request": plain(report.request),
        "findings": [
            _exact(_shown(each, axis, notes.get(at)))
            for at, (each, axis) in enumerate(zip(report.findings, incident_axes(report), strict=True))
        ],
        "numbers": _exact(plain(report.numbers)),
        "diff": _exact(plain(report.diff)),
        "missing": plain(report.missing),
        "not_judged": not_judged(report),
        "reading": [
            {
                "severity": each.severity,
                "reason": each.reason,
                "place": each.place,
                "what": each.what,
                "consequence": each.consequence,
            }
            for each in report.reading
        ],
        "counts": {"records": report.counts.records, "bytes": report.counts.bytes},
        "thresholds": {
            name: {"kind": threshold.kind, "about": threshold.about} for name, threshold in known_thresholds().items()
        },
        "omissions": plain(cut.omissions),
        "tables": [
            _described(report, name, cut.tables[name].num_rows, columns) for name, (columns, _) in cut.packed.items()
        ],
    }


def _shown(finding: ReportFinding, axis: dict[str, Any] | None, note: str | None) -> dict[str, Any]:
    """A finding with its first lines on the page, its time axis, and the line that a note has above the others."""
    lines = incident_lines(finding) if needs_somebody(finding) else None
    how_bad, causes = (None, ()) if lines is None else (lines.how_bad, lines.causes)
    return {
        **plain(finding),
        "how_bad": how_bad,
        "cause_lines": causes,
        "axis": axis,
        "note_line": note,
    }


def _described(report: Report, name: str, rows: int, columns: list[dict[str, Any]]) -> dict[str, Any]:
    table = TABLES[name]
    abouts = {column.name: column.about for column in table.columns}
    return {
        "name": name,
        "about": table.about,
        "rows": rows,
        "allRows": report.tables[name].num_rows,
        "command": command_words(report.request, name) if report.request.source_arguments else None,
        "columns": [{**column, "about": abouts[column["name"]]} for column in columns],
    }


def _exact(value: Any) -> Any:
    """The same value as JSON that a browser reads without rounding: large whole numbers become strings."""
    if isinstance(value, dict):
        return {name: _exact(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_exact(each) for each in value]
    return str(value) if isinstance(value, int) and abs(value) > _EXACT else value


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}'"


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _vendored(name: str) -> str:
    return (files(__package__) / "vendored" / name).read_text(encoding="utf-8")
