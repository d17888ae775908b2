"""The limit of strings, which fast paths, the walker and the generator share."""

from __future__ import annotations

from typing import Final

MAX_STRING: Final = 32767
"""Bytes of UTF-8 a string may have, regardless of the width of its length."""
