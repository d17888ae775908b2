"""Names by which an operator recognizes the members of a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any


def member_names(members: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The names of members, by member id: the client id, if only one member has it. By default, Java consumers have the
    same client id in all processes; they are then distinguished by host or member id."""
    members = list(members)
    clients = Counter(each["client_id"] for each in members)
    places = Counter((each["client_id"], each["client_host"]) for each in members)
    found = {}
    for each in members:
        client, host = each["client_id"], each["client_host"]
        name = each["member_id"]
        if client and clients[client] == 1:
            name = client
        elif client and host and places[client, host] == 1:
            name = f"{client} at {host.removeprefix('/')}"
        found[each["member_id"]] = name
    return found
