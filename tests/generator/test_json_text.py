"""The JSON dialect of spec files, its positions and the comment that leads a file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_records_codegen.spec.json_text import Node, leading_comment, parse
from kafka_records_codegen.spec.violations import SpecText


def read(text: str) -> tuple[Node | None, list[str]]:
    """The node, and what was reported as `line:column: path: message`."""
    source = SpecText("x.json", text)
    node = parse(source)
    return node, [f"{it.line}:{it.column}: {it.path}: {it.message}" for it in source.violations]


def plain(node: Node | None) -> Any:
    """The node as Python values; numbers keep their text."""
    assert node is not None
    if node.kind == "object":
        return {name: plain(member.value) for name, member in node.members.items()}
    if node.kind == "array":
        return [plain(item) for item in node.items]
    if node.kind in ("boolean", "null"):
        return {"true": True, "false": False, "null": None}[node.text]
    return node.text if node.kind == "string" else ("number", node.text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, -0.5e+3, true, false, null, {}, []]}', None),
        ('\ufeff{"a": "b"}', {"a": "b"}),
        ('/* c */ {"a" /**/ : // x\n "b" /***/ } // end', {"a": "b"}),
        ('{"a": "no // comment, /* none */ here"}', {"a": "no // comment, /* none */ here"}),
        ('{"a": 1, "a": 2}', {"a": ("number", "2")}),
        (r'{"a": "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}', {"a": '"\\/\b\f\n\r\té😀'}),
    ],
)
def test_accepted(text: str, value: object) -> None:
    node, problems = read(text)
    assert problems == []
    if value is not None:
        assert plain(node) == value


def test_numbers_keep_their_spelling() -> None:
    node, _ = read("[0, -1, 1.50, 2E5]")
    assert plain(node) == [("number", "0"), ("number", "-1"), ("number", "1.50"), ("number", "2E5")]


def test_every_value_and_name_knows_its_place() -> None:
    node, _ = read('// c\n{\n\t"a": [1,\n 2],\r\n  "é😀": {"b": null}}')
    assert node is not None
    assert (node.position.line, node.position.column) == (2, 1)
    array = node.members["a"]
    assert (array.position.line, array.position.column) == (3, 2)
    assert [(it.position.line, it.position.column) for it in array.value.items] == [(3, 8), (4, 2)]
    inner = node.members["é😀"].value.members["b"]
    assert (inner.position.line, inner.position.column) == (5, 10)
    assert (inner.value.position.line, inner.value.position.column) == (5, 15)


@given(st.lists(st.sampled_from([*"{}[],:\"'#/*\\u0 \n-1aé", "//", "/*", "*/", "null", '"a":'])).map("".join))
def test_any_text_is_read_or_reported(text: str) -> None:
    source = SpecText("x.json", text)
    assert parse(source) is not None or source.violations
    lines = text.split("\n")
    for violation in source.violations:
        assert 1 <= violation.column <= len(lines[violation.line - 1]) + 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1:1: $: the file is empty; a spec must be one JSON object"),
        ("// only\n", "2:1: $: the file is empty; a spec must be one JSON object"),
        ("{", "1:2: $: expected the name of an attribute in double quotes, found the end of the file"),
        ('{"a"}', "1:5: a: expected : and a value after the attribute's name, found '}'"),
        ('{"a": }', "1:7: a: expected a value, found '}'"),
        ('{"a": [1, , 2]}', "1:11: a[1]: expected a value, found ','"),
        ('{"a": {"b": [{"c"=1}]}}', "1:18: a.b[0].c: expected : and a value after the attribute's name, found '='"),
        ('{"a": 1', "1:8: $: expected a comma or the closing }, found the end of the file"),
        ('{"a": 1 2}', "1:9: $: expected a comma or the closing }, found '2'"),
        ('{"a": "b\nc"}', "1:7: a: the text that starts here does not end on its line"),
        ('{"a": 1} /* open', "1:10: $: the comment that starts here is never closed with */"),
        ('{"a": 1 / 2}', "1:9: $: expected a comma or the closing }, found '/'"),
        ("{a: 1}", "1:2: $: expected the name of an attribute in double quotes, found 'a'"),
        ("[" * 201, f"1:201: {'[0]' * 200}: nested more than 200 levels deep"),
    ],
)
def test_reading_stops(text: str, problem: str) -> None:
    node, problems = read(text)
    assert node is None or not node.is_whole or text.startswith('{"a": 1}')
    assert problems == [problem]


def test_what_was_read_before_the_stop_is_kept() -> None:
    node, _ = read('{"a": 1, "b": [2, {"c": 3, "d": }], "e": 4}')
    assert node is not None
    assert list(node.members) == ["a", "b"]
    array = node.members["b"].value
    assert [item.describe() for item in array.items] == ["the number 2", "an object"]
    assert list(array.items[1].members) == ["c"]
    assert [it.is_whole for it in (node, array, array.items[1], array.items[0])] == [False, False, False, True]


@pytest.mark.parametrize(
    ("text", "problem", "value"),
    [
        ('{"a": [1,],}', None, None),
        ('# c\n{"a": "b"}', "1:1: $: comments start with // or are between /* and */; # is not allowed", {"a": "b"}),
        ("{'a': \"b\"}", "1:2: $: texts must be in double quotes, not in single ones", {"a": "b"}),
        ('{"a": "b"} {}', "1:12: $: nothing may follow the end of the spec; one file holds one message", {"a": "b"}),
        ('{"a": "b" "c": "d"}', "1:11: $: a comma is missing before '\"'", {"a": "b", "c": "d"}),
        (
            '{"a": 010}',
            "1:7: a: '010' is not a JSON value; texts need double quotes, and numbers must not start with zero or +",
            {"a": "010"},
        ),
        (
            '{"a": NaN}',
            "1:7: a: 'NaN' is not a JSON value; texts need double quotes, and numbers must not start with zero or +",
            {"a": "NaN"},
        ),
        (
            r'{"a": "\x"}',
            '1:8: a: \\x is not an escape; JSON has \\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX',
            {"a": ""},
        ),
        (r'{"a": "\u12"}', "1:8: a: \\u takes four hexadecimal digits", {"a": "12"}),
        ('{"a": "b\tc"}', "1:9: a: control character U+0009 in a text; write it as \\u0009", {"a": "b\tc"}),
        (
            r'{"a": "\ud800"}',
            "1:7: a: half of a surrogate pair without the other half; such a text cannot be written as UTF-8",
            {"a": "?"},
        ),
    ],
)
def test_reading_goes_on(text: str, problem: str | None, value: object) -> None:
    node, problems = read(text)
    if problem is None:
        assert problems == [
            "1:9: a: there must be no comma before the closing ]",
            "1:11: $: there must be no comma before the closing }",
        ]
    else:
        assert problems == [problem]
        assert plain(node) == value


LICENCE = """\
// Licensed to the Apache Software Foundation (ASF) under one or more
// contributor license agreements.  See the NOTICE file.
//
// Unless required by applicable law or agreed to in writing, software is distributed WITHOUT WARRANTIES. See the
// License for the specific language governing permissions and limitations under the License.
"""


@pytest.mark.parametrize(
    ("text", "history"),
    [
        ("{}", ""),
        ("// one\n//  two\n{} // behind", "one\n two"),
        ("// one\n\n// two\n//\n// three\n{}", "one\n\ntwo\n\nthree"),
        ("/* one */\n/*\n * two\n *   indented\n */\n{}", "one\n\ntwo\n  indented"),
        ("/** one\n    two */{}", "one\n   two"),
        (LICENCE + "{}", ""),
        (LICENCE + "\n// Version 1 came with KIP-1.\n{}", "Version 1 came with KIP-1."),
        (LICENCE + "//\n// Version 1 came with KIP-1.\n{}", "Version 1 came with KIP-1."),
        ("/*\n * SPDX-License-Identifier: Apache-2.0\n */\n// one\n{}", "one"),
        ("// one\n// Copyright 1999\n\n// two\n{}", "two"),
        ("// one\n\n// licensed to nobody\n{}", "one\n\nlicensed to nobody"),
    ],
)
def test_leading_comment(text: str, history: str) -> None:
    assert leading_comment(text) == history
