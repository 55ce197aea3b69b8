"""Fits stay under their memory limit: anonymous memory over that after import, in a process of its own."""

import sys
import warnings

import numpy as np
import pytest
from anonymous_memory import peak
from stored_sources import write

from swiftem import GaussianMixture, methods
from swiftem.budget import bytes_needed, in_words
from swiftem.data import open_source

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RssAnon is Linux's")
METHODS = ("em", "sem", "iem", "sem-vr", "fiem")
N, D = 500_000, 16

FIT = """
path, method, limit, window = sys.argv[1:]
source = open_source(path, window=int(window))
mixture = GaussianMixture(8, method=method, max_iter=3, random_state=0, memory_limit=limit).fit(source)
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
from swiftem.files.scratch import is_scratch
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


def kept(file, method, window=20_000, memory=0):
    """Fit with the least limit there may be, and return it and how much memory was taken."""
    size = 8 * (1 + D + D * (D + 1) // 2)
    source = open_source(file, window=window)
    needed = bytes_needed(source, methods.METHODS[method](), statistics=size, starts=True)
    limit = -(-needed // 10**6) + memory
    output, grown = peak(FIT, file, method, f"{limit}MB", window)
    assert output.split() == [method]
    return limit * 10**6, grown


@pytest.mark.parametrize(
    "method",
    ["em", *(pytest.param(name, marks=pytest.mark.slow) for name in ("sem", "iem", "sem-vr", "fiem"))],
)
def test_a_fit_stays_under_the_least_limit_it_accepts(file, method):
    limit, grown = kept(file, method)
    assert grown <= limit, f"{method} took {in_words(grown)} of {in_words(limit)}"


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_a_file_four_times_larger_than_the_limit(method, ending, tmp_path):
    file = write(tmp_path, f"rows.{ending}", rows(5_000_000), group=20_000)
    limit, grown = kept(file, method)
    assert file.stat().st_size > 4 * limit
    assert grown <= limit, f"{method} took {in_words(grown)} of {in_words(limit)}"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["em", "sem", "sem-vr"])
def test_csv(method, tmp_path):
    file = write(tmp_path, "rows.csv", rows(N))
    limit, grown = kept(file, method)
    assert grown <= limit, f"{method} took {in_words(grown)} of {in_words(limit)}"
