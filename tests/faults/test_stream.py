"""A long stream leaves memory flat.

``SWIFTEM_STREAM_SECONDS`` sets how long it is: half an hour unless it is given.
"""

import os
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
from anonymous_memory import resident

from swiftem import GaussianMixture

ALLOWED = 32 << 20
"""Bytes that anonymous memory may grow by, from a tenth of the stream to its end."""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_is_flat(tmp_path):
    """Rows that come and are forgotten; the model is saved, loaded and resumed on the way."""
    seconds = float(os.environ.get("SWIFTEM_STREAM_SECONDS", "1800"))
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(6, 8))
    mixture = GaussianMixture(6, random_state=0)
    began, after_a_tenth, most, blocks = perf_counter(), None, 0, 0
    while perf_counter() - began < seconds or blocks < 400:
        labels = rng.integers(6, size=5000)
        mixture.partial_fit(rng.normal(size=(5000, 8)) + centres[labels])
        blocks += 1
        if blocks % 50 == 0:
            mixture.save(tmp_path / "model")
            mixture = GaussianMixture.load(tmp_path / "model")
            now = resident(os.getpid())
            if after_a_tenth is None and perf_counter() - began > seconds / 10 and blocks >= 100:
                after_a_tenth = now
            most = max(most, now) if after_a_tenth is not None else 0
    assert after_a_tenth is not None
    print(f"{blocks * 5000:,} rows in {seconds:.0f} s: {(most - after_a_tenth) / 1e6:+.1f} MB")
    assert most - after_a_tenth < ALLOWED
    found = mixture.means_[np.argsort(mixture.means_[:, 0])]
    np.testing.assert_allclose(found, centres[np.argsort(centres[:, 0])], atol=0.2)
