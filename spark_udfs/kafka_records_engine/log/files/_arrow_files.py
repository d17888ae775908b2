"""Reads files from pyarrow's file systems, and from file systems passed as objects.

Object stores have no open files: every range is a separate request, which reads the object that currently has the name.
So the object is checked again after each range. If it has been replaced, the range is discarded and reading ends with
an error, so bytes of two objects are never mixed.
"""

from __future__ import annotations

import errno
import pickle
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode

import pyarrow as pa
import pyarrow.fs as arrow

from kafka_records_engine.log.files._byte_ranges import RangeFile
from kafka_records_engine.log.files.local_files import LOCAL
from kafka_records_engine.log.files.opened import LogFile, NoRegularFile, ReplacedFile
from kafka_records_engine.log.files.places import ListedEntry, Place, PlaceKind
from kafka_records_engine.log.files.source_error import LogSourceError

T = TypeVar("T")

_WHOLE_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?]*))?([^?]*)(?:\?(.*))?", re.DOTALL)
_IN_PATHS: Final = "/%!:@+,;=~"
"""These characters, and percent-encoded ones, stay unchanged in the path of a URL. All others are encoded before
pyarrow gets the URL."""

_USERS_ARE_KEYS: Final = ("s3", "gs", "gcs")
"""URL schemes in which the user name is an access key. Messages show neither user nor password."""

_PUBLIC: Final = ("region", "scheme", "endpoint_override", "anonymous", "allow_bucket_creation", "retry_limit_seconds")
"""Settings in URLs that are not secret. Any other setting may be."""

_BUCKETS: Final = ("s3", "gcs", "abfs")
_MOST_SAID: Final = 300


@dataclass(frozen=True, slots=True)
class ArrowFiles:
    """The files of one `pyarrow.fs.FileSystem`; see `places.Files`."""

    filesystem: arrow.FileSystem = field(compare=False, repr=False)
    base: str
    """How messages show the path `root`."""
    root: str
    stays_here: bool = False
    secrets: tuple[str, ...] = field(default=(), compare=False, repr=False)
    is_local = False
    is_archive = False

    def kind(self, path: str) -> PlaceKind | None:
        """See `places.Files.kind`."""
        info = self._info(path)
        if info.type == arrow.FileType.NotFound and self.filesystem.type_name in _BUCKETS:
            bucket = path.partition("/")[0]
            if bucket != path and self._info(bucket).type == arrow.FileType.NotFound:
                what = f"there is no bucket or container {bucket}, or these credentials may not see it"
                raise FileNotFoundError(errno.ENOENT, what)
        return _kind(info)

    def listed(self, path: str) -> Sequence[ListedEntry]:
        """See `places.Files.listed`."""
        found = self._asked(lambda: self.filesystem.get_file_info(arrow.FileSelector(path, recursive=False)))
        entries = [
            ListedEntry(info.base_name, _kind(info) or "other", info.size or 0, _version(info)) for info in found
        ]
        if not entries and self._info(path).type != arrow.FileType.Directory:
            raise FileNotFoundError(errno.ENOENT, "there is no such file or directory")
        return entries

    def size(self, path: str) -> int:
        """See `places.Files.size`."""
        return self._there(path).size or 0

    def version(self, path: str) -> Hashable:
        """See `places.Files.version`."""
        return _version(self._there(path))

    def written_ms(self, path: str) -> int | None:
        """See `places.Files.written_ms`."""
        when = self._there(path).mtime_ns
        return None if when is None else int(when) // 1_000_000

    def opened(self, path: str, version: Hashable = None) -> LogFile:
        """See `places.Files.opened`. With a version, no request is sent before the first byte is read."""
        if version is None:
            info = self._there(path)
            if info.type != arrow.FileType.File:
                raise NoRegularFile(errno.EINVAL, "this is not a file")
            version = _version(info)
        ranges = _Ranges(self, path, version)
        return RangeFile(ranges.read_at, ranges.size, on_close=ranges.close)

    def child(self, path: str, name: str) -> str:
        """See `places.Files.child`."""
        return f"{path.rstrip('/')}/{name}" if path else name

    def parent(self, path: str) -> str:
        """See `places.Files.parent`."""
        return path.rstrip("/").rpartition("/")[0]

    def resolved(self, path: str) -> str:
        """The path, unchanged."""
        return path

    def for_arrow(self, path: str) -> tuple[arrow.FileSystem, str]:
        """See `places.Files.for_arrow`."""
        return self.filesystem, path

    def shown(self, path: str) -> str:
        """The URL, without user, password and settings."""
        if path == self.root or path.startswith(f"{self.root}/") or not self.root:
            return self.base + path[len(self.root) :]
        return f"{self.base.partition('://')[0]}://{path}" if "://" in self.base else path

    def _info(self, path: str) -> arrow.FileInfo:
        return self._asked(lambda: self.filesystem.get_file_info(path))

    def _there(self, path: str) -> arrow.FileInfo:
        info = self._info(path)
        if info.type == arrow.FileType.NotFound:
            raise FileNotFoundError(errno.ENOENT, "there is no such file or directory")
        return info

    def _asked(self, ask: Callable[[], T]) -> T:
        """The result of `ask`. Every error becomes an OSError whose text contains no secret."""
        try:
            return ask()
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "there is no such file or directory") from None
        except (OSError, pa.ArrowException, ValueError, NotImplementedError) as error:
            raise OSError(getattr(error, "errno", None) or errno.EIO, said_of(error, self.secrets)) from None


