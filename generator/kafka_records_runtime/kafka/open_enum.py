"""Enumerations that newer Kafka releases may extend."""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class OpenIntEnum(IntEnum):
    """An IntEnum that keeps unknown numbers: it can be created from any integer.

    A number without a name becomes a new member, named UNKNOWN_ followed by the number. Such a member equals its number
    and has the same hash, and its `is_known` is False. Each call creates a new object, so compare with `==`, not with
    `is`.
    """

    @property
    def is_known(self) -> bool:
        """Whether the number has a name here."""
        return self.value in type(self)._value2member_map_

    @property
    def label(self) -> str:
        """The name as written by Kafka's tools, `PrepareCommit` for PREPARE_COMMIT; for an unknown number, the number
        itself."""
        return "".join(word.capitalize() for word in self.name.split("_")) if self.is_known else str(self.value)

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = f"UNKNOWN_{value}"
        member._value_ = int(value)
        return member

    # Pickle by number, because different Python versions pickle an IntEnum differently, and some look up its name.
    def __reduce_ex__(self, protocol: object) -> tuple[type[Self], tuple[int]]:
        return type(self), (int(self),)
