"""Records the calls of a Connect client to its server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Calls:
    """Wraps the stub of a client, and records the name of every call, for an analysis also its kind."""

    def __init__(self, client: Any) -> None:
        self._stub = client._stub
        self._names: list[str] = []
        client._stub = self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._stub, name)

        def noted(request: Any, *arguments: Any, **options: Any) -> Any:
            if name == "AnalyzePlan":
                self._names.append(f"{name} {request.WhichOneof('analyze')}")
            elif name != "ReleaseExecute":  # this call comes from another thread, some time after an execution
                self._names.append(name)
            return call(request, *arguments, **options)

        return noted

    def so_far(self) -> list[str]:
        """The calls since the last call of this method."""
        names, self._names = self._names, []
        return names
