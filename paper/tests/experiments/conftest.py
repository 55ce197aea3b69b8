"""What the tests of experiments share."""

import signal

import pytest


class CtrlC:
    """A progress that presses Ctrl-C in the middle of a job, by default the first of its name."""

    def __init__(self, job: str, *, times: int = 1) -> None:
        self.job, self.times = job, times
        self._begun, self._before = 0, ""

    def __call__(self, doing: str, share: float) -> None:
        self._begun += doing == self.job != self._before
        inside = doing == self.job == self._before
        self._before = doing
        if inside and self._begun == self.times:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def rough(monkeypatch):
    """Have batch EM stopped early, where a test does not ask how close a method comes."""
    monkeypatch.setattr("paper.experiments.gmm.MOST_PASSES", 200)


@pytest.fixture
def ctrl_c():
    """Return the class: ``ctrl_c("iem", times=2)`` presses when iem is run for the second time."""
    return CtrlC
