"""The Chromium in which tests open pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

from tools.chromium import NoChromium, chromium


@contextmanager
def started_browser() -> Iterator[Browser]:
    """A newly started browser. Skips the test if there is none and none can be fetched."""
    try:
        found = chromium()
    except NoChromium as missing:
        pytest.skip(str(missing))
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=found.program, env={**found.environment}, args=["--no-sandbox"]
        )
        yield started
        started.close()
