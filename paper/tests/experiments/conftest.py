"""What the tests of experiments share."""

import signal

import pytest


class CtrlC:
    """A progress that presses Ctrl-C when a job begins, by default the first of its name."""

    def __init__(self, job: str, *, times: int = 1) -> None:
        self.job, self.left = job, 2 * times - 1  # each job is told twice: as it begins and as it ends

    def __call__(self, doing: str, share: float) -> None:
        self.left -= doing == self.job
        if doing == self.job and self.left == 0:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def rough(monkeypatch):
    """Have batch EM stopped early, where a test does not ask how close a method comes."""
    monkeypatch.setattr("paper.experiments.gmm.MOST_PASSES", 200)


@pytest.fixture
def ctrl_c():
    """Return the class: ``ctrl_c("iem", times=2)`` presses when iem is run for the second time."""
    return CtrlC
