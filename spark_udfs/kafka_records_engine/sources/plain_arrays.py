"""Arrow arrays without the types that few functions of Arrow know: dictionaries and views."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def plain_array(array: Any) -> Any:
    """The same values, of an array or a chunked array, with no dictionary and no views. Polars gives views, Parquet
    and pandas dictionaries."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary_view(array.type) else array
