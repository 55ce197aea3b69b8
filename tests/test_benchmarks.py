"""The benchmarks run, and their hand-written peers do the same as swiftem."""

import csv
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

ROOT = Path(__file__).parent.parent
METHODS = ("sem", "iem", "sem-vr", "fiem")
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
def test_quick_run_has_every_figure_but_memory(done):
    _, rows, _ = done
    expected = [
        *(("one-sample", "paper's mixture", name, "Numba loop") for name in METHODS),
        *(("plsa", "pLSA", name, "Numba loop, O(K)") for name in METHODS),
        *(("plsa-documents", "pLSA", name, "D = 10") for name in ("sem", "iem", "fiem")),
        *(
            ("later-methods", model, name, peer)
            for model in (
                *("paper's mixture", "wide mixture", "full covariances", "pLSA tokens"),
                "pLSA tokens, batches",
            )
            for name, peer in (("spider", "sem-vr"), ("opt-fiem", "fiem"))
        ),
        *(("mini-batch", "wide mixture", name, "products and exp") for name in METHODS),
        ("full-pass", "paper's mixture", "em", "one thread"),
        ("full-pass", "paper's mixture", "em", "scikit-learn"),
        ("full-pass", "wide mixture", "em", "one thread"),
        ("full-pass", "wide mixture", "em", "scikit-learn"),
        ("full-pass", "pLSA", "em", "one thread"),
        *(
            ("mixture-pass", name, "em", "scikit-learn")
            for name in (
                *("full, d = 16", "full, d = 2", "full, d = 64", "tied, d = 16", "diag, d = 16"),
                *("spherical, d = 16", "full, mean"),
            )
        ),
        ("mixture-pass", "full, d = 16, late", "em", "first pass"),
        ("families", "bernoulli, n = 1e+03", "em", "unit variance"),
        ("families", "bernoulli, n = 1e+04", "em", "unit variance"),
        ("families", "von Mises–Fisher", "em", "spherical"),
        ("families", "full covariances with holes", "em", "no holes"),
        *(("mixture-fit", "full, to the same", name, "scikit-learn") for name in ("auto", "em")),
        *(("mixture-fit", "full, to the same", name, "em") for name in ("sem-vr", "fiem")),
        *(("out-of-core", "full covariance", "em", "in memory") for _ in ("npy", "parquet", "csv")),
        *(("topics-memory", "PLSA", "auto", "") for _ in ("seconds", "bytes")),
        *(("units", "full covariance", "em", "here or goal") for _ in range(4)),
        ("units", "full covariance", "fiem", "here or goal"),
        *(("units", "overlapping", "fiem", "here or goal") for _ in range(2)),
        ("start-up", "any", "any", "import numpy"),
        ("start-up", "mixture", "fiem", ""),
        ("start-up", "mixture", "fiem", "warm cache"),
        ("start-up", "pLSA", "fiem", ""),
        ("start-up", "pLSA", "fiem", "warm cache"),
        *(("start-up", name, "auto", "") for name in ("mixture, float64", "mixture, float32", "PLSA")),
        *(
            ("start-up", f"mixture, d = {d}, M = {m}", "auto", "compiled")
            for d, m in ((1, 8), (2, 4), (2, 8), (4, 2), (2, 4), (1, 2))
        ),
        *(
            ("checkpoints", model, name, "no checkpoints")
            for model in ("wide mixture", "full")
            for name in ("em", "sem", "sem-vr", "iem", "fiem")
        ),
    ]
    others = [row for row in rows if row["figure"] not in ("topics", "optima") and row["peer"] != "StepMix"]
    assert [(row["figure"], row["model"], row["method"], row["peer"]) for row in others] == expected
    assert set(rows[0]) >= COLUMNS


