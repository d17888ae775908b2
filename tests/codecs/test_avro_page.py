"""docs/avro.md: its examples run, and its table is that of the generator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_records_codegen.products.avro import AVRO_TYPES
from kafka_records_codegen.python.names import PYTHON_TYPES
from kafka_records_engine.columns import ARROW_TYPES
from kafka_records_runtime.text.spark_names import SPARK_TYPES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "avro.md").read_text(encoding="utf-8")


def test_the_examples_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(examples) == 3
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "docs/avro.md", "exec"), names)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["commits.avro", "values.avro", "values.parquet"]


def test_the_table_of_types() -> None:
    rows = re.findall(r"^\| (`.+?`) \| `(.+?)` \| `(.+?)` \| `(.+?)` \| `(.+?)` \|$", PAGE, re.MULTILINE)
    found = {spec: tuple(row) for specs, *row in rows for spec in re.findall(r"`(\w+)`", specs)}
    assert found == {
        spec: (avro, str(ARROW_TYPES[spec]).replace("double", "float64"), SPARK_TYPES[spec], PYTHON_TYPES[spec])
        for spec, avro in AVRO_TYPES.items()
    }
