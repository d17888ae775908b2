"""Fuzz code that reads bytes, guided by the branches that inputs reach. See `--help`."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from tools.guided.fuzzing import blind, run
from tools.guided.spent import add
from tools.guided.target import PACKAGES, ROOT, target

_EPILOG = """\
A target is a module of tools/guided. Inputs that reach something new are kept in build/fuzz/TARGET, and the next run
goes on with them. Without atheris inputs are random changes of those to start from, the same in every run.

exit status: 0 nothing found, 1 findings, each with the command that repeats it

examples:
  python -m tools.guided --seconds 600
  python -m tools.guided --target segments --seconds 3600 --seed 2 --record    adds to docs/trust.json
  python -m tools.guided --target saved --input 0950415231
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.guided",
        description="Fuzz code that reads bytes, guided by the branches that inputs reach.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--target", action="append", choices=PACKAGES, help="code to fuzz (default all, in turn)")
    parser.add_argument(
        "--seconds", type=float, default=60, help="time for each target, without its start (default 60)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the fuzzer (default 1)")
    parser.add_argument("--corpus", type=Path, default=ROOT / "build" / "fuzz", help="kept inputs (build/fuzz)")
    parser.add_argument("--blind", action="store_true", help="do not use atheris")
    parser.add_argument("--input", type=bytes.fromhex, metavar="HEX", help="send this one input to the one --target")
    parser.add_argument("--keep", action="store_true", help="only write inputs of the corpus into tests/data/vectors")
    parser.add_argument("--record", action="store_true", help="add processor time and inputs to docs/trust.json")
    asked = parser.parse_args(arguments)
    if asked.keep:
        from tools.guided import kept_inputs

        kept_inputs.write(asked.corpus)
        return 0
    if asked.input is not None:
        if len(asked.target or ()) != 1:
            parser.error("--input needs one --target")
        return _single(asked.target[0], asked.input)
    is_blind = asked.blind or importlib.util.find_spec("atheris") is None
    findings = 0
    for name in asked.target or PACKAGES:
        done = (
            blind(name, asked.seconds) if is_blind else run(name, asked.seconds, asked.corpus / name, seed=asked.seed)
        )
        print(f"{name}: {done.inputs} inputs, {done.processor_seconds / 60:.1f} minutes of a processor, "
              f"corpus {done.corpus}", flush=True)  # fmt: skip
        if done.found is not None:
            findings += 1
            print(done.found, flush=True)
        elif asked.record and not is_blind:
            add(name, done.inputs, done.processor_seconds)
    return 1 if findings else 0


def _single(name: str, data: bytes) -> int:
    made = target(name)
    made.seeds()
    try:
        made.read(data)
    except Exception:
        traceback.print_exc()
        return 1
    print("nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
