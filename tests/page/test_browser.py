"""The page in a real browser: what it shows, that it sends no request, and that it is accessible."""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page, expect

from kafka_records_engine.findings import Finding
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.page import page_file, write_page
from kafka_records_tables.report.page.cut_tables import CutTables
from kafka_records_tables.report.report_parts import LevelChange, NextStep, Number, Report, ReportDiff, Rows
from tests.browsers import started_browser
from tests.page.made_reports import (
    AT_MS,
    HOSTILE,
    LONG,
    captured,
    findings_about,
    groups_of,
    hostile,
    report_of,
    table_of,
)

pytestmark = pytest.mark.browser

_UNPACKING: Final = (files(page_file.__package__) / "assets" / "unpacking.js").read_text(encoding="utf-8")
_AXE: Final = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
_AXE_RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_browser() as started:
        yield started


class Opened:
    """A page in a separate browser context, with all its messages and requests."""

    def __init__(self, browser: Browser, file: Path, **context: Any) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self._context = browser.new_context(viewport={"width": 1280, "height": 900}, **context)
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(10_000)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.file = file

    def go(self, address: str = "") -> Page:
        self.page.goto("about:blank")
        self.page.goto(f"{self.file.as_uri()}#{address}")
        self.page.wait_for_selector("html[data-shown]")
        return self.page

    def draw_plots(self, most: int = 2) -> None:
        for place in self.page.locator(".plot").all()[:most]:
            place.scroll_into_view_if_needed()
            expect(place).to_have_attribute("data-drawn", "yes")

    def close(self) -> None:
        """Check that the page logged nothing and requested only its file."""
        self._context.close()
        assert self.said == []
        assert {url.partition("#")[0] for url in self.asked} <= {self.file.as_uri(), "about:blank"}


@pytest.fixture(scope="module")
def report(topics_dir: Path) -> Report:
    return captured(topics_dir)


@pytest.fixture(scope="module")
def captured_file(tmp_path_factory: pytest.TempPathFactory, report: Report) -> Path:
    path = tmp_path_factory.mktemp("captured") / "report.html"
    write_page(report, path)
    return path


@pytest.fixture(scope="module")
def hostile_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    write_page(hostile(), path)
    return path


@pytest.fixture
def opened(browser: Browser, captured_file: Path) -> Iterator[Opened]:
    page = Opened(browser, captured_file)
    yield page
    page.close()


def test_the_first_page(opened: Opened) -> None:
    page = opened.go()
    expect(page.locator("h1")).to_have_count(1)
    assert page.locator(".verdict").inner_text() == (
        "critical: act now – offsets of a group that is alive expire soon: group order-fulfilment, "
        "gets worse 2026-09-21 16:13:20 UTC (in 2 h)."
    )
    assert page.locator(".not-read summary").inner_text() == "Not in this report: lag"
    page.locator(".not-read summary").click()
    expect(page.locator(".not-read p")).to_have_text(["lag – no log of this topic"])
    assert page.locator(".finding h3").all_inner_texts() == ["offsets of a group that is alive expire soon"]
    page.get_by_text("1 note: no alarm").click()
    titles = ["offsets of a group that is alive expire soon", "a group that nobody needs"]
    expect(page.locator(".finding h3")).to_have_text(titles)
    first = page.locator(".finding").first
    assert [line for line in first.inner_text().splitlines() if line] == [
        "critical",
        "offsets of a group that is alive expire soon",
        "group order-fulfilment, topic orders",
        "since 2026-09-21 12:13:20 UTC; gets worse 2026-09-21 16:13:20 UTC; Offsets of order-fulfilment expire within"
        " two hours",
        "What to do first",
        "See when each expires.",
        "kafka-records table expirations /data --group 'order-fulfilment'",
        "copy",
        "details",
        ": offsets of a group that is alive expire soon",
    ]
    first.locator(".details > summary").click()
    expect(first.locator(".facts")).to_be_visible()
    assert "0–2, 5" in first.inner_text()
    assert "2 h before the report's moment" in first.inner_text()
    first.locator("summary", has_text="evidence (40)").click()
    assert first.locator(".evidence td").first.inner_text() == "1,234"
    headings = [text.partition(" ")[0] for text in page.locator("main h2").all_inner_texts()]
    assert headings == ["Findings", "Numbers", "Groups", "Activity", "Who", "Tables"]
    opened.draw_plots()


