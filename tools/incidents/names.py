"""Realistic names of topics, groups and clients, drawn at random and never twice."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

_THINGS: Final = (
    *("orders", "payments", "invoices", "carts", "prices", "stock", "shipments", "returns", "refunds", "customers"),
    *("sessions", "clicks", "visits", "reviews", "ratings", "coupons", "baskets", "parcels", "routes", "drivers"),
    *("meters", "sensors", "alarms", "readings", "tickets", "contracts", "claims", "badges", "ledgers", "transfers"),
    *("bookings", "rooms", "flights", "seats", "menus", "recipes", "photos", "albums", "tracks", "playlists"),
)
_ENDS: Final = ("", ".v2", ".events", "-raw", ".changes", ".eu", "_log", ".in", "-updates", ".v1")
_JOBS: Final = (
    *("writer", "indexer", "router", "sync", "mailer", "scorer", "loader", "auditor", "exporter", "merger", "planner"),
    *("enricher", "projector", "archiver", "notifier", "checker", "counter", "importer", "matcher", "ranker"),
)


class Names:
    """Draws names; each only once."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._taken: set[str] = set()

    def topic(self) -> str:
        """A topic, such as `orders.v2`."""
        return self._fresh(lambda: self._random.choice(_THINGS) + self._random.choice(_ENDS))

    def group(self) -> str:
        """A group or an application, such as `invoice-mailer`."""
        return self._fresh(lambda: f"{self._random.choice(_THINGS).rstrip('s')}-{self._random.choice(_JOBS)}")

    def suffix(self) -> str:
        """Eight hexadecimal digits, as in names of pods and random ids."""
        return f"{self._random.getrandbits(32):08x}"

    def _fresh(self, draw: Callable[[], str]) -> str:
        while (name := draw()) in self._taken or any(name in other or other in name for other in self._taken):
            pass
        self._taken.add(name)
        return name
