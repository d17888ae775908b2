"""Messages if a run of Spark fails."""

from __future__ import annotations

from kafka_records_tables.engines.spark_failures import SparkFailed, detail_of, memory_ran_out

CRASHED = (
    "An error occurred while calling o52.collectToPython.\n: org.apache.spark.SparkException: Job aborted due to stage "
    "failure: Python worker exited unexpectedly (crashed)\n\tat org.apache.spark.Foo.bar(Foo.scala:1)"
)
HEAP = (
    "An error occurred while calling o52.collectToPython.\n: java.lang.OutOfMemoryError: Java heap space\n"
    "\tat java.base/java.util.Arrays.copyOf(Arrays.java:1)"
)


def test_a_worker_that_ended_names_memory() -> None:
    error = RuntimeError(CRASHED)
    assert memory_ran_out(error)
    assert str(SparkFailed(error)) == (
        "Spark did not finish: a Python worker ended in the middle of its work, probably because the machine "
        "ran out of "
        'memory: run fewer tasks at a time (--master "local[1]", or more memory for the executors: '
        "spark.executor.memoryOverhead)"
    )


def test_a_jvm_that_ended_names_memory() -> None:
    for error in (ConnectionRefusedError(111, "Connection refused"), RuntimeError("Answer from Java side is empty")):
        assert memory_ran_out(error)
        assert detail_of(error) == (
            "Spark's JVM ended in the middle of its work, probably because it ran out of memory: give it more "
            '(spark.driver.memory, 1g by default), or run fewer tasks at a time (--master "local[1]")'
        )


def test_memory_that_ran_out_says_of_what() -> None:
    error = RuntimeError(HEAP)
    assert memory_ran_out(error)
    assert detail_of(error) == (
        "memory ran out (Java heap space): give the driver more (spark.driver.memory, 1g by default), run fewer tasks "
        'at a time (--master "local[1]"), or pass fewer rows to Python at once '
        "(spark.sql.execution.arrow.maxRecordsPerBatch)"
    )


def test_anything_else_is_the_line_that_says_it() -> None:
    error = RuntimeError("[TABLE_NOT_FOUND] no such table\n\tat org.apache.spark.Foo")
    assert not memory_ran_out(error)
    assert detail_of(error) == "[TABLE_NOT_FOUND] no such table"