def test_notes_about_lost_records_have_a_line(browser: Browser, tmp_path: Path) -> None:
    _, note = findings_about("orders", "orders")
    lost = replace(note, scale={"records_possibly_lost": 7})
    write_page(report_of({"groups": groups_of(["orders"])}, (lost, note, lost, lost, lost)), tmp_path / "report.html")
    opened = Opened(browser, tmp_path / "report.html")
    page = opened.go()
    expect(page.locator(".note-line")).to_have_count(3)
    assert page.locator(".note-line").first.inner_text().endswith("; 7 records possibly lost")
    page.get_by_text("5 notes: no alarm").click()
    expect(page.locator(".finding h3")).to_have_count(5)
    opened.close()


def test_a_healthy_page_says_so_once_and_of_when_it_is(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    healthy = report_of({"groups": groups_of(["orders"])})
    at_ms = healthy.request.at_timestamp_ms
    old = replace(healthy.request, made_timestamp_ms=at_ms + 2 * 86_400_000)
    shown = {}
    for name, request in (("now", healthy.request), ("old", old), ("asked", replace(old, as_of=True))):
        write_page(replace(healthy, request=request, missing={}), file)
        opened = Opened(browser, file)
        page = opened.go()
        assert page.locator("main").inner_text().count("Nothing was found that needs attention.") == 1
        shown[name] = page.locator(".warning").all_inner_texts()
        opened.close()
    assert shown["now"] == []
    assert shown["asked"] == [
        "Whether groups keep up is not judged, because the ends of logs are unknown for an earlier moment: "
        "leave out --as-of."
    ]
    (warning,) = shown["old"]
    assert re.search("2026-09-21 14:13:20 UTC, .* 2 d before it was made", warning)


def test_explanations_are_whole_up_to_a_thousand_characters(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    texts = ("a word " * 280, "a word " * 400)
    findings = [replace(findings_about("orders", "orders")[0], problem=text) for text in texts]
    write_page(report_of({"groups": groups_of(["orders"])}, findings), file)
    opened = Opened(browser, file)
    page = opened.go()
    for details in page.locator(".finding .details").all():
        details.locator("summary").first.click()
        expect(details.locator(".what")).to_be_visible()
    shown = [each.locator("bdi").first.inner_text() for each in page.locator(".finding .what").all()]
    assert shown[0] == texts[0]
    assert len(shown[1]) >= 1000
    opened.close()


def test_notes_that_say_the_same_are_one(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    notes = [
        Finding("note", "IncompleteHistory", "records are missing", f"complete from offset {at * 7}", "orders", at)
        for at in range(20)
    ]
    write_page(replace(report_of({"groups": groups_of(["orders"])}), reading=tuple(notes)), file)
    opened = Opened(browser, file)
    page = opened.go()
    page.get_by_text("20 problems without damage: what the logs do not tell").click()
    lines = page.locator(".reading > li")
    expect(lines).to_have_count(1)
    assert lines.inner_text().startswith("note 20 places, for instance in orders-0: records are missing")
    lines.locator("summary").click()
    expect(lines.locator("details li")).to_have_text([f"orders-{at}: records are missing" for at in range(20)])
    opened.close()


def test_notes_of_one_reason_are_one_line(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    notes = [
        Finding("note", reason, what, "it is told in part", "orders", at)
        for at, (reason, what) in enumerate((("Gap", "one is missing"), ("Gap", "another is cut"), ("Odd", "odd")))
    ]
    write_page(replace(report_of({"groups": groups_of(["orders"])}), reading=tuple(notes)), file)
    opened = Opened(browser, file)
    page = opened.go()
    page.get_by_text("3 problems without damage: what the logs do not tell").click()
    expect(page.locator("#reading details > .reading > li")).to_have_count(2)
    page.get_by_text("1 more note of this kind").click()
    expect(page.get_by_text("another is cut")).to_be_visible()
    opened.close()


def test_an_incident_is_drawn_on_a_time_axis(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    at = AT_MS
    tables = {
        "groups": groups_of(["orders"]),
        "timeline": table_of(
            "timeline",
            {
                "group_id": ["orders"] * 3,
                "at_timestamp_ms": [at - 7_000_000, at - 5_000_000, at - 4_000_000],
                "event": ["member_joined", "member_joined", "member_left"],
            },
        ),
        "current_offsets": table_of(
            "current_offsets",
            {
                "group_id": ["orders"],
                "topic": ["orders"],
                "partition": [2],
                "offset": [30],
                "commit_timestamp_ms": [at - 6_000_000],
            },
        ),
        "lag": table_of(
            "lag", {"group_id": ["orders"], "topic": ["orders"], "partition": [2], "offset": [30], "end_offset": [90]}
        ),
    }
    made = report_of(tables, findings_about("orders", "orders"))
    counts = replace(made.counts, first_timestamp_ms=at - 20_000_000)
    write_page(replace(made, counts=counts), file)
    opened = Opened(browser, file)
    page = opened.go()
    page.locator(".finding .details > summary").first.click()
    axis = page.locator(".finding .axis")
    lanes = ["evidence 1", "members join 2", "members leave 1", "last commits 1"]
    expect(axis.locator("dt")).to_have_text([*lanes, "offset of orders in orders-2: 30, the log ends at 90"])
    assert "(the log begins earlier)" in axis.locator("figcaption").inner_text()
    joins = axis.locator("dd").nth(1)
    assert [round(float(each.get_attribute("x1") or 0)) for each in joins.locator(".axis-mark").all()] == [352, 537]
    expect(joins.locator(".axis-since")).to_have_attribute("x1", "334.0")
    expect(axis.locator(".axis-offsets")).to_have_attribute("d", "M444.7 56.0H998.0")
    assert violations(page) == []
    opened.close()


def test_damage_that_several_tables_met_is_one_line(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    damage = [
        Finding("damage", "UnknownVersion", f"no version {number}", meaning, "orders", 3, number)
        for number in range(6)
        for meaning in ("its row is left out", "it is counted")
    ]
    write_page(replace(report_of({"groups": groups_of(["orders"])}), reading=tuple(damage)), file)
    opened = Opened(browser, file)
    lines = opened.go().locator(".reading > li")
    expect(lines).to_have_count(1)
    assert [line for line in lines.inner_text().splitlines() if line] == [
        "damage 6 places, for instance in orders-3: record at offset 0: no version 0",
        "What that means: its row is left out; it is counted",
        "all 6 places",
    ]
    opened.close()


def test_thresholds_have_units_and_brokers_are_explained_once(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    first, second = findings_about("orders", "orders")
    asked = (NextStep("Ask", 'kafka-topics --bootstrap-server "$BOOTSTRAP" --describe'),)
    limits = {"offsets_expiring.alive_within": 86_400_000, "commits_flooding.share": 0.25, "offsets_expiring.other": 7}
    findings = [replace(first, next=asked, thresholds=limits), replace(second, next=asked)]
    write_page(report_of({"groups": groups_of(["orders"])}, findings), file)
    opened = Opened(browser, file)
    page = opened.go()
    expect(page.get_by_text("export BOOTSTRAP=HOST:PORT")).to_have_count(1)
    page.locator(".finding .details > summary").first.click()
    page.get_by_text("what was measured").click()
    said = page.locator(".finding .pairs").inner_text()
    assert (
        "threshold offsets_expiring.alive_within\n1 d – a group without members that has committed this recently"
        in said
    )
    assert "threshold commits_flooding.share\n25 % – " in said
    write_page(report_of({"groups": groups_of(["orders"])}, findings_about("orders", "orders")), file)
    expect(opened.go().get_by_text("export BOOTSTRAP")).to_have_count(0)
    opened.close()


def test_wide_names_leave_the_last_commit_in_view(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    groups, topics = ([f"{word}-{'wide-' * 20}{at}" for at in range(9)] for word in ("group", "topic"))
    at: dict[str, list[Any]] = {"partition": [7] * 9, "commit_timestamp_ms": [AT_MS] * 9}
    lags = {"group_id": groups, "topic": topics, **at}
    numbers = {"offset": [2**40] * 9, "end_offset": [2**40] * 9, "lag": [2**40] * 9}
    tables = {
        "groups": groups_of(groups),
        "group_lag": table_of(
            "group_lag", {"group_id": groups, "lag": [2**40] * 9, "commit_timestamp_ms": [AT_MS] * 9}
        ),
        "lag": table_of("lag", {**lags, **numbers}),
        "current_offsets": table_of("current_offsets", {**lags, "offset": [2**40] * 9, "metadata": topics}),
    }
    write_page(report_of(tables, findings_about(groups[0], topics[0])), file)
    opened = Opened(browser, file)
    for address, place, heading in (
        ("", "#groups", "last commit"),
        ("", "#topics", "last commit"),
        (f"group={groups[3]}", "#part-lag", "commit_timestamp"),
        (f"group={groups[3]}", "#part-current_offsets", "commit_timestamp"),
    ):
        column = opened.go(address).locator(f"{place} .rows").get_by_role("columnheader", name=heading)
        box, view = column.bounding_box(), opened.page.locator(f"{place} .rows").bounding_box()
        assert box
        assert view
        assert box["x"] + box["width"] <= view["x"] + view["width"], (address[:5], place)
    opened.close()


def test_topics_are_shown_whole_and_sorted_by_their_names(opened: Opened) -> None:
    rows = opened.go("").locator("#topics .rows")
    names = rows.locator("tbody tr:not(.spacer) th")
    whole = names.evaluate_all("(cells) => cells.every((each) => each.scrollWidth <= each.clientWidth)")
    assert (names.count() > 1, whole) == (True, True)
    rows.get_by_role("button", name="topic", exact=True).click()
    said = names.all_inner_texts()
    assert said == sorted(said)
    rows.get_by_role("button", name="topic").click()
    assert names.all_inner_texts() == sorted(said, reverse=True)


def test_details_of_events_are_in_words(opened: Opened) -> None:
    page = opened.go("table=timeline&sort=at_timestamp_ms&find=member_joined")
    said = page.locator(".rows tbody tr[data-row]").first.inner_text()
    assert "client " in said
    assert ", at /127.0.0.1" in said
    page = opened.go("table=timeline&find=offsets_reset")
    assert "payments, 2 partitions, offsets 3 to 4" in page.locator(".rows tbody").inner_text()
    page = opened.go("table=timeline&find=assignment_changed")
    assert '{"' not in page.locator(".rows tbody").inner_text()


def test_plots_span_the_time_in_which_rows_are(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    at = [AT_MS - 30 * 86_400_000, *(AT_MS - hour * 3_600_000 for hour in range(20))]
    amounts = {name: [1] * 21 for name in ("commits", "expirations", "deletions", "completed_rebalances", "records")}
    activity: dict[str, list[Any]] = {"group_id": ["orders"] * 21, "window_start_timestamp_ms": at, **amounts}
    write_page(report_of({"groups": groups_of(["orders"]), "activity": table_of("activity", activity)}), file)
    opened = Opened(browser, file)
    page = opened.go("group=orders")
    opened.draw_plots(1)
    of_activity = page.locator("#part-activity").inner_text()
    assert "Not drawn, because it is long before: what was written at about 2026-08-22" in of_activity
    assert "08-22" not in (page.locator(".plot svg").text_content() or "")
    opened.close()


def test_long_lists_of_a_group_are_folded_with_what_they_say(opened: Opened) -> None:
    page = opened.go("group=payments-settlement")
    expiry = page.locator("#part-expirations")
    assert re.match(
        r"\d+ of \d+ rows with a time, the first of them 2026-", expiry.locator("summary").first.inner_text()
    )
    expect(expiry.locator(".rows")).to_have_count(0)
    expiry.locator("summary").first.focus()
    page.keyboard.press("Enter")
    expect(expiry.locator(".rows")).to_be_visible()


def test_what_is_cut_says_what_sums_are_of(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.html"
    monkeypatch.setattr(page_file, "CutTables", lambda report: CutTables(report, most_bytes=60_000))
    chance = random.Random(4)
    names = [f"group-{chance.getrandbits(60):x}" for _ in range(5000)]
    number = Number("groups", "groups", 5000, None, Rows("groups"))
    write_page(report_of({"groups": groups_of(names)}, numbers=[number]), file)
    opened = Opened(browser, file)
    page = opened.go()
    assert "5,000" in page.locator("#numbers").inner_text()
    assert "These count and sum all rows" in page.locator("#numbers").inner_text()
    left_out = page.locator("#groups .left-out").inner_text()
    assert "The counts by kind and state cover only the rows in this file." in left_out
    opened.close()


def test_plots_are_drawn_without_scrolling(opened: Opened) -> None:
    page = opened.go()
    for place in page.locator(".plot").all():
        expect(place).to_have_attribute("data-drawn", "yes")
    assert page.evaluate("scrollY") == 0


def test_what_changed_since_an_earlier_report(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    now = findings_about("orders", "orders")
    gone = replace(now[0], title="a transaction hangs", group_ids=("payments",))
    hanging = replace(gone, group_ids=(), topics=(), transactional_ids=("tx-1", "tx-2"))
    diff = ReportDiff(AT_MS, AT_MS, (1,), (LevelChange(0, Level.LOW),), (), (gone, hanging), ("another source",))
    write_page(replace(report_of({"groups": groups_of(["orders"])}, now), diff=diff), file)
    opened = Opened(browser, file)
    assert opened.go().locator("#diff li").all_inner_texts() == [
        "new note a group that nobody needs: group orders",
        "worse critical offsets of a group that is alive expire soon: group orders (was low)",
        "gone critical a transaction hangs: group payments",
        "gone critical a transaction hangs: transactional ids tx-1 and 1 more",
    ]
    assert opened.page.locator("#diff .warning").all_inner_texts() == ["another source"]
    opened.close()


def test_numbers_that_are_nothing_are_left_out_and_steps_of_notes_folded(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    finding = replace(findings_about("orders", "orders")[0], level=Level.NOTE)
    numbers = [Number(name, name, value, None, Rows("groups")) for name, value in (("groups", 1), ("members", 0))]
    write_page(report_of({"groups": groups_of(["orders"])}, [finding], numbers), file)
    opened = Opened(browser, file)
    page = opened.go()
    assert page.locator("#numbers span").all_inner_texts() == ["groups"]
    expect(page.locator(".next ol")).to_have_count(0)
    page.get_by_text("1 note: no alarm").click()
    page.locator(".finding .details > summary").click()
    expect(page.locator(".next ol")).to_be_visible()
    opened.close()


def test_findings_are_chosen_and_the_choice_can_be_sent(opened: Opened) -> None:
    page = opened.go()
    page.get_by_role("button", name="note 1").click()
    assert page.locator(".finding h3").all_inner_texts() == ["a group that nobody needs"]
    sent = page.evaluate("location.hash")
    assert sent == "#level=note"
    page = opened.go(sent[1:] + "&about=order-fulfilment")
    expect(page.get_by_role("button", name="note 1")).to_have_attribute("aria-pressed", "true")
    assert page.locator(".finding").count() == 1


def test_every_value_is_that_of_the_table(opened: Opened, report: Report) -> None:
    page = opened.go()
    unpacked = page.evaluate(_UNPACKING + """;(async () => {
            report.document = JSON.parse(await textOf("document"));
            const all = {};
            for (const {name} of report.document.tables) {
                const table = await openTable(name);
                all[name] = [...table.columns.values()].map((column) => [
                    column.name, Array.from({length: table.rows}, (_, row) => column.at(row))]);
            }
            return all;
        })()""")
    tables = report.tables
    assert unpacked.keys() == tables.keys()
    for name, columns in unpacked.items():
        shown = dict(columns)
        for column in tables[name].column_names:
            if f"{column}_ms" in tables[name].column_names:
                continue
            values = tables[name].column(column)
            assert read_back(values.type, shown[column]) == as_json(values.to_pylist()), column


def read_back(kind: pa.DataType, shown: list[Any]) -> list[Any]:
    """Lists and structs are in the page as JSON."""
    return [each and json.loads(each) for each in shown] if pa.types.is_nested(kind) else shown


def as_json(values: list[Any]) -> Any:
    """The values in the form of JSON, bytes in base64."""
    return json.loads(json.dumps(values, default=lambda raw: base64.b64encode(raw).decode()))


def test_a_number_leads_to_its_rows(opened: Opened) -> None:
    page = opened.go()
    number = page.locator("#numbers a", has_text="empty groups")
    count = number.locator("b").inner_text()
    number.click()
    expect(page.locator("h1")).to_have_text("table groups")
    expect(page.locator(".row-count")).to_have_text(f"{count} rows")
    assert page.locator(".command code").first.inner_text().endswith("--where state=Empty")
    expect(page.locator("h1")).to_be_focused()


def test_search_finds_and_opens_a_group(opened: Opened) -> None:
    page = opened.go()
    page.keyboard.press("/")
    expect(page.locator("#find")).to_be_focused()
    page.keyboard.type("order-ful")
    expect(page.locator("#find-said")).to_have_text("1 name found")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("group order-fulfilment")
    expect(page.locator("#found")).to_be_hidden()
    assert page.title() == "group order-fulfilment – Kafka records report"
    for heading in ("Findings (2)", "Timeline", "Committed offsets", "When they expire", "Members", "Assignments"):
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    opened.draw_plots(1)
    page.go_back()
    expect(page.locator("h1")).to_have_text("Kafka coordinators, according to their records")


def test_links_open_what_they_name(opened: Opened) -> None:
    page = opened.go("topic=orders")
    expect(page.locator("h1")).to_have_text("topic orders")
    page = opened.go("table=current_offsets&where=topic%3Dorders&where=partition%3C2&sort=-offset")
    rows = page.locator(".rows tbody tr:not(.spacer)")
    texts = [row.locator("td, th").all_inner_texts() for row in rows.all()]
    assert {row[1] for row in texts} == {"orders"}
    offsets = [int(row[4].replace(",", "")) for row in texts]
    assert offsets == sorted(offsets, reverse=True)
    assert "--where topic=orders --where 'partition<2'" in page.locator(".command code").first.inner_text()
    page = opened.go("group=nobody")
    expect(page.locator("h1")).to_have_text("Group not found")


def test_groups_are_searched_and_sorted_as_one_types(opened: Opened) -> None:
    page = opened.go("group-kind=classic&state=Stable")
    groups = page.locator("#groups")
    expect(groups.locator(".row-count")).to_have_text("7 rows")
    groups.get_by_role("searchbox").fill("CONNECT")
    expect(groups.locator(".row-count")).to_have_text("1 of 7 rows")
    assert groups.locator(".rows tbody th").all_inner_texts() == ["connect-shop"]
    groups.get_by_role("searchbox").fill("")
    name = groups.get_by_role("columnheader", name="group")
    name.get_by_role("button").click()
    expect(name).to_have_attribute("aria-sort", "ascending")
    name.get_by_role("button").click()
    shown = groups.locator(".rows tbody th").all_inner_texts()
    assert shown == sorted(shown, reverse=True)
    assert len(shown) == 7


def test_a_keyboard_gets_everywhere(opened: Opened) -> None:
    page = opened.go()
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    reached = set()
    for start in ("main", "#activity select"):
        page.locator(start).focus()
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.closest('section')?.id"))
    assert {"findings", "numbers", "groups", "activity", "topics"} <= reached
    row = page.locator("#groups .row-open").first
    row.focus()
    page.keyboard.press("Enter")
    expect(page.locator("dialog")).to_be_visible()
    assert page.locator("dialog dt").first.inner_text().startswith("group_id")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()
    expect(row).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.matrix)])
def test_axe_finds_nothing(browser: Browser, captured_file: Path, scheme: str) -> None:
    opened = Opened(browser, captured_file, color_scheme=scheme, reduced_motion="reduce")
    for address in ("", "group=order-fulfilment", "table=members"):
        page = opened.go(address)
        unfold(page)
        opened.draw_plots(1)
        assert violations(page) == []
    page.locator(".row-open").first.click()
    assert violations(page) == []
    opened.close()


def violations(page: Page) -> list[str]:
    page.evaluate(_AXE)
    found = page.evaluate("rules => axe.run({runOnly: rules, resultTypes: ['violations']})", _AXE_RULES)
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]]


def test_colours_are_switched_and_kept(opened: Opened) -> None:
    page = opened.go()
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Colours: as the system").click()
    page.get_by_role("button", name="Colours: light").click()
    assert page.evaluate(paper) != light
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_policy_forbids_requests_and_eval(browser: Browser, captured_file: Path) -> None:
    opened = Opened(browser, captured_file)
    page = opened.go()
    assert page.evaluate("fetch('https://localhost/').then(() => 'sent', (error) => error.name)") == "TypeError"
    # Code that a debugger evaluates may call eval; the page itself may not.
    evaluating = (
        "new Promise((done) => setTimeout(() => { try { done(eval('1')) } catch (error) { done(error.name) } }))"
    )
    assert page.evaluate(evaluating) == "EvalError"
    script = "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))"
    page.evaluate(script)
    assert page.evaluate("window.ran") is None
    refused = [line for line in opened.said if "Content Security Policy" in line]
    assert len(refused) == len(opened.said) >= 2
    opened.said.clear()
    opened.close()


def test_hostile_texts_stay_text(browser: Browser, hostile_file: Path) -> None:
    opened = Opened(browser, hostile_file)
    page = opened.go()
    opened.draw_plots()
    unfold(page)
    for name in HOSTILE:
        page.evaluate("name => location.hash = `group=${encodeURIComponent(name)}`", name)
        expect(page.locator("h1 > bdi, h1 > .dim").last).to_have_text(visible(name) or "(empty)", use_inner_text=False)
        expect(page.locator("#part-current_offsets .row-count")).to_have_text("1 row")
        assert page.locator("h1 script, h1 img, h1 svg").count() == 0
    page = opened.go("table=current_offsets")
    assert "9,223,372,036,854,775,807" in page.locator(".rows tbody").inner_text()
    assert page.evaluate("window.hacked") is None
    opened.close()


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('main details').forEach((each) => (each.open = true))")


def visible(text: str) -> str:
    return re.sub(r"[\x00\u2028\u2029\u202c\u202e]", lambda mark: f"\\u{{{ord(mark[0]):x}}}", text)


def test_a_million_characters_are_cut_linked_and_shown_on_demand(browser: Browser, hostile_file: Path) -> None:
    opened = Opened(browser, hostile_file)
    page = opened.go("table=members")
    page.locator(".rows tbody a", has_text="long-long").first.click()
    page.wait_for_selector("h1 button")
    assert re.fullmatch(r"#group-number=\d+", page.evaluate("location.hash"))
    assert len(page.locator("h1").inner_text()) < 400
    page.locator("h1 button", has_text="show all 1,000,000 characters").click()
    assert page.evaluate("document.querySelector('h1 pre').textContent.length") == len(LONG)
    opened.close()


def test_tables_draw_the_rows_in_sight(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    write_page(report_of({"groups": groups_of([f"group-{index:06}" for index in range(300_000)])}), file)
    opened = Opened(browser, file)
    page = opened.go("table=groups")
    table = page.locator(".rows table")
    expect(table).to_have_attribute("aria-rowcount", "300001")
    assert page.locator(".rows tbody tr").count() < 60
    page.locator(".rows").evaluate("view => view.scrollTop = view.scrollHeight")
    last = page.locator('tr[aria-rowindex="300001"]')
    expect(last).to_be_in_viewport()
    assert last.locator("th").inner_text() == "group-299999"
    page.get_by_role("searchbox", name="Find in: Rows of groups").fill("group-1234")
    expect(page.locator(".row-count")).to_have_text("100 of 300,000 rows")
    opened.close()


def test_print_shows_rows_and_no_controls(opened: Opened, tmp_path: Path) -> None:
    page = opened.go("table=timeline")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".rows tbody tr[data-row]").count() == 300
    expect(page.locator(".printed-note")).to_have_text(re.compile(r"^The first 300 of \d+ rows\.$"))
    expect(page.locator("header.top")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.locator(".row-tools input")).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".rows tbody tr[data-row]").count() < 60
    assert page.locator(".printed-note").count() == 0
    assert page.pdf()[:5] == b"%PDF-"


def test_what_is_folded_is_printed(opened: Opened) -> None:
    page = opened.go("group=order-fulfilment")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".finding .evidence table").first).to_be_visible()
    expect(page.locator(".finding .axis svg").first).to_be_visible()
    expect(page.locator("#part-expirations .rows tbody tr[data-row]").first).to_be_visible()
    assert page.locator("main details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("main details[open]").count() == 0
