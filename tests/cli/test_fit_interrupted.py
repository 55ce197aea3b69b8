"""Ctrl-C during ``swiftem fit``: there is a model and it is written, or there is none and that is said."""

import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from full_disk import full_disk

from swiftem import GaussianMixture


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("cli.fit.read_rows", "Interrupted; nothing was written.\n"),
        ("GaussianMixture.fit", "Interrupted; nothing was written.\n"),
        ("cli.fit._show_end", "Interrupted; the model is in {}.\n"),
    ],
)
def test_at_every_stage(place, said, flowers, tmp_path, call, monkeypatch):
    def press(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"swiftem.{place}", press)
    out = tmp_path / "a.model"
    _, stderr = call("fit", flowers, "-k", 2, "-o", out, code=130)
    assert stderr.endswith(said.format(out))
    assert out.exists() == ("{}" in said)


@pytest.mark.parametrize("command", ["fit", "select", "update", "full disk"])
def test_while_the_model_is_written(command, flowers, tmp_path, call, monkeypatch):
    file, old, real = tmp_path / "a.model", tmp_path / "old.model", GaussianMixture.save
    fit = ["fit", flowers, "-k", 2]
    call(*fit, "-o", old)
    given = {"select": ["select", flowers, "-k", "1:2"], "update": ["fit", flowers, "--update", old]}

    def press(self, path):
        signal.raise_signal(signal.SIGINT)
        with full_disk() if command == "full disk" else nullcontext():
            real(self, path)

    monkeypatch.setattr(GaussianMixture, "save", press)
    _, stderr = call(*given.get(command, fit), "-o", file, code=130)
    if command == "full disk":
        assert stderr.splitlines()[-1] == "Interrupted; nothing was written."
    else:
        assert f"Interrupted; the model is in {file}." in stderr
        assert np.isfinite(GaussianMixture.load(file).means_).all()


def interrupted_at(word, command):
    """Return the output of a process that gets Ctrl-C when it has printed a line."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Also where whoever runs the tests ignores the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        for line in process.stdout:
            if line == f"{word}\n":
                break
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in output
    return output


@pytest.mark.skipif(os.name != "posix", reason="signals to a process are POSIX")
def test_at_a_running_process(flowers, tmp_path):
    out = tmp_path / "a.model"
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
        "from swiftem.cli import fit as module, main\n"
        "from callbacks import AtPass\n"
        "real, say = module._estimator, AtPass(1, lambda: print('pass', flush=True))\n"
        "module._estimator = lambda *given, **more: real(*given, **more).set_callbacks(say)\n"
        "main()\n"
    )
    arguments = ["fit", flowers, "-k", "3", "--method", "em", "--tol", "0", "--max-iter", "1000000"]
    tests = str(Path(__file__).parents[1] / "_support")
    command = [sys.executable, "-c", code, tests, *map(str, arguments), "--out", str(out)]
    output = interrupted_at("pass", command)
    assert "the model so far is in" in output
    assert "BIC" not in output
    assert f"Interrupted after {GaussianMixture.load(out).n_iter_} pass" in output


@pytest.mark.skipif(os.name != "posix", reason="signals to a process are POSIX")
def test_at_a_process_whose_starts_race(tmp_path):
    """The best start is the model, and the checkpoint resumes to the model of a fit without Ctrl-C."""
    code = (
        "import time\n"
        "from swiftem.cli import main\n"
        "from swiftem.mixture.starts import race\n"
        "real = race._after_moves\n"
        "def moved(trials, *given):\n"
        "    print('race', flush=True)\n"
        "    for _ in range(6000):\n"
        "        trials.check()\n"
        "        time.sleep(0.01)\n"
        "    return real(trials, *given)\n"
        "race._after_moves = moved\n"
        "main()\n"
    )
    rows = np.random.default_rng(0).normal(size=(3000, 2)) + 3.0 * np.arange(3000)[:, None] % 9
    np.save(tmp_path / "rows.npy", rows)
    files = {name: tmp_path / f"{name}.model" for name in ("early", "resumed", "whole")}
    command = ["fit", str(tmp_path / "rows.npy"), "-k", "3", "--seed", "0"]
    kept = ["--checkpoint", str(tmp_path / "kept")]
    output = interrupted_at(
        "race", [sys.executable, "-c", code, *command, *kept, "--out", str(files["early"])]
    )
    assert "Interrupted after 0 passes of em in" in output
    assert f"the model so far is in {files['early']}; --resume continues the fit." in output
    early = GaussianMixture.load(files["early"])
    assert np.isfinite(early.score(rows))
    for name, options in (("resumed", [*kept, "--resume"]), ("whole", [])):
        subprocess.run(
            [sys.executable, "-m", "swiftem", *command, *options, "--out", str(files[name])], check=True
        )
    resumed, whole = (GaussianMixture.load(files[name]) for name in ("resumed", "whole"))
    np.testing.assert_array_equal(resumed.means_, whole.means_)
    np.testing.assert_array_equal(resumed.history_.objective, whole.history_.objective)
    assert not np.array_equal(early.means_, whole.means_)
