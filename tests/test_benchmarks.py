"""The benchmarks run, and their hand-written peers do the same as swiftem."""

import csv
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_quick_run_writes_every_column(tmp_path):
    """Each peer is checked against ``swiftem.run`` to 1e-9 before it is timed: a failure ends the run."""
    file = tmp_path / "bench.csv"
    command = [sys.executable, "-W", "error", "-m", "benchmarks", "--quick", "--out", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ratio: swiftem's time over the peer's" in done.stdout

    with open(file, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    mixture = [("em", "NumPy loop"), *((name, "NumPy loop") for name in ("sem", "iem", "sem-vr", "fiem"))]
    expected = [
        *(("paper's mixture", *row) for row in (*mixture, ("em", "scikit-learn"))),
        *(("wide mixture", *row) for row in (*mixture, ("em", "scikit-learn"))),
        *(("pLSA", name, "NumPy loop, O(K)") for name in ("sem", "iem", "sem-vr", "fiem")),
    ]
    assert [(row["model"], row["method"], row["peer"]) for row in rows] == expected
    for row in rows:
        assert all(row.values())
        assert int(row["ns_per_iteration"]) > 0
        assert row["threads"] == "1"
        ratio = int(row["ns_per_iteration"]) / int(row["peer_ns_per_iteration"])
        assert abs(float(row["ratio"]) - ratio) < 0.01 * ratio
    assert {"commit", "python", "numpy", "scipy", "scikit-learn", "swiftem", "cpu", "cores"} <= set(rows[0])
