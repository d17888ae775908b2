"""Write the page about the report, docs/report.md, from the declarations of its rules; with --check, compare it with
what is there.

tools/report_page.py            # write the page
tools/report_page.py --check    # report whether the page is up to date
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.rule import ReportRule, Threshold
from kafka_records_tables.report.rules import RULES
from kafka_records_tables.report.thresholds import OF_REPORT, of_report

PAGE = Path(__file__).parent.parent / "docs" / "report.md"

_HEAD = """\
# The report

<!-- Written by tools/report_page.py from the declarations in kafka_records_tables.report.rules: make generate. -->

The report says what is wrong in the coordinators' topics, when it began, how certain that is, which records show it,
and what to do next, with the command.

```sh
kafka-records report /var/lib/kafka/data                                   # on the terminal: what needs attention
kafka-records report /var/lib/kafka/data --details                         # all findings, causes, evidence, steps
kafka-records report --bootstrap broker-1:9092 --output report.html        # a page for people
kafka-records report /var/lib/kafka/data --fail-on high                    # exit status 3 if there is one
```

```python
from kafka_records_tables import read_report

report = read_report("tests/data/topics/kafka-4.3/segments")
[(finding.level.word, finding.kind, finding.group_ids[0]) for finding in report.findings][:2]
# [('high', 'share_records_archived', 'ticket-classifiers'), ('moderate', 'share_offsets_reset', 'archive-pickers')]
report.findings[1].rows[0].table
# 'share_partitions'
```

`--group G` limits the report to a group, and `--topic-filter 'orders*'` to these topics and the groups that have a row
about one of them. Findings about the coordinators' logs stay. If the source has nothing about these groups or topics,
the exit status is 2.

Pass the brokers' `offsets.retention.minutes` with `--retention`: expiry depends on it. Commands in a report of files
name the brokers as `$BOOTSTRAP`, which you set.

The moment of the report is `--as-of`, by default now for running brokers and the time of the last record for files.

- Durations such as `--as-of 2h` count back from now, also for files.
- At an earlier moment it is unknown where logs ended. Then findings from `lag`, `group_lag`, `progress` or `log_ends`
  are missing or less detailed, and the last line says so.

## The first screen

As text, a report lists what needs attention (all levels except `note`), the worst first, with the likeliest cause and
the first step; then up to three notes about records that were lost or read twice, or may have been.

## Levels

| level | what to do |
|---|---|
"""

_ASKS = {
    Level.CRITICAL: "Somebody loses data, or a coordinator does not work, now or soon.",
    Level.HIGH: "Look at it today.",
    Level.MODERATE: "Look at it this week.",
    Level.LOW: "Look at it when there is time.",
    Level.NOTE: "Worth knowing, but no alarm.",
}

_JSON = """
## Causes

A finding is an incident. It began with the first record that shows it. Findings that follow from another one are its
`effects`.

Records, metadata and log ends support or rule out the possible causes of a kind. In JSON, `refuted_by` has the fact
that rules a cause out; the text does not show such causes. If two remain, `decision` has the question that decides
between them, and the command that answers it. `lacked` lists what the report did not have, and the causes that it
could not distinguish.

`confidence` is about the cause: `high` if records show it, or if it is the only one left and nothing was missing;
`medium` if more evidence supports it than contradicts it; otherwise `low`. `symptom_confidence` is about the problem:
if it is not `high`, `why_not_sure` says what no record shows, or what a cleaner may have removed.

## Thresholds

`kafka-records report --print-thresholds` prints a file with all thresholds, and the reason for each default. To change
some, list them in a file for `--thresholds` (TOML):

```toml
[offsets_expiring]
high_within = "48h"
```

Unknown names are errors, and so are thresholds that contradict each other, such as a `high_within` above `within`.

## The page

`--output report.html` writes one file: the incidents, then numbers, groups, activity, and a page for each group, topic
and table, with links such as `report.html#group=billing`. It makes no network requests. Everybody who opens it sees
the names, offsets and metadata of the topics. Above 15 MB, rows are left out, and the page shows the command that
prints them. It needs a browser of 2023 or later.

## JSON

`--format json` writes one document, with the rows of all tables as `table --format json` prints them (`--no-tables`
leaves them out). Its schema is [report.schema.json](../spark_udfs/kafka_records_tables/report/report.schema.json).

## Since the last report

`--diff OLD.json` shows what is new, gone, worse or better than in an earlier JSON document, as text or, in JSON, as
`diff`. Findings of one kind about the same rows are the same, regardless of numbers and times. A summary of many
findings is new only if it names (at most 100 names) a group or topic that had no such finding before. An earlier
report about other groups or topics is an error. Another source, moment, retention or threshold is a note
(`diff.notes`).

In Python, pass an earlier report, or the path of its JSON document, as `diff` to `read_report`.

## A job that watches

