"""The registry of requests by api key, and the headers that go with them."""

from __future__ import annotations

import pytest

from kafka_records.registry import APIS, MESSAGES, message_class
from kafka_records_runtime.errors import UnknownApi, UnsupportedVersion
from kafka_records_runtime.kafka.apis import Api, Apis

OFFSET_FETCH, API_VERSIONS, OFFSET_DELETE = 9, 18, 47


def test_a_request_and_its_response() -> None:
    api = APIS[OFFSET_DELETE]
    assert (api.name, api.request, api.response, api.versions) == (
        "OffsetDelete",
        "OffsetDeleteRequest",
        "OffsetDeleteResponse",
        range(1),
    )
    assert APIS.request_class(OFFSET_DELETE).API_KEY == OFFSET_DELETE
    assert APIS.response_class(OFFSET_DELETE).__name__ == "OffsetDeleteResponse"


def test_all_of_them() -> None:
    requests = {name for name in MESSAGES if name.endswith("Request")}
    assert {api.request for api in APIS.values()} == requests
    assert list(APIS) == sorted(APIS)
    assert OFFSET_FETCH in APIS
    assert 999 not in APIS
    for api in APIS.values():
        request, response = APIS.request_class(api.key), APIS.response_class(api.key)
        assert request.API_KEY == response.API_KEY == api.key
        assert request.VERSIONS == response.VERSIONS == api.versions


@pytest.mark.parametrize(
    ("key", "version", "request_header", "response_header"),
    [
        (OFFSET_FETCH, 5, 1, 0),
        (OFFSET_FETCH, 6, 2, 1),
        (OFFSET_DELETE, 0, 1, 0),
        (API_VERSIONS, 2, 1, 0),
        (API_VERSIONS, 3, 2, 0),
    ],
)
def test_header_versions(key: int, version: int, request_header: int, response_header: int) -> None:
    """OffsetFetch is flexible since version 6, OffsetDelete never; a response to ApiVersions always has header 0."""
    api = APIS[key]
    assert (api.request_header_version(version), api.response_header_version(version)) == (
        request_header,
        response_header,
    )


def test_what_is_not_there() -> None:
    with pytest.raises(UnknownApi, match="no request here has the api key 999; the known ones are 1, 2, 3, 8, "):
        APIS[999]
    with pytest.raises(UnsupportedVersion, match="OffsetDeleteRequest has no version 1: its only version is 0"):
        APIS[OFFSET_DELETE].request_header_version(1)
    one_way = Apis({7: Api(7, "Ping", "PingRequest", None, range(1), None)}, str)
    assert one_way.request_class(7) == "PingRequest"
    with pytest.raises(UnknownApi):
        one_way.response_class(7)
    with pytest.raises(TypeError, match="a version must be an int, not str"):
        APIS[OFFSET_FETCH].request_header_version("6")  # type: ignore[arg-type]


def test_what_was_never_released_is_no_api() -> None:
    assert not hasattr(message_class("ConsumerGroupPrepareAssignmentResponse"), "API_KEY")
    assert all("PrepareAssignment" not in api.name for api in APIS.values())
