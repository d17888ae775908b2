"""Parameters of which `make test` takes some and `make matrix` takes all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

__all__ = ["mostly", "one_in"]


def mostly(cases: Iterable[tuple[Any, ...]], is_usual: Callable[..., bool]) -> list[Any]:
    """All cases as parameters: the usual ones in `make test`, the others in `make matrix`."""
    return [pytest.param(*case, marks=() if is_usual(*case) else pytest.mark.matrix) for case in cases]


def one_in(step: int, cases: Iterable[Any]) -> list[Any]:
    """All cases as parameters: the first of every `step` in `make test`, the others in `make matrix`."""
    return [pytest.param(case, marks=() if at % step == 0 else pytest.mark.matrix) for at, case in enumerate(cases)]
