"""Fuzz the Spark functions that run in the JVM, guided by the branches that inputs reach. See `--help`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyspark

from kafka_records_codegen.evolution.kafka_releases import cache_folder
from tools.broker import jars_by_maven, java
from tools.guided.fuzzing import Ran, children_seconds
from tools.guided.jvm import functions
from tools.guided.kept_inputs import FUNCTIONS, pack, smallest
from tools.guided.spent import add
from tools.guided.target import ROOT
from tools.jar import JAR
from tools.java_compiler import compile_java

_EPILOG = """\
The fuzzer is Jazzer, which Maven fetches once. It calls the functions without Spark: what tools/guided/jvm/*.java says
must hold for every input. That they give what Python gives is tested with the inputs that --keep writes.

exit status: 0 nothing found, 1 a finding, with the input that repeats it

examples:
  python -m tools.guided.jvm --seconds 600 --record
  python -m tools.guided.jvm --keep
"""
_NAME: Final = "functions in the JVM"
_JAZZER: Final = "0.24.0"
_JARS: Final = (
    *("spark-catalyst", "spark-sql-api", "spark-unsafe", "spark-common-utils", "spark-core", "spark-tags"),
    *("spark-variant", "spark-network", "spark-kvstore", "spark-config", "scala-library", "json4s", "jackson"),
    *("slf4j-api", "commons-lang3", "kryo", "hadoop-client-api", "log4j-api", "icu4j"),
)
"""The prefixes of the names of Spark's jars that the functions need. Jazzer scans the whole classpath, which takes
minutes for all of Spark."""
_MOST_INPUT: Final = 4096
_MOST_KEPT: Final = 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.guided.jvm",
        description="Fuzz the Spark functions that run in the JVM, guided by the branches that inputs reach.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=60, help="time without the start (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the fuzzer (default 1)")
    parser.add_argument("--corpus", type=Path, default=ROOT / "build" / "fuzz", help="kept inputs (build/fuzz)")
    parser.add_argument("--keep", action="store_true", help=f"only write inputs of the corpus into {FUNCTIONS.name}")
    parser.add_argument("--record", action="store_true", help="add processor time and inputs to docs/trust.json")
    asked = parser.parse_args(arguments)
    corpus = asked.corpus / "jvm"
    if asked.keep:
        pack(FUNCTIONS, [functions.described(data) for data in smallest(corpus, _MOST_KEPT) if len(data) > 2])
        return 0
    done = run(asked.seconds, corpus, seed=asked.seed)
    print(
        f"{_NAME}: {done.inputs} inputs, {done.processor_seconds / 60:.1f} minutes of a processor, corpus {done.corpus}"
    )
    if done.found is not None:
        print(done.found)
        return 1
    if asked.record:
        add(_NAME, done.inputs, done.processor_seconds)
    return 0


def run(seconds: float, corpus: Path, *, seed: int = 1) -> Ran:
    """Run Jazzer for this long. The corpus is a folder with inputs; runs add to it. Raises as `broker_jars`."""
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(functions.seeds()):
        (corpus / f"seed-{number:04}").write_bytes(data)
    wanted = [("com.code-intelligence", "jazzer", _JAZZER)]
    jazzer = jars_by_maven(cache_folder() / "jazzer" / _JAZZER, f"Jazzer {_JAZZER}", wanted)
    spark = Path(pyspark.__file__).parent / "jars"
    jars = [
        JAR,
        *sorted(jazzer.glob("*.jar")),
        *(each for start in _JARS for each in sorted(spark.glob(f"{start}*.jar"))),
    ]
    with tempfile.TemporaryDirectory(prefix="fuzzed-functions-") as scratch:
        folder = Path(scratch)
        compile_java("the fuzzed functions", sorted(Path(__file__).parent.glob("*.java")), jars, folder)
        command = [
            *(java(), "-XX:TieredStopAtLevel=1", "-Xshare:off", "-Xmx1g"),
            *(f"-Dkafkarecords.sent={folder / 'sent'}", f"-Dkafkarecords.functions={','.join(functions.names())}"),
            *("-cp", os.pathsep.join(map(str, (folder, *jars))), "com.code_intelligence.jazzer.Jazzer"),
            *("--target_class=kafkarecords.FuzzedFunctions", "--instrumentation_includes=kafkarecords.**"),
            *("--custom_hook_includes=kafkarecords.**", f"--reproducer_path={folder}"),
            *(f"-max_total_time={max(1, round(seconds))}", f"-max_len={_MOST_INPUT}", f"-seed={seed}"),
            *(f"-artifact_prefix={folder}/", str(corpus)),
        ]
        before = children_seconds()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        spent = children_seconds() - before
        sent = int((folder / "sent").read_text()) if (folder / "sent").exists() else 0
        found = None
        if done.returncode:
            inputs = "".join(
                f"\n{functions.described(each.read_bytes())}" for each in folder.glob("*-*") if each.is_file()
            )
            found = f"{_NAME}: the process ended with status {done.returncode}{inputs}\n{done.stderr[-4000:]}"
    return Ran(sent, spent, sum(1 for _ in corpus.iterdir()), found)


if __name__ == "__main__":
    sys.exit(main())
