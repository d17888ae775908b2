"""The configuration for connecting to brokers, from a properties file like those of Kafka's own clients, or from
Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from os import PathLike, fspath
from typing import Final, Self

from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._client import oauth
from kafka_records_engine.sources._client.properties import read_file, read_jaas, read_properties
from kafka_records_runtime.text.close_names import close_name

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

PLAIN: Final = "PLAIN"
SCRAM: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER)

_TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
_LOGIN_MODULES: Final = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": (PLAIN,),
    "org.apache.kafka.common.security.scram.ScramLoginModule": (*SCRAM,),
    oauth.LOGIN_MODULE: (OAUTHBEARER,),
}
_HOST_NAMES: Final = "ssl.endpoint.identification.algorithm"
_TEXTS: Final = {
    "client.id": "client_id",
    "client.rack": "client_rack",
    "ssl.truststore.location": "truststore_location",
    "ssl.truststore.password": "truststore_password",
    "ssl.truststore.certificates": "truststore_certificates",
    "ssl.keystore.location": "keystore_location",
    "ssl.keystore.password": "keystore_password",
    "ssl.keystore.key": "keystore_key",
    "ssl.keystore.certificate.chain": "keystore_certificate_chain",
    "ssl.key.password": "key_password",
}
_TIMES: Final = {
    "request.timeout.ms": "request_timeout_ms",
    "socket.connection.setup.timeout.ms": "connect_timeout_ms",
    "default.api.timeout.ms": "patience_ms",
}
_OTHERS: Final = ("security.protocol", "sasl.mechanism", "sasl.jaas.config", "ssl.enabled.protocols", _HOST_NAMES)
_OAUTH: Final = (oauth.URL, oauth.ID, oauth.SECRET, oauth.SCOPE, oauth.URL_ENCODES)
_HANDLERS: Final = {
    "sasl.login.callback.handler.class": oauth.LOGIN_HANDLERS,
    "sasl.oauthbearer.jwt.retriever.class": oauth.RETRIEVERS,
}
"""Properties that name a Java class, with the classes that this package replaces."""
_UNSUPPORTED: Final = (
    "config.providers",
    "sasl.client.callback.handler.class",
    "sasl.login.class",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "security.providers",
    "ssl.cipher.suites",
    "ssl.engine.factory.class",
    "ssl.provider",
)
"""Properties about access or encryption that only Java supports. Ignoring one would be less secure than the requested
configuration."""

_OBEYED: Final = (*_TEXTS, *_TIMES, *_OTHERS, *_UNSUPPORTED, *_OAUTH, *_HANDLERS)
_ALIKE: Final = (
    *("sasl.server.callback.handler.class", "socket.connection.setup.timeout.max.ms", "ssl.keystore.type"),
    *(
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope.claim.name",
    ),
    *(f"sasl.oauthbearer.assertion.claim.{name}" for name in ("aud", "iss", "jti.include", "sub")),
    *(f"sasl.oauthbearer.assertion.{name}" for name in ("algorithm", "private.key.passphrase", "template.file")),
)
"""Kafka's own properties that look like a supported one but mean something else."""
_LIKENESS: Final = 0.8
_KINDS: Final[Mapping[type, str]] = {str: "a string", int: "a whole number", bool: "True or False"}
_SPARKS: Final = "kafka."
"""The prefix of such names in the options of Spark's Kafka source. In a file, the prefix would change their meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """The configuration for connections to brokers. No `repr` and no message of this package shows secrets. A pickle
    contains them, but is sent only to reading processes.

    Parameters
    ----------
    security_protocol
        PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
    sasl_mechanism, username, password
        PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER, and the credentials.
    token
        For OAUTHBEARER: a function without arguments that returns a token, called for every connection. It is sent to
        reading processes, so it must be picklable, for example a function in a module.
    sasl_extensions
        For OAUTHBEARER: extensions that are sent with the token, such as `{"logicalCluster": "lkc-1"}`.
    truststore_location, truststore_password, truststore_certificates
        The trusted certificates: a file in PEM or PKCS12, or a PEM string; by default those of the machine.
    keystore_location, keystore_password, keystore_key, keystore_certificate_chain, key_password
        The certificate of this client, if brokers require one: a file in PEM or PKCS12, or both parts in PEM.
    checks_host_name
        Whether a broker's certificate has to match the host name used to connect.
    client_rack
        The rack of this client (KIP-392). If configured for it, brokers name a follower in that rack to read from.
    request_timeout_ms, connect_timeout_ms
        The time limit for an answer, and for opening a connection.
    patience_ms
        How long an operation is retried without a byte of progress before it fails.
    fetch_bytes
        The number of bytes requested at once.

    Raises
    ------
    ValueError, TypeError
        For an invalid combination or a value of the wrong type.
    """

    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    token: Callable[[], str] | None = field(default=None, repr=False)
    sasl_extensions: Mapping[str, str] = field(default_factory=dict, hash=False)
    truststore_location: str | None = None
    truststore_password: str | None = field(default=None, repr=False)
    truststore_certificates: str | None = field(default=None, repr=False)
    keystore_location: str | None = None
    keystore_password: str | None = field(default=None, repr=False)
    keystore_key: str | None = field(default=None, repr=False)
    keystore_certificate_chain: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    tls_versions: tuple[str, ...] = _TLS_VERSIONS
    checks_host_name: bool = True
    client_id: str = "kafka-records"
    client_rack: str = ""
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    patience_ms: int = 60_000
    fetch_bytes: int = 4 * 1024 * 1024

    def __post_init__(self) -> None:
        self._check_kinds()
        if self.security_protocol not in PROTOCOLS:
            raise ValueError(f"security.protocol {self.security_protocol!r} is not one of {', '.join(PROTOCOLS)}")
        if self.uses_sasl:
            if self.sasl_mechanism not in MECHANISMS:
                raise ValueError(
                    f"{self.security_protocol} needs a sasl.mechanism, one of {', '.join(MECHANISMS)}, "
                    f"not {self.sasl_mechanism!r}"
                )
            if self.sasl_mechanism == OAUTHBEARER:
                self._check_token()
            elif not self.username:
                raise ValueError(f"{self.sasl_mechanism} needs a username and a password (sasl.jaas.config)")
        if not set(self.tls_versions) & set(_TLS_VERSIONS):
            raise ValueError(f"ssl.enabled.protocols contains none of {', '.join(_TLS_VERSIONS)}")
        for name in ("request_timeout_ms", "connect_timeout_ms", "patience_ms", "fetch_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be more than 0")

    def _check_token(self) -> None:
        if self.token is None:
            raise ValueError(f"{OAUTHBEARER} needs a token: pass a function that returns it, or set {oauth.URL}")
        if not callable(self.token):
            raise TypeError(f"token must be a function that returns the token, not {type(self.token).__name__}")
        for name, value in self.sasl_extensions.items():
            if not (name.isascii() and name.isalpha()) or name == "auth" or not value.isprintable():
                raise ValueError(
                    f"{name!r} is not a SASL extension: its name must consist of letters, and its value must be one "
                    f"line of text"
                )

    def _check_kinds(self) -> None:
        """Raise TypeError for a value of the wrong type. The text does not repeat the value, which may be a secret."""
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in ("tls_versions", "token", "sasl_extensions") or (value is None and each.default is None):
                continue
            wanted = str if each.default is None else type(each.default)
            if type(value) is not wanted:
                raise TypeError(f"{each.name} must be {_KINDS[wanted]}, not {type(value).__name__}")

    @property
    def uses_sasl(self) -> bool:
        """Whether the client authenticates to brokers with SASL."""
        return self.security_protocol.startswith("SASL_")

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def has_keystore(self) -> bool:
        """Whether the client has its own certificate."""
        return self.keystore_location is not None or self.keystore_key is not None

    @classmethod
    def read(cls, path: str | PathLike[str], over: Mapping[str, str] | None = None) -> Self:
        """The configuration in a file like the one for `--command-config` of Kafka's tools. The properties of `over`
        override those in the file.

        Raises LogSourceError if the file is unreadable or contains an unsupported setting.
        """
        place = fspath(path)
        try:
            data = read_file(place)
        except OSError as error:
            raise LogSourceError(place, f"cannot be read: {error.strerror or error}") from None
        except ValueError as error:
            raise LogSourceError(place, f"cannot be read: {error}") from None
        try:
            return cls.of({**read_properties(data), **(over or {})})
        except ValueError as error:
            raise LogSourceError(place, str(error)) from None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """The configuration given by properties of Kafka's clients. Unrelated properties, such as `group.id`, are
        ignored.

        Raises ValueError for unsupported properties, and for unknown names similar to a supported one: if a misspelt
        `security.protocol` were ignored, the client would connect without encryption. The message contains no secret.
        """
        properties = {name: _text_of(name, value) for name, value in properties.items()}
        _check_names(properties)
        if str(properties.get("security.protocol", "")).strip().upper().startswith("SASL_"):
            _check_mechanism(properties)
        for name in _UNSUPPORTED:
            if properties.get(name, "").strip():
                raise ValueError(f"{name} is not supported: only Java clients support it")
        for name, known in _HANDLERS.items():
            if properties.get(name, "").strip() not in ("", *known):
                raise ValueError(f"{name} is not supported: only Java clients support it")
        settings: dict[str, object] = {
            to: properties[name].strip() if "password" not in name else properties[name]
            for name, to in _TEXTS.items()
            if properties.get(name)
        }
        for name, to in _TIMES.items():
            if name in properties:
                try:
                    settings[to] = int(properties[name])
                except ValueError:
                    raise ValueError(f"{name} is {properties[name]!r}, not a number") from None
        settings["security_protocol"] = properties.get("security.protocol", "PLAINTEXT").strip().upper()
        if "ssl.enabled.protocols" in properties:
            settings["tls_versions"] = tuple(
                name.strip() for name in properties["ssl.enabled.protocols"].split(",") if name.strip() in _TLS_VERSIONS
            )
        settings["checks_host_name"] = bool(properties.get(_HOST_NAMES, "https").strip())
        if str(settings["security_protocol"]).startswith("SASL_"):
            settings |= _sasl(properties)
        return cls(**settings)  # type: ignore[arg-type]


def _text_of(name: object, value: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a property must be a string, not {name!r}")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    return str(value)


def _check_names(properties: Mapping[str, str]) -> None:
    """Raise ValueError for a name similar to a supported one. Names with a prefix (`producer.`) belong to other
    programs."""
    for name in properties:
        if name.startswith(_SPARKS) and name.removeprefix(_SPARKS) in _OBEYED:
            meant: str | None = name.removeprefix(_SPARKS)
        elif any(f".{name}".endswith(f".{each}") for each in (*_OBEYED, *_ALIKE)):
            continue
        else:
            meant = close_name(name, _OBEYED, _LIKENESS)
        if meant is not None:
            raise ValueError(f"{name} is not a property of Kafka's clients; did you mean {meant}?")


def _check_mechanism(properties: Mapping[str, str]) -> None:
    mechanism = properties.get("sasl.mechanism", "").strip()
    if mechanism not in MECHANISMS:
        what = f"sasl.mechanism {mechanism}" if mechanism else "GSSAPI, the default of sasl.mechanism,"
        raise ValueError(f"{what} is not supported here: set sasl.mechanism to one of {', '.join(MECHANISMS)}")


def _sasl(properties: Mapping[str, str]) -> dict[str, object]:
    mechanism = properties["sasl.mechanism"].strip()
    if not properties.get("sasl.jaas.config", "").strip():
        wanted = oauth.LOGIN_MODULE if mechanism == OAUTHBEARER else "a username and a password"
        raise ValueError(f"{mechanism} needs sasl.jaas.config, with {wanted}")
    try:
        module, options = read_jaas(properties["sasl.jaas.config"])
    except ValueError as error:
        raise ValueError(f"sasl.jaas.config cannot be read: {error}") from None
    if mechanism not in _LOGIN_MODULES.get(module, ()):
        wanted = next(name for name, known in _LOGIN_MODULES.items() if mechanism in known)
        raise ValueError(f"sasl.jaas.config has the login module {module}, but {mechanism} needs {wanted}")
    if mechanism == OAUTHBEARER:
        extensions = {
            name.removeprefix("extension_"): value for name, value in options.items() if name.startswith("extension_")
        }
        token = oauth.token_source(properties, options)
        return {"sasl_mechanism": mechanism, "token": token, "sasl_extensions": extensions}
    for name in ("username", "password"):
        if name not in options:
            raise ValueError(f"sasl.jaas.config has no {name}")
    return {"sasl_mechanism": mechanism, "username": options["username"], "password": options["password"]}
