"""The list of all messages, tests/data/messages.txt: it shows what a change does to them."""

from __future__ import annotations

from tools import draw_texts, message_list


def test_the_list_is_up_to_date() -> None:
    written = message_list.messages(message_list.ROOT)
    kept = message_list.LIST.read_text(encoding="utf-8")
    message_list.LIST.write_text(written, encoding="utf-8")
    assert written == kept, "the list was out of date and is written now: read the difference"


def test_messages_of_all_kinds_are_listed() -> None:
    lines = {line.strip() for line in message_list.LIST.read_text(encoding="utf-8").splitlines()}
    assert "generator/kafka_records_codegen/cli.py" in lines
    assert "--details is only for text: json and html always have all details" in lines
    assert "list the differences between two states of specs, and what they break" in lines


def test_a_seed_draws_the_same_texts() -> None:
    first = draw_texts.drawn(message_list.ROOT, 28)
    assert len(first) == 30
    assert first == draw_texts.drawn(message_list.ROOT, 28) != draw_texts.drawn(message_list.ROOT, 29)
