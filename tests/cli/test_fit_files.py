"""``swiftem fit`` on several files, folders, and with a limit to memory."""

import numpy as np
import pytest
from stored_sources import write

pytest.importorskip("pyarrow")
rng = np.random.default_rng(0)
ROWS = rng.normal(size=(900, 2)) + 6.0 * rng.integers(2, size=(900, 1))


def test_what_is_refused(tmp_path, call):
    file, out = write(tmp_path, "rows.csv", ROWS), tmp_path / "a.model"
    other = write(tmp_path, "rows.npy", ROWS)
    fit = ("fit", file, "-k", 2, "-o", out)
    for arguments, code, words in (
        ((*fit, "--memory-limit", "much"), 2, "'--memory-limit': memory_limit must be a number of bytes"),
        ((*fit, "--memory-limit", "9MB"), 2, "memory_limit must be at least"),
        ((*fit, "--memory-limit", "1GB", "--method", "fiem"), 1, "use em, sem or sem-vr"),
        (("fit", file, other, "-k", 2, "-o", out), 1, "must have the format of"),
        (("fit", file, file, "-k", 2000, "-o", out), 2, "n_components must be at most the number of rows"),
    ):
        _, stderr = call(*arguments, code=code)
        assert words in " ".join(stderr.replace("│", " ").split())
    for option in (("--missing", "skip"), ("--label", "0"), ("--response", "0")):
        _, stderr = call(*fit, "--memory-limit", "1GB", *option, code=2)
        assert f"memory_limit must be left out with {option[0]}" in " ".join(stderr.replace("│", " ").split())
    assert not out.exists()
