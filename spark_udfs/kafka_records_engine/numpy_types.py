"""Types of the numpy arrays that the engine and the tables exchange, by element type."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

INT16 = NDArray[np.int16]
INT32 = NDArray[np.int32]
INT64 = NDArray[np.int64]
INTEGERS = NDArray[np.signedinteger[Any]]
"""Signed integers of any width."""

FLAGS = NDArray[np.bool_]
