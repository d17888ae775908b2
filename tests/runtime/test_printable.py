"""Text from files as a terminal may see it."""

from __future__ import annotations

import json

import pytest

from kafka_records_runtime.text.printable import json_printable, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe ✓ 🚚 plain", "größe ✓ 🚚 plain"),
        ("two\r\nlines\tand a tab", r"two\r\nlines\tand a tab"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("\x7f\x85\xa0", r"\x7f\x85\xa0"),
        ("\u200f\u202e\u2066\u061c", r"\u200f\u202e\u2066\u061c"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("\udcff", r"\udcff"),
        ("\U000e0001", r"\U000e0001"),
        ("\u3164\u115f\u1160\uffa0\u2800 \u1100", "\\u3164\\u115f\\u1160\\uffa0\\u2800 \u1100"),
        ("", ""),
    ],
)
def test_what_is_not_printable_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(text).isprintable()


def test_every_character_of_json_that_is_escaped_stays_the_same_character() -> None:
    characters = [chr(number) for number in (*range(0x3000), 0xD800, 0xDFFF, 0xFEFF, 0xE0001, 0x10FFFF)]
    text = json.dumps(characters, ensure_ascii=False)
    shown = json_printable(text)
    assert shown.isprintable()
    assert json.loads(shown) == characters
    assert json_printable('"\u3164\u2800"') == r'"\u3164\u2800"'
    assert json_printable('{"a":"größe"}') == '{"a":"größe"}'
