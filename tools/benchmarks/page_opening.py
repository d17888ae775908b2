"""Measure a report page by number of groups: its size, and the time to write it, to open it in a browser and to search
it.

    python tools/benchmarks/page_opening.py [--groups 100 10000 65000] [--rounds 3]

The reports are synthetic: some 15 committed offsets for each group (a million for 65 000 groups), the same partitions
in lag and expirations, two windows of activity and six events for each group. Offsets and times are random, so that no
format can shorten them. The browser is that of tools/chromium.py, without a screen, and measures the times itself.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from playwright.sync_api import Browser, sync_playwright

from kafka_records_engine.sources import Counts
from kafka_records_tables import TABLES
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.page import write_page
from kafka_records_tables.report.report_parts import Report, ReportFinding, ReportRequest
from tools.chromium import chromium

_AT_MS: Final = 1_790_000_000_000
_DAY_MS: Final = 86_400_000
_OFFSETS: Final = 15.4
"""Committed offsets per group: a million for 65 000 groups."""


def made_report(groups: int) -> Report:
    """A report on a cluster with the given number of groups."""
    chance = np.random.default_rng(14)
    names = pa.array([f"service-{index * 7919 % 100_003:06}-{index % 17}" for index in range(groups)]).sort()
    count = int(groups * _OFFSETS)
    group = np.sort(chance.integers(0, groups, count))
    partition = np.arange(count) - np.searchsorted(group, group)
    topic = pa.array([f"topic-{index:04}" for index in range(2000)]).take(pa.array(group * 31 % 2000))
    commit = _AT_MS - (chance.exponential(_DAY_MS, groups)[group] + chance.integers(0, 5000, count)).astype(np.int64)
    offset = chance.integers(0, 10**9, count)
    behind = chance.geometric(0.02, count) - 1
    of_offset = {"group_id": names.take(pa.array(group)), "topic": topic, "partition": partition}
    place = {"log_partition": group % 50, "log_offset": chance.integers(0, 10**8, count)}
    one = {"group_id": names, "log_partition": np.arange(groups) % 50, "log_offset": chance.integers(0, 10**8, groups)}
    kinds = pa.array(["classic", "consumer", "simple", "share"]).take(pa.array(chance.integers(0, 4, groups)))
    states = pa.array(["Stable", "Empty", "Assigning"]).take(pa.array(chance.integers(0, 3, groups)))
    committed = {**of_offset, "offset": offset, "commit_timestamp_ms": commit}
    expiry = {"kind": ["offset"] * count, **of_offset, "expires_timestamp_ms": commit + 7 * _DAY_MS}
    lags = {**committed, "end_offset": offset + behind, "lag": behind}
    lag_sums = {"lag": np.bincount(group, behind, groups), "partitions": np.bincount(group, minlength=groups)}
    tables = {
        "groups": table_of("groups", {**one, "group_kind": kinds, "state": states, "epoch": one["log_offset"] % 90}),
        "current_offsets": table_of("current_offsets", {**committed, **place, "metadata": [""] * count}),
        "expirations": table_of("expirations", {**expiry, **place, "rule": ["group_empty"] * count}),
        "lag": table_of("lag", {**lags, "log_partition": place["log_partition"]}),
        "group_lag": table_of("group_lag", {**one, **{name: each.astype(np.int64) for name, each in lag_sums.items()}}),
        "activity": table_of("activity", _activity(names, chance)),
        "timeline": table_of("timeline", _timeline(names, chance)),
    }
    findings = tuple(
        ReportFinding(
            "offsets_expiring", Level.HIGH, "offsets expire soon", f"Offsets of {name} expire.", group_ids=(name,)
        )
        for name in names.to_pylist()[:: max(groups // 200, 1)]
    )
    request = ReportRequest(
        "made up", ("data",), _AT_MS, _AT_MS, False, 7 * _DAY_MS, None, (), "of a benchmark", "local"
    )
    return Report(request, findings, (), tables, {}, (), Counts())


def _activity(names: Any, chance: np.random.Generator) -> dict[str, Any]:
    count = 2 * len(names)
    sums = ("expirations", "deletions", "completed_rebalances")
    return {
        "group_id": names.take(pa.array(np.arange(count) // 2)),
        "topic": ["topic-0001"] * count,
        "window_start_timestamp_ms": _AT_MS // 3_600_000 * 3_600_000 - np.arange(count) % 48 * 3_600_000,
        **{name: chance.integers(0, 3, count) for name in sums},
        **{name: chance.integers(0, 10_000, count) for name in ("commits", "records", "key_bytes", "value_bytes")},
    }


def _timeline(names: Any, chance: np.random.Generator) -> dict[str, Any]:
    count = 6 * len(names)
    events = pa.array(["created", "member_joined", "epoch", "rebalance_completed", "member_left", "emptied"])
    return {
        "group_id": names.take(pa.array(np.arange(count) // 6)),
        "at_timestamp_ms": _AT_MS - _DAY_MS + chance.integers(0, _DAY_MS, count),
        "event": events.take(pa.array(np.arange(count) % 6)),
        "epoch": np.arange(count) % 6,
        "log_offset": chance.integers(0, 10**8, count),
    }


def table_of(name: str, columns: dict[str, Any]) -> pa.Table:
    """Rows of a table; columns that are not named are null."""
    schema = TABLES[name].schema
    count = len(next(iter(columns.values())))
    arrays = [
        pa.array(columns[each.name]).cast(each.type) if each.name in columns else pa.nulls(count, each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


_SEARCH: Final = """async (typed) => {
    const field = document.getElementById("find");
    const box = document.getElementById("found");
    const times = [];
    for (let length = 1; length <= typed.length; length++) {
        const start = performance.now();
        const drawn = new Promise((done) => new MutationObserver((_, seen) => (seen.disconnect(), done()))
            .observe(box, {childList: true}));
        field.value = typed.slice(0, length);
        field.dispatchEvent(new Event("input"));
        await drawn;
        times.push(performance.now() - start);
    }
    return times;
}"""


def opened(browser: Browser, file: Path) -> tuple[float, float, float]:
    """Milliseconds until the findings are shown, until the whole page is, and for the slowest letter typed into the
    search."""
    page = browser.new_page()
    page.add_init_script("""new MutationObserver(() => {
            if (window.firstMs === undefined && document.querySelector("main h1")) window.firstMs = performance.now();
            if (window.allMs === undefined && document.documentElement.dataset.shown) window.allMs = performance.now();
        }).observe(document, {childList: true, subtree: true, attributes: true});""")
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-shown]", timeout=60_000)
    first, all_parts = page.evaluate("[window.firstMs, window.allMs]")
    letters = page.evaluate(_SEARCH, "service-0042")
    page.close()
    return first, all_parts, max(letters)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--groups", type=int, nargs="+", default=[100, 10_000, 65_000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    found = chromium()
    print("| groups | offsets | file, MB | written, s | findings, ms | all, ms | slowest letter, ms |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.program, env={**found.environment}, args=["--no-sandbox"]
        )
        for groups in options.groups:
            report = made_report(groups)
            file = Path(folder) / "report.html"
            start = time.perf_counter()
            write_page(report, file)
            written = time.perf_counter() - start
            rounds = [opened(browser, file) for _ in range(options.rounds)]
            first, all_parts, letter = (statistics.median(each) for each in zip(*rounds, strict=True))
            offsets = report.tables["current_offsets"].num_rows
            size = file.stat().st_size / 1e6
            print(
                f"| {groups} | {offsets} | {size:.1f} | {written:.1f} | {first:.0f} | {all_parts:.0f} | {letter:.0f} |"
            )
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
