"""Fits stay under their memory limit: anonymous memory over that after import, in a process of its own."""

import sys
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from anonymous_memory import peak
from helpers import assert_same_result
from sklearn.exceptions import ConvergenceWarning
from stored_sources import write
from surroundings import fit_within

import swiftem
from swiftem import PLSA, GaussianMixture, methods, models
from swiftem.core.checks import MemoryLimitError
from swiftem.core.files import is_scratch
from swiftem.core.problem import bytes_needed, in_words
from swiftem.data import open_source
from swiftem.data.documents import tokens

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RssAnon is Linux's")
METHODS = ("em", "sem", "iem", "sem-vr", "fiem")
N, D = 500_000, 16

FIT = """
path, method, limit, window = sys.argv[1:]
source = open_source(path, window=int(window))
swiftem.set_config(memory_limit=limit)
mixture = GaussianMixture(8, method=method, max_iter=3, random_state=0).fit(source)
print(mixture.method_)
"""
LOAD = """
y = numpy.load(sys.argv[1])
print(y.sum() != 0)
"""


def rows(n):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, D)) + 4.0 * rng.integers(8, size=(n, 1))


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory):
    """Compile what has to be, which takes memory once on a machine and is no fit's."""
    file = write(tmp_path_factory.mktemp("few"), "rows.npy", rows(3000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in METHODS:
            GaussianMixture(8, method=method, max_iter=3, random_state=0).fit(file)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """64 MB of rows."""
    return write(tmp_path_factory.mktemp("rows"), "rows.npy", rows(N))


RESUME = """
path, method, limit, folder, iterations = sys.argv[1:]
model = models.GaussianMixtureModel(24, delta=0.1, epsilon=0.1)
kind = methods.METHODS[method]
result = swiftem.run(
    model, open_source(path, window=20_000), kind(batch_size=500), n_iter=int(iterations), seed=0,
    memory_limit=limit, checkpoint=folder, resume="auto",
)
from swiftem.core.files import is_scratch
print(result.n_iter, is_scratch(result.state.method.memory))
"""


@pytest.mark.parametrize("method", ["iem", pytest.param("fiem", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_run_that_goes_on_stays_under_the_limit_too(file, method, tmp_path):
    """Its memory, 96 MB, is read into a scratch file, and not into memory."""
    needed = bytes_needed(open_source(file, window=20_000), methods.METHODS[method](), statistics=24 * 17)
    limit = -(-needed // 10**6)
    for iterations in (100, 200):
        output, grown = peak(RESUME, file, method, f"{limit}MB", tmp_path, iterations)
        assert output.split() == [str(iterations), "True"]
        assert grown <= limit * 10**6, f"{method} took {in_words(grown)} of {limit} MB"


def test_what_is_loaded_is_seen(file):
    _, grown = peak(LOAD, file)
    assert grown >= N * D * 8


def kept(file, method, window=20_000):
    """Fit with the least limit there may be, and return it and how much memory was taken."""
    size = 8 * (1 + D + D * (D + 1) // 2)
    source = open_source(file, window=window)
    needed = bytes_needed(source, methods.METHODS[method](), statistics=size, starts=True)
    limit = -(-needed // 10**6)
    output, grown = peak(FIT, file, method, f"{limit}MB", window)
    assert output.split() == [method]
    return limit * 10**6, grown


SLOW = [
    *(("npy", N, name) for name in METHODS[1:]),
    *((ending, 10 * N, name) for ending in ("npy", "parquet") for name in METHODS),
    *(("csv", N, name) for name in ("em", "sem", "sem-vr")),
]
"""Kinds of files, rows and methods; the large files are four times larger than the limit."""


@pytest.mark.parametrize(
    ("ending", "n", "method"),
    [("npy", N, "em"), *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
)
def test_a_fit_stays_under_the_least_limit_it_accepts(ending, n, method, tmp_path):
    file = write(tmp_path, f"rows.{ending}", rows(n), group=20_000)
    limit, grown = kept(file, method)
    assert n == N or file.stat().st_size > 4 * limit
    assert grown <= limit, f"{method} took {in_words(grown)} of {in_words(limit)}"


def counts(largest=3):
    """Return counts of five documents, with one large one."""
    found = np.random.default_rng(0).poisson(3.0, size=(5, 6))
    found[1, 2] = largest
    return sp.csr_array(found)


@pytest.mark.parametrize("method", ["iem", "fiem", "opt-fiem"])
def test_the_memory_of_tokens_goes_to_scratch(method, tmp_path):
    made = methods.make_method(method, step_size=0.1)
    data = counts(200_000)
    whole = swiftem.run(models.PLSAModel(3), data, made, n_iter=300, seed=0)
    limited = swiftem.run(
        models.PLSAModel(3), data, made, n_iter=300, seed=0, memory_limit="53MB", scratch=tmp_path
    )
    assert not is_scratch(whole.state.method.memory)
    assert is_scratch(limited.state.method.memory)
    assert_same_result(limited, whole)


def test_the_memory_of_topics_by_tokens_goes_to_scratch(tmp_path):
    options = {"method": methods.FastIncrementalEM(batch_size=999), "max_iter": 2, "random_state": 0}
    data = counts(200_000)
    with pytest.warns(ConvergenceWarning):
        whole = PLSA(3, **options).fit(data)
    with pytest.warns(ConvergenceWarning), swiftem.config_context(memory_limit="52MB", scratch=tmp_path):
        limited = PLSA(3, **options).fit(data)
    np.testing.assert_array_equal(limited.components_, whole.components_)
    with pytest.raises(FileNotFoundError, match=r"^scratch must be a folder"):
        swiftem.set_config(scratch=tmp_path / "none")
    with pytest.raises(MemoryLimitError, match=r"^memory_limit must be at least \d+ MB for fiem on these"):
        fit_within(PLSA, data, n_components=3, **options, memory_limit="10MB")


@pytest.mark.parametrize("method", ["em", "sem", "sem-vr", "spider"])
def test_large_counts_are_not_unrolled(method):
    made = methods.make_method(method, step_size=0.1)
    swiftem.run(models.PLSAModel(3), counts(), made, n_iter=30, seed=0)  # compiles
    tracemalloc.start()
    try:
        result = swiftem.run(models.PLSAModel(3), counts(10**9), made, n_iter=30, seed=0)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 20e6
    assert np.isfinite(result.theta.topic_word).all()


@pytest.mark.parametrize("method", ["iem", "fiem", "opt-fiem"])
def test_a_memory_larger_than_the_machine_is_refused(method):
    made = methods.make_method(method, step_size=0.1)
    with pytest.raises(MemoryLimitError, match=r"^memory_limit must be less than .*, got None: with a limit"):
        swiftem.run(models.PLSAModel(3), counts(10**12), made, n_iter=1, seed=0)


def test_an_order_larger_than_the_machine_is_refused():
    with pytest.raises(MemoryLimitError, match=r"^order and memory_order must be 'iid' for 1,0.* 'shuffled'"):
        swiftem.run(models.PLSAModel(3), counts(10**12), methods.OnlineEM(order="shuffled"), n_iter=1, seed=0)


@pytest.mark.parametrize("method", methods.METHODS)
@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.5, 1.5, 1.0]])
def test_tokens_that_are_not_unrolled_give_the_same_bits(method, weight, monkeypatch):
    made = methods.make_method(method, step_size=0.1, batch_size=2, order="shuffled")
    options = {"n_iter": 200, "seed": 0, "sample_weight": weight}
    whole = swiftem.run(models.PLSAModel(3), counts(50), made, **options)
    monkeypatch.setattr(tokens, "FEW_TOKENS", 0)
    monkeypatch.setattr(tokens, "PER_ENTRY", 0)
    assert_same_result(swiftem.run(models.PLSAModel(3), counts(50), made, **options), whole)
