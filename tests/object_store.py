"""An object store on this machine, which counts the bytes that it sends."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.fs as arrow

KEY, SECRET = "AKIAOBJECTSTORE", "Top/Secret+Of=Tests"
BUCKET = "backup"

_HEADERS = {
    "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/us-east-1/s3/aws4_request",
    "Content-Type": "application/octet-stream",
    "x-amz-acl": "public-read",
}


class ObjectStore:
    """Objects in the bucket BUCKET, and the number of bytes of each that were sent."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.sent: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.files = arrow.S3FileSystem(
            access_key=KEY, secret_key=SECRET, region="us-east-1", scheme="http", endpoint_override=self.address
        )

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, key: str, *, bucket: str = BUCKET, user: bool = True, **settings: str) -> str:
        """The URL of an object, with the secret of its user in it."""
        options = {"scheme": "http", "endpoint_override": self.address, "region": "us-east-1", **settings}
        who = f"{KEY}:{quote(SECRET, safe='')}@" if user else ""
        return f"s3://{who}{bucket}/{key}?{'&'.join(f'{name}={value}' for name, value in options.items())}"

    def put(self, key: str, data: bytes) -> None:
        # moto loses some bytes of the chunks that AWS clients send, including pyarrow's.
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("PUT", f"/{BUCKET}/{quote(key)}", data, _HEADERS)
            assert connection.getresponse().status == 200
        finally:
            connection.close()

    def put_folder(self, key: str, folder: Path) -> None:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{key}/{path.relative_to(folder)}", path.read_bytes())

    def sent_below(self, key: str) -> int:
        """Bytes of objects with names that begin with `key`."""
        return sum(count for path, count in self.sent.items() if path.startswith(f"/{BUCKET}/{key}"))

    def forget(self) -> None:
        self.sent.clear()
        self.requests.clear()


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A server in a thread of this process."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    store: list[ObjectStore] = []
    application = DomainDispatcherApplication(create_backend_app)

    def counted(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        path, is_get = environ["PATH_INFO"], environ["REQUEST_METHOD"] == "GET"
        for piece in application(environ, start):
            if is_get and not environ["QUERY_STRING"]:
                store[0].sent[path] += len(piece)
            yield piece
        store[0].requests[environ["REQUEST_METHOD"]] += 1

    server = make_server("127.0.0.1", 0, counted, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        store.append(ObjectStore(server.server_port))
        arrow.S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            region="us-east-1",
            scheme="http",
            endpoint_override=store[0].address,
            allow_bucket_creation=True,
        ).create_dir(BUCKET)
        yield store[0]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def refusing_store(status: int, code: str) -> Iterator[int]:
    """The port of a server that answers every request of S3 with one error."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Write nothing to standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
