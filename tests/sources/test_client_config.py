"""Client configurations in the form of Kafka's tools."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._brokers.sasl import OAuthBearer, Scram
from kafka_records_engine.sources._brokers.tls import context_of
from kafka_records_engine.sources._client.oauth import ClientCredentials
from kafka_records_engine.sources._client.properties import read_jaas, read_properties
from kafka_records_engine.sources.client_config import _OBEYED, ClientConfig
from kafka_records_engine.sources.live import LiveBrokers, address_of
from kafka_records_runtime.text.installing import install_command

DATA = Path(__file__).resolve().parents[1] / "data"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=1\nb = 2\nc:3\nd 4\ne", {"a": "1", "b": "2", "c": "3", "d": "4", "e": ""}),
        ("# a=1\n ! b=2\n\n  c = 3 # 4\r\nd=5 ", {"c": "3 # 4", "d": "5 "}),
        ("a=1 \\\n    2\\\n  3\nb=4", {"a": "1 23", "b": "4"}),
        ("a\\ b\\=c=\\t\\u00e4\\\\", {"a b=c": "\tä\\"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_properties(text: str, found: dict[str, str]) -> None:
    assert read_properties(text.encode("latin-1")) == found


def test_properties_are_latin_1() -> None:
    assert read_properties(b"a=\xe4") == {"a": "ä"}


def test_jaas() -> None:
    text = f'{SCRAM} required\n  username="al\\"ice" password=\'s;e=c\' tokenauth=true ;\n'
    assert read_jaas(text) == (SCRAM, {"username": 'al"ice', "password": "s;e=c", "tokenauth": "true"})


@pytest.mark.parametrize("text", ["", SCRAM, f'{SCRAM} required password="secret"', f"{SCRAM} required secret;"])
def test_jaas_that_cannot_be_read_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is looked at below)
        read_jaas(text)
    assert "secret" not in str(caught.value)


def test_scram_as_in_rfc_7677() -> None:
    scram = Scram("sha256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert scram.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert scram.next(challenge) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert scram.next(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


def test_scram_takes_no_word_for_it() -> None:
    challenge = b"r=%s,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=%d"
    for answer, why in {
        challenge % (b"abcd", 4096): "nonce of another exchange",
        challenge % (b"mine", 4096): "nonce of another exchange",
        challenge % (b"mine-yours", 1): "asks for 1 iterations",
        b"e=unknown-user": "rejected the login: unknown-user",
    }.items():
        with pytest.raises(ValueError, match=why):
            Scram("sha256", "user", "pencil", "mine").next(answer)
    scram = Scram("sha256", "user", "pencil", "mine")
    scram.next(challenge % (b"mine-yours", 4096))
    with pytest.raises(ValueError, match="could not prove"):
        scram.next(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def jaas(module: str = SCRAM) -> dict[str, str]:
    return {"sasl.jaas.config": f'{module} required username="alice" password="alice-secret";'}


def token(url: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
        "sasl.oauthbearer.token.endpoint.url": url,
    }


def test_client_credentials_of_jaas_options_and_of_properties() -> None:
    jaas_options = token("https://idp/token") | {
        "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer.secured."
        "OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'clientId="alice" clientSecret="alice-secret" scope="kafka" extension_logicalCluster="lkc-1";',
    }
    config = ClientConfig.of(jaas_options)
    assert config.token == ClientCredentials("https://idp/token", "alice", "alice-secret", "kafka")
    assert config.sasl_extensions == {"logicalCluster": "lkc-1"}
    assert "alice-secret" not in repr(config) + repr(config.token)
    properties = token("https://idp/token") | {
        "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.common.security.oauthbearer."
        "ClientCredentialsJwtRetriever",
        "sasl.oauthbearer.client.credentials.client.id": "alice",
        "sasl.oauthbearer.client.credentials.client.secret": "alice-secret",
        "sasl.oauthbearer.scope": "kafka",
    }
    assert ClientConfig.of(properties).token == config.token


def test_what_is_sent_with_a_token() -> None:
    exchange = OAuthBearer(lambda: "a.b-c_d~e+f/g==", {"logicalCluster": "lkc-1"})
    assert exchange.first() == b"n,,\x01auth=Bearer a.b-c_d~e+f/g==\x01logicalCluster=lkc-1\x01\x01"
    assert exchange.next(b"") is None
    for bad in ("", "a b", "a\x01b", "a\n", "ä"):
        with pytest.raises(ValueError, match="invalid token"):
            OAuthBearer(partial(str, bad), {}).first()
    for answer, status in ((b'{"status":"invalid_token"}', "invalid_token"), (b'{"status":"<b>"}', "no reason given")):
        with pytest.raises(ValueError, match=status):
            exchange.next(answer)


@pytest.mark.parametrize(
    "wrong",
    [
        {"token": None},
        {"token": str, "sasl_extensions": {"auth": "x"}},
        {"token": str, "sasl_extensions": {"a": "x\x01"}},
    ],
)
def test_tokens_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"needs a token|is not a SASL extension"):
        ClientConfig(security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", **wrong)


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        (
            {"security.protocol": "TLS"},
            "security.protocol 'TLS' is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        (
            {"security.protocol": "SASL_SSL", **jaas()},
            "GSSAPI, the default of sasl.mechanism, is not supported here: set sasl.mechanism to one of "
            "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
        ),
        (
            {
                "sasl.login.callback.handler.class": "org.example.Tokens",
                "sasl.mechanism": "OAUTHBEARER",
                "security.protocol": "sasl_ssl",
            },
            "sasl.login.callback.handler.class is not supported: only Java clients support it",
        ),
        (
            token("ftp://idp"),
            "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url, a URL that starts with https://, http:// or "
            "file://",
        ),
        (
            token("https://id:alice-secret@idp/token"),
            "sasl.oauthbearer.token.endpoint.url contains a password: move it to "
            "sasl.oauthbearer.client.credentials.client.secret",
        ),
        (
            token("https://idp/token"),
            "OAUTHBEARER needs sasl.oauthbearer.client.credentials.client.id and "
            "sasl.oauthbearer.client.credentials.client.secret",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
            "OAUTHBEARER needs sasl.jaas.config, with "
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
        ),
        (
            {**token("https://idp/token"), "sasl.oauthbearer.assertion.file": "/assertion"},
            "sasl.oauthbearer.assertion.file is not supported: only Java clients support it",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechansm": "PLAIN", **jaas()},
            "sasl.mechansm is not a property of Kafka's clients; did you mean sasl.mechanism?",
        ),
        (
            {"security.protocl": "SSL"},
            "security.protocl is not a property of Kafka's clients; did you mean security.protocol?",
        ),
        (
            {"SSL.keystore.key": "x"},
            "SSL.keystore.key is not a property of Kafka's clients; did you mean ssl.keystore.key?",
        ),
        (
            {"kafka.security.protocol": "SSL"},
            "kafka.security.protocol is not a property of Kafka's clients; did you mean security.protocol?",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
            "PLAIN needs sasl.jaas.config, with a username and a password",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", **jaas()},
            f"sasl.jaas.config has the login module {SCRAM}, but PLAIN needs "
            "org.apache.kafka.common.security.plain.PlainLoginModule",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": "alice-secret"},
            "sasl.jaas.config cannot be read: it must start with a login module and a control flag such as `required`",
        ),
        (
            {"sasl.login.callback.handler.class": "org.example.Vault"},
            "sasl.login.callback.handler.class is not supported: only Java clients support it",
        ),
        ({"request.timeout.ms": "soon"}, "request.timeout.ms is 'soon', not a number"),
        ({"ssl.enabled.protocols": "TLSv1"}, "ssl.enabled.protocols contains none of TLSv1.2, TLSv1.3"),
    ],
)
def test_what_cannot_be_obeyed_is_refused(properties: dict[str, str], why: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole text is compared)
        ClientConfig.of(properties)
    assert str(caught.value) == why
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    with pytest.raises(LogSourceError) as refused:
        LiveBrokers("localhost:9092", path)
    assert str(refused.value) == f"{path}: {why}"


def test_names_that_kafka_has_pass() -> None:
    """Properties of its clients, of streams and of brokers, and any with a prefix of the user."""
    names = (DATA / "kafka" / "property-names.txt").read_text().split()
    assert len(names) == 459
    usual = ClientConfig()
    for name in set(names) - set(_OBEYED):
        assert ClientConfig.of({name: "whatever"}) == usual, name
        assert ClientConfig.of({f"producer.{name}": "whatever"}) == usual, name
    assert set(_OBEYED) <= set(names)
    others = {
        "schema.registry.url": "u",
        "admin.sasl.mechanism": "GSSAPI",
        "basic.auth.user.info": "x:y",
        "timeout": "1",
    }
    assert ClientConfig.of(others) == usual


def test_no_secret_is_shown() -> None:
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        **jaas(),
        "ssl.truststore.password": "a-secret",
        "ssl.keystore.password": "b-secret",
        "ssl.keystore.key": "c-secret",
        "ssl.key.password": "d-secret",
    }
    config = ClientConfig.of(properties)
    assert (config.password, config.truststore_password) == ("alice-secret", "a-secret")
    assert "secret" not in repr(config)
    assert "alice" in repr(config)
    assert "secret" not in repr(LiveBrokers("localhost:9092", config))


@pytest.mark.parametrize(
    ("text", "address"), [("a:1", ("a", 1)), ("[::1]:9092", ("::1", 9092)), ("10.0.0.1:65535", ("10.0.0.1", 65535))]
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize(
    "text", ["a", ":1", "a:", "a:b", "a:0", "a:65536", "a:-1", "[]:1", "a:1/", "a b:1", "u@a:1", "a:" + 5000 * "9"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="invalid broker"):
        address_of(text)
    with pytest.raises(ValueError, match="no broker"):
        LiveBrokers([])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("http://host:9092", "http://host:9092 is a URL: write HOST:PORT, as host:9092; "),
        ("SASL_SSL://host:9092/x", "SASL_SSL://host:9092 is a URL: write HOST:PORT, as host:9092; "),
        ("kafka+ssl://user:secret@host", "kafka+ssl://host is a URL: write HOST:PORT; security.protocol"),
    ],
)
def test_a_url_is_no_address(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(why)) as caught:
        LiveBrokers(f"a:1,{text}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("bootstrap", "config", "text"),
    [
        (3, None, "bootstrap must be a string or a list of strings, not 3"),
        (b"a:1", None, "bootstrap must be a string or a list of strings, not b'a:1'"),
        (["a:1", 2], None, "bootstrap must be a string or a list of strings, but 2 is not"),
        ("a:1", 3, "config must be a ClientConfig, the path of a properties file, or a mapping, not int"),
        ("a:1", {3: "x"}, "the name of a property must be a string, not 3"),
        ("a:1", {"ssl.key.password": b"secret"}, "ssl.key.password must be a string, not bytes"),
        ("a:1", {"client.rack": None}, "client.rack must be a string, not NoneType"),
    ],
)
def test_arguments_of_a_wrong_kind(bootstrap: Any, config: Any, text: str) -> None:
    with pytest.raises(TypeError) as failure:
        LiveBrokers(bootstrap, config)
    assert str(failure.value) == text


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"request_timeout_ms": "3"}, "request_timeout_ms must be a whole number, not str"),
        ({"patience_ms": True}, "patience_ms must be a whole number, not bool"),
        ({"security_protocol": None}, "security_protocol must be a string, not NoneType"),
        ({"password": b"secret"}, "password must be a string, not bytes"),
        ({"key_password": 1234}, "key_password must be a string, not int"),
        ({"checks_host_name": "no"}, "checks_host_name must be True or False, not str"),
    ],
)
def test_settings_of_a_wrong_kind(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError) as failure:
        ClientConfig(**settings)
    assert str(failure.value) == text


def test_numbers_of_a_mapping_may_be_numbers() -> None:
    properties: Any = {"request.timeout.ms": 3000}
    assert ClientConfig.of(properties).request_timeout_ms == 3000


def test_what_reads_pkcs12_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    store = tmp_path / "trusted.p12"
    store.write_bytes(b"\x30\x82")
    config = ClientConfig(security_protocol="SSL", truststore_location=str(store))
    with pytest.raises(LogSourceError) as raised:
        context_of(config)
    assert raised.value.detail == (
        "cannot be used as ssl.truststore.location: PKCS12 needs cryptography, which is not installed: "
        f"{install_command('live')}; PEM does not need it"
    )
