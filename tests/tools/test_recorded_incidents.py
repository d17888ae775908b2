"""The report on recorded incidents of real brokers: each is named with its cause, nothing is false, and health causes
no alarm; nothing is false either if a part of the recording is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.variants import one_in
from tools.incidents.incomplete import faults_of
from tools.incidents.score import score_folder

DATA = Path(__file__).resolve().parents[1] / "data"
FOLDER = DATA / "incidents"
NAMES = {each.name for each in FOLDER.iterdir() if each.is_dir()}
ALWAYS = ("left_out_partition-9003", "loop_is_over-9002", "topic_recreated-13")
"""Recordings of incidents that no other test has."""
INCOMPLETE = (
    ("clusters/07", "orders.v2-2"),
    ("clusters/07", "orders.v2-1"),
    ("incidents/foreign_offsets-1", "user_topics"),
    ("incidents/foreign_offsets-1", "all_but_offsets"),
    ("incidents/deleted_before_read-1", "cluster_metadata"),
    ("incidents/purged_before_read-4107", "all_but_logs"),
    ("incidents/share_archived-3", "__share_group_state-0 and all_but_logs"),
    ("incidents/too_slow-1", "payments-raw-0"),
    ("incidents/dead_instance_transaction-1", "all_but_offsets"),
)
"""A recording, and the part that is removed from it."""


@pytest.mark.parametrize("name", [*ALWAYS, *one_in(4, sorted(NAMES.difference(ALWAYS)))])
def test_the_report_is_right(name: str) -> None:
    got = score_folder(FOLDER / name, "files", "--processes", "1")
    assert got.solved, "\n".join(got.faults)


@pytest.mark.parametrize("case", one_in(2, INCOMPLETE), ids=" without ".join)
def test_the_report_says_nothing_false_if_a_part_is_missing(case: tuple[str, str]) -> None:
    name, removed = case
    assert faults_of(DATA / name, [removed], ("--processes", "1")) == {removed: []}
