"""Segments in an object store on this machine: the same results, read by ranges without downloads, and never mixed."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.findings import Finding
from kafka_records_engine.log.files.paths import places_of
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.log.reading.segment_files import find_logs, open_log, read_partition
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_tables import read_table
from tests.log.archives import archived
from tests.log.logs import CAPTURES, TOPICS, commit
from tests.log.test_places import rows_of
from tests.object_store import BUCKET, KEY, SECRET, ObjectStore, object_store, refusing_store
from tests.tables.names import COORDINATED
from tests.variants import one_in

pytestmark = pytest.mark.slow

SEGMENTS = TOPICS / "kafka-4.3" / "segments"
FILE = f"{0:020}.log"
ARCHIVES = (".tar", ".tar.gz", "stored.zip", "deflated.zip")


@pytest.fixture(scope="module")
def full_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    folder = tmp_path_factory.mktemp("archives")
    with object_store() as store:
        for capture in CAPTURES:
            store.put_folder(capture, TOPICS / capture / "segments")
        for form in ARCHIVES:
            store.put(f"archives/data{form}", archived(SEGMENTS, folder, form).read_bytes())
        yield store


@pytest.fixture
def store(full_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    full_store.forget()
    return full_store


def refusal(source: str) -> str:
    with pytest.raises(LogSourceError) as caught:
        find_logs([source])
    return without_secrets(str(caught.value))


def without_secrets(text: str) -> str:
    assert KEY not in text
    assert SECRET not in text
    assert "Top%2FSecret" not in text
    return text


# -- the same answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capture", one_in(3, CAPTURES))
def test_captured_topics(store: ObjectStore, capture: str) -> None:
    expected = rows_of(TOPICS / capture / "segments")
    assert rows_of(store.url(capture)) == expected
    assert rows_of(f"{BUCKET}/{capture}", filesystem=store.files) == expected
    assert rows_of(store.url(f"*{capture[5:]}/__*")) == expected


@pytest.mark.parametrize("form", ARCHIVES)
def test_archives(store: ObjectStore, form: str) -> None:
    expected = rows_of(SEGMENTS)
    assert rows_of(store.url(f"archives/data{form}")) == expected
    assert rows_of(store.url(f"archives/data{form}!/var/lib/kafka/data")) == expected
    assert rows_of(store.url(f"archives/*{form}!/var/*/kafka/data")) == expected


ELSEWHERE = ("place", "high_watermark_timestamp", "high_watermark_timestamp_ms")
"""The columns of `log_ends` about files, not about logs."""


@pytest.mark.matrix
@pytest.mark.parametrize("name", COORDINATED)
def test_tables_by_several_processes(store: ObjectStore, name: str) -> None:
    """One table shows that processes get the same bytes; `test_engine.py` has the others over files."""
    expected = read_table(name, SEGMENTS)
    for key in ("kafka-4.3", "archives/data.tar", "archives/datadeflated.zip"):
        given = read_table(name, store.url(key), processes=2)
        same = [each for each in expected.table.column_names if each not in ELSEWHERE]
        assert given.table.select(same).equals(expected.table.select(same))
        assert [finding.what for finding in given.findings] == [finding.what for finding in expected.findings]
        assert given.counts == expected.counts


def test_settings_from_the_environment(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{store.address}")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert rows_of(f"s3://{BUCKET}/kafka-4.3?region=us-east-1") == rows_of(SEGMENTS)


def test_anonymous(store: ObjectStore) -> None:
    assert rows_of(store.url("kafka-4.3", user=False, anonymous="true")) == rows_of(SEGMENTS)


# -- ranges ------------------------------------------------------------------------------------------------------------


def test_only_the_logs_of_the_topic_are_read(store: ObjectStore) -> None:
    store.put("large/other-0/" + FILE, bytes(9_000_000))
    store.put("large/t-0/" + FILE, b"".join(map(commit, range(100))))
    store.put("large/t-0/" + FILE.replace("log", "index"), bytes(9_000_000))
    store.forget()
    (log,) = find_logs([store.url("large")], topic="t")
    assert store.sent_below("large") == 0
    assert sum(batch.num_rows for batch in read_partition(log, settle=False)) == 100
    assert store.sent_below("large") == store.sent_below("large/t-0/") == log.size


@pytest.mark.parametrize("form", [".tar", "stored.zip"])
def test_ranges_of_an_archive(store: ObjectStore, tmp_path: Path, form: str) -> None:
    for number in range(4):
        (tmp_path / "data" / f"other-{number}").mkdir(parents=True)
        (tmp_path / "data" / f"other-{number}" / FILE).write_bytes(bytes(5_000_000))
    (tmp_path / "data" / "t-0").mkdir()
    (tmp_path / "data" / "t-0" / FILE).write_bytes(b"".join(map(commit, range(10))))
    data = archived(tmp_path / "data", tmp_path, form).read_bytes()
    store.put(f"large{form}", data)
    store.forget()
    (log,) = find_logs([store.url(f"large{form}")], topic="t")
    assert sum(batch.num_rows for batch in read_partition(log, settle=False)) == 10
    # Headers of members are read in blocks, and so is the small part of the content that is needed.
    assert 0 < store.sent_below("large") < len(data) / 5


def test_a_range_of_offsets_reads_its_files_only(store: ObjectStore) -> None:
    for offset in range(0, 40, 10):
        store.put(f"files/t-0/{offset:020}.log", b"".join(commit(offset + each) for each in range(10)))
    store.forget()
    (partition,) = Segments(store.url("files")).partitions("t")
    from kafka_records_engine.sources import Context

    batches = partition.batches(Context("t", 0), ("offset",), 12, 18)
    assert [offset for batch in batches for offset in batch.column("offset").to_pylist()] == [*range(12, 18)]
    assert {path for path, count in store.sent.items() if count} == {f"/{BUCKET}/files/t-0/{10:020}.log"}


# -- one moment --------------------------------------------------------------------------------------------------------


def test_an_object_that_is_replaced_is_never_mixed(store: ObjectStore) -> None:
    """It is replaced by one of the same size within the same second: only its ETag differs."""
    old, new = (b"".join(commit(offset, value=value * 100) for offset in range(40_000)) for value in (b"old", b"new"))
    assert len(old) == len(new) > 12 << 20
    store.put("replaced/t-0/" + FILE, old)
    (log,) = find_logs([store.url("replaced")])
    found: list[Finding] = []
    values = set()
    for number, batch in enumerate(read_partition(log, on_finding=found.append, settle=False, batch_rows=None)):
        values |= set(batch.column("value").to_pylist())
        if not number:
            store.put("replaced/t-0/" + FILE, new)
    assert values == {b"old" * 100}
    (finding,) = found
    assert finding.severity == "damage"
    assert "it was replaced while it was read; try again" in without_secrets(str(finding))
    assert finding.bytes > 0
    assert str(finding).startswith(f"s3://{BUCKET}/replaced/t-0/{FILE}: ")


def test_an_object_that_is_replaced_before_it_is_read(store: ObjectStore) -> None:
    store.put("early/t-0/" + FILE, commit(0))
    (log,) = find_logs([store.url("early")])
    with open_log(log) as opened:
        store.put("early/t-0/" + FILE, commit(0) + commit(1))
        found: list[Finding] = []
        assert [*read_partition(opened, on_finding=found.append)] == []
        assert "it was replaced" in found[0].what
    assert sum(batch.num_rows for batch in read_partition(log)) == 2


def test_objects_that_are_gone(store: ObjectStore) -> None:
    store.put("gone/t-0/" + FILE, commit(0))
    (log,) = find_logs([store.url("gone")])
    with open_log(log) as opened:
        store.files.delete_dir(f"{BUCKET}/gone")
        found: list[Finding] = []
        assert [*read_partition(opened, on_finding=found.append)] == []
        assert "there is no such file or directory" in found[0].what
    found.clear()
    assert [*read_partition(log, on_finding=found.append)] == []
    assert [str(each) for each in found] == [f"s3://{BUCKET}/gone/t-0: this folder is gone (nothing in it is read)"]


# -- what cannot be read -----------------------------------------------------------------------------------------------


def test_buckets_and_keys_that_are_not_there(store: ObjectStore) -> None:
    assert refusal(store.url("x", bucket="none")) == (
        "s3://none/x: this cannot be read: there is no bucket or container none, or these credentials may not see it"
    )
    assert refusal(store.url("none")) == f"s3://{BUCKET}/none: there is no such file or directory"
    assert refusal(store.url("none/*")) == f"s3://{BUCKET}/none/*: nothing matches this pattern"
    assert refusal(store.url("archives/data.tar!/none")) == (
        f"s3://{BUCKET}/archives/data.tar!/none: there is no such file or directory"
    )


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (
            403,
            "AccessDenied",
            "the store denies access: there are no credentials, or they may not list and read this (for S3: "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or ?anonymous=true for a public bucket)",
        ),
        (301, "PermanentRedirect", "the bucket is in another region: add ?region=… to the URL"),
    ],
)
def test_a_store_that_refuses(store: ObjectStore, status: int, code: str, said: str) -> None:
    with refusing_store(status, code) as port:
        url = store.url("x", endpoint_override=f"127.0.0.1:{port}")
        assert refusal(url) == f"s3://{BUCKET}/x: this cannot be read: {said}"


def test_a_store_that_does_not_answer(store: ObjectStore) -> None:
    assert refusal(store.url("x", endpoint_override="127.0.0.1:1")) == (
        f"s3://{BUCKET}/x: this cannot be read: cannot connect to the store: check the network, and "
        "endpoint_override, scheme and region in the URL or AWS_ENDPOINT_URL and AWS_REGION"
    )


# -- secrets -----------------------------------------------------------------------------------------------------------


def test_secrets_travel_and_do_not_show(store: ObjectStore, capfd: pytest.CaptureFixture[str]) -> None:
    from kafka_records_tables.commands.main import main

    source = Segments(store.url("kafka-4.3"))
    log, *_ = source.partitions("__consumer_offsets")
    again = pickle.loads(pickle.dumps(log))
    assert sum(batch.num_rows for batch in read_partition(again.log)) > 0
    without_secrets(f"{source.name} {log!r} {again!r} {places_of(store.url('x'))!r}")
    assert main(["counts", store.url("kafka-4.3")]) == 0
    assert main(["dump", store.url("kafka-4.3/__consumer_offsets-4"), "--offset", "0..3"]) == 0
    assert main(["table", "groups", store.url("none"), "--format", "json"]) == 2
    assert main(["table", "groups", store.url("kafka-4.3").replace("http&", "smb&")]) == 2
    said = capfd.readouterr()
    without_secrets(said.out + said.err)
    assert f"s3://{BUCKET}/none: there is no such file or directory" in said.err


def test_for_pyarrow(store: ObjectStore) -> None:
    (place,) = places_of(store.url(f"kafka-4.3/__consumer_offsets-4/{FILE}"))
    system, path = place.for_arrow()
    with system.open_input_file(path) as file:
        whole: Any = file.read()
    assert whole == place.read_bytes() == (SEGMENTS / "__consumer_offsets-4" / FILE).read_bytes()