class _Ranges:
    """Reads ranges of one object, as long as it is not replaced."""

    def __init__(self, files: ArrowFiles, path: str, version: Hashable) -> None:
        self._files = files
        self._path = path
        self._version = version
        self.size = version[0] if isinstance(version, tuple) else 0
        self._file: Any = None
        self._mark: object = None

    def read_at(self, position: int, size: int) -> bytes:
        if self._file is None:
            self._file, self._mark = self._looked_up()
        data: bytes = self._files._asked(lambda: self._file.read_at(size, position))
        again, mark = self._looked_up()
        again.close()
        if mark != self._mark or len(data) != min(size, self.size - position):
            raise ReplacedFile
        return data

    def _looked_up(self) -> tuple[Any, object]:
        """The object that now has this name, and a value that identifies it. Raises ReplacedFile if it is not the one
        found before."""

        def look() -> tuple[Any, arrow.FileInfo, dict[str, bytes]]:
            file = self._files.filesystem.open_input_file(self._path)
            about = file.metadata() or {}
            return file, None if _ETAG in about else self._files.filesystem.get_file_info(self._path), about

        file, info, about = self._files._asked(look)
        mark = _version(info) if info is not None else (about[_ETAG], about.get("Last-Modified"))
        if file.size() != self.size or (info is not None and mark != self._version):
            file.close()
            raise ReplacedFile
        return file, mark

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


_ETAG: Final = "ETag"


def _kind(info: arrow.FileInfo) -> PlaceKind | None:
    if info.type == arrow.FileType.NotFound:
        return None
    if info.type == arrow.FileType.File:
        return "file"
    return "folder" if info.type == arrow.FileType.Directory else "other"


def _version(info: arrow.FileInfo) -> tuple[int, int | None]:
    return info.size or 0, info.mtime_ns


# -- from what is written to file systems ------------------------------------------------------------------------------


def place_in(given: Any, path: str) -> Place:
    """The place of a path in `given`, a file system object. Raises TypeError if `given` is anything else."""
    filesystem = _file_system(given)
    base, inner = filesystem, path
    while isinstance(base, arrow.SubTreeFileSystem):
        # An open local file stays readable after it is deleted, so local paths are read as local files.
        inner = f"{base.base_path.rstrip('/')}/{inner.lstrip('/')}"
        base = base.base_fs
    if base.type_name == "local":
        return Place(LOCAL, LOCAL.normal(inner))
    normal = f"/{path.strip('/')}" if path.startswith("/") else path.rstrip("/")
    return Place(ArrowFiles(filesystem, "", "", _stays_here(filesystem)), normal)


