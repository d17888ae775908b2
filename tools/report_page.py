"""Write the page about the report, docs/report.md, from the declarations of its rules; with --check, compare it with
what is there.

tools/report_page.py            # write it
tools/report_page.py --check    # say whether it is what would be written
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from kafka_records_tables.report.report_parts import Level
from kafka_records_tables.report.rule import ReportRule, Threshold
from kafka_records_tables.report.rules import RULES
from kafka_records_tables.report.thresholds import OF_REPORT, of_report

PAGE = Path(__file__).parent.parent / "docs" / "report.md"

_HEAD = """\
# The report

<!-- Written by tools/report_page.py from the declarations in kafka_records_tables.report.rules: make generate. -->

What is wrong in the topics of the coordinators, for those who do not know the tables: since when, how sure that is,
which records show it, and what to do next, with the command.

```sh
kafka-records report /var/lib/kafka/data                                   # on the terminal: what needs somebody
kafka-records report /var/lib/kafka/data --details                         # with causes, evidence and all steps
kafka-records report --bootstrap broker-1:9092 --output report.html        # a page for people
kafka-records report /var/lib/kafka/data --fail-on high                    # exit status 3 if there is one
```

```python
from kafka_records_tables import read_report

report = read_report("tests/data/topics/kafka-4.3/segments")
[(finding.level.word, finding.kind, finding.group_ids) for finding in report.findings][:2]
# [('high', 'share_records_archived', ('ticket-classifiers',)), ('high', 'offsets_reset', ('payments-settlement',))]
report.findings[1].next[0].command.split()[:3]
# ['kafka-records', 'table', 'regressions']
```

`--group G` asks for what is about a group, `--topic-filter 'orders*'` for what is about some topics: a finding stays
that names such a topic, or a group with a row about one. It is judged and counted by all rows, so that "2 of 3
partitions" of a group are of all its topics. What is about the logs of the coordinators stays, for all that is told of
any topic hangs on them. Of tables stay the rows about such topics, as `table --topic-filter` prints them.

Give the retention of the brokers (`--retention`, their `offsets.retention.minutes`), for expiry is counted with it. The
moment of the report is `--as-of`, or else now for running brokers, and the time of the last record for files: in a copy
of last month nothing has become older since. Commands that ask brokers name the brokers of the report; in a report of
files they name `$BOOTSTRAP`, which you set.

## The first screen

As text, a report has what needs somebody (all levels but `note`), the worst first, in three lines each: what happened,
and to whom; since when, whether it goes on, how much was hit, and who has a part in it; what to do first, with the
command. `--details` prints all findings, notes too, with causes, effects, the records that show them and all steps.
What was met while reading is one line for each reason. A report in which nothing was found is one line.

A page has the same lines of each incident. Its details have a time axis: the records that show it, members that join
and leave, rebalances and commits, and offsets against the end of the log as far as rows have times.

## Levels

| level | what it asks of you |
|---|---|
"""

_ASKS = {
    Level.CRITICAL: "Somebody loses data, or a coordinator does not work, now or soon.",
    Level.HIGH: "Look at it today.",
    Level.MODERATE: "Look at it this week.",
    Level.LOW: "Look at it when there is time.",
    Level.NOTE: "Worth knowing; all is well.",
}

_JSON = """
## Causes

A finding is an incident: what happened (`problem`), what follows from it (`impact`), since when (the first record that
shows it), whether it goes on, how much was hit (`scale`), who (`who`), and what to do, the first step first. Findings
that follow from another one are its `effects`.

Each kind knows the causes that it can have. Records, metadata and ends of logs speak for or against each. A cause that
a fact rules out is not named; `refuted_by` has the fact. Where two remain, `decision` has the question that decides
between them, and the command that answers it. `lacked` says what the report did not have, and which causes it could not
tell apart for that.

`confidence` is about the cause: `high` where records show it, or it is the only one that remains and nothing was
missing; `medium` where more speaks for it than against it; `low` otherwise. `symptom_confidence` is about the problem:
where it is not `high`, `why_not_sure` says what no record holds, or what a cleaner may have taken.

## Thresholds

Levels go by named thresholds, below each kind. `kafka-records report --print-thresholds` prints a file of all of them,
with what each decides and why. A file for `--thresholds` (TOML) has those that differ:

```toml
[offsets_expiring]
high_within = "48h"
```

A name that no threshold has is refused, with the one that was meant, and so are two thresholds that contradict each
other, as a `high_within` above `within`. Of one kind and level, the worst
`report.most_of_a_kind` findings stand by themselves; the others are one, with counts and the command that lists them.

## The page

`--output report.html` writes one file for people: findings first, then numbers, groups, activity, who reads a topic,
and a page for each group, topic and table, which a link such as `report.html#group=billing` opens. It needs no network,
makes no request to anywhere and can be sent as it is; whoever opens it sees the names, offsets and metadata of the
topics. What a large cluster has beyond 15 MB is left out, and the page names the command that prints it. It opens in
browsers of 2023 and later.

