"""`kafka-records report`: reports problems in the topics of the coordinators, when they began, and what to do."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from kafka_records_tables.commands.catalog import catalog_of
from kafka_records_tables.commands.output_options import file_path
from kafka_records_tables.commands.reading_options import (
    add_as_of,
    add_assume,
    add_engine,
    add_groups,
    add_state,
    check_engine,
    check_state_options,
    require_engine,
    spark_settings,
)
from kafka_records_tables.commands.source_options import add_sources, given_source, path_argument
from kafka_records_tables.console.endings import EXIT_STATUS_HELP, UsageError, require
from kafka_records_tables.near_names import near
from kafka_records_tables.query import QueryError
from kafka_records_tables.report.levels import FailOn, Level
from kafka_records_tables.table_options import value_of
from kafka_records_tables.tables.declaration import RETENTION, Option
from kafka_records_tables.tables.words.check_words import PARTITIONS

_DESCRIPTION = """\
Report problems in __consumer_offsets, __share_group_state and __transaction_state: when they began, how certain they
are, which records show them, and what to do next, with commands. Nothing is changed, and nothing is sent anywhere.
"""

_DETAILS = """\
levels:
  critical somebody loses data, or a coordinator does not work, now or soon
  high       look at it today
  moderate   look at it this week
  low        look at it when there is time
  note       worth knowing; all is well

formats:
  text       for the terminal: findings that need action, the worst first, in a few lines each: the problem; when it
             began and how bad it is; the likeliest causes; what to do first. --details prints all findings, with all
             causes, effects, evidence and steps
  json       everything, for programs; docs/report.md names the schema
  openmetrics  the number of findings by level and by kind, for Prometheus (docs/metrics.md)
  html       a page for --output: one file that opens in any browser, without a network; with tables and plots

docs/report.md has all kinds of findings, with their levels and thresholds. --print-thresholds writes a file with the
defaults; a file for --thresholds has only those that differ:

  [offsets_expiring]
  high_within = "48h"

--topic-filter keeps the findings that name a matching topic, or a group with a row about one. All rows still decide how
bad they are, and count: "2 of 3 partitions" of a group covers all of its topics. Findings about the logs of the
coordinators stay, because all findings depend on these. Tables keep the rows about matching topics.

If no row is about any group of --group, or about a topic of --topic-filter, there is no report: the exit status is 2.

Expiry depends on --retention: give the offsets.retention.minutes of the brokers.

The moment of the report is --as-of, or else now for running brokers, and the time of the last record for files. 2h
counts back from now, for files too. Files show nothing after their last record, so for a later moment the report is as
of that record. For an earlier moment, and on running brokers, it is unknown where logs ended: groups that fall behind,
stand still or fail on a record are not found then. Leave out --as-of to find them.
"""

_EXAMPLES = """\
examples:
  kafka-records report /var/lib/kafka/data
      on the terminal
  kafka-records report /var/lib/kafka/data --details
      with causes, evidence and all steps
  kafka-records report --bootstrap broker-1:9092 --command-config client.properties --output report.html
      a running cluster, as a page
  kafka-records report /var/lib/kafka/data --retention 14d --group billing --topic-filter 'orders*'
      about one group and some topics
  kafka-records report /var/lib/kafka/data --partitions 50
      __consumer_offsets has 50 partitions: also find records in partitions where no coordinator looks for them
  kafka-records report kept --as-of 2h --output report.json
      as of two hours ago, from the directory of a snapshot, for programs
  kafka-records report --bootstrap broker-1:9092 --output now.json --no-tables --overwrite --fail-on high
      for a job that watches: the exit status is 3 if there is something to do today
  kafka-records report --bootstrap broker-1:9092 --diff yesterday.json
      what is new, and what is gone, since yesterday's report
  kafka-records report --bootstrap broker-1:9092 --diff last.json --fail-on new:high --output next.json --overwrite
      for a job that reports each thing once: the exit status is 3 if something came up since its last report. A
      complete report (0 or 3) then replaces last.json; docs/report.md has the whole script
  kafka-records report --bootstrap broker-1:9092 --state /var/lib/kafka-records/report --output now.json --overwrite
      for a timer: records are kept, and the next run reads only new ones from the brokers
  kafka-records report --print-thresholds > thresholds.toml
      all thresholds, to edit and pass with --thresholds
