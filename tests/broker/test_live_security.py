"""Brokers that demand passwords, certificates and rights, and the messages if these are missing."""

from __future__ import annotations

import json
import logging
import os
import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from kafka.admin import KafkaAdminClient

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.protocol import Context
from kafka_records_tables import read_table
from kafka_records_tables.commands.main import main
from tests.broker.certificates import PASSWORD, Certificates, made_in
from tests.broker.clients import commit, create_topics, wait_for_coordinators
from tests.broker.identity_provider import AUDIENCE, CLIENT, IdentityProvider
from tests.kafka_needed import skipped_without_kafka
from tools.broker import HOST, Broker, free_ports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.broker

OFFSETS = "__consumer_offsets"
USERS = {"reader": "reader-secret-1", "looker": "looker-secret-2", "nobody": "nobody-secret-3"}
"""The user `reader` may read and describe the offsets topic, `looker` may describe it, `nobody` has no rights."""

OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"


@dataclass(frozen=True)
class Guarded:
    """A broker with a listener of every kind, and the rights of `USERS`."""

    broker: Broker
    ports: dict[str, int]
    certificates: Certificates
    provider: IdentityProvider

    def at(self, listener: str) -> str:
        return f"{HOST}:{self.ports[listener]}"


def jaas(user: str, password: str | None = None, module: str = "scram.Scram") -> str:
    secret = USERS[user] if password is None else password
    return f'org.apache.kafka.common.security.{module}LoginModule required username="{user}" password="{secret}";'


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    provider = IdentityProvider()
    with provider.serving():
        yield from _guarded(tmp_path_factory.mktemp("guarded"), provider)


def _guarded(folder: Path, provider: IdentityProvider) -> Iterator[Guarded]:
    # Kafka only loads keys from allowed addresses.
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.url}/keys"
    with skipped_without_kafka(), patch.dict(os.environ, {"JDK_JAVA_OPTIONS": allowed}):
        certificates = made_in(folder)
        kinds = {
            "PLAINTEXT": "PLAINTEXT",
            "TLS": "SSL",
            "MUTUAL": "SSL",
            "PASSWORD": "SASL_PLAINTEXT",
            "BOTH": "SASL_SSL",
            "TOKEN": "SASL_PLAINTEXT",
            "CONTROLLER": "PLAINTEXT",
        }
        ports = dict(zip(kinds, free_ports(len(kinds)), strict=True))
        plain = jaas("reader", module="plain.Plain").replace(";", "") + "".join(
            f' user_{name}="{secret}"' for name, secret in USERS.items()
        )
        settings = {
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
            "advertised.listeners": ",".join(
                f"{name}://{HOST}:{port}" for name, port in ports.items() if name != "CONTROLLER"
            ),
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in kinds.items()),
            "controller.quorum.voters": f"1@{HOST}:{ports['CONTROLLER']}",
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.location": str(certificates.broker.p12),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.location": str(certificates.trusting),
            "ssl.truststore.password": PASSWORD,
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.token.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.token.oauthbearer.sasl.jaas.config": OAUTH_MODULE,
            "listener.name.token.oauthbearer.sasl.server.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            "listener.name.token.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": f"{provider.url}/keys",
            "listener.name.token.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
            "listener.name.password.plain.sasl.jaas.config": f"{plain};",
            "listener.name.both.plain.sasl.jaas.config": f"{plain};",
            **{
                f"listener.name.{name}.scram-sha-{bits}.sasl.jaas.config": (
                    "org.apache.kafka.common.security.scram.ScramLoginModule required;"
                )
                for name in ("password", "both")
                for bits in (256, 512)
            },
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:CN=client",
        }
        broker = Broker(folder / "broker", settings=settings, port=ports["PLAINTEXT"])
        broker.start()
    try:
        with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
            _fill(admin)
        yield Guarded(broker, ports, certificates, provider)
    finally:
        broker.stop()


def _fill(admin: KafkaAdminClient) -> None:
    from kafka.admin import (
        ACL,
        ACLOperation,
        ACLPermissionType,
        ResourcePattern,
        ResourceType,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    wait_for_coordinators(admin)
    create_topics(admin, orders=1)
    commit(admin, "shipping", {("orders", 0): 42}, "")
    for user, secret in USERS.items():
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, mechanism, password=secret)])
    rights = {"reader": [ACLOperation.READ], "looker": [ACLOperation.DESCRIBE]}
    admin.create_acls(
        [
            ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(ResourceType.TOPIC, OFFSETS))
            for user, operations in rights.items()
            for operation in operations
        ]
    )


