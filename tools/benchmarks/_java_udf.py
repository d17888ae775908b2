"""Java UDFs that use Kafka's own generated classes: jars from Maven, and our classes, compiled against these jars and
those of PySpark."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pyspark

from kafka_records_codegen.evolution.kafka_releases import cache_folder, fetch_jar
from tools.java_compiler import compile_java
from tools.kafka_releases import LATEST

UDF_CLASS: Final = "DecodeOffsetCommit"
_MODULES: Final = ("kafka-clients", "kafka-group-coordinator")


def udf_jars(
    scratch: Path,
    tell: Callable[[str], None],
    classes_of_udfs: Sequence[str] = (UDF_CLASS,),
    modules: Sequence[str] = _MODULES,
) -> list[Path]:
    """The jars that `spark.jars` needs: those of Kafka's `modules` from the cache, and that of the UDFs, made in
    `scratch`.

    Raises FetchError without Maven or if it fails, CompileError without a compiler or if it rejects the source.
    """
    kafka = _kafka_jars(tell, modules)
    sources = [Path(__file__).with_name(f"{name}.java") for name in classes_of_udfs]
    classes = scratch / "classes"
    compile_java("the UDF", sources, [*kafka, *_spark_jars()], classes)
    jar = scratch / "decode-offset-commit.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for path in sorted(classes.rglob("*.class")):
            archive.write(path, path.relative_to(classes))
    return [*kafka, jar]


def _kafka_jars(tell: Callable[[str], None], modules: Sequence[str]) -> list[Path]:
    folder = cache_folder() / "jars"
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for module in modules:
        jar = folder / f"{module}-{LATEST}.jar"
        if not jar.is_file():
            tell(f"Fetching {module} {LATEST} by Maven (once)")
            with tempfile.TemporaryDirectory(dir=folder) as fetched:
                # The jar is renamed when it is complete, so that an interrupted run leaves no incomplete jar.
                fetch_jar(module, LATEST, Path(fetched)).rename(jar)
        found.append(jar)
    return found


def _spark_jars() -> list[Path]:
    return sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
