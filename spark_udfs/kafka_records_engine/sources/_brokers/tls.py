"""Sets up TLS from the configuration of a Kafka client: trust stores, key stores, host name checks."""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._client.properties import read_file
from kafka_records_runtime.text.installing import install_command

if TYPE_CHECKING:
    from kafka_records_engine.sources.client_config import ClientConfig

_JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class _StoreError(ValueError):
    """A store cannot be used; the message says why, without revealing its content."""


def context_of(config: ClientConfig) -> ssl.SSLContext:
    """The TLS context for connections. Raises LogSourceError, which names the invalid store."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    enabled = sorted(_VERSIONS[name] for name in config.tls_versions)
    context.minimum_version, context.maximum_version = enabled[0], enabled[-1]
    context.check_hostname = config.checks_host_name
    place = "ssl.truststore.location"
    try:
        trusted = _trusted(config)
        if trusted is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(cadata=trusted)
        place = "ssl.keystore.location"
        if config.has_keystore:
            _load_key(context, config)
    except (OSError, ValueError) as error:
        path = config.truststore_location if place == "ssl.truststore.location" else config.keystore_location
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if isinstance(error, ssl.SSLError):
            what = "it contains no certificates in PEM, or its private key does not open with this password"
        raise LogSourceError(path or place, f"cannot be used as {place}: {what}") from None
    return context


def _trusted(config: ClientConfig) -> str | None:
    if config.truststore_certificates is not None:
        return config.truststore_certificates
    if config.truststore_location is None:
        return None
    data = read_file(config.truststore_location)
    if _is_pem(data):
        return data.decode("ascii", "replace")
    _, own, others = _pkcs12(data, config.truststore_password)
    certificates = [*([own] if own is not None else []), *others]
    if not certificates:
        raise _StoreError("it contains no certificates")
    return "".join(_pem_of(each) for each in certificates)


def _load_key(context: ssl.SSLContext, config: ClientConfig) -> None:
    password = config.key_password or config.keystore_password
    if config.keystore_key is not None:
        if config.keystore_certificate_chain is None:
            raise _StoreError("ssl.keystore.key needs ssl.keystore.certificate.chain")
        _load_pem(
            context, f"{config.keystore_key}\n{config.keystore_certificate_chain}\n".encode(), config.key_password
        )
        return
    assert config.keystore_location is not None
    data = read_file(config.keystore_location)
    if _is_pem(data):
        _load_pem(context, data, password)
        return
    key, own, others = _pkcs12(data, config.keystore_password)
    if key is None or own is None:
        raise _StoreError("it contains no private key with a certificate")
    from cryptography.hazmat.primitives import serialization

    # The key is never written unencrypted: the file is encrypted with a random password that is never shown.
    once = secrets.token_urlsafe(32)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(once.encode()),
    )
    chain = "".join(_pem_of(each) for each in [own, *others]).encode()
    _load_pem(context, pem + chain, once)


def _load_pem(context: ssl.SSLContext, pem: bytes, password: str | None) -> None:
    with _held(pem) as path:
        context.load_cert_chain(path, password=_asked(password))


def _asked(password: str | None) -> str:
    """The password, which is never None, because Python would then prompt on the terminal."""
    return password or ""


@contextmanager
def _held(content: bytes) -> Iterator[str]:
    """A path from which `content` can be read: in memory if the system supports it, otherwise a temporary file."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("kafka-records", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
    finally:
        os.unlink(path)


def _is_pem(data: bytes) -> bool:
    return b"-----BEGIN " in data


def _pkcs12(data: bytes, password: str | None) -> tuple[Any, Any, list[Any]]:
    """The key of a PKCS12 store, its certificate, and the other certificates."""
    if data[:4] in _JKS:
        raise _StoreError(
            "this is a JKS store, which only Java can read: convert it with `keytool -importkeystore "
            "-srckeystore OLD -destkeystore NEW.p12 -deststoretype PKCS12`"
        )
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise _StoreError(
            f"PKCS12 needs cryptography, which is not installed: {install_command('live')}; PEM does not need it"
        ) from None
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise _StoreError("this is neither PEM nor a PKCS12 store that opens with this password") from None
    own = None if store.cert is None else store.cert.certificate
    return store.key, own, [each.certificate for each in store.additional_certs]


def _pem_of(certificate: Any) -> str:
    from cryptography.hazmat.primitives import serialization

    return str(certificate.public_bytes(serialization.Encoding.PEM).decode())
