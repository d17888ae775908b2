"""One run of `take_snapshot` over some log partitions."""

from __future__ import annotations

from collections.abc import Callable

from kafka_records_engine.findings import DAMAGED_LOG, FORBIDDEN_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.files.source_error import NotReadable
from kafka_records_engine.sources._stored.log_passes import Pass, read_at_ms
from kafka_records_engine.sources._stored.run_state import Added, RunState
from kafka_records_engine.sources._stored.stored_names import (
    folder_of,
    gone_folder_of,
    remove_incomplete,
    set_aside,
    sync_folder,
)
from kafka_records_engine.sources._stored.stretches import StoredLog, stored_log
from kafka_records_engine.sources._stored.writing_files import join_small_files
from kafka_records_engine.sources.abilities import MayHaveLostRows, has
from kafka_records_engine.sources.protocol import LogPartition


class Run(RunState):
    """Stores, for each log partition, new records and the offsets that the log has lost."""

    def take(self, log: LogPartition, moved: Callable[[int], None]) -> None:
        """Store the new records of one log partition. Its errors do not affect other partitions."""
        added = Added(partitions=1)
        folder = folder_of(self.root, log.topic, log.partition)
        for each in (folder, gone_folder_of(self.root, log.topic, log.partition)):
            remove_incomplete(each)
        try:
            stored, ended_at_ms = self._take(log, added, moved)
        except NotReadable as error:
            self.forbidden.append(error)
            self.say(
                Finding("damage", FORBIDDEN_LOG, str(error), "none of its records are stored", log.topic, log.partition)
            )
            return
        except LogSourceError as error:
            self.refused.append(error)
            self.say(
                Finding("damage", DAMAGED_LOG, str(error), "none of its records are stored", log.topic, log.partition)
            )
            return
        finally:
            with self.lock:
                self.report.topics[log.topic].add(added)
        join_small_files(stored.files, self.file_bytes)
        told = {"end": stored.end, "at_ms": read_at_ms(log), "ended_at_ms": ended_at_ms}
        self.read[f"{log.topic}-{log.partition}"] = told

    def _take(self, log: LogPartition, added: Added, moved: Callable[[int], None]) -> tuple[StoredLog, int | None]:
        before = stored_log(self.root, log.topic, log.partition)
        if not before.files and (before.surveys or before.findings):
            set_aside(
                gone_folder_of(self.root, log.topic, log.partition)
            )  # surveys in this folder are about records that have been removed
            before = stored_log(self.root, log.topic, log.partition)
        self._keep(before)
        for file in before.files:
            if file.trouble:
                self.say(file.finding(log.topic, log.partition))
        for finding in before.findings:
            self.say(finding)
        first = Pass(self, log, before, moved, is_survey=False)
        first.run(added)
        stored = stored_log(self.root, log.topic, log.partition)
        added.grown += stored.end > before.end
        if before.files:
            added.lost += max(stored.end - before.end - first.rows, 0)
        if stored.unsurveyed() or first.has_log_start_risen or _has_lost_rows(log):
            second = Pass(self, log, stored, moved, is_survey=True)
            second.run(added)
            added.looked += 1
            stored = stored_log(self.root, log.topic, log.partition)
        return stored, first.ended_at_ms

    def _keep(self, stored: StoredLog) -> None:
        """Flush the stored files to disk, because a killed run may not have done so, and this run relies on them."""
        told = self.before.get(f"{stored.topic}-{stored.partition}")
        if stored.files and (told is None or told["end"] != stored.end):
            sync_folder(folder_of(self.root, stored.topic, stored.partition))
        if stored.surveys:
            sync_folder(gone_folder_of(self.root, stored.topic, stored.partition))


def _has_lost_rows(log: LogPartition) -> bool:
    """Whether the source itself knows that the log has lost rows, as a snapshot does."""
    return has(log, MayHaveLostRows) and log.has_lost_rows()