def offsets(bootstrap: str, config: ClientConfig | dict[str, str] | Path | None = None) -> dict[str, int]:
    result = read_table("current_offsets", LiveBrokers(bootstrap, config), processes=1)
    return {row["group_id"]: row["offset"] for row in result.table.to_pylist()}


def refusal(bootstrap: str, config: dict[str, str] | None = None) -> str:
    with pytest.raises(LogSourceError) as caught:
        offsets(bootstrap, {"default.api.timeout.ms": "2000", **(config or {})})
    return str(caught.value)


def password_of(user: str, mechanism: str, secret: str | None = None) -> dict[str, str]:
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas(user, secret, module),
    }


# -- let in ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password(guarded: Guarded, mechanism: str) -> None:
    assert offsets(guarded.at("PASSWORD"), password_of("reader", mechanism)) == {"shipping": 42}


def test_no_secret_is_kept(guarded: Guarded, tmp_path: Path) -> None:
    asked = password_of("reader", "SCRAM-SHA-256")
    for _ in range(2):
        brokers = LiveBrokers(guarded.at("PASSWORD"), asked)
        assert read_table("current_offsets", brokers, state=tmp_path).table.num_rows
    kept = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(kept) > 2
    secrets = [USERS["reader"].encode(), asked["sasl.jaas.config"].encode()]
    assert [secret for secret in secrets for content in kept if secret in content] == []


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_password_over_tls_from_a_file(guarded: Guarded, tmp_path: Path, mechanism: str) -> None:
    path = tmp_path / "client.properties"
    jaas_config = password_of("reader", mechanism)["sasl.jaas.config"]
    path.write_text(
        "# as kafka-topics --command-config takes it\n"
        "security.protocol = SASL_SSL\n"
        f"sasl.mechanism : {mechanism}\n"
        f"sasl.jaas.config={jaas_config.replace(' required ', ' required ' + chr(92) + chr(10) + '   ')}\n"
        f"ssl.truststore.location={guarded.certificates.trusting}\nssl.truststore.password={PASSWORD}\n"
        "group.id=of-no-interest\n"
    )
    assert offsets(guarded.at("BOTH"), path) == {"shipping": 42}
    # Workers get the same properties.
    result = read_table("current_offsets", LiveBrokers(guarded.at("BOTH"), path), processes=2)
    assert result.table["offset"].to_pylist() == [42]


@pytest.mark.parametrize("store", ["authority", "trusting"])
def test_tls_with_a_trust_store(guarded: Guarded, store: str) -> None:
    config = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(getattr(guarded.certificates, store)),
        "ssl.truststore.password": PASSWORD,
    }
    # ANONYMOUS has all rights here, so this only tests TLS.
    assert offsets(guarded.at("TLS"), config) == {"shipping": 42}


def test_tls_with_certificates_in_the_configuration(guarded: Guarded) -> None:
    config = ClientConfig(
        security_protocol="SSL",
        truststore_certificates=guarded.certificates.authority.read_text(),
        keystore_location=str(guarded.certificates.client.pem),
        key_password=PASSWORD,
    )
    assert offsets(guarded.at("MUTUAL"), config) == {"shipping": 42}


@pytest.mark.parametrize("kind", ["p12", "pem"])
def test_mutual_tls(guarded: Guarded, kind: str) -> None:
    config = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(guarded.certificates.authority),
        "ssl.keystore.location": str(getattr(guarded.certificates.client, kind)),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
    }
    assert offsets(guarded.at("MUTUAL"), config) == {"shipping": 42}


# -- turned away -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_the_wrong_password(guarded: Guarded, mechanism: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = "not-the-secret-of-reader"
    said = refusal(guarded.at("PASSWORD"), password_of("reader", mechanism, wrong))
    assert said.startswith(f"{guarded.at('PASSWORD')}: rejected this password for user 'reader' ({mechanism}): ")
    assert wrong not in said + caplog.text


def test_rights_are_named(guarded: Guarded) -> None:
    place = guarded.at("PASSWORD")
    assert refusal(place, password_of("nobody", "SCRAM-SHA-256")) == (
        f"{place}: user nobody may not describe topic {OFFSETS}: grant it DESCRIBE on topic {OFFSETS}"
    )
    assert refusal(place, password_of("looker", "SCRAM-SHA-256")) == (
        f"{place}: user looker may not read topic {OFFSETS}: grant it READ on topic {OFFSETS}"
    )


