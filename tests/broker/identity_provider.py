"""A small identity provider on loopback: it signs tokens for one client, and serves its keys."""

from __future__ import annotations

import json
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

AUDIENCE = "kafka-records-tests"
CLIENT = ("auditor", "client-secret-4")


def _part(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


class IdentityProvider:
    """Signs a token for every request with `CLIENT`. The scope of the request is the name of the user."""

    def __init__(self, key: rsa.RSAPrivateKey | None = None) -> None:
        self._key = key or rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.url = ""
        self.asked: list[str] = []
        """The scopes of the requests for tokens."""

    def token(self, user: str, *, seconds: int = 300) -> str:
        """A token that is valid for `seconds`."""
        now = int(time.time())
        claims = {"sub": user, "aud": AUDIENCE, "iss": "tests", "iat": now, "exp": now + seconds, "scope": user}
        head = {"alg": "RS256", "kid": "1", "typ": "JWT"}
        signed = ".".join(_part(json.dumps(each).encode()) for each in (head, claims))
        return f"{signed}.{_part(self._key.sign(signed.encode(), padding.PKCS1v15(), SHA256()))}"

    def keys(self) -> dict[str, object]:
        """The public key in the form of RFC 7517."""
        numbers = self._key.public_key().public_numbers()
        members = {
            name: _part(number.to_bytes((number.bit_length() + 7) // 8, "big"))
            for name, number in (("n", numbers.n), ("e", numbers.e))
        }
        return {"keys": [{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", **members}]}

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Answer on a free port of loopback."""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, provider.keys())

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                wanted = f"Basic {b64encode(':'.join(CLIENT).encode()).decode()}"
                if self.path == "/moved":
                    self.send_response(302)
                    self.send_header("Location", f"{provider.url}/token")
                    self.end_headers()
                elif self.path != "/token":
                    self._answer(404, {"error": "secret-name"})
                elif self.headers["Authorization"] != wanted or form["grant_type"] != ["client_credentials"]:
                    self._answer(401, {"error": "invalid_client"})
                else:
                    (user,) = form["scope"]
                    provider.asked.append(user)
                    self._answer(200, {"access_token": provider.token(user), "token_type": "Bearer"})

            def _answer(self, status: int, what: dict[str, object]) -> None:
                data = json.dumps(what).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Do nothing, because the default writes to standard error."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
