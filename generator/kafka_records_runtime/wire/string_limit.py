"""The length limit of strings, shared by fast paths, the walker and the generator."""

from __future__ import annotations

from typing import Final

MAX_STRING: Final = 32767
"""The maximum size of a string in bytes of UTF-8, regardless of the width of its length field."""