def _file_system(given: Any) -> arrow.FileSystem:
    if isinstance(given, arrow.FileSystem):
        return given
    if hasattr(given, "protocol") and hasattr(given, "open") and hasattr(given, "ls"):
        return arrow.PyFileSystem(arrow.FSSpecHandler(given))
    raise TypeError(f"a file system must be one of pyarrow.fs or fsspec, not {type(given).__name__}")


def _stays_here(filesystem: arrow.FileSystem) -> bool:
    """Whether only this process can read the files, because they are in its memory or the object cannot be pickled."""
    if "memory" in filesystem.type_name or filesystem.type_name == "mock":
        return True
    try:
        pickle.dumps(filesystem)
    except Exception:
        return True
    return False


def place_at(url: str) -> Place:
    """The place that a URL refers to. Raises LogSourceError for a URL that cannot be used."""
    match = _WHOLE_URL.fullmatch(url)
    shown = shown_url(url)
    if match is None:
        raise LogSourceError(shown, "this is not a URL")
    scheme, authority, path, query = match[1].lower(), match[2] or "", match[3], match[4]
    if scheme == "file":
        # A local name may contain any character except NUL. After `file:` it is not percent-encoded, because Spark
        # writes it that way.
        name = unquote(path + (f"?{query}" if query is not None else ""))
        if authority not in ("", "localhost"):
            raise LogSourceError(shown, "a file URL must not name a host: write file:///path")
        return Place(LOCAL, LOCAL.normal(name))
    secrets = _secrets_in(url)
    settings = dict(parse_qsl(query or "", keep_blank_values=True))
    # Arrow's URL parser rejects wildcard patterns.
    fixed = path.partition("*")[0].partition("[")[0].rpartition("/")[0] if re.search(r"[*\[]", path) else path
    try:
        if scheme == "s3" and _is_yes(settings.pop("anonymous", "false")):
            filesystem, start = _anonymous_s3(authority, fixed, settings)
        else:
            query = urlencode(settings)
            asked = f"{scheme}://{authority}{quote(fixed, safe=_IN_PATHS)}"
            filesystem, start = arrow.FileSystem.from_uri(f"{asked}?{query}" if query else asked)
    except (OSError, pa.ArrowException, ValueError, TypeError, ImportError) as error:
        raise LogSourceError(shown, _why_not(scheme, error, secrets)) from None
    prefix = f"{scheme}://{_shown_authority(scheme, authority)}"
    inner = unquote(fixed).rstrip("/")
    start = start.rstrip("/")
    root = start[: len(start) - len(inner)] if inner and start.endswith(inner) else start if not inner else ""
    rest = unquote(path[len(fixed) :])
    files = ArrowFiles(filesystem, prefix, root.rstrip("/"), secrets=secrets)
    return Place(files, f"{start}{rest}".rstrip("/") or start)


def _is_yes(text: str) -> bool:
    return text.lower() in ("", "1", "true", "yes")


def _anonymous_s3(authority: str, path: str, settings: dict[str, str]) -> tuple[arrow.FileSystem, str]:
    """An S3 file system without credentials, and the path in it. pyarrow supports this, but not in URLs."""
    known = {name: settings.pop(name) for name in ("region", "scheme", "endpoint_override") if name in settings}
    if settings:
        raise ValueError(
            f"Unexpected query parameter in S3 URI: {next(iter(settings))!r} cannot be combined with anonymous"
        )
    bucket = authority.rpartition("@")[2]
    if "region" not in known and "endpoint_override" not in known:
        known["region"] = arrow.resolve_s3_region(bucket)
    return arrow.S3FileSystem(anonymous=True, **known), f"{bucket}{unquote(path)}"


def shown_url(url: str) -> str:
    """The URL without password, access key and settings."""
    match = _WHOLE_URL.fullmatch(url)
    if match is None:
        return "a URL"
    scheme, authority, path = match[1], match[2], match[3]
    if authority is None:
        return f"{scheme}:{path}"
    return f"{scheme}://{_shown_authority(scheme.lower(), authority)}{path}"


