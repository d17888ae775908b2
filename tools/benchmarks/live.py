#!/usr/bin/env python3
"""Time `current_offsets` read from a running broker, compared with the same bytes read from disk. See `--help`.

The broker serves the same segments that are read from disk. Both ways use the same number of processes, and take turns.
The broker uses the same cores meanwhile.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the root

from kafka_records_codegen.evolution.kafka_releases import FetchError  # noqa: E402
from kafka_records_engine.sources.live import LiveBrokers  # noqa: E402
from kafka_records_tables import read_table  # noqa: E402
from tools.benchmarks._figures import machine, positive, table  # noqa: E402
from tools.broker import BrokerError  # noqa: E402
from tools.segments.plan import Plan  # noqa: E402
from tools.serving import serving  # noqa: E402
from tools.write_segments import write_segments  # noqa: E402

GOAL: Final = 0.5
_SETTLING_SECONDS: Final = 5
"""Time for coordinators to load their logs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 1 if the answers differ or there is no broker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    number = positive(int)
    parser.add_argument("--records", type=number, default=3_000_000, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--keys", type=number, default=30_000, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--processes", type=number, default=2, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--rounds", type=number, default=3, metavar="N", help="(default: %(default)s)")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="live-") as folder:
        segments = Path(folder) / "segments"
        write_segments(segments, Plan(records=asked.records, keys=asked.keys, mix={"commits": 1.0}))
        size = sum(file.stat().st_size for file in segments.rglob("*.log"))
        disk: list[float] = []
        live: list[float] = []
        try:
            with serving(segments, folder=Path(folder) / "broker") as broker:
                time.sleep(_SETTLING_SECONDS)
                for _ in range(asked.rounds):
                    started = time.perf_counter()
                    expected = read_table("current_offsets", segments, processes=asked.processes)
                    disk.append(time.perf_counter() - started)
                    started = time.perf_counter()
                    found = read_table("current_offsets", LiveBrokers(broker.bootstrap), processes=asked.processes)
                    live.append(time.perf_counter() - started)
                    if not found.table.equals(expected.table):
                        print("the answers differ", file=sys.stderr)
                        return 1
        except (BrokerError, FetchError) as failed:
            print(failed, file=sys.stderr)
            return 1
    ratio = min(disk) / min(live)
    rows = [
        ("", "seconds, best / median", "MB/s"),
        *(
            (name, f"{min(each):.2f} / {median(each):.2f}", f"{size / min(each) / 1e6:.0f}")
            for name, each in (("disk", disk), ("broker", live))
        ),
    ]
    print(machine())
    print(f"{asked.records} commits, {size} bytes, {asked.processes} processes\n\n{table(rows)}")
    print(f"\nspeed against the disk: {ratio:.2f}, goal {GOAL}: {'met' if ratio >= GOAL else 'missed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
