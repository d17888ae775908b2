"""The start of the program. Slow imports come later, when Ctrl-C is already handled."""

# No `from __future__ import annotations`: it would be one more module to load before Ctrl-C is handled.
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_INTERRUPTED = 130


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run the command; returns the exit status (see `runs.endings.EXIT_STATUS_HELP`), 130 after Ctrl-C."""
    is_program = arguments is None
    if is_program:
        sys.excepthook = _tell_failure
    try:
        if is_program:
            from kafka_records_engine.lean import collect_rarely, leave_pandas_out

            leave_pandas_out()
            collect_rarely()
        from kafka_records_tables.commands.command import run_command

        return run_command(arguments)
    except KeyboardInterrupt:
        if is_program:
            _end_at_once_from_now_on()
        _let_go_of_output()
        return _INTERRUPTED
    finally:
        if is_program:
            _end_at_once_from_now_on()


def _tell_failure(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    """A second Ctrl-C right after the first, while `main` ends, must not print a traceback. Python then ends the
    process by SIGINT."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


def _end_at_once_from_now_on() -> None:
    """A Ctrl-C while the interpreter shuts down must not print a traceback either."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _let_go_of_output() -> None:
    """Flush standard output; if its reader was interrupted too, that is not a failure."""
    from kafka_records_tables.console.standard_error import discard

    try:
        sys.stdout.flush()
    except OSError:
        discard(sys.stdout)


if __name__ == "__main__":
    sys.exit(main())