@pytest.mark.slow
def test_optima_are_compared_with_scikit_learn_by_log_likelihood_and_time(done):
    rows = [row for row in done[1] if row["figure"] == "optima"]
    of_each = ["rows fitted, mean", "rows fitted, worst", "held out, mean", "seconds"]
    assert [row["setting"] for row in rows] == of_each * (len(rows) // 4)
    assert {row["method"] for row in rows} == {"auto", "n_init=10", "em", "sem-vr", "fiem"}
    assert {row["model"] for row in rows} == {"digits, diag, M = 5", "overlap-0.1b, full, M = 5",
                                              "overlap-0.1b, diag, M = 5"}  # fmt: skip


@pytest.mark.slow
def test_topics_are_held_against_the_peers_that_are_installed(done):
    rows = [row for row in done[1] if row["figure"] == "topics" and not row["peer"].startswith("tomotopy")]
    of_each = [
        ("a pass", "scikit-learn NMF"),
        ("default fit", ""),
        *(("5 s, 20 s", f"scikit-learn {name}") for _ in ("perplexity", "NPMI") for name in ("NMF", "LDA")),
        ("5 s", ""),
        ("read once", "em"),
        ("read once, same start", "em"),
    ]
    transform = [("transform a document", ""), ("transform a document", "scikit-learn NMF")]
    assert [(row["setting"], row["peer"]) for row in rows] == [*of_each, *of_each, *transform]
    assert {row["components"] for row in rows} == {"10", "50"}


@pytest.mark.slow
def test_results_follow_from_the_values(done):
    _, rows, _ = done
    for row in rows:
        value, result = float(row["value"]), float(row["result"])
        assert value > 0
        peer = float(row["peer_value"]) if row["peer"] else None
        if peer is not None:
            assert float(row["ratio"]) == pytest.approx(value / peer, rel=1e-4)
        expected = {
            "ratio": lambda value, peer: value / peer,
            "speed-up": lambda value, peer: peer / value,
            "difference": lambda value, peer: value - peer,
            "value": lambda value, peer: value,
        }[row["compared"]]
        assert result == pytest.approx(expected(value, peer), rel=1e-4, abs=1e-5)
        if row["goal"]:
            good = (
                result >= float(row["goal"])
                if row["compared"] == "speed-up"
                else result <= float(row["goal"])
            )
            assert row["reached"] == ("yes" if good else "no")
        else:
            assert row["reached"] == ""


@pytest.mark.slow
def test_the_goal_of_a_mini_batch_is_for_one_e_step(done):
    goals = {row["method"]: float(row["goal"]) for row in done[1] if row["figure"] == "mini-batch"}
    assert goals == {"sem": 1.7, "iem": 1.7, "sem-vr": 3.4, "fiem": 3.4}


@pytest.mark.slow
def test_screen_says_what_is_where(done):
    output, _, file = done
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


def test_unknown_figure_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    app = typer.Typer()
    app.command()(import_module("benchmarks.__main__").main)
    done = CliRunner().invoke(app, ["--quick", "--only", "nothing", "--out", str(tmp_path / "bench.csv")])
    assert done.exit_code == 2
    assert "there is no figure 'nothing'" in " ".join(done.stderr.replace("│", " ").split())


def row(figure, ratio, method="sem"):
    names = ("model", "setting", "n", "d", "components", "b", "threads", "peer")
    return {"figure": figure, "method": method, "ratio": ratio} | dict.fromkeys(names, "1")


def test_against_a_stored_run(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.against import compared

    stored = [row("a", "1.0"), row("b", "2.0"), row("c", ""), row("gone", "1")]
    slower, (whole,) = compared([row("a", 1.06), row("b", 2.0), row("c", 5.0), row("new", 9.0)], stored)
    assert slower == ["a, 1, sem, 1, 1, 1, 1, 1, 1, 1: 1.06 times the stored ratio"]
    assert whole == "2 rows compared, 1 slower by more than 5%; mean 1.030."
    assert compared([row("new", 1.0)], stored) == ([], ["No row is in both runs."])


def test_the_page_is_that_of_the_stored_figures(monkeypatch, tmp_path):
    """A stored run gives the documentation's page again; figures that are missing say how to get them."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.__main__ import FIGURES
    from benchmarks.against import read_run
    from benchmarks.page import STORED, merged, page_of

    stored = read_run(STORED)
    assert page_of(stored, FIGURES) == (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    page = page_of([], FIGURES, tmp_path / "none.json")
    assert page.count("Not measured yet") == len(FIGURES)
    again = [row | {"value": "7e9", "ratio": "1"} for row in stored if row["figure"] == "mixture-pass"]
    both = merged(stored, again)
    assert len(both) == len(stored)
    assert "7.00 s" in page_of(both, FIGURES)
    assert "7.00 s" not in page_of(stored, FIGURES)


def test_the_page_is_not_written_from_a_quick_run(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.__main__ import main

    app = typer.Typer()
    app.command()(main)
    done = CliRunner().invoke(app, ["--quick", "--page", str(tmp_path / "page.md")])
    assert done.exit_code == 2
    assert not (tmp_path / "page.md").exists()
