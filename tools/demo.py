"""A captured offsets topic as tables: how many records of which type, the groups, the committed offsets.

Runs the command itself on tests/data/topics/kafka-4.3, which a Kafka 4.3.1 broker wrote. Exit status as the command's.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kafka_records_tables.cli.main import main as kafka_records

SEGMENTS = Path(__file__).resolve().parents[1] / "tests" / "data" / "topics" / "kafka-4.3" / "segments"


def main() -> int:
    """Print the three results; the command's exit status when one of them went wrong."""
    source = str(SEGMENTS.relative_to(Path.cwd()) if SEGMENTS.is_relative_to(Path.cwd()) else SEGMENTS)
    status = _show("Records by topic and type", "counts", source)
    for title, table in (("Groups", "groups"), ("Committed offsets", "current_offsets")):
        status = max(status, _show(title, "table", table, source))
    return status


def _show(title: str, *arguments: str) -> int:
    print(f"\n{title}\n$ kafka-records {' '.join(arguments)}\n", flush=True)
    return kafka_records(arguments)


if __name__ == "__main__":
    sys.exit(main())
