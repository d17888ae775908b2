"""Requests to identity providers, kept apart because loading an HTTP client takes time that few programs need."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

_MOST_BYTES: Final = 1024 * 1024


class NoToken(Exception):
    """The reason why there is no answer."""


class _NoRedirect(HTTPRedirectHandler):
    """Refuses redirects, which would send the secret to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


def posted(url: str, body: bytes, headers: Mapping[str, str], timeout: float) -> bytes:
    """The answer to a POST. Raises NoToken."""
    request = Request(url, body, dict(headers), method="POST")
    opener = build_opener(ProxyHandler({}), _NoRedirect(), HTTPSHandler(context=ssl.create_default_context()))
    try:
        with opener.open(request, timeout=timeout) as answer:
            data: bytes = answer.read(_MOST_BYTES)
            return data
    except HTTPError as error:
        error.close()
        raise NoToken(f"{url} responded with status {error.code}: check client id, secret and scope") from None
    except (URLError, HTTPException, OSError) as error:
        why = getattr(error, "reason", None) or error
        raise NoToken(f"{url} gives no token: {why}") from None
