"""Messages are values: they can be compared, hashed, printed, copied, pickled and sent to other processes."""

from __future__ import annotations

import copy
import importlib
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_records import registry
from kafka_records_runtime.kafka.uuids import Uuid
from tests.codecs.names import NAMES
from tests.codecs.strategies import messages

OURS = [("kafka_records", name) for name in sorted(registry.MESSAGES)]
OTHERS = [("acme_messages", name) for name in ("Everything", "TrailEntryKey", "TrailEntryValue")]
ALL = pytest.mark.parametrize("message", [*OURS, *OTHERS], ids=lambda message: message[1])
MOST = pytest.mark.parametrize(
    "message",
    [*(pytest.param(("kafka_records", each.values[0]), marks=each.marks) for each in NAMES), *OTHERS],
    ids=lambda message: message[1],
)
"""The messages for which random values are made."""

pytestmark = pytest.mark.usefixtures("generated_home")


FEW, MANY = 3, 100
"""The numbers of examples: few in a usual run, because hundreds of messages have one template; a profile with many
examples draws more."""


def at_most(examples: int) -> settings:
    """This number of examples in a profile with many examples, otherwise a few."""
    asked = settings().max_examples
    return settings(max_examples=min(examples, asked) if asked >= MANY else min(FEW, asked))


def message_class(message: tuple[str, str]) -> Any:
    return importlib.import_module(f"{message[0]}.registry").message_class(message[1])


def all_classes(message: tuple[str, str]) -> list[Any]:
    """The class of the message and those of its structs."""
    return list(message_class(message).CODEC.classes.values())


@pytest.mark.parametrize("travel", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
@ALL
def test_classes_travel(message: tuple[str, str], travel: Callable[[Any], bytes]) -> None:
    for cls in all_classes(message):
        assert pickle.loads(travel(cls)) is cls


@MOST
@at_most(10)
@given(data=st.data())
def test_instances_are_values(message: tuple[str, str], data: st.DataObject) -> None:
    cls = message_class(message)
    version = data.draw(st.sampled_from(cls.VERSIONS))
    one = data.draw(messages(cls, version))
    copies = [pickle.loads(pickle.dumps(one, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    copies += [pickle.loads(cloudpickle.dumps(one)), copy.copy(one), copy.deepcopy(one)]
    for other in copies:
        assert type(other) is cls
        assert other == one
        assert hash(other) == hash(one)
        assert other.encode(version) == one.encode(version)


@MOST
@at_most(10)
@given(data=st.data())
def test_the_repr_is_the_expression_that_makes_the_value(message: tuple[str, str], data: st.DataObject) -> None:
    cls = message_class(message)
    one = data.draw(messages(cls, data.draw(st.sampled_from(cls.VERSIONS))))
    names = {each.__name__: each for each in all_classes(message)} | {"Uuid": Uuid, "inf": float("inf")}
    assert eval(repr(one), names) == one


@MOST
@at_most(20)
@given(data=st.data())
def test_equal_means_equal_bytes(message: tuple[str, str], data: st.DataObject) -> None:
    cls = message_class(message)
    version = data.draw(st.sampled_from(cls.VERSIONS))
    one, other = data.draw(messages(cls, version)), data.draw(messages(cls, version))
    assert {one, cls.decode(one.encode(version), version)} == {one}
    minus_zero = "-0.0" in f"{one}{other}"  # -0.0 equals 0.0 in Python, but has other bytes
    assert minus_zero or (one == other) == (one.encode(version) == other.encode(version))


@ALL
def test_a_message_equals_no_message_of_another_class(message: tuple[str, str]) -> None:
    classes = all_classes(message)
    for cls in classes:
        assert cls() != ()
        for other in classes:
            assert (cls() == other()) == (cls is other)


@ALL
def test_messages_are_frozen(message: tuple[str, str]) -> None:
    for cls in all_classes(message):
        one = cls()
        for name in cls.__struct_fields__:
            with pytest.raises(AttributeError):
                setattr(one, name, getattr(one, name))


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
def test_another_process_reads_a_pickled_message(dumps: Callable[[Any], bytes]) -> None:
    value = registry.message_class("OffsetCommitValue")(offset=42, metadata="here", topic_id=Uuid(bytes(range(16))))
    script = "import pickle, sys; print(pickle.load(sys.stdin.buffer))"
    done = subprocess.run([sys.executable, "-c", script], input=dumps(value), capture_output=True, check=True)
    assert done.stdout.decode() == (
        "OffsetCommitValue(offset=42, leader_epoch=-1, metadata='here', commit_timestamp=0, expire_timestamp=-1, "
        "topic_id=Uuid.from_string('AAECAwQFBgcICQoLDA0ODw'), unknown_tagged_fields=())\n"
    )