`--fail-on high` exits with status 3 if there is a finding of that level or a worse one; `--fail-on new:high`, with
`--diff`, only if it is new or worse since the earlier report. Let only a complete report
([status](command.md#exit-status) 0 or 3) replace the last one: otherwise findings that an incomplete one lacks look
new in the next run.

```sh
last=/var/lib/kafka-records/last.json
next=/var/lib/kafka-records/next.json
watch="--bootstrap broker-1:9092 --no-tables --output $next --overwrite"
if [ -e "$last" ]; then
    kafka-records report $watch --diff "$last" --fail-on new:high
else
    kafka-records report $watch --fail-on high
fi
status=$?
case $status in
    0) ;;
    3) echo "Kafka: something to look at since the last run: see $last" ;;
    *) echo "the check itself failed: rows are missing (1) or there is no report (2)" ;;
esac
case $status in
    0 | 3) mv "$next" "$last" ;;
esac
```

## Kinds of findings

A threshold has its default in parentheses at the first mention. Causes that a kind always rules out are only in JSON.
Kinds that judge the state of a group leave out groups with an event within `report.group_settles_within`.

"""

_OF_ALL = f"Thresholds of all kinds, as `{OF_REPORT}.NAME`:\n"

_SHORT = 20
"""Levels of this many words or fewer are a sentence."""


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the page would change")
    options = parser.parse_args()
    text = page(RULES)
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print("docs/report.md is not what the declarations say: run make generate", file=sys.stderr)
        return 1
    return 0


def page(rules: Sequence[ReportRule]) -> str:
    """The page about some rules."""
    levels = "".join(f"| `{level.word}` | {_ASKS[level]} |\n" for level in sorted(Level, reverse=True))
    lines = [_OF_ALL, *_thresholds(of_report())]
    return _HEAD + levels + _JSON + "\n".join([*lines, *_sections(rules)])


def _sections(rules: Sequence[ReportRule]) -> Iterator[str]:
    """The sections about the kinds. A cause that several kinds have is described for the first of them."""
    described: dict[tuple[str, str, str], str] = {}
    for rule in rules:
        yield from _rule(rule, described)
        for cause in rule.causes:
            described.setdefault((cause.name, cause.about, cause.evidence), rule.kind)


def _rule(rule: ReportRule, described: Mapping[tuple[str, str, str], str]) -> Iterator[str]:
    text = " ".join([rule.about, *rule.levels.values(), *(cause.evidence for cause in rule.causes)])
    explained = [each for each in rule.thresholds if f"`{each.name}`" in text]
    defaults = {each.name: each.default for each in explained}
    yield f"\n### {rule.kind}\n"
    yield _wrapped(f"*{rule.title[0].upper()}{rule.title[1:]}.*") + "\n"
    yield "\n\n".join(map(_wrapped, _with_defaults(rule.about, defaults).split("\n\n"))) + "\n"
    is_short = len(" ".join(rule.levels.values()).split()) + len(rule.levels) <= _SHORT
    levels = [
        f"`{level.word}`: {_with_defaults(rule.levels[level], defaults)}" for level in sorted(rule.levels, reverse=True)
    ]
    if is_short:
        yield _wrapped(f"Level {'; '.join(levels).removesuffix(': always')}.")
    else:
        yield from map(_item, levels)
    if len(rule.causes) == 1:
        # What supports the only cause is what the kind is about.
        (cause,) = rule.causes
        proof = _with_defaults(re.sub(r"^for: [^;]*(?:; )?", "", cause.evidence), defaults)
        yield f"\n{_wrapped(f'Cause `{cause.name}`: {cause.about}{_evidence(proof)}.')}"
    elif rule.causes:
        yield "\nCauses:\n"
        for cause in (each for each in rule.causes if not each.evidence.startswith("refuted: ")):
            first = described.get((cause.name, cause.about, cause.evidence))
            shows = _evidence(_with_defaults(cause.evidence, defaults))
            yield _item(f"`{cause.name}`: " + (f"as for [{first}](#{first})" if first else f"{cause.about}{shows}"))
    named = ", ".join(f"`{name}` = `{default}`" for name, default in defaults.items())
    others = [each for each in rule.thresholds if each not in explained]
    if named or others:
        yield ""
        yield _wrapped(f"Thresholds: {named}." if named else "Thresholds:")
    if others:
        yield ""
        yield from _thresholds(others)


def _with_defaults(text: str, defaults: dict[str, str | int | float]) -> str:
    """A text in which the first mention of a threshold has its default, which is then removed from those to show."""
    for name in [each for each in defaults if f"`{each}`" in text]:
        default = defaults.pop(name)
        text = (
            text.replace(f"(`{name}`", f"(`{name}`, {default}", 1)
            if f"(`{name}`" in text
            else text.replace(f"`{name}`", f"`{name}` ({default})", 1)
        )
    return text


def _evidence(text: str) -> str:
    """Evidence as a part of a sentence, in parentheses; empty if there is none."""
    return f" ({text[0].lower()}{text[1:].removesuffix('.')})" if text else ""


def _wrapped(text: str, indent: str = "") -> str:
    words = " ".join(text.split())
    return textwrap.fill(words, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _item(text: str) -> str:
    """An element of a list."""
    return _wrapped(f"- {text}", "  ")


def _thresholds(thresholds: Sequence[Threshold]) -> Iterator[str]:
    yield from (_item(f"`{each.name}` = `{each.default}`: {each.about}") for each in thresholds)


if __name__ == "__main__":
    sys.exit(main())
