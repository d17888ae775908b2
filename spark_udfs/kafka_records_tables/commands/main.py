"""The entry point of the program. Slow imports come later, when Ctrl-C is already handled."""

# No `from __future__ import annotations`, because it would be another module to load before Ctrl-C is handled.
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_INTERRUPTED = 130


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run the command. Returns the exit status (see `console.endings.EXIT_STATUS_HELP`), 130 after Ctrl-C."""
    is_program = arguments is None
    if is_program:
        sys.excepthook = _tell_failure
    try:
        if is_program:
            from kafka_records_engine.lean import collect_rarely, keep_freed_memory, leave_pandas_out

            keep_freed_memory()
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
    """Keep a second Ctrl-C right after the first, while `main` ends, from printing a traceback. Python then ends the
    process with SIGINT."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


def _end_at_once_from_now_on() -> None:
    """Keep a Ctrl-C while the interpreter shuts down from printing a traceback."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _let_go_of_output() -> None:
    """Flush standard output. It is not a failure if its reader was also interrupted."""
    from kafka_records_tables.console.standard_error import discard

    try:
        sys.stdout.flush()
    except OSError:
        discard(sys.stdout)


if __name__ == "__main__":
    sys.exit(main())
