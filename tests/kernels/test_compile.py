"""Start-up: what is compiled, when, and where it is kept; threads and forks."""

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import helpers
import numpy as np
import pytest

import swiftem
from swiftem.kernels import threads

SOURCE = Path(swiftem.__file__).parent

KERNEL = """
import json, logging, sys
logging.basicConfig(stream=sys.stderr, format="%(message)s")
import numpy as np
from swiftem.kernels import compile
from swiftem.functions.kernel import is_finite

compile.AT_LEAST = 0.0
is_finite(np.ones(3))
print(json.dumps({"hits": sum(is_finite.stats.cache_hits.values()),
                  "misses": sum(is_finite.stats.cache_misses.values())}))
"""
ANNOUNCED = "swiftem compiles its kernels, once on this machine: this takes several seconds."

MODEL = """
import json, sys
import numba, numpy as np
import swiftem
from swiftem import methods, models
from swiftem.functions import kernel as functions

results = []
for factor in map(float, sys.argv[1:]):
    @numba.njit
    def e_step(y, theta):
        return factor * y.reshape(-1, 1), y

    @numba.njit
    def m_step(s):
        return s[0] + factor

    model = models.FunctionModel(lambda y, rng: 0.0, e_step, m_step, lambda theta: 0.0)
    method = methods.OnlineEM(step_size=1.0)
    results.append(swiftem.run(model, [1.0, 2.0], method, draws=[0, 1], n_iter=2).theta)
stats = functions.iterate.stats
print(json.dumps({
    "results": results,
    "hits": sum(stats.cache_hits.values()),
    "misses": sum(stats.cache_misses.values()),
}))
"""


def python(code, *arguments, cache, path=SOURCE.parent):
    """Run code in a new process; return what it printed as JSON, and its lines on stderr."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr.splitlines()


def test_the_next_process_finds_what_this_one_compiled(tmp_path):
    printed, lines = python(KERNEL, cache=tmp_path)
    assert printed == {"hits": 0, "misses": 1}
    assert lines == [ANNOUNCED]
    printed, lines = python(KERNEL, cache=tmp_path)
    assert printed == {"hits": 1, "misses": 0}
    assert lines == []


SECONDS = """
import json, logging, sys, time
logging.basicConfig(stream=sys.stderr, format="%(message)s")
import numba
from swiftem.core.process import clock
from swiftem.kernels import compile

@compile.helper
def inner(x):
    return x + 1

@compile.kernel
def outer(x):
    return inner(x) * 2

@numba.njit
def of_a_user(x):
    return x - 1

compile.AT_LEAST = float(sys.argv[1])
of_a_user(1.0)
for function in (inner, outer):
    function.py_func.__module__ = "swiftem.made_up"
seconds = []
for value in (1.0, 2.0, 4, 3.0):
    began, all_of_it = clock(), time.perf_counter()
    outer(value)
    seconds.append((clock() - began, time.perf_counter() - all_of_it))
