"""Named states: Kafka's names and numbers, and numbers that are not in use yet."""

from __future__ import annotations

import pickle

import pytest

from kafka_records.enums import DeliveryState, MemberState, StreamsMemberState, TransactionState
from kafka_records_runtime.kafka.open_enum import OpenIntEnum
from tests.runtime.kafka_enums import kafka_enum, needs_kafka
from tools.kafka_enums import ENUMS

STATES: list[tuple[type[OpenIntEnum], dict[int, str]]] = [
    (MemberState, {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS", 127: "UNKNOWN"}),
    (StreamsMemberState, {1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS", 127: "UNKNOWN"}),
    (DeliveryState, {0: "AVAILABLE", 1: "ACQUIRED", 2: "ACKNOWLEDGED", 3: "ARCHIVING", 4: "ARCHIVED"}),
    (
        TransactionState,
        {
            0: "EMPTY",
            1: "ONGOING",
            2: "PREPARE_COMMIT",
            3: "PREPARE_ABORT",
            4: "COMPLETE_COMMIT",
            5: "COMPLETE_ABORT",
            6: "DEAD",
            7: "PREPARE_EPOCH_FENCE",
        },
    ),
]


@pytest.mark.parametrize(("states", "names"), STATES, ids=lambda value: getattr(value, "__name__", ""))
class TestStates:
    def test_names(self, states: type[OpenIntEnum], names: dict[int, str]) -> None:
        assert {state.value: state.name for state in states} == names

    def test_an_unknown_number_stays_itself(self, states: type[OpenIntEnum], names: dict[int, str]) -> None:
        for number in (99, -1, 128):
            state = states(number)
            assert isinstance(state, states)
            assert (state, state.name, state.is_known) == (number, f"UNKNOWN_{number}", False)
            assert pickle.loads(pickle.dumps(state)) == state

    def test_a_known_one_pickles_to_itself(self, states: type[OpenIntEnum], names: dict[int, str]) -> None:
        for state in states:
            assert state.is_known
            assert pickle.loads(pickle.dumps(state)) is state


class TestTraps:
    def test_zero_is_no_state_of_a_streams_member(self) -> None:
        assert MemberState(0) is MemberState.STABLE
        assert not StreamsMemberState(0).is_known

    def test_kafkas_unknown_has_a_name_of_its_own(self) -> None:
        assert MemberState.UNKNOWN.is_known
        assert MemberState(126).name == "UNKNOWN_126"


class TestTransactionLabels:
    @pytest.mark.parametrize(
        ("number", "label"),
        [(0, "Empty"), (1, "Ongoing"), (2, "PrepareCommit"), (5, "CompleteAbort"), (7, "PrepareEpochFence"), (8, "8")],
    )
    def test_label(self, number: int, label: str) -> None:
        assert TransactionState(number).label == label


class TestAgreementWithKafka:
    pytestmark = needs_kafka

    @pytest.mark.parametrize("states", [MemberState, StreamsMemberState, DeliveryState, TransactionState])
    def test_states_are_those_of_the_released_jars(self, states: type[OpenIntEnum]) -> None:
        theirs = kafka_enum(*ENUMS[states.__name__])
        assert [(state.name, state.value) for state in states] == [(it.name, it.number) for it in theirs]
