"""Read three brokers through proxies that disturb them, and compare every answer. See `--help`."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kafka_records_codegen.evolution.kafka_releases import FetchError
from tools.broker import BrokerError
from tools.faults.cluster import three_brokers
from tools.faults.run import Outcome, Run
from tools.trust.figures import record

_EPILOG = """\
The brokers run on loopback. The faults are those of tools/faults/kinds.py. Meanwhile leaders move, a log grows, a topic
is deleted and created again, and brokers are killed and started again. A read gives what the log had, or says what it
lacks, or is an error that says what happened; after the last fault every read is whole.

exit status: 0 no difference, 1 differences, 2 the brokers could not be started

examples:
  python -m tools.faults --seconds 3600 --seed 1
  python -m tools.faults --seconds 600 --seed 2 --record    into docs/trust.json
"""


def figures(outcome: Outcome, seed: int) -> dict[str, str]:
    """The figures of a run for docs/trust.md."""
    answers = ", ".join(f"{count} {name}" for name, count in outcome.answers.most_common())
    times = outcome.faults.values()
    kinds = f"{len(times)} kinds, each {min(times, default=0)} to {max(times, default=0)} times"
    return {
        "answers compared": f"{outcome.answers.total()} in {outcome.seconds:.0f} seconds, seed {seed}: {answers}",
        "faults": f"{outcome.faults.total()} of {kinds}",
        "leaders moved": str(outcome.moves),
        "topics deleted and created again": str(outcome.created),
        "brokers killed and started again": str(outcome.deaths),
        "differences": str(len(outcome.differences) or "none"),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.faults",
        description="Read three brokers through proxies that disturb them, and compare every answer.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=600, help="duration (default 600)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random faults (default 1)")
    parser.add_argument("--record", action="store_true", help="replace the figures of faults in docs/trust.json")
    asked = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
        brokers = three_brokers(Path(scratch))
        try:
            for broker in brokers:
                broker.start()
            outcome = Run(brokers, Path(scratch), asked.seed, _tell).run(asked.seconds, deaths=True)
        except (BrokerError, FetchError) as error:
            _tell(str(error))
            return 2
        finally:
            for broker in reversed(brokers):
                broker.kill()
    for label, figure in figures(outcome, asked.seed).items():
        print(f"{label}: {figure}")
    for kind, counts in outcome.by_kind.items():
        print(f"  {kind}: {dict(counts)}")
    for difference in outcome.differences:
        print(difference)
    if asked.record:
        record("faults", figures(outcome, asked.seed))
    return 1 if outcome.differences else 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
