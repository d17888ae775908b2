"""The source that the arguments of a command specify."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_records_tables.console.endings import CommandError, UsageError
from kafka_records_tables.query import duration

if TYPE_CHECKING:
    from kafka_records_engine.sources import Source
    from kafka_records_engine.sources.time_limit import TimeLimit


def time_limit(text: str) -> TimeLimit:
    """A deadline, at the duration `text` (`30s`) from now. Raises ValueError."""
    from kafka_records_engine.sources.time_limit import TimeLimit

    return TimeLimit(duration(text) / 1000)


@dataclass(frozen=True)
class SavedAs:
    """How rows were saved, as far as options say so; see `kafka_records_engine.sources.saved_rows.SavedRows`."""

    columns: Mapping[str, str | None] = field(default_factory=dict)
    encodings: Mapping[str, str] = field(default_factory=dict)
    format: str | None = None
    time_unit: str | None = None

    @property
    def is_told(self) -> bool:
        """Whether any of the options was passed."""
        return bool(self.columns or self.encodings or self.format or self.time_unit)


@dataclass(frozen=True)
class GivenSource:
    """The paths, or the running brokers, that the user named."""

    paths: tuple[str, ...] = ()
    bootstrap: str | None = None
    """The addresses of brokers, as the user wrote them."""
    config: Path | None = None
    """A properties file with the settings of a Kafka client."""
    limit: TimeLimit | None = None
    """How long to wait for the brokers."""
    by_requests: bool = False
    """Whether to ask the coordinators instead of reading their logs."""
    saved: SavedAs = SavedAs()

    @property
    def has_files(self) -> bool:
        """Whether the source consists of files."""
        return self.bootstrap is None

    @property
    def place(self) -> str:
        """The place of damage, as named in messages."""
        return "the files" if self.has_files else "the logs"

    def check_outside(self, directory: str) -> None:
        """Raise a CommandError if the output directory is inside a directory that is read, because a broker does not
        start if its data directory has a folder that it did not create."""
        written = os.path.realpath(directory)
        for path in self.paths:
            place = os.path.realpath(path)
            if os.path.isdir(place) and (written == place or written.startswith(os.path.join(place, ""))):
                raise CommandError(f"{directory}: is inside the source {path}: choose a directory outside it")

    def source(self, topic: str | None = None) -> Source:
        """The source. `topic` is the topic of files that do not name one. Raises UsageError for an invalid address, and
        CommandError for an unusable source."""
        from kafka_records_engine.log.files.discovery import LogSourceError
        from kafka_records_engine.sources.given import source_of

        try:
            if self.bootstrap is None and self.saved.is_told:
                from kafka_records_engine.sources.saved_rows import SavedRows

                saved = self.saved
                return SavedRows(self.paths, topic, saved.columns, saved.encodings, saved.format, saved.time_unit)
            if self.bootstrap is None:
                return source_of(self.paths, topic)
            from kafka_records_tables.console.waiting_notes import tell_waiting

            tell_waiting()
            if self.by_requests:
                from kafka_records_engine.sources.live_requests import LiveRequests

                return LiveRequests(self.bootstrap, self.config, timeout=self.limit)
            from kafka_records_engine.sources.live import LiveBrokers

            return LiveBrokers(self.bootstrap, self.config, timeout=self.limit)
        except LogSourceError as error:
            raise CommandError(str(error)) from None
        except ValueError as error:
            if self.bootstrap is None:
                raise CommandError(f"{', '.join(self.paths)}: {error}") from None
            raise UsageError(f"argument --bootstrap: {error}") from None
