"""Looks up requests by api key, with their versions and the header version of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kafka_records_runtime.errors import UnknownApi, UnsupportedVersion

_API_VERSIONS: Final = 18


class Api(NamedTuple):
    """A kind of request and its response.

    `versions` are the versions of the request. Starting with version `flexible_from` (None: never), request and
    response use the compact encoding.
    """

    key: int
    name: str
    request: str
    response: str | None
    versions: range
    flexible_from: int | None

    def request_header_version(self, version: int) -> int:
        """The version of the RequestHeader before a request of `version`: 2 for a flexible version, otherwise 1.

        Raises UnsupportedVersion. (`ApiKeys.requestHeaderVersion`; Kafka 4.0 removed header version 0.)
        """
        return 2 if self._is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """The version of the ResponseHeader before a response of `version`: 1 for a flexible version, otherwise 0.

        An ApiVersions response always has header version 0, because the client does not yet know what the broker
        supports (KIP-511). Raises UnsupportedVersion. (`ApiKeys.responseHeaderVersion`)
        """
        return 1 if self._is_flexible(version) and self.key != _API_VERSIONS else 0

    def _is_flexible(self, version: int) -> bool:
        if not isinstance(version, int):
            raise TypeError(f"a version must be an int, not {type(version).__name__}")
        if version not in self.versions:
            raise UnsupportedVersion(self.request, version, self.versions)
        return self.flexible_from is not None and version >= self.flexible_from


class Apis(Mapping[int, Api]):
    """The requests of a generated package by api key. Their classes are imported on first use."""

    def __init__(self, apis: Mapping[int, Api], message_class: Callable[[str], Any]) -> None:
        self._apis = apis
        self._message_class = message_class

    def __iter__(self) -> Iterator[int]:
        return iter(self._apis)

    def __len__(self) -> int:
        return len(self._apis)

    def __getitem__(self, key: int) -> Api:
        """The request with this api key. Raises UnknownApi."""
        try:
            return self._apis[key]
        except KeyError:
            raise UnknownApi(key, tuple(self._apis)) from None

    def request_class(self, key: int) -> Any:
        """The class of the request with this api key. Raises UnknownApi."""
        return self._message_class(self[key].request)

    def response_class(self, key: int) -> Any:
        """The class of the response with this api key. Raises UnknownApi, also for a request without a response."""
        response = self[key].response
        if response is None:
            raise UnknownApi(key, tuple(api.key for api in self._apis.values() if api.response))
        return self._message_class(response)