def _shown_authority(scheme: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if not at or scheme in _USERS_ARE_KEYS:
        return host
    return f"{user.partition(':')[0]}@{host}"


def has_secret(url: str) -> bool:
    """Whether a URL contains a password, a key or anything else that must not be shown."""
    return any(_private_parts(url))


def _secrets_in(url: str) -> tuple[str, ...]:
    """The parts of the URL that must not be shown, both as written and percent-decoded."""
    found = _private_parts(url)
    return tuple({text for each in found for text in (each, unquote(each)) if len(text) > 3} | {url})


def _private_parts(url: str) -> list[str]:
    match = _WHOLE_URL.fullmatch(url)
    if match is None:
        return [url]
    scheme, authority, query = match[1].lower(), match[2] or "", match[4] or ""
    if scheme == "file":
        return []
    user, _, password = authority.rpartition("@")[0].partition(":")
    settings = (each.partition("=") for each in query.split("&"))
    private = [value for name, _, value in settings if name not in _PUBLIC]
    return [password, user if scheme in _USERS_ARE_KEYS and user != "anonymous" else "", *private]


# -- what went wrong ---------------------------------------------------------------------------------------------------

_SENTENCES: Final = (
    (r"NO_SUCH_BUCKET|Bucket '.*' not found", "there is no such bucket"),
    (
        r"INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|InvalidAccessKeyId|SignatureDoesNotMatch|"
        r"UNRECOGNIZED_CLIENT|InvalidToken|EXPIRED_TOKEN|ExpiredToken",
        "the store rejects the credentials: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN or "
        "AWS_PROFILE",
    ),
    (
        r"ACCESS_DENIED|AccessDenied|FORBIDDEN|HTTP status 403|HTTP response code 403|NoSuchKey.*403|"
        r"MISSING_AUTHENTICATION|UNAUTHENTICATED|PERMISSION_DENIED|AuthenticationFailed|AuthorizationFailure",
        "the store denies access: there are no credentials, or they may not list and read this (for S3: "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or ?anonymous=true for a public bucket)",
    ),
    (
        r"curlCode: (?:6|7|28)\b|NETWORK_CONNECTION|Couldn't resolve host|REQUEST_TIMEOUT",
        "cannot connect to the store: check the network, and endpoint_override, scheme and region in the URL "
        "or AWS_ENDPOINT_URL and AWS_REGION",
    ),
    (
        r"HTTP status 301|PERMANENT_REDIRECT|HTTP response code 301",
        "the bucket is in another region: add ?region=… to the URL",
    ),
    (r"SLOW_DOWN|SlowDown|THROTTLING|HTTP status 503", "the store limits requests: try again later"),
)


def said_of(error: BaseException, secrets: Sequence[str] = ()) -> str:
    """The message of a file system error as one sentence without secrets."""
    text = str(error)
    for pattern, sentence in _SENTENCES:
        if re.search(pattern, text):
            return sentence
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "…")
    line = " ".join(text.split())
    return line if len(line) <= _MOST_SAID else f"{line[:_MOST_SAID]}…"


def _why_not(scheme: str, error: BaseException, secrets: Sequence[str]) -> str:
    """The reason why a URL cannot be used, and what to do."""
    text = str(error)
    if "Unrecognized filesystem type" in text:
        return (
            f"pyarrow has no file system {scheme}:// (only file, s3, gs, abfs and hdfs); fsspec may have one: in "
            f"Python "
            f'Segments(path, filesystem=fsspec.filesystem("{scheme}"))'
        )
    if "libjvm" in text or "libhdfs" in text:
        return (
            "hdfs needs Hadoop's client on this machine: libhdfs.so and libjvm.so are not found (set HADOOP_HOME, "
            "JAVA_HOME, ARROW_LIBHDFS_DIR and CLASSPATH)"
        )
    if re.search(r"without (?:S3|GCS|HDFS|Azure)|not (?:built|compiled) with|is not enabled", text) or isinstance(
        error, ImportError
    ):
        return f"this pyarrow was built without {scheme}://: install one from PyPI or conda-forge"
    unknown = re.search(r"Unexpected query parameter in \w+ URI: '?([A-Za-z_]+)'?", text)
    if unknown:
        return f"{scheme}:// has no setting {unknown[1]}"
    if "Cannot parse URI" in text:
        return "this URL cannot be read: encode special characters of keys and passwords (/ is %2F, + is %2B)"
    return said_of(error, secrets)
