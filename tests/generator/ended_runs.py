"""A program that ends runs of `tree.write` at every step, and prints what they leave as lines of JSON.

`python -m tests.generator.ended_runs HOW FOLDER`. HOW is `kill` (SIGKILL before step N), `fail` (step N finds no
space), or `late` (SIGKILL after a random time). Before each run FOLDER holds the old tree; the run, a child process,
should make it the new one. Each line says how the child ended, what was in FOLDER then, and what was there after one
more run.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from kafka_records_codegen import tree
from kafka_records_codegen.text.mark import Mark

STEPS = frozenset({"open", "os.chmod", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir", "shutil.rmtree"})
"""The audit events of Python about operations on files."""

KILLED_LATE = 24
"""The number of runs that are killed after a random time. As many more may end before that, or many more on a busy
machine."""

MOST = 1000


def trees() -> tuple[dict[str, str], dict[str, str]]:
    """An old tree and a new one: files that stay, change, come and go, in folders that stay, come and go."""
    head = f"# {Mark('codecs', 'acme').line}\n"
    old = {"__init__.py": "", "same/a.py": "a = 1\n", "same/b.py": "b = 1\n" * 9999, "gone/c.py": "c = 1\n", "d.py": ""}
    new = {
        "__init__.py": "x = 1\n",
        "same/a.py": "a = 1\n",
        "same/b.py": "b = 2\n" * 9999,
        "come/in/e.py": "",
        "f.py": "",
    }
    return {name: head + text for name, text in old.items()}, {name: head + text for name, text in new.items()}


def content(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()
    }


def restore(folder: Path, files: dict[str, str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


class EndAtStep:
    """An audit hook that calls `end` when the step with that number is about to be taken."""

    def __init__(self, number: int, end: Callable[[], None]) -> None:
        self.left = number
        self._end = end

    def __call__(self, event: str, _: Any) -> None:
        if event in STEPS:
            self.left -= 1
            if self.left == 0:
                self._end()


def run(folder: Path, files: dict[str, str], hook: EndAtStep | None = None, delay: float = 0) -> dict[str, Any]:
    """Do one run in a child process. Returns the signal that ended it, its status, and its output.

    The status is 3 if it ended before the step at which the hook would have ended it.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status, said = 0, ""
        if hook is not None:
            sys.addaudithook(hook)
        try:
            tree.write(folder, files)
        except OSError as error:
            status, said = 2, f"{error.filename}: {error.strerror}"
        if hook is not None and hook.left > 0:
            status = 3
        os.write(writing, said.encode())
        os._exit(status)
    os.close(writing)
    if delay:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    with open(reading, encoding="utf-8") as pipe:
        said = pipe.read()
    _, code = os.waitpid(child, 0)
    ended = os.waitstatus_to_exitcode(code)
    return {"signal": max(0, -ended), "status": max(0, ended), "said": said}


def main(how: str, folder: Path) -> None:
    old, new = trees()
    random = Random(4)
    killed = 0
    restore(folder, old)
    started = time.perf_counter()
    tree.write(folder, new)
    usual = time.perf_counter() - started

    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def fail() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "beside")

    for number in range(1, MOST):
        restore(folder, old)
        if how == "late":
            outcome = run(folder, new, delay=random.uniform(0.0001, 2 * usual))
        else:
            outcome = run(folder, new, EndAtStep(number, kill if how == "kill" else fail))
        outcome["left"] = content(folder)
        outcome["healed"] = run(folder, new) | {"left": content(folder)}
        if outcome["status"] == 3:
            break
        print(json.dumps(outcome), flush=True)
        killed += outcome["signal"] == signal.SIGKILL
        if how == "late" and killed == KILLED_LATE:
            break


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
