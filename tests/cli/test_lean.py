"""The settings of this project's programs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_SHOWN = """
from kafka_records_engine.lean import keep_freed_memory
keep_freed_memory()
import pyarrow
print(pyarrow.default_memory_pool().backend_name)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the setting is for Linux")
@pytest.mark.parametrize(("chosen", "used"), [({}, "system"), ({"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}, "mimalloc")])
def test_arrow_allocates_with_the_c_library_unless_the_user_chose(chosen: dict[str, str], used: str) -> None:
    others = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    run = subprocess.run(
        [sys.executable, "-c", _SHOWN], env=others | chosen, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == used