## JSON

`--format json` writes one document: `format_version`, the `request`, `findings`, `numbers`, what is `missing`, what was
met while `reading`, `counts` (with the times of the first and the last record), and the rows of all `tables` as `table
--format json` prints them (`--no-tables` leaves them out).
[report.schema.json](../spark_udfs/kafka_records_tables/report/report.schema.json) is its schema. Every number names the
rows that it counts or sums.

## Since the last report

`--diff OLD.json` compares with an earlier JSON document: what is new, gone, worse or better, as text, and in JSON as
`diff`. A finding is the same one when it is of the same kind and about the same rows, whatever their number and times.
A finding that is summed up in one of the two reports is the same as one about its group or topic in the other, and a
summary is new only if it names a group or topic that had no such finding; a summary names 100 of them. An earlier
report about other groups or topics is refused. Another source, a later moment, another retention, other thresholds and
the like are named in notes (`diff.notes` in JSON).

```python
segments = "tests/data/topics/kafka-4.3/segments"
earlier = read_report(segments, as_of="2026-11-21T02:12:00Z")  # or the path of a JSON document
later = read_report(segments, diff=earlier)
len(later.diff.new), later.diff.worse, later.diff.gone
# (7, (), ())
later.diff.notes[0].partition(":")[0]  # what is found in them is new or gone for that
# 'one of the two reports lacks tables (group_lag, lag, log_ends, progress)'
```

## A job that watches

`--fail-on high` ends with exit status 3 while there is a finding of that level or a worse one. `--fail-on
new:high`, with `--diff`, does so once: when a finding is new, or has become worse, since that report. All
[exit statuses](command.md#exit-status): 0 complete, 1 rows are missing, 2 no answer, 3 findings; 1 wins over 3.

The job keeps its last report and compares with it. A new report takes its place where it is complete (0 or 3) and not
where rows are missing: what was found there would be old news for the next run.

```sh
last=/var/lib/kafka-records/last.json
watch="--bootstrap broker-1:9092 --no-tables --output $last.new --overwrite"
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
    0 | 3) mv "$last.new" "$last" ;;
esac
```

What a healthy cluster passes through in moments is no finding, so that two reports, taken one after the other, say the
same: a transaction counts from `transaction_open.open_after` on, and a group is judged when nothing has happened to it
for `report.group_settles_within`. So the report of a stored copy never judges a group by what happened in the last 15 s
before its last record. Where rows were missing in one of two reports, findings in them come and go for that.

How often it is right about clusters that were brought into trouble on purpose, by kind: [incidents.md](incidents.md).

## Kinds of findings

| kind | what it says | worst level |
|---|---|---|
"""


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when the page would change")
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
    overview = "".join(f"| [{rule.kind}](#{rule.kind}) | {rule.title} | {max(rule.levels).word} |\n" for rule in rules)
    of_all = [f"\nOf all kinds, as `{OF_REPORT}.NAME`:\n", *_thresholds(of_report())]
    return _HEAD + levels + _JSON + overview + "\n".join([*of_all, *(line for each in rules for line in _rule(each))])


def _rule(rule: ReportRule) -> Iterator[str]:
    yield f"\n### {rule.kind}\n"
    yield f"{rule.title[0].upper()}{rule.title[1:]}.\n"
    yield "\n\n".join(map(_wrapped, rule.about.split("\n\n"))) + "\n"
    if rule.tables:
        yield _wrapped(f"Made from {', '.join(f'[{name}](tables.md#{name})' for name in rule.tables)}.") + "\n"
    yield "| level | when |"
    yield "|---|---|"
    for level in sorted(rule.levels, reverse=True):
        yield f"| `{level.word}` | {rule.levels[level]} |"
    if rule.causes:
        yield ""
        yield "| cause | what it is | what speaks for it and against it |"
        yield "|---|---|---|"
        for cause in rule.causes:
            yield f"| `{cause.name}` | {cause.about} | {cause.evidence} |"
    for question in rule.questions:
        yield ""
        yield _wrapped(f"Between `{question.yes}` and `{question.no}`: {question.question}")
    if rule.folds:
        yield ""
        yield _wrapped(f"Told as effects of it: {', '.join(f'[{each.kind}](#{each.kind})' for each in rule.folds)}.")
    if rule.thresholds:
        yield ""
        yield from _thresholds(rule.thresholds)


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def _thresholds(thresholds: Sequence[Threshold]) -> Iterator[str]:
    yield "| threshold | default | what it decides | why |"
    yield "|---|---|---|---|"
    for each in thresholds:
        yield f"| `{each.name}` | `{each.default}` | {each.about} | {each.reason} |"


if __name__ == "__main__":
    sys.exit(main())
