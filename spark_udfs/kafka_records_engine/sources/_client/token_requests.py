"""Requests to identity providers. They are in a separate module because the HTTP client takes time to load, and few
programs need it."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

ADDRESS: Final = "sasl.oauthbearer.token.endpoint.url"
_MOST_BYTES: Final = 1024 * 1024
_REFUSALS: Final = (
    *("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type"),
    "invalid_scope",
)


class NoToken(Exception):
    """There is no answer with a token. The text says why."""


class _NoRedirect(HTTPRedirectHandler):
    """Rejects redirects, which would send the secret to another server."""

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
        refusal = _refusal(error)
        error.close()
        status = f"{error.code} ({refusal})" if refusal else str(error.code)
        raise NoToken(f"{url} responded with status {status}: {_advice(error.code)}") from None
    except (URLError, HTTPException, OSError) as error:
        why = getattr(error, "reason", None) or error
        what = getattr(why, "strerror", None) or why
        raise NoToken(f"no token from {url}: {what}. Check {ADDRESS}, and that this machine can reach it") from None


def _refusal(error: HTTPError) -> str:
    """The error in the answer, if it is one defined in RFC 6749, section 5.2. Any other text may repeat a secret."""
    try:
        code = json.loads(error.read(_MOST_BYTES))["error"]
    except (ValueError, LookupError, TypeError, OSError, HTTPException):
        return ""
    return code if code in _REFUSALS else ""


def _advice(status: int) -> str:
    if status in (400, 401, 403):
        return "check client id, secret and scope"
    if 300 <= status < 400:
        return f"redirects are not followed, as they would get the secret: give the final address in {ADDRESS}"
    return "try again later" if status >= 500 or status == 429 else f"check {ADDRESS}"
