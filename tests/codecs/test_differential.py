"""The fast paths of our own codecs against the schema walker, on random messages and on broken ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_records import registry
from tests.codecs.agreement import CHECKS
from tests.codecs.names import NAMES

FEW, MANY = 4, 100
"""Examples of the usual run; a profile of many is for a search that takes its time."""
ASKED = settings().max_examples


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("name", NAMES)
# So many messages are checked in so many ways that four of each do; the exhaustive profile has thousands.
@settings(max_examples=min(FEW, ASKED) if ASKED < MANY else ASKED)
@given(data=st.data())
def test_agreement(name: str, check: Callable[[Any, st.DataObject], None], data: st.DataObject) -> None:
    check(registry.message_class(name), data)
