"""Reads the checkpoints of Spark queries that a view uses, before log ends are read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from kafka_records_engine.sources.spark_checkpoints import read_checkpoints

if TYPE_CHECKING:
    from kafka_records_engine.sources.spark_checkpoints import GivenCheckpoint, QueryProgress
    from kafka_records_tables.engines.request import TableRequest


class CheckpointReader:
    """Reads the checkpoints named in requests, each only once."""

    def __init__(self) -> None:
        self._read: dict[tuple[GivenCheckpoint, ...], tuple[QueryProgress, ...]] = {}

    def with_progress(self, request: TableRequest) -> TableRequest:
        """The request with checkpoint paths replaced by the contents (`QueryProgress`). Raises CheckpointError."""
        options = dict(request.question.options)
        for option in request.table.options:
            asked = options[option.name]
            if option.kind == "checkpoints" and asked:
                if asked not in self._read:
                    self._read[asked] = read_checkpoints(asked)
                options[option.name] = self._read[asked]
        return replace(request, question=replace(request.question, values=(tuple(options.items()),)))


def inputs_to_lack(request: TableRequest) -> Collection[str]:
    """The inputs of a view whose topics may be missing."""
    asked = request.question.options
    given = [option for option in request.table.options if asked.get(option.name)]
    return {*request.table.optional_inputs, *(name for option in given for name in option.instead_of)}
