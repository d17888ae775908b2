"""Error codes: Kafka's names, numbers that are not in use yet, and the whole list compared with the released jar."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from kafka_records_runtime.kafka.error_codes import ErrorCode
from kafka_records_runtime.kafka.open_enum import OpenIntEnum
from tests.runtime.kafka_enums import kafka_enum, needs_kafka
from tools.kafka_enums import ENUMS


class TestKnownCodes:
    @pytest.mark.parametrize(
        ("number", "name"),
        [
            (-1, "UNKNOWN_SERVER_ERROR"),
            (0, "NONE"),
            (3, "UNKNOWN_TOPIC_OR_PARTITION"),
            (16, "NOT_COORDINATOR"),
            (35, "UNSUPPORTED_VERSION"),
            (68, "NON_EMPTY_GROUP"),
            (69, "GROUP_ID_NOT_FOUND"),
            (86, "GROUP_SUBSCRIBED_TO_TOPIC"),
            (113, "STALE_MEMBER_EPOCH"),
            (133, "SHARE_SESSION_LIMIT_REACHED"),
        ],
    )
    def test_has_its_name(self, number: int, name: str) -> None:
        code = ErrorCode(number)
        assert code is ErrorCode[name]
        assert (code.name, code.value, code.is_known) == (name, number, True)
        assert code == number

    def test_codes_have_no_gap(self) -> None:
        assert [code.value for code in ErrorCode] == list(range(-1, len(ErrorCode) - 1))

    def test_only_none_is_no_error(self) -> None:
        assert [code for code in ErrorCode if not code.is_error] == [ErrorCode.NONE]
        assert ErrorCode(9999).is_error

    @pytest.mark.parametrize(
        ("code", "retriable"),
        [
            (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, True),
            (ErrorCode.NOT_COORDINATOR, True),
            (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, False),
            (ErrorCode.NONE, False),
            (ErrorCode(9999), False),
        ],
    )
    def test_retriable(self, code: ErrorCode, retriable: bool) -> None:
        assert code.is_retriable is retriable


class TestUnknownCodes:
    @pytest.mark.parametrize("number", [999, 9999, 32767, -2, -32768])
    def test_stays_itself(self, number: int) -> None:
        code = ErrorCode(number)
        assert isinstance(code, ErrorCode)
        assert (code.name, code.value, code.is_known) == (f"UNKNOWN_{number}", number, False)
        assert code == number == int(code)
        assert str(code) == str(number)
        assert repr(code) == f"<ErrorCode.UNKNOWN_{number}: {number}>"

    def test_two_of_a_number_are_equal_and_one_key(self) -> None:
        assert ErrorCode(9999) == ErrorCode(9999)
        assert {ErrorCode(9999), ErrorCode(9999), 9999} == {9999}
        assert ErrorCode(9999) != ErrorCode(9998)

    def test_leaves_the_list_alone(self) -> None:
        before = list(ErrorCode)
        ErrorCode(9999)
        assert list(ErrorCode) == before
        assert 9999 not in [code.value for code in ErrorCode]

    @pytest.mark.parametrize("number", [86, 9999, -7])
    def test_pickles_and_copies(self, number: int) -> None:
        code = ErrorCode(number)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(code, protocol))
            assert (type(again), again, again.name) == (ErrorCode, code, code.name)
        assert (copy.copy(code), copy.deepcopy(code)) == (code, code)

    @pytest.mark.parametrize("value", ["NONE", "86", None, 1.5])
    def test_what_is_no_integer_is_refused(self, value: Any) -> None:
        with pytest.raises(ValueError, match="is not a valid ErrorCode"):
            ErrorCode(value)

    def test_kinds_are_apart(self) -> None:
        class Other(OpenIntEnum):
            """Another kind."""

            ONE = 1

        assert isinstance(Other(7), Other)
        assert not isinstance(Other(7), ErrorCode)


class TestAgreementWithKafka:
    pytestmark = needs_kafka

    def test_codes_names_and_retriability_are_those_of_the_released_jar(self) -> None:
        theirs = kafka_enum(*ENUMS["ErrorCode"])
        assert [(code.name, code.value, code.is_retriable) for code in ErrorCode] == theirs
