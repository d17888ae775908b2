"""The wording of messages about a missing right."""

from __future__ import annotations


def lacks_right(who: str, operation: str, on: str, action: str | None = None) -> str:
    """The message that says who may not do what, and which right to grant. `operation` is the ACL operation, and `on`
    is the resource (`topic orders`). `action` names the refused action unless it is just the operation on the resource.
    """
    return f"{who} may not {action or f'{operation.lower()} {on}'}: grant it {operation} on {on}"
