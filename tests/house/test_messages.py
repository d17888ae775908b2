"""The list of all messages, tests/data/messages.txt, which `make check` compares, and texts drawn by seed."""

from __future__ import annotations

from tools import draw_texts, message_list


def test_messages_of_all_kinds_are_listed() -> None:
    lines = {line.strip() for line in message_list.LIST.read_text(encoding="utf-8").splitlines()}
    assert "generator/kafka_records_codegen/cli.py" in lines
    assert "--details is only for text: json and html always have all details" in lines
    assert "list the differences between two sets of specs, and what they break" in lines


def test_a_seed_draws_the_same_texts() -> None:
    first = draw_texts.drawn(message_list.ROOT, 28)
    assert len(first) == 30
    assert first == draw_texts.drawn(message_list.ROOT, 28) != draw_texts.drawn(message_list.ROOT, 29)
