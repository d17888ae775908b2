"""Gets tokens for SASL OAUTHBEARER: from an identity provider with client credentials (RFC 6749, section 4.4), or from
a file.

The classes correspond to `ClientCredentialsJwtRetriever` and `FileJwtRetriever` of Kafka's clients (KIP-768, KIP-1139).
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote_plus, unquote, urlsplit

LOGIN_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
LOGIN_HANDLERS: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
"""Kafka's own handlers, which the classes of this module replace."""
RETRIEVERS: Final = tuple(
    f"org.apache.kafka.common.security.oauthbearer.{name}JwtRetriever"
    for name in ("Default", "ClientCredentials", "File")
)

URL: Final = "sasl.oauthbearer.token.endpoint.url"
ID: Final = "sasl.oauthbearer.client.credentials.client.id"
SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE: Final = "sasl.oauthbearer.scope"
URL_ENCODES: Final = "sasl.oauthbearer.header.urlencode"


class TokenError(ValueError):
    """There is no token. The text says why, without secrets."""


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """Requests a token from an identity provider on each call. Its `repr` and its errors contain no secret."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    url_encodes: bool = False
    timeout: float = 10

    def __call__(self) -> str:
        """Request a token. Raises TokenError."""
        name, secret = self.client_id, self.client_secret
        if self.url_encodes:
            name, secret = quote_plus(name), quote_plus(secret)
        body = "grant_type=client_credentials" + (f"&scope={quote_plus(self.scope)}" if self.scope else "")
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {b64encode(f'{name}:{secret}'.encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        # imported late, so that programs without this kind of login do not load the HTTP client
        from kafka_records_engine.sources._client.token_requests import NoToken, posted

        try:
            token = json.loads(posted(self.url, body.encode(), headers, self.timeout))["access_token"]
        except NoToken as error:
            raise TokenError(str(error)) from None
        except (ValueError, LookupError, TypeError):
            token = None
        if not isinstance(token, str):
            raise TokenError(f"the response from {self.url} has no access_token")
        return token


@dataclass(frozen=True, slots=True)
class TokenFile:
    """Reads the token from a file on each call, because another program may renew it."""

    path: str

    def __call__(self) -> str:
        """The token. Raises TokenError if the file cannot be read."""
        try:
            return Path(self.path).read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not a token"
            raise TokenError(f"{self.path} cannot be read: {why}") from None


def token_source(properties: Mapping[str, str], options: Mapping[str, str]) -> ClientCredentials | TokenFile:
    """The source of tokens for some properties of Kafka's clients and the options of `sasl.jaas.config`.

    Raises ValueError for a missing or unsupported property; the text contains no secret.
    """
    url = properties.get(URL, "").strip()
    parts = urlsplit(url)
    if parts.scheme == "file":
        return TokenFile(unquote(parts.path))
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"OAUTHBEARER needs {URL}, a URL that starts with https://, http:// or file://")
    if parts.username or parts.password:
        raise ValueError(f"{URL} contains a password: move it to {SECRET}")
    client_id = properties.get(ID) or options.get("clientId") or ""
    secret = properties.get(SECRET) or options.get("clientSecret") or ""
    if not client_id or not secret:
        raise ValueError(f"OAUTHBEARER needs {ID} and {SECRET}")
    encodes = properties.get(URL_ENCODES, "").strip().lower() == "true"
    scope = properties.get(SCOPE) or options.get("scope") or ""
    return ClientCredentials(url, client_id, secret, scope, encodes)