"""

_FORMATS: Final = ("text", "json", "html", "openmetrics")
_FORMAT_OF: Final = {".json": "json", ".txt": "text", ".html": "html", ".htm": "html", ".prom": "openmetrics"}


def add_parser(commands: Any) -> None:
    """Add the subcommand to the subparsers `commands`."""
    parser = commands.add_parser(
        "report",
        help="report problems: when they began, how certain they are, and what to do",
        description=_DESCRIPTION,
        epilog=f"{_DETAILS}\n{_EXAMPLES}\n{EXIT_STATUS_HELP}",
    )
    add_sources(parser)
    parser.without["--source"] = (
        "a report needs history, which only the logs have; table and sql take --source requests"
    )
    add_groups(parser, "only findings and rows about this group", "only findings and rows about topics")
    add_as_of(parser, "the report as of this moment: 2026-01-31T12:00 (UTC), milliseconds since 1970, or 2h, 7d ago")
    parser.add_argument(
        "--retention",
        type=_retention,
        metavar="DURATION",
        help="the brokers' offsets.retention.minutes, as a duration such as 14d (default: 7d)",
    )
    parser.add_argument("--partitions", type=_partitions, metavar="N", help=PARTITIONS.about)
    parser.add_argument(
        "--thresholds",
        type=path_argument,
        metavar="FILE",
        help="TOML file with the thresholds that differ from the defaults",
    )
    parser.add_argument(
        "--print-thresholds",
        action=_PrintThresholds,
        nargs=0,
        help="print a TOML file of all thresholds, with what each one decides and why, then exit",
    )
    add_assume(parser)
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        help=(
            "format of the report (default: by the extension of the file, .html, .json, .prom or .txt, or "
            "text without --output)"
        ),
    )
    parser.add_argument(
        "--output",
        type=file_path("the report goes to standard output"),
        metavar="PATH",
        help="write to this file instead of standard output",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the --output file if it exists")
    parser.add_argument(
        "--details",
        action="store_true",
        help="in text: print all findings and notes with causes, effects, evidence and all steps (json and html "
        "always do)",
    )
    parser.add_argument("--no-tables", action="store_true", help="with --format json: leave out the rows of the tables")
    parser.add_argument(
        "--diff",
        type=path_argument,
        metavar="OLD.json",
        help="show what is new, gone, worse or better since this earlier report, which was written with --format json "
        "and is about the same groups and topics",
    )
    parser.add_argument(
        "--fail-on",
        type=_fail_on,
        metavar="[new:]LEVEL",
        help="exit with status 3 if a finding has this level or a higher one; with new:LEVEL, only if such a finding "
        "is new or has become worse since the report given with --diff",
    )
    add_state(parser)
    add_engine(parser)
    parser.set_defaults(run=run, parser=parser)


class _PrintThresholds(argparse.Action):
    """Prints the thresholds file and ends the command."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from kafka_records_tables.report.thresholds import thresholds_file

        print(thresholds_file(), end="")
        parser.exit()


def _retention(text: str) -> int:
    return int(_value_of(RETENTION, text))


def _partitions(text: str) -> dict[str, int]:
    return dict(_value_of(PARTITIONS, text))


def _value_of(option: Option, text: str) -> Any:
    try:
        return value_of(option, text)
    except QueryError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix(f"{option.name}: ")) from None


def _fail_on(text: str) -> FailOn:
    words = {level.word: level for level in Level}
    new, colon, word = text.rpartition(":")
    if new != ("new" if colon else ""):
        raise argparse.ArgumentTypeError(f"{text!r}: the only prefix of a level is new, as in new:high")
    if word not in words:
        raise argparse.ArgumentTypeError(f"{word!r} is not a level; {near(word, words)}")
    return FailOn(words[word], only_new=bool(colon))


def run(options: argparse.Namespace) -> int:
    """Write the report, and return the exit status."""
    require_engine("report", options)
    check_engine(options)
    catalog_of(options.package)
    if options.fail_on is not None and options.fail_on.only_new and options.diff is None:
        raise UsageError("--fail-on new:… needs --diff OLD.json, the earlier report to compare with")
    form = _format(options)
    limits = _thresholds(options)
    given = given_source(options)
    from kafka_records_tables.commands.report_run import ReportRun, ReportTask
    from kafka_records_tables.report.making import NamedSource, report_question

    question = report_question(
        tuple(options.group) or None,
        options.as_of,
        options.retention,
        options.partitions,
        options.assume,
        options.package,
    )
    check_state_options(options, given, question)
    task = ReportTask(
        question,
        given,
        NamedSource(_source_arguments(options), options.bootstrap, options.command_config),
        form,
        options.output,
        overwrite=options.overwrite,
        topics=tuple(options.topic_filter),
        thresholds=limits,
        processes=options.processes,
        spark=spark_settings(options),
        state=options.state,
        with_tables=not options.no_tables,
        with_details=options.details,
        diff=None if options.diff is None else Path(options.diff),
        fail_on=options.fail_on,
    )
    return ReportRun(task).run()


def _format(options: argparse.Namespace) -> str:
    """The format. Raises a UsageError for options that are incompatible with it."""
    ending = "" if options.output is None else options.output.suffix.lower()
    if options.format is None and options.output is not None and ending not in _FORMAT_OF:
        raise UsageError(
            f"--output {options.output}: its extension does not name a format: use .html, .json, .prom or .txt, "
            f"or add --format"
        )
    form: str = options.format or _FORMAT_OF.get(ending, "text")
    if form == "html" and options.output is None:
        raise UsageError("--format html writes a file: give its name with --output, as in --output report.html")
    if form == "openmetrics":
        require("report --format openmetrics", "metrics", "prometheus_client")
    if options.details and form != "text":
        raise UsageError("--details is only for text: json and html always have all details")
    if options.no_tables and form != "json":
        raise UsageError("--no-tables needs --format json")
    if options.overwrite and options.output is None:
        raise UsageError("--overwrite needs --output")
    return form


def _thresholds(options: argparse.Namespace) -> dict[str, Any]:
    from kafka_records_tables.report.thresholds import ThresholdsError, thresholds_of

    try:
        return thresholds_of(options.thresholds)
    except ThresholdsError as error:
        raise UsageError(f"--thresholds: {error}") from None


def _source_arguments(options: argparse.Namespace) -> tuple[str, ...]:
    """The source as the user named it, for commands in findings."""
    words = list(options.sources)
    for name in ("bootstrap", "command_config", "saved_format", "saved_time_unit"):
        value = getattr(options, name)
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    for raw, column in options.saved_column:
        words += ["--saved-column", f"{raw}={column or ''}"]
    for encodings in options.saved_encoding:
        for raw, encoding in encodings.items():
            words += ["--saved-encoding", f"{raw}={encoding}"]
    return tuple(words)