print(json.dumps(seconds))
"""


def test_compilation_is_announced_once_and_never_counted(tmp_path):
    seconds, lines = python(SECONDS, "0", cache=tmp_path)
    assert lines == [ANNOUNCED]
    for place, (counted, passed) in enumerate(seconds):
        is_compiled = place in (0, 2)
        assert 0 <= counted <= passed + 1e-6
        assert counted < 0.5 * passed if is_compiled else passed - counted < 1e-6


USERS = """
import numba
from swiftem.kernels import compile
compile.AT_LEAST = 0.0
print(numba.njit(lambda x: x)(1))
"""


def test_a_users_function_is_not_announced(tmp_path):
    assert python(USERS, cache=tmp_path) == (1, [])


def test_what_compiles_quickly_says_nothing(tmp_path):
    assert python(SECONDS, "1000", cache=tmp_path)[1] == []


@pytest.mark.slow
def test_one_loop_serves_every_model_of_the_same_types(tmp_path):
    """Also a model that the process which compiled the loop never saw."""
    printed, _ = python(MODEL, "3", cache=tmp_path)
    assert printed == {"results": [9.0], "hits": 0, "misses": 1}
    printed, _ = python(MODEL, "5", "7", cache=tmp_path)
    assert printed == {"results": [15.0, 21.0], "hits": 1, "misses": 0}


def test_a_folder_that_cannot_be_written_to(tmp_path):
    """It compiles in memory: nothing is written where another version would find it."""
    copy_package(tmp_path)
    (tmp_path / "file").touch()
    printed, lines = python(KERNEL, cache=tmp_path / "file" / "cache", path=tmp_path)
    assert printed == {"hits": 0, "misses": 1}
    assert len(lines) == 2
    assert lines[0].startswith("swiftem compiles in every process, without a cache, as ")
    assert lines[0].endswith(" cannot be written to.")
    assert lines[1] == ANNOUNCED.replace("once on this machine", "in every process")
    assert not list(tmp_path.rglob("*.nbi"))


class Planted:
    """Creates a file when it is loaded."""

    def __init__(self, path):
        self._path = str(path)

    def __reduce__(self):
        return open, (self._path, "w")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders of Windows have no owners")
def test_a_file_that_another_user_planted_is_not_loaded(tmp_path):
    """Files of the cache are code: they are loaded only from a folder where nobody else can write."""
    base, mark = tmp_path / "base", tmp_path / "mark"
    assert python(KERNEL, cache=base)[0] == {"hits": 0, "misses": 1}
    (index,) = base.rglob("*.nbi")
    index.write_bytes(pickle.dumps(Planted(mark)))
    assert python(KERNEL, cache=base)[0] == {"hits": 0, "misses": 1}
    assert mark.exists()  # so it would be
    mark.unlink()
    index.write_bytes(pickle.dumps(Planted(mark)))
    base.chmod(0o1777)
    if os.geteuid() == 0:
        for path in (base, *base.rglob("*")):
            os.chown(path, 65534, 65534)
    printed, lines = python(KERNEL, cache=base)
    assert printed == {"hits": 0, "misses": 1}
    assert not mark.exists()
    others = "belongs to another user" if os.geteuid() == 0 else f"others can write to {base}"
    assert others in lines[0]
    assert [line for line in lines if "without a cache" in line] == lines[:1]


def copy_package(folder):
    """Copy swiftem, with two kernels, one of which uses a helper from another file."""
    for path in SOURCE.rglob("*.py"):
        target = folder / "swiftem" / path.relative_to(SOURCE)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    kernels = folder / "swiftem" / "kernels"
    (kernels / "one_helper.py").write_text(
        "from swiftem.kernels.compile import inlined\n\n\n@inlined\ndef helper(x):\n    return 10 * x\n"
    )
    (kernels / "one_kernel.py").write_text(
        "from swiftem.kernels.compile import kernel\n"
        "from swiftem.kernels.one_helper import helper\n\n\n"
        "@kernel\ndef compute(x):\n    return helper(x) + 1\n"
    )
    return kernels


CHANGED = """
import json
from swiftem.kernels.one_kernel import compute
print(json.dumps([compute(1), sum(compute.stats.cache_hits.values())]))
"""


def edit(path, old, new):
    """Change the file's content, and neither its size nor its date."""
    before, text = path.stat(), path.read_text()
    assert old in text
    assert len(old) == len(new)
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_changed_source_never_runs_stale_code(tmp_path, monkeypatch):
    # Python's own cache goes by size and date, which is not what is tested here.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    kernels = copy_package(tmp_path)

    def run():
        return python(CHANGED, cache=tmp_path / "cache", path=tmp_path)[0]

    assert run() == [11, 0]
    edit(kernels / "one_helper.py", "10 * x", "20 * x")
    assert run() == [21, 0]
    edit(kernels / "one_kernel.py", "+ 1", "+ 5")
    assert run() == [25, 0]


def problem_and_methods():
    problem = helpers.mixture(9000, d=2, M=3)
    return problem, [helpers.make_method(name, batch_size=20) for name in helpers.NAMES]


def run_all(problem, these):
    return [
        (result.theta, result.s, result.state)
        for result in (problem.run(method, n_iter=20, seed=0) for method in these)
    ]


def test_python_threads():
    """Several runs at once, each with full passes that use threads of their own, give what one gives."""
    problem, these = problem_and_methods()
    expected = run_all(problem, these)
    with ThreadPoolExecutor(4) as pool:
        for actual in pool.map(lambda _: run_all(problem, these), range(8)):
            helpers.assert_identical(actual, expected)


def in_child(queue, problem, these):
    queue.put(run_all(problem, these))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("n", [1, 4])
def test_fork(n):
    """A child that is forked after full passes used the threads has none of them, and makes its own."""
    problem, these = problem_and_methods()
    threads.set_threads(n)
    try:
        expected = run_all(problem, these)
        assert list(threads.in_order(np.sum, [(np.ones(3),)] * 5)) == [3.0] * 5
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        child = context.Process(target=in_child, args=(queue, problem, these))
        with warnings.catch_warnings():
            # Python warns from 3.12 on; that nothing bad comes of it is what is tested here.
            warnings.filterwarnings("ignore", message=".*use of fork", category=DeprecationWarning)
            child.start()
        actual = queue.get()
        child.join(30)
        assert child.exitcode == 0
        helpers.assert_identical(actual, expected)
        helpers.assert_identical(run_all(problem, these), expected)
    finally:
        threads.set_threads(None)
