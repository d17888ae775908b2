"""The table for people: what fits a terminal, a message about the rest, and everything if it is not a terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Collection

import pyarrow as pa
import pytest

from kafka_records_tables.results.cells import width_of
from kafka_records_tables.results.text_table import write_text


def shown(
    table: pa.Table,
    width: int | None = None,
    *,
    wide: bool = False,
    styles: bool = False,
    details: Collection[str] = (),
    essential: Collection[str] = (),
) -> list[str]:
    """The lines on a terminal of this width; without a width, not on a terminal."""
    out = io.StringIO()
    is_terminal = width is not None
    write_text(table, out, width=width, wide=wide, is_terminal=is_terminal, details=details, essential=essential)
    text = out.getvalue()
    if width is None or not styles:
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return [line.rstrip() for line in text.split("\n")[:-1]]


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


OFFSETS = pa.table(
    {
        "group_id": ["billing", "payments-settlement-service.eu_west"],
        "topic": ["orders", "invoices"],
        "partition": pa.array([0, 11], pa.int32()),
        "offset": [42, 1234567890],
        "metadata": ["", None],
        "commit_timestamp": pa.array([1700000000123, None], pa.timestamp("ms", "UTC")),
        "commit_timestamp_ms": [1700000000123, None],
    }
)


def test_elsewhere_than_on_a_terminal_nothing_is_left_out() -> None:
    lines = [
        "group_id                              topic      partition       offset   metadata   commit_timestamp      "
        "     commit_timestamp_ms",
        "─" * 131,
        'billing                               orders             0           42   ""         2023-11-14T22:13:20.12'
        "3Z         1700000000123",
        "payments-settlement-service.eu_west   invoices          11   1234567890   null       null                  "
        "                    null",
    ]
    assert shown(OFFSETS) == lines
    assert shown(OFFSETS, 60, wide=True) == lines


def test_a_terminal_that_is_wide_enough_has_one_commit_time() -> None:
    assert shown(OFFSETS, 140) == [
        "group_id                              topic      partition       offset   metadata   commit_timestamp",
        "─" * 109,
        'billing                               orders             0           42   ""         2023-11-14T22:13:20.123Z',
        "payments-settlement-service.eu_west   invoices          11   1234567890   null       null",
    ]


def test_milliseconds_stay_where_the_time_has_none() -> None:
    beyond = pa.table(
        {"end_timestamp": pa.array([None], pa.timestamp("ms", "UTC")), "end_timestamp_ms": [253402300800000]}
    )
    assert shown(beyond, 80)[0].split() == ["end_timestamp", "end_timestamp_ms"]


def test_long_texts_are_cut_first() -> None:
    assert shown(OFFSETS, 100) == [
        "group_id                         topic     partition      offset  metadata  commit_timestamp",
        "─" * 100,
        'billing                          orders            0          42  ""        2023-11-14T22:13:20.123Z',
        "payments-settlement-service.eu…  invoices         11  1234567890  null      null",
        "long texts cut in group_id; --wide shows all",
    ]


def test_then_columns_are_left_out_from_the_right() -> None:
    assert shown(OFFSETS, 62) == [
        "group_id             topic     partition      offset  metadata",
        "─" * 62,
        'billing              orders            0          42  ""',
        "payments-settlemen…  invoices         11  1234567890  null",
        "long texts cut in group_id; 1 column left out:",
        "commit_timestamp; --wide shows all",
    ]
    assert shown(OFFSETS, 42)[4:] == [
        "long texts cut in group_id; 3 columns left",
        "out: offset, metadata, commit_timestamp;",
        "--wide shows all",
    ]
    few = OFFSETS.select(["partition", "offset", "topic", "commit_timestamp_ms"])
    assert shown(few, 25)[4:] == [
        "2 columns left out:",
        "topic,",
        "commit_timestamp_ms;",
        "--wide shows all",
    ]


ESSENTIAL = ("group_id", "topic", "partition", "offset")


def test_essential_columns_stay_and_are_folded_and_details_go_first() -> None:
    table = OFFSETS.select(["group_id", "metadata", "topic", "commit_timestamp", "partition", "offset"])
    lines = shown(table, 60, essential=ESSENTIAL, details=("metadata",))
    assert lines == [
        "group_id                     topic     partition      offset",
        "─" * 60,
        "billing                      orders            0          42",
        "payments-settlement-         invoices         11  1234567890",
        "service.eu_west",
        "2 columns left out: metadata, commit_timestamp; --wide shows",
        "all",
    ]


SAME = pa.table(
    {
        "group": ["billing"] * 3,
        "topic": ["orders", "orders", "returns"],
        "host": ["a host, far away"] * 3,
        "number": pa.array([None] * 3, pa.int32()),
        "kind": ["classic"] * 3,
        "state": ["Empty", "Stable", "Dead"],
    }
)


def test_what_is_the_same_in_every_row_goes_first_and_is_told() -> None:
    assert shown(SAME, 80)[0].split() == SAME.column_names
    assert shown(SAME, 46) == [
        "group    topic    host              state",
        "─" * 42,
        "billing  orders   a host, far away  Empty",
        "billing  orders   a host, far away  Stable",
        "billing  returns  a host, far away  Dead",
        "the same in every row: kind=classic; null in",
        "every row: number; --wide shows all",
    ]
    assert shown(SAME, 23, essential=("group", "state"), details=("topic",)) == [
        "group    state",
        "─" * 15,
        "billing  Empty",
        "billing  Stable",
        "billing  Dead",
        "the same in every row:",
        'host="a host, far',
        'away", kind=classic;',
        "null in every row:",
        "number; 1 column left",
        "out: topic; --wide",
        "shows all",
    ]


def test_an_essential_column_that_is_the_same_in_every_row_goes_before_others_that_are_not() -> None:
    lines = shown(SAME, 16, essential=("group", "state"))
    assert [line.split()[-1] for line in lines[:3]] == ["state", "─" * 15, "Empty"]
    assert "the same in every row: group=billing," in " ".join(lines[5:])


def test_of_one_row_nothing_is_the_same_but_null() -> None:
    lines = shown(SAME.slice(0, 1), 40)
    assert "the same" not in " ".join(lines)
    assert "null in every row: number" in " ".join(lines)


def test_rows_that_are_folded_stand_below_one_another_and_are_cut_behind_twelve_lines() -> None:
    table = pa.table({"detail": ["x " * 199 + "x", "short", None, "漢字 " * 11 + "漢字"], "number": [1, 2, 3, 4]})
    lines = shown(table, 28, essential=("detail",))
    assert lines[2] == "x x x x x x x x x x        1"
    assert lines[3:13] == ["x x x x x x x x x x"] * 10
    assert lines[13:16] == ["x x x x x x x x x x…", "short                      2", "null                       3"]
    assert lines[16:19] == ["漢字 漢字 漢字 漢字        4", "漢字 漢字 漢字 漢字", "漢字 漢字 漢字 漢字"]
    assert lines[19:] == ["long texts cut in detail;", "--wide shows all"]
    assert len(shown(table.slice(1), 28, essential=("detail",))) == 7


def test_names_in_camel_case_are_folded_at_their_humps() -> None:
    table = pa.table({"record": ["ShareGroupCurrentMemberAssignment", "x"], "number": [1, 2]})
    assert shown(table, 28, essential=("record",))[2:5] == [
        "ShareGroupCurrent          1",
        "MemberAssignment",
        "x                          2",
    ]


def test_rows_are_blocks_before_an_essential_column_goes() -> None:
    assert shown(OFFSETS, 40, essential=ESSENTIAL)[:12] == [
        "1 of 2 ─────────────────────────────────",
        "group_id             billing",
        "topic                orders",
        "partition            0",
        "offset               42",
        'metadata             ""',
        "commit_timestamp     2023-11-14T22:13:",
        "                     20.123Z",
        "commit_timestamp_ms  1700000000123",
        "2 of 2 ─────────────────────────────────",
        "group_id             payments-",
        "                     settlement-service.",
    ]
    assert shown(OFFSETS.slice(0, 1), 24, essential=ESSENTIAL) == [
        "1 of 1 ─────────────────",
        "group_id: billing",
        "topic: orders",
        "partition: 0",
        "offset: 42",
        'metadata: ""',
        "commit_timestamp: 2023-",
        "11-14T22:13:20.123Z",
        "commit_timestamp_ms:",
        "1700000000123",
    ]


def test_where_not_even_two_columns_fit_rows_are_blocks() -> None:
    table = pa.table({"name": ["a long name, longer than twenty"], "number": [1234567], "extra": ["another long text"]})
    assert shown(table, 18) == [
        "1 of 1 ───────────",
        "name: a long name,",
        "longer than twenty",
        "number: 1234567",
        "extra: another",
        "long text",
    ]
    assert shown(table, 20)[1:4] == ["name    a long name,", "        longer than", "        twenty"]
    assert shown(table, 1)[:3] == ["1 of 1", "name: a long", "name, longer"]


def test_names_of_columns_are_folded_at_their_underscores() -> None:
    table = pa.table({"value_of_it_ms": [1795227217139], "log_offset": [7], "_x": ["y"]})
    assert shown(table, 40)[0] == "value_of_it_ms   log_offset   _x"
    assert shown(table, 31) == [
        " value_of_it_     log_   _",
        "           ms   offset   x",
        "──────────────────────────",
        "1795227217139        7   y",
    ]


def test_styles_are_for_terminals_that_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"a": ["x", None]})
    styled = ["\x1b[1ma\x1b[0m", "────", "x", "\x1b[2mnull\x1b[0m"]
    plain = ["a", "────", "x", "null"]
    assert shown(table, 80, styles=True) == styled
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown(table, 80, styles=True) == plain
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert shown(table, 80, styles=True) == plain


def test_control_characters_are_escaped_and_wide_ones_take_two_cells() -> None:
    table = pa.table({"name": ["a\x1b[2J\n", "漢字", "e\u0301"], "number": [1, 2, 3]})
    assert shown(table) == [
        "name         number",
        "───────────────────",
        r"a\x1b[2J\n        1",
        "漢字              2",
        "e\u0301                 3",
    ]
    assert {width_of(line) for line in shown(table)} == {19}
    narrow = shown(pa.table({"name": ["漢字" * 20, "x" * 60], "number": [1, 2]}), 26)
    assert narrow[2:4] == ["漢字漢字漢字漢字…        1", "xxxxxxxxxxxxxxxxx…       2"]
    assert [width_of(line) for line in narrow[1:4]] == [26, 26, 26]


def test_structures() -> None:
    counts = pa.array([[("v3", 1), ("v4", 20)], None, []], pa.map_(pa.string(), pa.int64()))
    table = pa.table({"counts": counts, "tree": [{"a": [1]}, None, {"a": None}]})
    assert shown(table)[2:] == ['v3: 1, v4: 20   {"a":[1]}', "null            null", '                {"a":null}']


def test_no_rows_and_no_columns() -> None:
    assert shown(OFFSETS.slice(0, 0), 140)[0].split() == [
        "group_id", "topic", "partition", "offset", "metadata", "commit_timestamp",
    ]  # fmt: skip
    assert shown(pa.table({}), 80) == [""]


def test_many_rows_are_written_in_pieces() -> None:
    count = 70_000
    table = pa.table({"number": range(count), "text": ["x"] * (count - 1) + ["longest"]})
    lines = shown(table)
    assert len(lines) == count + 2
    assert lines[2:4] == ["     0   x", "     1   x"]
    assert lines[-1] == " 69999   longest"


def test_in_a_table_of_very_many_rows_long_texts_are_cut() -> None:
    table = pa.table({"name": ["a name that is too long for that"] * 20_001, "number": range(20_001)})
    lines = shown(table, 30, essential=("name",))
    assert len(lines) == 20_001 + 4
    assert lines[2].split("…")[1].split() == ["0"]


# -- texts that could be taken for others, and long ones ---------------------------------------------------------------


def test_texts_that_look_like_others_stand_in_quotes() -> None:
    texts = ["", " ", "a ", " a", "a b", "null", None, '""', "NULL", "\t"]
    cells = ['""', '" "', '"a "', '" a"', "a b", '"null"', "null", r'"\"\""', "NULL", r"\t"]
    lines = [f"{cell:<6}   {number}" for number, cell in enumerate(cells)]
    assert shown(pa.table({"text": texts, "n": range(10)}), wide=True)[2:] == lines
    assert shown(pa.table({"text": ["", ""], "n": [1, 2], "long": ["x" * 30, "y" * 30]}), 24, essential=("n", "long"))[
        -3:
    ] == ["the same in every row:", 'text=""; --wide shows', "all"]


@pytest.mark.parametrize("long", ["g" * 249, "漢" * 40])
def test_a_long_text_makes_its_own_row_longer_and_no_other(long: str) -> None:
    """This applies if the output is not a terminal and nothing is cut."""
    table = pa.table({"group_id": ["billing", long, "y" * 64], "offset": [1, 2, 3]})
    assert shown(table) == [
        f"{'group_id':<64}   offset",
        "─" * 73,
        f"{'billing':<64}        1",
        f"{long}        2",
        f"{'y' * 64}        3",
    ]
    assert shown(table.slice(0, 2)) == [
        "group_id   offset",
        "─" * 17,
        "billing         1",
        f"{long}        2",
    ]
