"""What the tests of the paper's experiments share: Ctrl-C, the command, what holds of every section."""

import re
import signal

import pytest

from paper.__main__ import request
from paper.docstrings import Corpus
from paper.experiments.methods import CASES
from paper.reproduce import reproduce

# Where the tests run in the background of a script, SIGINT is ignored, and would be in the children that they
# interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


TOY = Corpus(("apple pear plum apple fig", "hammer saw chisel saw plane") * 5, (), {})
SMALL = {
    "gmm-precision": {"n": 60, "epochs": 2},
    "gmm-scaling": {"sizes": (40, 80), "settings": ("known",)},
    "plsa": {"epochs": 2},
    "theory": {"sizes": (20, 40)},
    "methods": {"sizes": (40, 80), "cases": ("paper",), "quick": True},
}
"""Sizes that take no time, in place of those that the command chooses."""


@pytest.fixture
def invoke(capsys):
    """Return a function that gives exit code and output, as one line: breaks depend on the width."""

    def call(*arguments):
        try:
            code = reproduce(request([str(argument) for argument in arguments]))
        except SystemExit as end:
            code = end.code
        output = "".join(capsys.readouterr())
        return code, re.sub(r"[\s│╭╮╰╯─]+", " ", re.sub(r"\x1b\[[0-9;]*m", "", output))

    return call


class CtrlC:
    """A progress that presses Ctrl-C when a job begins, by default the first of its name, and keeps them."""

    def __init__(self, job=None, *, times=1):
        self.job, self.left, self.told = job, times, []

    def __call__(self, doing, share):
        self.told.append((doing, share))
        self.left -= doing == self.job
        if doing == self.job and self.left == 0:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def ctrl_c():
    """Return the class: ``ctrl_c("iem", times=2)`` presses when iem is run for the second time."""
    return CtrlC


@pytest.fixture
def small(monkeypatch):
    """Have runs that take no time; the sizes are in ``SMALL``."""
    monkeypatch.setattr("paper.experiments.gmm_precision.MOST_PASSES", 200)
    monkeypatch.setattr("paper.experiments.theory.ITERATIONS", 200)
    monkeypatch.setattr("paper.experiments.theory.MOST_EPOCHS", 15)
    monkeypatch.setattr("paper.experiments.methods.QUICK_PASSES", 4)
    monkeypatch.setitem(CASES, "paper", CASES["paper"]._replace(quick=100))
    monkeypatch.setattr("paper.experiments.methods.AGES", (0.1, 0.2))
    monkeypatch.setattr("paper.experiments.plsa.docstring_corpora", lambda: {"toy": TOY})


@pytest.fixture
def check():
    """Return what must hold of every section: its words hold no number that is none, it can be drawn."""

    def check(section, *, draw=False):
        texts = [section.about, *section.settings.values()]
        for finding in section.findings:
            texts += [finding.claim, finding.measured, finding.note, finding.source]
            assert not finding.measured.endswith(".")
        for picture in section.pictures:
            texts += [picture.title, *(text for panel in picture.panels for text in (panel.title, panel.alt))]
            assert len({panel.title for panel in picture.panels}) == len(picture.panels)
            for panel in picture.panels if draw else ():
                assert panel.svg().startswith(b"<?xml")
        for table in section.all_tables():
            texts += [table.title, *(cell for row in table.known() for cell in row)]
        for text in texts:
            words = text.lower().replace("(", " ").replace(",", " ").split()
            assert not {"nan", "inf", "-inf", "none.", "1 epochs"} & set(words), text
            assert "e+" not in text, text
        names = [picture.name for picture in section.pictures]
        assert len(set(names)) == len(names)
        return section

    return check


@pytest.fixture
def verdicts():
    """Return the verdicts of a section."""
    return lambda section: [finding.verdict for finding in section.findings]
