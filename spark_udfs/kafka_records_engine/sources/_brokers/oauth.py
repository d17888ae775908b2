"""Tokens for SASL OAUTHBEARER: by client credentials (RFC 6749, section 4.4) from an identity provider, or from a file.

Corresponds to `ClientCredentialsJwtRetriever` and `FileJwtRetriever` of Kafka's clients (KIP-768, KIP-1139).
"""

from __future__ import annotations

import json
import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote_plus, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

LOGIN_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
LOGIN_HANDLERS: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
"""Kafka's own handlers, which this module replaces."""
RETRIEVERS: Final = tuple(
    f"org.apache.kafka.common.security.oauthbearer.{name}JwtRetriever"
    for name in ("Default", "ClientCredentials", "File")
)

URL: Final = "sasl.oauthbearer.token.endpoint.url"
ID: Final = "sasl.oauthbearer.client.credentials.client.id"
SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE: Final = "sasl.oauthbearer.scope"
URL_ENCODES: Final = "sasl.oauthbearer.header.urlencode"
_MOST_BYTES: Final = 1024 * 1024


class TokenError(ValueError):
    """The reason why there is no token. The text contains no secret."""


class _NoRedirect(HTTPRedirectHandler):
    """Refuses redirects, which would send the secret to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """Asks an identity provider for a token each time it is called. Its `repr` and its errors have no secret."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    url_encodes: bool = False
    timeout: float = 10

    def __call__(self) -> str:
        """The token. Raises TokenError, which says why there is none."""
        name, secret = self.client_id, self.client_secret
        if self.url_encodes:
            name, secret = quote_plus(name), quote_plus(secret)
        body = "grant_type=client_credentials" + (f"&scope={quote_plus(self.scope)}" if self.scope else "")
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {b64encode(f'{name}:{secret}'.encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        request = Request(self.url, body.encode(), headers, method="POST")
        opener = build_opener(ProxyHandler({}), _NoRedirect(), HTTPSHandler(context=ssl.create_default_context()))
        try:
            with opener.open(request, timeout=self.timeout) as answer:
                data = answer.read(_MOST_BYTES)
        except HTTPError as error:
            error.close()
            raise TokenError(
                f"{self.url} responded with status {error.code}: check client id, secret and scope"
            ) from None
        except (URLError, HTTPException, OSError) as error:
            why = getattr(error, "reason", None) or error
            raise TokenError(f"{self.url} gives no token: {why}") from None
        try:
            token = json.loads(data)["access_token"]
        except (ValueError, LookupError, TypeError):
            token = None
        if not isinstance(token, str):
            raise TokenError(f"{self.url} gives no access_token")
        return token


@dataclass(frozen=True, slots=True)
class TokenFile:
    """Reads the token from a file each time it is called, because another program may renew it."""

    path: str

    def __call__(self) -> str:
        """The token. Raises TokenError for a file that cannot be read."""
        try:
            return Path(self.path).read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not a token"
            raise TokenError(f"{self.path} cannot be read: {why}") from None


def token_source(properties: Mapping[str, str], options: Mapping[str, str]) -> ClientCredentials | TokenFile:
    """The source of tokens for the given properties of Kafka's clients and the options of `sasl.jaas.config`.

    Raises ValueError for a missing or unsupported property; the text contains no secret.
    """
    url = properties.get(URL, "").strip()
    parts = urlsplit(url)
    if parts.scheme == "file":
        return TokenFile(unquote(parts.path))
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"OAUTHBEARER needs {URL}, an address with https://, http:// or file://")
    if parts.username or parts.password:
        raise ValueError(f"{URL} contains a password: move it to {SECRET}")
    client_id = properties.get(ID) or options.get("clientId") or ""
    secret = properties.get(SECRET) or options.get("clientSecret") or ""
    if not client_id or not secret:
        raise ValueError(f"OAUTHBEARER needs {ID} and {SECRET}")
    encodes = properties.get(URL_ENCODES, "").strip().lower() == "true"
    scope = properties.get(SCOPE) or options.get("scope") or ""
    return ClientCredentials(url, client_id, secret, scope, encodes)
