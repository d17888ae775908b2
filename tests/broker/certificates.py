"""Certificates for brokers and clients, made for one test run: an authority, a broker, a client, and a client of
another authority."""

from __future__ import annotations

import datetime
import ipaddress
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from tools.broker import HOST, java

PASSWORD = "store-secret-7"

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Holder:
    """The key and the certificate of a party, as files."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    p12: Path
    """The key, its certificate and that of the authority; the password is PASSWORD."""
    pem: Path
    """The same in PEM; the password of the key is PASSWORD."""


@dataclass(frozen=True)
class Certificates:
    """Everything that a test of TLS needs."""

    authority: Path
    """The authority's certificate in PEM."""
    trusting: Path
    """The same in a PKCS12 store that Java's keytool made."""
    jks: Path
    """The same in a JKS store."""
    broker: Holder
    client: Holder


def made_in(folder: Path) -> Certificates:
    """Make the certificates below `folder`. Raises MissingPrerequisite without Java, whose keytool makes the stores."""
    key, authority = _issued("authority", None)
    pem = folder / "authority.pem"
    pem.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    stores = {kind: folder / f"trusting.{kind.lower()}" for kind in ("PKCS12", "JKS")}
    for kind, path in stores.items():
        _keytool("-importcert", "-noprompt", "-alias", "authority", "-file", pem, "-keystore", path, "-storetype", kind)
    holders = [_holder(folder, name, (key, authority)) for name in ("broker", "client")]
    return Certificates(pem, stores["PKCS12"], stores["JKS"], *holders)


def _holder(folder: Path, name: str, authority: tuple[ec.EllipticCurvePrivateKey, x509.Certificate]) -> Holder:
    key, certificate = _issued(name, authority)
    secret = serialization.BestAvailableEncryption(PASSWORD.encode())
    p12, pem = folder / f"{name}.p12", folder / f"{name}.pem"
    p12.write_bytes(pkcs12.serialize_key_and_certificates(name.encode(), key, certificate, [authority[1]], secret))
    form = serialization.PrivateFormat.PKCS8
    chain = [each.public_bytes(serialization.Encoding.PEM) for each in (certificate, authority[1])]
    pem.write_bytes(b"".join([key.private_bytes(serialization.Encoding.PEM, form, secret), *chain]))
    return Holder(key, certificate, p12, pem)


def _issued(
    name: str, authority: tuple[ec.EllipticCurvePrivateKey, x509.Certificate] | None
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    signer, issuer = (key, subject) if authority is None else (authority[0], authority[1].subject)
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if authority is None:
        usage = x509.KeyUsage(*(index in (5, 6) for index in range(9)))
        made = made.add_extension(usage, critical=True)
    elif name == "broker":
        # Only its address, so that the certificate does not match the name localhost.
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))])
        made = made.add_extension(names, critical=False)
    return key, made.sign(signer, hashes.SHA256())


def _keytool(*asked: str | Path) -> None:
    tool = Path(java()).resolve().with_name("keytool")
    program = str(tool) if tool.exists() else shutil.which("keytool") or "keytool"
    done = subprocess.run(
        [program, *map(str, asked), "-storepass", PASSWORD], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
