"""The fast paths of our own codecs, compared with the schema walker on random and on broken messages."""

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
"""The numbers of examples in a usual run, and from which on a profile is a long search."""
ASKED = settings().max_examples


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("name", NAMES)
# Because many messages are checked in many ways, four examples of each are enough; the exhaustive profile has
# thousands.
@settings(max_examples=min(FEW, ASKED) if ASKED < MANY else ASKED)
@given(data=st.data())
def test_agreement(name: str, check: Callable[[Any, st.DataObject], None], data: st.DataObject) -> None:
    check(registry.message_class(name), data)
