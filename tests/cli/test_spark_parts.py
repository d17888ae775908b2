"""The texts of Spark's exceptions."""

from __future__ import annotations

import pytest

from kafka_records_tables.engines.spark_failures import first_line, gateway_detail


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("first\nsecond", "first"),
        (
            "\n  An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
            '  File "x.py", line 1, in f\n    raise ValueError\nValueError: what it says\n\nJVM trace',
            "ValueError: what it says",
        ),
        ("", "RuntimeError"),
        (
            "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
            ": org.apache.spark.SparkException: A master URL must be set\n\tat org.apache.spark.SparkContext",
            "A master URL must be set",
        ),
    ],
)
def test_the_line_that_says_what_happened(text: str, line: str) -> None:
    assert first_line(RuntimeError(text)) == line


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", None),
        (
            "Picked up JAVA_TOOL_OPTIONS: -Xss1m\nWARNING: Using incubator modules: jdk.incubator.vector\n"
            "Invalid maximum heap size: -Xmxmuch\nError: Could not create the Java Virtual Machine.\n",
            "Invalid maximum heap size: -Xmxmuch",
        ),
        (
            'Exception in thread "main" java.lang.IllegalArgumentException: System memory must be at least 471859200\n'
            "\tat org.apache.spark.X.y(X.scala:1)\n\t... 5 more\n",
            "System memory must be at least 471859200",
        ),
        (
            'Exception in thread "main" java.lang.ExceptionInInitializerError\n\tat a.b.c(D.java:1)\n'
            "Caused by: java.net.UnknownHostException: host: Name or service not known\n\tat a.b.c(D.java:1)\n",
            "host: Name or service not known",
        ),
    ],
)
def test_why_a_jvm_did_not_come_up(said: str, reason: str | None) -> None:
    assert gateway_detail(said) == reason
