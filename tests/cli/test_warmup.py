"""``swiftem warmup`` compiles what fits use, and says where it is."""

import io
import sys
from contextlib import redirect_stdout

import numpy as np
import pytest
import scipy.sparse as sp
from rich.console import Console

import swiftem
from swiftem.cli.app import run_command

warmup = sys.modules["swiftem.cli.warmup"]


def signatures():
    """Return the number of signatures of every kernel that Python calls, by module and name."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("swiftem.")]
    return {
        (module.__name__, name): len(value.signatures)
        for module in modules
        for name, value in vars(module).items()
        if hasattr(value, "signatures") and not value.targetoptions.get("no_cpython_wrapper")
    }


@pytest.mark.filterwarnings("ignore:The fit did not:sklearn.exceptions.ConvergenceWarning")
def test_fits_compile_nothing_after_it():
    for work in warmup.PARTS.values():
        work()
    before = signatures()
    assert sum(before.values()) >= 4
    X = np.random.default_rng(0).normal(size=(50_000, 2))
    for rows in (X, X.astype(np.float32)):
        for start, method in (("race", "em"), ("kmeans", "sem-vr")):
            mixture = swiftem.GaussianMixture(2, init_params=start, random_state=0, tol=1.0).fit(rows)
            assert mixture.method_ == method
            mixture.predict(rows)
            mixture.score(rows)
    counts = sp.csr_array(np.random.default_rng(0).poisson(0.2, size=(6000, 30)))
    for method in ("auto", "em", "sem", "sem-vr"):
        swiftem.PLSA(3, method=method, random_state=0, max_iter=3, tol=1.0).fit(counts).transform(counts)
    assert signatures() == before


@pytest.fixture
def done(monkeypatch):
    """Return what was compiled: nothing but a name is."""
    names = []
    monkeypatch.setattr(warmup, "PARTS", {"usual": lambda: names.append("usual")})
    return names


def test_it_says_where_the_cache_is(done, call):
    from swiftem.kernels.compile import CACHE_FOLDER

    stdout, _ = call("warmup")
    assert done == ["usual"]
    assert stdout.startswith("Compiled in ")
    assert str(CACHE_FOLDER) in stdout


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.usefixtures("done")
def test_the_cursor_comes_back_after_ctrl_c(monkeypatch):
    """Also if it comes while the bar starts, between hiding the cursor and the context."""
    terminal, show = Terminal(), Console.show_cursor

    def interrupted(console, is_shown=True):
        show(console, is_shown)
        if not is_shown:
            raise KeyboardInterrupt

    monkeypatch.setattr(Console, "show_cursor", interrupted)
    monkeypatch.setattr(sys, "argv", ["swiftem", "warmup"])
    monkeypatch.setenv("TERM", "xterm")
    with redirect_stdout(terminal), pytest.raises(SystemExit) as end:
        run_command()
    assert end.value.code == 130
    hidden, shown = (terminal.getvalue().rfind(code) for code in ("\x1b[?25l", "\x1b[?25h"))
    assert 0 <= hidden < shown


@pytest.mark.usefixtures("done")
def test_a_cache_that_cannot_be_used_is_an_error(monkeypatch, call):
    from swiftem.kernels import compile

    monkeypatch.setattr(compile, "WHY_NOT_KEPT", "others can write to it")
    _, stderr = call("warmup", code=1)
    assert "Nothing that was compiled is kept, as others can write to it." in stderr
