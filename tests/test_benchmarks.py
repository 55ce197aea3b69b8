"""The benchmarks run, and their hand-written peers do the same as swiftem."""

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.__main__ import FIGURES, main
from benchmarks.against import compared, read_run
from benchmarks.page import STORED, merged, page_of

ROOT = Path(__file__).parent.parent
COLUMNS = {
    *("commit", "python", "numpy", "scipy", "scikit-learn", "numba", "swiftem", "cpu", "cores"),
    *("figure", "model", "method", "n", "d", "components", "b", "threads", "e_steps", "iterations"),
    *("value", "unit", "peer", "peer_value", "ratio", "compared", "result", "goal", "reached"),
}


def benchmarks(*arguments):
    command = [sys.executable, "-W", "error", "-m", "benchmarks", "--quick", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)


def read(file):
    with open(file, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Each peer is checked against ``swiftem.run`` to 1e-9 before it is timed: a failure ends the run."""
    file = tmp_path_factory.mktemp("bench") / "bench.csv"
    done = benchmarks("--out", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, read(file), file


@pytest.mark.slow
def test_a_quick_run_has_every_figure(done):
    """But memory, and those of a GPU; a figure has rows for several methods, settings or peers."""
    _, rows, _ = done
    found = Counter(row["figure"] for row in rows)
    assert set(FIGURES) - set(found) <= {"memory", "gpu", "acceleration"}
    assert all(count > 1 for count in found.values())
    assert set(rows[0]) >= COLUMNS
    mini = {row["method"]: float(row["goal"]) for row in rows if row["figure"] == "mini-batch"}
    assert mini == {"sem": 1.7, "iem": 1.7, "sem-vr": 3.4, "fiem": 3.4}  # one E-step, or two


EXPECTED = {
    "ratio": lambda value, peer: value / peer,
    "speed-up": lambda value, peer: peer / value,
    "difference": lambda value, peer: value - peer,
    "value": lambda value, peer: value,
}


@pytest.mark.slow
def test_results_follow_from_the_values(done):
    output, rows, file = done
    for row in rows:
        value, result, how = float(row["value"]), float(row["result"]), row["compared"]
        peer = float(row["peer_value"]) if row["peer"] else None
        assert value > 0
        assert peer is None or float(row["ratio"]) == pytest.approx(value / peer, rel=1e-4)
        assert result == pytest.approx(EXPECTED[how](value, peer), rel=1e-4, abs=1e-5)
        goal = float(row["goal"] or "nan")
        is_good = result >= goal if how == "speed-up" else result <= goal
        assert row["reached"] == (("yes" if is_good else "no") if row["goal"] else "")
    for text in ("Ratio: swiftem's time divided by the peer's", "reached", "spherical", f"Results: {file}"):
        assert text in output


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_one_figure_alone(tmp_path):
    file = tmp_path / "bench.csv"
    done = benchmarks("--only", "memory", "--out", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = read(file)
    assert (row["figure"], row["unit"]) == ("memory", "bytes")
    assert float(row["value"]) > float(row["peer_value"])


def test_unknown_figure_is_refused(tmp_path):
    app = typer.Typer()
    app.command()(main)
    done = CliRunner().invoke(app, ["--quick", "--only", "nothing", "--out", str(tmp_path / "bench.csv")])
    assert done.exit_code == 2
    assert "there is no figure 'nothing'" in " ".join(done.stderr.replace("│", " ").split())


def row(figure, ratio, method="sem"):
    names = ("model", "setting", "n", "d", "components", "b", "threads", "peer")
    return {"figure": figure, "method": method, "ratio": ratio} | dict.fromkeys(names, "1")


def test_against_a_stored_run():
    stored = [row("a", "1.0"), row("b", "2.0"), row("c", ""), row("gone", "1")]
    slower, (whole,) = compared([row("a", 1.06), row("b", 2.0), row("c", 5.0), row("new", 9.0)], stored)
    assert slower == ["a, 1, sem, 1, 1, 1, 1, 1, 1, 1: 1.06 times the stored ratio"]
    assert whole == "2 rows compared, 1 slower by more than 5%; mean 1.030."
    assert compared([row("new", 1.0)], stored) == ([], ["No row is in both runs."])


def test_the_page_is_that_of_the_stored_figures(tmp_path):
    """A stored run gives the documentation's page again; figures that are missing have no section."""
    stored = read_run(STORED)
    assert page_of(stored, FIGURES) == (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    page = page_of([], FIGURES, tmp_path / "none.json")
    assert "##" not in page
    again = [row | {"value": "7e9", "ratio": "1"} for row in stored if row["figure"] == "mixture-pass"]
    both = merged(stored, again)
    assert len(both) == len(stored)
    assert "7.00 s" in page_of(both, FIGURES)
    assert "7.00 s" not in page_of(stored, FIGURES)


def test_the_page_is_not_written_from_a_quick_run(tmp_path):
    app = typer.Typer()
    app.command()(main)
    done = CliRunner().invoke(app, ["--quick", "--page", str(tmp_path / "page.md")])
    assert done.exit_code == 2
    assert not (tmp_path / "page.md").exists()