@pytest.mark.matrix
def test_offsets_are_deleted_over_tls_by_who_may(
    guarded: Guarded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The properties file is the same as for `table`. A user who may not describe a group does not see it."""
    pem, place = guarded.certificates.client.pem, {"group_id": "shipping-2", "topic": "orders", "partition": 0}
    with closing(KafkaAdminClient(bootstrap_servers=guarded.broker.bootstrap)) as admin:
        commit(admin, "shipping-2", {("orders", 0): 7}, "")
    trust = f"security.protocol=SSL\nssl.truststore.location={guarded.certificates.trusting}\n"
    mutual, scram = tmp_path / "mutual.properties", tmp_path / "scram.properties"
    mutual.write_text(
        f"{trust}ssl.truststore.password={PASSWORD}\nssl.keystore.location={pem}\nssl.keystore.password={PASSWORD}\n",
        encoding="utf-8",
    )
    told = password_of("reader", "SCRAM-SHA-512")
    scram.write_text("".join(f"{name}={value}\n" for name, value in told.items()), encoding="utf-8")
    listed, deleted = tmp_path / "list.json", tmp_path / "deleted.jsonl"
    listed.write_text(json.dumps(place | {"offset": 7}), encoding="utf-8")

    def run(listener: str, config: Path, *arguments: str | Path) -> tuple[int, str]:
        at = ["--bootstrap", guarded.at(listener), "--command-config", str(config), "--execute", "--yes"]
        status = main(["delete-offsets", *map(str, arguments), *at])
        out, err = capsys.readouterr()
        return status, out or err

    status, out = run("PASSWORD", scram, listed)
    assert (status, "GROUP_ID_NOT_FOUND" in out) == (1, True)
    status, out = run("MUTUAL", mutual, listed, "--output", deleted)
    assert (status, "Successful (offset 7)" in out) == (0, True)
    assert offsets(guarded.broker.bootstrap) == {"shipping": 42}
    assert run("MUTUAL", mutual, "--restore", deleted)[0] == 0
    assert offsets(guarded.broker.bootstrap) == {"shipping": 42, "shipping-2": 7}
    with closing(KafkaAdminClient(bootstrap_servers=guarded.broker.bootstrap)) as admin:
        admin.delete_groups(["shipping-2"])


def test_a_listener_of_another_kind(guarded: Guarded) -> None:
    trusting = {"ssl.truststore.location": str(guarded.certificates.authority)}
    tls = {"security.protocol": "SSL", **trusting}
    place = guarded.at("TLS")
    assert refusal(place) == (
        f"{place}: this port uses TLS: set security.protocol to SSL or SASL_SSL in the configuration"
    )
    place = guarded.at("PLAINTEXT")
    assert refusal(place, tls).startswith(f"{place}: it closed the connection during the TLS handshake")
    place = guarded.at("PASSWORD")
    assert refusal(place) == (
        f"{place}: it closed the connection when it received a request: it may require a password (security.protocol "
        "SASL_PLAINTEXT or SASL_SSL)"
    )
    place = guarded.at("MUTUAL")
    assert refusal(place, tls) == f"{place}: it requires a client certificate: set ssl.keystore.location"
    place = guarded.at("PLAINTEXT")
    assert refusal(place, password_of("reader", "PLAIN")) == (
        f"{place}: does not support sasl.mechanism PLAIN; it supports none"
    )


def test_certificates_that_are_not_trusted(guarded: Guarded) -> None:
    place = guarded.at("TLS")
    assert refusal(place, {"security.protocol": "SSL"}).startswith(
        f"{place}: its certificate is not trusted by the certificates of this machine: "
    )
    trusting = {"security.protocol": "SSL", "ssl.truststore.location": str(guarded.certificates.authority)}
    other = place.replace(HOST, "localhost")
    assert refusal(other, trusting) == (
        f"{other}: its certificate is for another host: connect to the name in the certificate, or set "
        f"ssl.endpoint.identification.algorithm to an empty value"
    )
    assert offsets(other, {**trusting, "ssl.endpoint.identification.algorithm": ""}) == {"shipping": 42}


def test_stores_that_cannot_be_used(guarded: Guarded) -> None:
    def said(path: Path, password: str) -> str:
        store = {"ssl.truststore.location": str(path), "ssl.truststore.password": password}
        return refusal(guarded.at("TLS"), {"security.protocol": "SSL", **store})

    certificates = guarded.certificates
    assert said(certificates.jks, PASSWORD) == (
        f"{certificates.jks}: cannot be used as ssl.truststore.location: this is a JKS store, which only Java can "
        f"read: convert it with "
        "`keytool -importkeystore -srckeystore OLD -destkeystore NEW.p12 -deststoretype PKCS12`"
    )
    assert said(certificates.trusting, "wrong-store-secret") == (
        f"{certificates.trusting}: cannot be used as ssl.truststore.location: this is neither PEM nor a PKCS12 store "
        "that opens with this password"
    )
    assert said(certificates.jks.with_name("nowhere"), PASSWORD).endswith(
        "nowhere: cannot be used as ssl.truststore.location: No such file or directory"
    )


# -- nobody there ------------------------------------------------------------------------------------------------------


def test_no_route() -> None:
    (port,) = free_ports(1)
    assert refusal(f"{HOST}:{port}") == f"{HOST}:{port}: no broker can be reached at this address: Connection refused"
    assert refusal("no-such-host.invalid:9092").startswith("no-such-host.invalid:9092: no such host: ")
    assert refusal(f"{HOST}:{port},no-such-host.invalid:9092").startswith(
        f"{HOST}:{port}, no-such-host.invalid:9092: none of them answers; {HOST}:{port}: no broker can be "
        f"reached at this address"
    )


def test_somebody_who_never_answers_and_somebody_who_is_no_broker() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        said = refusal(f"{HOST}:{port}", {"request.timeout.ms": "300"})
        assert said.startswith(f"{HOST}:{port}: it accepts connections but has sent nothing within 300 ms: ")
        server.accept()[0].close()

        def greet() -> None:
            with server.accept()[0] as client:
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                client.recv(1000)

        thread = threading.Thread(target=greet)
        thread.start()
        said = refusal(f"{HOST}:{port}", {"request.timeout.ms": "2000"})
        thread.join()
        assert said == f"{HOST}:{port}: the response does not come from a Kafka broker"


# -- secrets -----------------------------------------------------------------------------------------------------------


def test_secrets_are_in_no_text(guarded: Guarded) -> None:
    config = ClientConfig.of({**password_of("reader", "PLAIN"), "ssl.truststore.password": "trust-secret"})
    live = LiveBrokers(guarded.at("PASSWORD"), config)
    log = live.partitions(OFFSETS)[0]
    shown = "".join(map(repr, (config, live, log))) + "".join(map(str, (config, live, log)))
    assert "secret" not in shown
    copied = pickle.loads(pickle.dumps(log))
    assert copied == log
    rows = [batch.num_rows for batch in copied.batches(Context(log.topic, log.partition), RAW_SCHEMA.names)]
    assert sum(rows) == log.end - log.start


@pytest.mark.spark
@pytest.mark.matrix
def test_spark_reads_a_guarded_broker_and_shows_no_secret(
    spark: SparkSession, guarded: Guarded, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from kafka_records_tables.spark import register

    register(spark, engine="python")
    bootstrap = guarded.at("BOTH")
    properties = {
        **password_of("reader", "SCRAM-SHA-512"),
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(guarded.certificates.trusting),
        "ssl.truststore.password": PASSWORD,
    }
    expected = offsets(bootstrap, properties)
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), encoding="latin-1")
    by_file = {"bootstrap": bootstrap, "commandConfig": str(file)}
    by_options = {"bootstrap": bootstrap, **{f"kafka.{name}": value for name, value in properties.items()}}

    for options in (by_file, by_options):
        frame = spark.read.format("kafka-records").options(**options, table="current_offsets").load()
        assert {row["group_id"]: row["offset"] for row in frame.collect()} == expected
        frame.explain("extended")
        frame.explain("formatted")
    stream = spark.readStream.format("kafka-records").options(**by_options, topic=OFFSETS).load()
    stream.explain(True)
    counts: list[int] = []
    writer = stream.writeStream.foreachBatch(lambda rows, _: counts.append(rows.count()))
    query = writer.option("checkpointLocation", str(tmp_path / "kept")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert sum(counts) > 0
    query.explain(True)
    written = [each for each in (tmp_path / "kept").rglob("*") if each.is_file() and each.suffix != ".crc"]
    shown = [*(progress.json for progress in query.recentProgress), *(each.read_text() for each in written)]
    result = read_table("current_offsets", LiveBrokers(bootstrap, properties), spark=spark)
    assert {row["group_id"]: row["offset"] for row in result.table.to_pylist()} == expected

    wrong = {"bootstrap": bootstrap, **{f"kafka.{name}": value for name, value in properties.items()}}
    wrong["kafka.sasl.jaas.config"] = jaas("reader", "wrong-secret-9")
    with pytest.raises(Exception, match=r"rejected this password for user 'reader' \(SCRAM-SHA-512\)") as caught:
        spark.read.format("kafka-records").options(**wrong, table="current_offsets").load().count()
    shown += [str(caught.value), *capfd.readouterr()]
    for secret in (USERS["reader"], PASSWORD, "wrong-secret-9"):
        assert not [text for text in shown if secret in text]
    assert any("redacted" in text for text in shown)


def test_what_travels_to_a_worker_has_no_secret(guarded: Guarded, tmp_path: Path) -> None:
    pytest.importorskip("pyspark.sql.datasource")
    from kafka_records_tables.engines.spark_options import asked
    from kafka_records_tables.engines.spark_source import KafkaRecordsSource

    file = tmp_path / "client.properties"
    properties = password_of("reader", "PLAIN")
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), encoding="latin-1")
    options = {"bootstrap": guarded.at("PASSWORD"), "commandConfig": str(file), "topic": OFFSETS}
    reader: Any = KafkaRecordsSource(options).reader(asked(options).schema)
    tasks = reader.partitions()
    assert USERS["reader"].encode() not in pickle.dumps((reader, tasks))
    assert sum(batch.num_rows for task in tasks for batch in reader.read(task)) > 0
    assert USERS["reader"] not in repr(asked({**options, "kafka.sasl.jaas.config": properties["sasl.jaas.config"]}))
    file.unlink()
    with pytest.raises(LogSourceError, match=f"^{file}: cannot be read: No such file or directory$"):
        list(reader.read(tasks[0]))


# -- tokens ------------------------------------------------------------------------------------------------------------


def with_credentials(guarded: Guarded, user: str, secret: str = CLIENT[1], path: str = "/token") -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": OAUTH_MODULE,
        "sasl.oauthbearer.token.endpoint.url": f"{guarded.provider.url}{path}",
        "sasl.oauthbearer.client.credentials.client.id": CLIENT[0],
        "sasl.oauthbearer.client.credentials.client.secret": secret,
        "sasl.oauthbearer.scope": user,
    }


def test_client_credentials_get_a_token_that_the_broker_demands(guarded: Guarded, tmp_path: Path) -> None:
    wanted = read_table("current_offsets", LiveBrokers(guarded.broker.bootstrap)).table
    assert wanted.num_rows
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in with_credentials(guarded, "reader").items()))
    live = LiveBrokers(guarded.at("TOKEN"), path)
    assert read_table("current_offsets", live).table == wanted
    assert {*guarded.provider.asked} == {"reader"}


def test_a_token_from_python_and_from_a_file(guarded: Guarded, tmp_path: Path) -> None:
    config = ClientConfig(
        security_protocol="SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER", token=lambda: guarded.provider.token("reader")
    )
    wanted = read_table("current_offsets", LiveBrokers(guarded.broker.bootstrap)).table
    assert read_table("current_offsets", LiveBrokers(guarded.at("TOKEN"), config), processes=1).table == wanted
    path = tmp_path / "token"
    path.write_text(f"{guarded.provider.token('reader')}\n")
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": OAUTH_MODULE,
        "sasl.oauthbearer.token.endpoint.url": path.as_uri(),
    }
    live = LiveBrokers(guarded.at("TOKEN"), ClientConfig.of(properties))
    assert read_table("current_offsets", live).table == wanted


def test_tokens_that_do_not_do(guarded: Guarded) -> None:
    stranger = IdentityProvider()
    url = guarded.provider.url
    cases: list[tuple[Any, str]] = [
        (
            lambda: stranger.token("reader"),
            "OAUTHBEARER: the broker rejected the token: invalid_token: compare its issuer, audience, scope and key",
        ),
        (
            lambda: guarded.provider.token("reader", seconds=-600),
            "the broker rejected the token: invalid_token: it expired at 2",
        ),
        (lambda: "two words", "invalid token"),
        (lambda: {"other": ""}["secret-name"], "the token function failed with KeyError: call it directly"),
        (
            with_credentials(guarded, "reader", "wrong-5"),
            f"{url}/token responded with status 401 (invalid_client): check client id",
        ),
        (
            with_credentials(guarded, "reader", path="/moved"),
            f"{url}/moved responded with status 302: redirects are not",
        ),
        (
            with_credentials(guarded, "reader", path="/nowhere"),
            f"{url}/nowhere responded with status 404: check sasl.oauthbearer.token.endpoint.url",
        ),
    ]
    for given, message in cases:
        config = (
            ClientConfig.of(given)
            if isinstance(given, dict)
            else ClientConfig(security_protocol="SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER", token=given)
        )
        with pytest.raises(LogSourceError) as failure:
            read_table("current_offsets", LiveBrokers(guarded.at("TOKEN"), config), processes=1)
        assert message in str(failure.value)
        for secret in ("secret-name", "wrong-5", CLIENT[1], "eyJ"):
            assert secret not in str(failure.value) + repr(config)
