"""The command reads archives, patterns and URLs, and has messages about what it cannot do with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_records_tables.commands.main import main
from tests.log.archives import archived
from tests.log.logs import TOPICS
from tests.variants import one_in

pytestmark = pytest.mark.slow

SEGMENTS = TOPICS / "kafka-4.3" / "segments"


def output_of(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([*map(str, arguments)]) == 0
    return capfd.readouterr().out


@pytest.mark.parametrize("form", one_in(2, [".tar", ".tar.gz", "deflated.zip"]))
def test_the_same_lines(tmp_path: Path, capfd: pytest.CaptureFixture[str], form: str) -> None:
    archive = archived(SEGMENTS, tmp_path, form)
    for command in (("dump",), ("counts", "--format", "json"), ("table", "groups", "--format", "json")):
        expected = output_of(capfd, *command, SEGMENTS)
        assert expected
        assert output_of(capfd, *command, archive) == expected
        assert output_of(capfd, *command, f"{archive}!/var/lib/kafka/data") == expected
        assert output_of(capfd, *command, f"file://{SEGMENTS}/__*") == expected


def test_only_what_grows_is_followed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    archive = archived(SEGMENTS, tmp_path, ".tar")
    assert main(["dump", "--follow", str(archive)]) == 2
    assert (
        f"{archive}: --follow works only with brokers and local log files, because other sources do not grow"
        in capfd.readouterr().err
    )


def test_what_is_read_is_not_written_over(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    archive = archived(SEGMENTS, tmp_path, ".tar")
    before = archive.read_bytes()
    for source in (str(archive), f"{archive}!/var", f"{tmp_path}/*.tar", f"file://{archive}"):
        arguments = ["counts", source, "--output", str(archive), "--overwrite", "--format", "json"]
        assert main(arguments) == 2
        assert f"{archive}: is one of the input files" in capfd.readouterr().err
    assert archive.read_bytes() == before


@pytest.mark.parametrize("source", ["{}/backup.bak!/data", "{}/backup-*!/data", "{}/*.ta[r]s!/*"])
def test_an_archive_is_told_by_the_end_of_its_name(
    source: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = source.format(tmp_path)
    (tmp_path / "backup.bak").touch()
    assert main(["counts", place]) == 2
    assert capfd.readouterr().err == (
        f"kafka-records: {place}: the name before !/ must be that of an archive, also in a pattern, and end with "
        "one of .tar, .tar.gz, .tgz, .tar.bz2, .tbz2, .tar.xz, .txz, .tar.zst, .tzst, .zip\n"
    )
