"""Words and forms that the texts of this repository avoid, each with what to write instead (CONTRIBUTING.md, Style).

Docstrings, comments, messages and other texts of Python files are read, and the paragraphs of pages. A form is a
pattern that hits what is odd and little else: `behind the` for *after the* is one, `two records behind` is not.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tools.texts import Text, tree_texts

ROOT = Path(__file__).resolve().parents[2]

COVERED: Final[tuple[str, ...]] = (
    "generated",
    "generator",
    "spark_udfs",
    "tools",
    "tests",
    "examples",
    "docs",
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
)
"""The folders and pages whose texts are free of all forms: all that have Python files or pages."""

LEFT_OUT: Final = (
    "CHANGELOG.md",
    "tests/data/plain_words",
    "tests/house/test_plain_words.py",
    "spark_udfs/kafka_records_tables/report/page/vendored",
)
"""Past entries of the changelog stay as they are, and so do the texts that readers were given; this file has to name
the forms."""

_LAG = "".join(
    rf"(?<!{word} )" for word in ("is", "are", "was", "far", "fall", "falls", "records", "lags", "much", "one")
)
_NOUN = r"(?:a|an|another|each|every|it|its|that|the|their|them|these|this|those|what|which)"
_HOW = r"(?:better|earlier|later|less|longer|more|other|such|worse)"

FORMS: Final = {
    rf"{_LAG}\bbehind {_NOUN}\b": "after (behind is for lag)",
    r"\bstands?\b(?! for\b| still\b| out\b| up\b|-)|\bstood\b(?! for\b| still\b)": "is, are, was",
    r"\banew\b": "again; recreated, rewritten, starts over",
    r"\bhangs? on (?!a real)": "depends on",
    r"\b(?:nobody|none) (?:can |could )?(?:tells?|told|says|knows|knew)\b": "it is unknown",
    r"(?:^|[.:;] )Who (?:[a-z]+s|does|has|is|was)\b(?![^.]*\?)": "If you …, use …; to …, use …",
    r"\bwhatever\b": "any, everything that, regardless of",
    r"\bfor (?:its|their|the) \w+ alone\b": "only for",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"(?<![Tt]here )\b(?:is|was) no (?:hex|whole|number|text|name|moment|duration|folder|file|field)\b": "is not a",
    r"(?<![Tt]here )\b(?:is|are) none(?: of\b|[.:;,)]|$)": "is not one, is missing",
    r"\b[Hh](?:old|olds|eld|olding) (?:\w+ ){0,4}against\b": "compare with",
    r"\b(?:tells?|told|say|says|said) of\b": "says about, shows, reports",
    r"\bset back\b": "moved backwards",
    r"\bat hand\b": "available",
    r"\b(?:None|[Ee]mpty|[Rr]aises? \w+|null|False|True) where\b": "if (where is for places)",
    r"(?:^|[.:;] )(?:That|Those) of\b": "name the thing: The offset of, The files of",
    r"\bin vain\b|\bthe like\b|\bas good as\b": "without success; and so on; almost",
    r"\b(?:there|here)(?:of|upon)\b|\bought to\b|\bshall\b": "of it; then; must, should",
    r"\bnothing but\b": "only",
    r"\b(?:known|knows|know) (?:nothing )?of (?!them\b|it\b)(?=the|its|topics|what|logs|batches)": "about",
    r"(?:^|[.:;] )Nor (?:is|are|does|do|was)\b": "a sentence with a subject: It is not … either",
    r"\b(?:records|offsets|commits|rows) a second\b(?! time)": "per second",
    r"\bbe it\b|\bsave (?:for|that)\b": "whether; except",
    r"\b(?:gets?|got|getting) empty\b|\bwent away meanwhile\b": "becomes empty; disappeared in the meantime",
    r"\b(?:say|says|tell|tells|name|names) since when\b|^[Ss]ince when\b": "when it began, how long it has been",
}
"""By pattern, what to write instead."""

_PATTERNS: Final = {re.compile(pattern): instead for pattern, instead in FORMS.items()}


def hits(text: Text) -> list[str]:
    """Each odd form of a text: where it is, what was found, what to write instead."""
    plain = re.sub(r"\s+", " ", re.sub(r"`[^`]*`", "`…`", text.text))
    return [
        f"{text.path}:{text.line}: {found[0].strip()!r}: write {instead}"
        for pattern, instead in _PATTERNS.items()
        for found in pattern.finditer(plain)
    ]


def of_folders(*folders: str) -> list[str]:
    """The hits below some folders, or in some pages."""
    return [hit for text in tree_texts(ROOT, folders) if not text.path.startswith(LEFT_OUT) for hit in hits(text)]


# The texts of generated files are those of specs, which pages of docs/reference show as well.
@pytest.mark.parametrize(
    "folder", [pytest.param(each, marks=pytest.mark.matrix) if each == "generated" else each for each in COVERED]
)
def test_texts_are_plain(folder: str) -> None:
    assert of_folders(folder) == []


@pytest.mark.parametrize(
    "text",
    [
        "The bytes behind the header.",
        "Where each record stands.",
        "Who needs both takes this one.",
        "'soon' is no duration",
        "None where the log is empty.",
        "The topic was made anew, whatever its name.",
        "It reads 30 records a second. Nor is anything known of its logs.",
    ],
)
def test_odd_forms_are_found(text: str) -> None:
    assert hits(Text("message", "a.py", 1, 1, text)) != []


@pytest.mark.parametrize(
    "text",
    [
        "The group is behind the end of its log, and stands still.",
        "There is no file, and no more records behind `stands`.",
        "Who commits these offsets? The answer stands for all members.",
        "Records per second are read a second time; brokers know of them.",
    ],
)
def test_plain_forms_pass(text: str) -> None:
    assert hits(Text("message", "a.py", 1, 1, text)) == []
