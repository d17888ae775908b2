"""What holds for every message: random values come back, every cut and every change is either read or explained."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_records_runtime.errors import DecodeError, EncodeError
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.messages import json_form
from kafka_records_runtime.records.explain import explain_message, explain_text
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.schema.defaults import default_of
from kafka_records_runtime.schema.layout import UNKNOWN_TAGS, FieldLayout, struct_layouts
from kafka_records_runtime.wire import walker
from kafka_records_runtime.wire.primitives import INTEGERS, MAX_TAG
from tests.runtime.outcomes import outcome
from tests.runtime.spec_schemas import all_schemas

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16).map(Uuid),
    "string": TEXT,
    "bytes": st.binary(max_size=12),
    "records": st.binary(max_size=12),
} | {name: st.integers(lowest, highest) for name, (_, lowest, highest) in INTEGERS.items()}


def values(schema: MessageSchema, version: int, name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Structs that the version can carry: absent fields at their defaults, unknown tags above the known ones."""
    fields = struct_layouts(schema, version)[name].fields
    members = {layout.field.name: _member(schema, version, layout) for layout in fields}
    if schema.flexible is not None:
        members[UNKNOWN_TAGS] = _unknown_tags(len(fields)) if schema.is_flexible(version) else st.just(())
    return st.fixed_dictionaries(members)


def _member(schema: MessageSchema, version: int, layout: FieldLayout) -> st.SearchStrategy[Any]:
    field = layout.field
    default = st.builds(default_of, st.just(schema), st.just(field))
    if not layout.present:
        return default
    single = values(schema, version, field.base) if field.is_struct else PRIMITIVES[field.base]
    whole = st.lists(single, max_size=3).map(tuple) if field.is_array else single
    if layout.nullable:
        whole = st.none() | whole
    return default | whole if layout.tagged else whole


def _unknown_tags(lowest: int) -> st.SearchStrategy[tuple[tuple[int, bytes], ...]]:
    payloads = st.dictionaries(st.integers(lowest, MAX_TAG), st.binary(max_size=5), max_size=2)
    return payloads.map(lambda found: tuple(sorted(found.items())))


def versions(schema: MessageSchema) -> st.SearchStrategy[int]:
    assert schema.versions is not None
    return st.integers(*schema.versions)


@st.composite
def messages(draw: st.DrawFn) -> tuple[MessageSchema, int, dict[str, Any], bytes]:
    schemas = all_schemas()
    schema = schemas[draw(st.sampled_from(sorted(schemas)))]
    version = draw(versions(schema))
    value = draw(values(schema, version, schema.root.name))
    return schema, version, value, walker.encode(schema, value, version)


@given(messages())
def test_values_come_back(message: tuple[MessageSchema, int, dict[str, Any], bytes]) -> None:
    schema, version, value, data = message
    leniencies: list[str] = []
    assert walker.decode(schema, data, version) == (value, len(data))
    assert walker.decode(schema, data, version, lenient=True, leniencies=leniencies) == (value, len(data))
    assert leniencies == []


@given(messages())
def test_objects_encode_like_dicts(message: tuple[MessageSchema, int, dict[str, Any], bytes]) -> None:
    schema, version, _, data = message
    classes = {struct.name: SimpleNamespace for struct in schema.structs}
    value, _ = walker.decode(schema, data, version, classes=classes)
    assert walker.encode(schema, value, version) == data


@given(messages())
def test_json_comes_back(message: tuple[MessageSchema, int, dict[str, Any], bytes]) -> None:
    schema, version, value, _ = message
    printed = json_form.to_json(schema, value, version)
    assert json_form.from_json(schema, json.loads(json.dumps(printed)), version) == value


@given(messages())
def test_steps_cover_every_byte(message: tuple[MessageSchema, int, dict[str, Any], bytes]) -> None:
    schema, version, _, data = message
    position = 0
    for step in walker.walk(schema, version, data):
        assert step.offset == position
        position += step.length
    assert position == len(data)


@given(messages())
def test_every_prefix_is_explained(message: tuple[MessageSchema, int, dict[str, Any], bytes]) -> None:
    schema, version, _, data = message
    for length in range(len(data)):
        for lenient in (False, True):
            with pytest.raises(DecodeError) as caught:
                walker.decode(schema, data[:length], version, lenient=lenient)
            error = caught.value
            assert error.path
            assert 0 <= error.offset <= length
            assert str(error).startswith(f"{schema.name} v{version} at byte {error.offset}: {error.path} ")


@given(messages(), st.data())
def test_changed_bytes_stay_inside_the_tree(
    message: tuple[MessageSchema, int, dict[str, Any], bytes], data: st.DataObject
) -> None:
    schema, version, _, raw = message
    changed = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed)))
        changed[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    check_hostile(schema, bytes(changed), version)


@given(st.data())
def test_garbage_stays_inside_the_tree(data: st.DataObject) -> None:
    schemas = all_schemas()
    schema = schemas[data.draw(st.sampled_from(sorted(schemas)))]
    check_hostile(schema, data.draw(st.binary(max_size=200)), data.draw(versions(schema)))


def check_hostile(schema: MessageSchema, raw: bytes, version: int) -> None:
    """Strict accepts what lenient accepts without leniency, with the same value; the walk and the dump agree."""
    explain_text(explain_message(schema, version, raw))
    explain_text(explain_message(schema, version, raw, lenient=True))
    leniencies: list[str] = []
    decoded, broken = outcome(DecodeError, walker.decode, schema, raw, version, lenient=True, leniencies=leniencies)
    strict, error = outcome(DecodeError, walker.decode, schema, raw, version)
    if decoded is None:
        assert broken is not None
        assert broken.path
        assert error is not None
        return
    value, used = decoded
    steps = list(walker.walk(schema, version, raw, lenient=True))
    assert sum(step.length for step in steps) == used
    json_form.to_json(schema, value, version)
    if strict is None:
        assert leniencies
        return
    assert leniencies == []
    again = walker.encode(schema, strict[0], version)
    assert walker.encode(schema, walker.decode(schema, again, version)[0], version) == again


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.lists(inner, max_size=2).map(tuple),
    max_leaves=4,
)


@given(messages(), st.data())
def test_wrong_values_stay_inside_the_tree(
    message: tuple[MessageSchema, int, dict[str, Any], bytes], data: st.DataObject
) -> None:
    schema, version, value, _ = message
    spoiled = value | {data.draw(st.sampled_from(sorted(value) or ["none"])): data.draw(JUNK)}
    for write in (walker.encode, json_form.to_json):
        _, error = outcome(EncodeError, write, schema, spoiled, version)
        assert error is None or str(error).startswith(f"{schema.name} v{version}: ")
