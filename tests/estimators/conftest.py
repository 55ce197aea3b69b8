"""What tests of fits that die share."""

import numpy as np
import pytest
from dying_fits import Death

from swiftem.fit.watch import StartWatch


@pytest.fixture
def deadly(monkeypatch):
    """Return a function that sets after how many looks, of all starts together, fits die."""
    left = [np.inf]

    def look(self, moment, theta):
        left[0] -= 1
        if left[0] < 0:
            raise Death
        return False

    monkeypatch.setattr(StartWatch, "__call__", look)

    def set_left(looks):
        left[0] = looks

    return set_left
