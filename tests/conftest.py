"""Ids of tests that are the same in every process, on every machine, at every time; Ctrl-C; a browser."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from browser import Browser, find_chromium
from dying_fits import Death

# Where the tests run in the background of a script, SIGINT is ignored, and would be in the children that they
# interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(config: Any, val: object, argname: str) -> str | None:
    """Name bytes and objects by their argument, not by what is in them; pytest numbers equal names.

    pytest would put bytes into the id as they are, and gzip, say, writes the current second into its bytes.
    """
    if isinstance(val, bool | int | float | complex | str | type(None)):
        return None
    name = getattr(val, "__name__", None)
    return None if isinstance(name, str) and name.isidentifier() else argname


@pytest.fixture
def readers() -> Callable[[], list[threading.Thread]]:
    """Return a function that gives the reading threads of this test; earlier tests may have left some."""
    before = set(threading.enumerate())
    return lambda: [t for t in threading.enumerate() if t.name == "swiftem-reader" and t not in before]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a Chromium without a window; skip if there is none."""
    command = find_chromium()
    if command is None:
        pytest.skip("there is no Chromium: make browser-test-parts")
    browser = Browser(command, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def deadly(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that sets after how many looks, of all starts together, fits die."""
    from swiftem.fit.driver import StartWatch

    left = [np.inf]

    def look(self: StartWatch, moment: object, theta: object) -> bool:
        left[0] -= 1
        if left[0] < 0:
            raise Death
        return False

    monkeypatch.setattr(StartWatch, "__call__", look)

    def set_left(looks: float) -> None:
        left[0] = looks

    return set_left
