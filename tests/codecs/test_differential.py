"""The fast paths of our own codecs against the schema walker, on messages nobody wrote by hand and on broken ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_records import registry
from tests.codecs.agreement import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("name", sorted(registry.MESSAGES))
@given(data=st.data())
def test_agreement(name: str, check: Callable[[Any, st.DataObject], None], data: st.DataObject) -> None:
    check(registry.message_class(name), data)
