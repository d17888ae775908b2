#!/usr/bin/env python3
"""Write tests/data/evolution/verdicts.json: the verdict of Kafka's EvolutionVerifier on every made-up change.

This needs Java and Maven, which fetches the jar `generator` of the newest release and its dependencies, once. The cases
are in tests/evolution/made_up.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the one above

from kafka_records_codegen.evolution.kafka_releases import cache_folder  # noqa: E402
from tests.evolution.made_up import CASES, Case  # noqa: E402
from tools.broker import jars_by_maven, java  # noqa: E402
from tools.java_compiler import compile_java  # noqa: E402
from tools.kafka_releases import LATEST  # noqa: E402

VERDICTS = ROOT / "tests/data/evolution/verdicts.json"


def verdicts(cases: Iterable[Case], scratch: Path) -> dict[str, str]:
    """For each case by name, `accepts` or the error of EvolutionVerifier."""
    wanted = [("org.apache.kafka", "generator", LATEST)]
    jars = jars_by_maven(cache_folder() / "generator" / LATEST, f"Kafka's generator {LATEST}", wanted)
    source = Path(__file__).with_name("VerifyEvolution.java")
    compile_java("the program that asks EvolutionVerifier", [source], [jars / "*"], scratch / "classes")
    lines = []
    for number, case in enumerate(cases):
        paths = [scratch / f"{number}-{side}.json" for side in ("older", "newer")]
        for path, spec in zip(paths, case.specs(), strict=True):
            path.write_text(json.dumps(spec), encoding="utf-8")
        lines.append("\t".join(map(str, paths)))
    command = [java(), "-cp", f"{scratch / 'classes'}:{jars}/*", "VerifyEvolution"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    return dict(zip((case.name for case in cases), done.stdout.splitlines(), strict=True))


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        found = {"release": LATEST, "verdicts": verdicts(CASES, Path(scratch))}
    VERDICTS.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
