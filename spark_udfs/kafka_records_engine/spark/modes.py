"""The ways to treat undecodable rows, named as in Spark's own readers."""

from __future__ import annotations

from typing import Final, Literal, cast

Mode = Literal["PERMISSIVE", "FAILFAST", "DROPMALFORMED"]

PERMISSIVE: Final = "PERMISSIVE"
"""Bad rows are kept, with a description of the error."""

FAILFAST: Final = "FAILFAST"
"""The first bad row ends the query, and the error names it."""

DROPMALFORMED: Final = "DROPMALFORMED"
"""Bad rows are dropped but counted."""

MODES: Final = (PERMISSIVE, FAILFAST, DROPMALFORMED)


def checked_mode(mode: str, allowed: tuple[str, ...] = MODES) -> Mode:
    """`mode` in upper case. Raises ValueError for a mode that is not `allowed`, and TypeError if it is not a string."""
    if not isinstance(mode, str):
        raise TypeError(f"mode must be one of {', '.join(allowed)}, not {mode!r}")
    known = mode.upper()
    if known not in allowed:
        raise ValueError(f"mode {mode!r} is not one of {', '.join(allowed)}")
    return cast(Mode, known)
