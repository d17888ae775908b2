"""The topics whose records this build knows, and where their schemas are."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from kafka_records_cli.failures import CommandError, UsageError

if TYPE_CHECKING:
    from kafka_records_runtime.schema import MessageSchema, RecordSchema

TOPICS: Final[Mapping[str, str]] = {
    "__consumer_offsets": "consumer_offsets",
    "__share_group_state": "share_group_state",
    "__transaction_state": "transaction_state",
}
"""Topic → folder of its schemas. Record types are numbered per topic."""

TOPICS_TEXT: Final = ", ".join([*TOPICS][:-1]) + f" and {[*TOPICS][-1]}"


def check_topic(topic: str) -> str:
    """Return `topic`; raise a UsageError unless it is a coordinator's topic."""
    if topic not in TOPICS:
        raise UsageError(f"{topic} is not a topic of Kafka's coordinators: those are {TOPICS_TEXT}")
    return topic


def record_schemas(topic: str) -> Mapping[int, RecordSchema]:
    """The record types of a topic by number."""
    module = import_module(f"kafka_records.schemas.{TOPICS[check_topic(topic)]}")
    return cast("Mapping[int, RecordSchema]", module.RECORDS)


def retired_records(topic: str) -> Mapping[int, str]:
    """Names of record types that only early access releases wrote, which no schema reads."""
    from kafka_records_runtime.early_access import RETIRED_TYPES

    return RETIRED_TYPES.get(TOPICS[check_topic(topic)], {})


def message_schema(name: str) -> MessageSchema:
    """The schema of the message that the specs call `name`; a CommandError suggests names close to an unknown one."""
    from kafka_records.registry import MESSAGES
    from kafka_records_runtime.schema import MessageSchema

    if name not in MESSAGES:
        from difflib import get_close_matches

        close = get_close_matches(name, MESSAGES, n=3)
        hint = f"; close to it: {', '.join(close)}" if close else f"; there are {', '.join(sorted(MESSAGES))}"
        raise CommandError(f"no message is called {name}{hint}")
    folder = MESSAGES[name][0].split(".")[1]
    schemas = vars(import_module(f"kafka_records.schemas.{folder}")).values()
    return next(each for each in schemas if isinstance(each, MessageSchema) and each.name == name)
