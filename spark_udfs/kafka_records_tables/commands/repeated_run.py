"""Prints the output of a run with `--state` again for a run with the same arguments, if no log has changed since. This
is decided before the modules that read records and write tables are loaded, because loading them takes most of the time
of a second run. So this module loads neither numpy nor pyarrow. If anything is unclear (a file is missing or damaged, a
broker does not answer), an ordinary run follows, which says what is wrong."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from time import time
from typing import Any, Final

from kafka_records_tables.commands.written_output import METRICS_FORMAT, replacing
from kafka_records_tables.console.endings import OK
from kafka_records_tables.console.standard_error import say
from kafka_records_tables.results.last_run import written_at

_FORM: Final = 1
_OPTION: Final = "--state"
_PATIENCE: Final = 5.0
"""The number of seconds to wait. After that, an ordinary run waits for the brokers and says so."""


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A completed run, and the requests to brokers that show whether it would print the same output now."""

    bootstrap: list[list[Any]]
    """Hosts and ports."""
    config: str | None
    """The properties file of `--command-config`."""
    seconds: float | None
    """The time limit of `--timeout`."""
    questions: dict[str, Any]
    records: str
    everything: str
    """See `seen_logs.SeenLogs`, also for the two attributes above."""
    made_ms: int
    until_ms: int
    """In milliseconds since 1970."""
    output: str | None
    """The file of `--output`."""
    overwrite: bool
    format: str
    lines: list[str]
    """The lines printed on standard error."""

    def fits_now(self) -> bool:
        """Whether the output may be printed now, as far as is known without asking brokers: it is not too old, no clock
        was moved backwards, and the output can be written as before."""
        if not self.made_ms <= time() * 1000 < self.until_ms:
            return False
        if self.output is None:
            return isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty()
        return not os.path.isdir(self.output) and (self.overwrite or not os.path.exists(self.output))

    def written(self, content: bytes) -> list[bytes]:
        """The content of a file with the run and its output."""
        head = json.dumps([_FORM, asdict(self)]).encode()
        parts = [head, b"\n", content]
        return [sha256(b"".join(parts)).hexdigest().encode(), b"\n", *parts]


def run_file(state: str, arguments: Sequence[str]) -> str:
    """The file of a run with these arguments, in a state directory's folder of kept answers."""
    program = os.stat(__file__)  # an upgrade rewrites this file
    about = (__file__, program.st_ctime_ns, program.st_size, os.getcwd(), os.environ.get("COLUMNS"), *arguments)
    return os.path.join(state, "answers", f"{sha256(json.dumps(about).encode()).hexdigest()}.run")


def repeat_run(arguments: Sequence[str]) -> int | None:
    """Print the output of the last run with these arguments again, and return the exit status; None if an ordinary run
    is needed."""
    state = _state_in(arguments)
    if state is None:
        return None
    try:
        path = run_file(state, arguments)
        found = _read(path)
    except (OSError, ValueError, TypeError):
        return None
    if found is None:
        return None
    kept, content = found
    if not kept.fits_now():
        return None
    # Most runs have returned by now, and need not load the modules that send requests to brokers.
    from kafka_records_engine.sources.seen_logs import unchanged_state
    from kafka_records_engine.sources.time_limit import TimeLimit
    from kafka_records_tables.console.waiting_notes import tell_waiting

    tell_waiting()
    addresses = [(str(host), int(port)) for host, port in kept.bootstrap]
    limit = TimeLimit(min(kept.seconds or _PATIENCE, _PATIENCE))
    seen = kept.records, kept.everything
    with unchanged_state(state, addresses, kept.config, limit, kept.questions, seen) as is_unchanged:
        if not is_unchanged:
            return None
        with suppress(OSError):
            os.utime(path)  # the most recently used files are kept
        _write(kept, content)
    return OK


def _state_in(arguments: Sequence[str]) -> str | None:
    found = None
    for number, word in enumerate(arguments):
        if word == _OPTION and number + 1 < len(arguments):
            found = arguments[number + 1]
        elif word.startswith(f"{_OPTION}="):
            found = word.partition("=")[2]
    return found


def _read(path: str) -> tuple[KeptRun, bytes] | None:
    digest, _, rest = Path(path).read_bytes().partition(b"\n")
    if sha256(rest).hexdigest().encode() != digest:
        return None
    head, _, content = rest.partition(b"\n")
    form, about = json.loads(head)
    return (KeptRun(**about), content) if form == _FORM else None


def _write(kept: KeptRun, content: bytes) -> None:
    if kept.format == METRICS_FORMAT:
        content = written_at(content, time())
    if kept.output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    else:
        with replacing(Path(kept.output)) as part:
            part.write_bytes(content)
    made = datetime.fromtimestamp(kept.made_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    say(f"note: no log has changed since {made}: this is the output of the run at that time")
    for line in kept.lines:
        say(line)
