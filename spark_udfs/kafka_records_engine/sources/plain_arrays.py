"""Converts Arrow arrays with types that few Arrow functions support: dictionaries and views."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def plain_array(array: Any) -> Any:
    """The same values without dictionaries and views, for an array or a chunked array. Polars uses views; Parquet and
    pandas use dictionaries."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary_view(array.type) else array
