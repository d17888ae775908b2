"""The one form of messages about a right that is missing."""

from __future__ import annotations


def lacks_right(who: str, operation: str, on: str, action: str | None = None) -> str:
    """Who may not do what, and which right to grant. `operation` is that of the ACL, `on` the resource (`topic
    orders`), `action` what is refused, if that is more than the operation on the resource."""
    return f"{who} may not {action or f'{operation.lower()} {on}'}: grant it {operation} on {on}"
