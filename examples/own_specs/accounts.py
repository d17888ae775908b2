"""Records of your own in Spark: from specs to a package, from its bytes to columns.

    pip install '.[spark,codegen]'                         # in a clone, once
    export PYSPARK_PYTHON=$(which python)                  # the workers run in this environment
    kafka-records-codegen generate --specs examples/own_specs/message_specs \
        --out build/acme_messages --package acme_messages
    PYTHONPATH=build python examples/own_specs/accounts.py

Prints the balance of every account and, on standard error, what could not be decoded. The functions are those that
Kafka's own records have: they take the schemas of any generated package. Workers do without it, because the schemas
travel with the query.
"""

from __future__ import annotations

import os
import sys

from acme_messages.accounts import encode_record
from acme_messages.accounts.account import AccountKey, AccountValue, Limit
from acme_messages.spark.accounts import decode_records
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_engine.spark.raw import as_raw_rows
from kafka_records_runtime.kafka.uuids import Uuid

ANN, BOB = Uuid(b"account of Ann.."), Uuid(b"account of Bob..")


def records() -> list[tuple[int, bytes, bytes | None]]:
    """Offset, key and value of what the topic holds: two versions, a deleted account, and a value that is cut off."""
    limit = Limit(days=7, cents=3_000_000_000)
    bob_key, bob_value = encode_record(AccountKey(BOB), AccountValue(owner="Bob", balance_cents=5))
    assert bob_value is not None
    written = [
        encode_record(AccountKey(ANN), AccountValue(owner="Ann", balance_cents=1200), 0),
        encode_record(AccountKey(ANN), AccountValue(owner="Ann", balance_cents=900, limits=(limit,)), 1),
        (bob_key, bob_value),
        (bob_key, None),
        (bob_key, bob_value[:-6]),
    ]
    return [(offset, key, value) for offset, (key, value) in enumerate(written)]


def balances(decoded: DataFrame) -> DataFrame:
    """The last balance of every account that was not deleted since."""
    account = F.col("account.key.account_id").alias("account")
    last = decoded.where("error IS NULL").groupBy(account).agg(F.max_by("account.value", "offset").alias("value"))
    return last.where("value IS NOT NULL").select("account", "value.owner", "value.balance_cents", "value.limits")


def main() -> int:
    """Returns the exit status: 1 when something could not be decoded."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    topic = spark.createDataFrame(records(), "offset long, key binary, value binary")
    counts = Observation("decoded")
    decoded = decode_records(as_raw_rows(topic, topic="accounts"), observation=counts).cache()
    balances(decoded).show(truncate=False)
    for row in decoded.where("error IS NOT NULL").collect():
        print(f"offset {row.offset}: {row.error.message}", file=sys.stderr)
    print(", ".join(f"{number} {name}" for name, number in counts.get.items() if number), file=sys.stderr)
    return 1 if counts.get["corrupt"] else 0


if __name__ == "__main__":
    sys.exit(main())
