"""Bad input is refused with one sentence that names the argument and says what would be right."""

import pickle

import helpers
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import assert_refused

import swiftem
from swiftem import methods, models

NAN, INF = np.nan, np.inf
MIXTURE, TOPICS = helpers.mixture(20, d=2), helpers.topics(20, D=3, V=4)
GMM, PLSA = MIXTURE.model, TOPICS.model
COUNTS = TOPICS.data.toarray()
FIEM = methods.FastIncrementalEM()


def mixture(method=None, *, model=GMM, data=MIXTURE.data, n_iter=3, **options):
    """Run a mixture, right but for what is given."""
    return swiftem.run(
        model, data, methods.EM() if method is None else method, n_iter=n_iter, seed=0, **options
    )


def topics(method=None, *, model=PLSA, data=TOPICS.data, n_iter=3, **options):
    """Run pLSA, right but for what is given."""
    return swiftem.run(
        model, data, methods.EM() if method is None else method, n_iter=n_iter, seed=0, **options
    )


def seeded(seed):
    return swiftem.run(GMM, MIXTURE.data, methods.EM(), n_iter=1, seed=seed)


def sparse(*changes, dtype=float):
    """Return counts with some entries changed, (document, word, value) each."""
    counts = COUNTS.astype(dtype)
    for document, word, value in changes:
        counts[document, word] = value
    return sp.csr_array(counts)


DATA = {
    "NaN": (lambda: mixture(data=[0.0, NAN, 1.0]), "data finite.*NaN at position 1"),
    "infinity": (
        lambda: mixture(data=[[0.0, 1.0], [1.0, -INF]]),
        r"data finite.*infinity at position \(1, 1\)",
    ),
    "None among numbers": (lambda: mixture(data=[0.0, None, 1.0]), "data finite"),
    "empty": (lambda: mixture(data=[]), "data at least one row"),
    "no rows": (lambda: mixture(data=np.empty((0, 2))), "data at least one row"),
    "no columns": (lambda: mixture(data=np.empty((3, 0))), "data one column"),
    "one row": (lambda: mixture(data=[1.0]), "data at least n_components=2 rows, got 1"),
    "fewer rows than components": (
        lambda: mixture(data=[1.0, 2.0, 3.0], model=models.GaussianMixtureModel(4)),
        "data at least n_components=4 rows, got 3",
    ),
    "fewer rows of positive weight": (
        lambda: mixture(data=[1.0, 2.0, 3.0], sample_weight=[0, 1, 0]),
        "data at least n_components=2 rows, got 1",
    ),
    "strings": (lambda: mixture(data=np.array(["a", "b"])), "data real numbers"),
    "complex": (lambda: mixture(data=[1 + 2j, 2.0]), "data real numbers"),
    "objects": (lambda: mixture(data=[object(), object()]), "data real numbers"),
    "dates": (
        lambda: mixture(data=np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")),
        "data real numbers",
    ),
    "a number": (lambda: mixture(data=5.0), r"data shape \(n,\) or \(n, d\)"),
    "three dimensions": (lambda: mixture(data=np.ones((3, 2, 2))), r"data shape \(n,\) or \(n, d\)"),
    "ragged": (lambda: mixture(data=[[1.0, 2.0], [3.0]]), "data rectangular"),
    "None": (lambda: mixture(data=None), "data must"),
    "sparse for a mixture": (lambda: mixture(data=TOPICS.data), "data rows of numbers for a mixture"),
    "tokens for a mixture": (lambda: mixture(data=([0, 1], [1, 0])), "data rows of numbers for a mixture"),
    "dense for pLSA": (lambda: topics(data=COUNTS), "data sparse matrix of counts"),
    "negative count": (lambda: topics(data=sparse((0, 1, -2))), "data at least 0, got -2"),
    "NaN count": (lambda: topics(data=sparse((0, 1, NAN))), "data finite"),
    "infinite count": (lambda: topics(data=sparse((0, 1, INF))), "data finite"),
    "complex counts": (lambda: topics(data=sparse(dtype=complex)), "data real numbers"),
    "no documents": (lambda: topics(data=sp.csr_array((0, 4))), "data at least one document"),
    "no words": (lambda: topics(data=sp.csr_array((3, 0))), "data one word"),
    "no tokens": (lambda: topics(data=sp.csr_array((3, 4))), "data at least one token"),
    "no tokens of positive weight": (
        lambda: topics(data=sp.csr_array([[0, 0], [1, 1]]), sample_weight=[1, 0]),
        "data at least one token",
    ),
    "fewer tokens than topics": (
        lambda: topics(data=sp.csr_array([[1, 0], [0, 1]]), model=models.PLSAModel(3)),
        "data at least n_topics=3 tokens, got 2",
    ),
    "a triple": (lambda: topics(data=([0], [0], [0])), r"data \(documents, words\)"),
    "a pair of matrices": (lambda: topics(data=(COUNTS, COUNTS)), "data two one-dimensional arrays"),
    "a pair, ragged": (lambda: topics(data=([[0], [0, 1]], [0, 1])), "data two one-dimensional arrays"),
    "tokens of unequal number": (
        lambda: topics(data=([0, 0, 1], [1, 0])),
        "words length of documents, 3, got 2",
    ),
    "negative document": (lambda: topics(data=([0, -1], [1, 0])), "documents count from 0, got -1"),
    "negative word": (lambda: topics(data=([0, 1], [1, -3])), "words count from 0, got -3"),
    "tokens of floats": (lambda: topics(data=([0.0, 1.0], [1, 0])), "documents integers"),
    "an empty pair": (lambda: topics(data=([], [])), "data at least one token"),
}

DRAWS = {
    "too large": (lambda: mixture(methods.OnlineEM(), draws=[0, 20, 1]), "draws from 0 to 19, got 20"),
    "negative": (lambda: mixture(methods.OnlineEM(), draws=[0, -1, 1]), "draws from 0 to 19, got -1"),
    "too few": (lambda: mixture(methods.OnlineEM(), draws=[0, 1]), r"draws shape .*\(3,\)"),
    "too many": (lambda: mixture(methods.OnlineEM(), draws=[0, 1, 2, 3]), r"draws shape .*\(3,\)"),
    "no batches": (
        lambda: mixture(methods.OnlineEM(batch_size=2), draws=[0, 1, 2]),
        r"draws shape .*\(3, 2\)",
    ),
    "other batches": (
        lambda: mixture(methods.OnlineEM(batch_size=2), draws=np.zeros((3, 4), int)),
        r"draws shape .*\(3, 2\)",
    ),
    "three dimensions": (lambda: mixture(methods.OnlineEM(), draws=np.zeros((3, 1, 1), int)), "draws shape"),
    "ragged": (lambda: mixture(methods.OnlineEM(batch_size=2), draws=[[0, 1], [2], [3, 4]]), "draws must"),
    "floats": (lambda: mixture(methods.OnlineEM(), draws=[0.0, 1.0, 2.0]), "draws integers"),
    "bools": (lambda: mixture(methods.OnlineEM(), draws=[True, False, True]), "draws integers"),
    "for em": (lambda: mixture(methods.EM(), draws=[0, 1, 2]), "draws left out"),
    "one array for fiem": (lambda: mixture(FIEM, draws=[0, 1, 2]), "draws 2 index arrays"),
    "one array of two for fiem": (lambda: mixture(FIEM, draws=[0, 1], n_iter=2), "draws must"),
    "a number for fiem": (lambda: mixture(FIEM, draws=3), "draws 2 index arrays"),
    "three arrays for fiem": (lambda: mixture(FIEM, draws=([0] * 3,) * 3), "draws 2 index arrays"),
    "a pair for sem": (lambda: mixture(methods.OnlineEM(), draws=([0, 1, 2], [0, 1, 2])), "draws shape"),
    "j too large": (lambda: mixture(FIEM, draws=([0, 1, 2], [0, 1, 20])), "draws from 0 to 19"),
}

METHODS = {
    "step size 0": (lambda: methods.OnlineEM(step_size=0), r"step_size in \(0, 1\]"),
    "step size -1": (lambda: methods.VarianceReducedEM(step_size=-1), r"step_size in \(0, 1\]"),
    "step size 1.5": (lambda: methods.FastIncrementalEM(step_size=1.5), r"step_size in \(0, 1\]"),
    "step size nan": (lambda: methods.FastIncrementalEM(step_size=NAN), r"step_size in \(0, 1\]"),
    "step size text": (lambda: methods.OnlineEM(step_size="a"), "step_size number or a function of k"),
    "schedule leaves (0, 1] above": (
        lambda: mixture(methods.OnlineEM(step_size=lambda k: 0.4 * k)),
        r"step_size in \(0, 1\].* at k = 3",
    ),
    "schedule leaves (0, 1] below": (
        lambda: mixture(methods.FastIncrementalEM(step_size=lambda k: 2.0 - k)),
        r"step_size in \(0, 1\].* at k = 2",
    ),
    "schedule gives no number": (
        lambda: mixture(methods.OnlineEM(step_size=lambda k: None)),
        "step_size number.* at k = 1",
    ),
    "schedule leaves (0, 1] under random termination": (
        lambda: mixture(methods.OnlineEM(step_size=lambda k: 0.4 * k), n_iter=swiftem.RandomTermination(5)),
        r"step_size in \(0, 1\].* at k = 3",
    ),
    "batch size 0": (lambda: methods.OnlineEM(batch_size=0), "batch_size at least 1"),
    "batch size 1.5": (lambda: methods.IncrementalEM(batch_size=1.5), "batch_size integer"),
    "batch size True": (lambda: methods.FastIncrementalEM(batch_size=True), "batch_size integer"),
    "epoch length 0": (lambda: methods.VarianceReducedEM(epoch_length=0), "epoch_length at least 1"),
    "epoch length 2.0": (lambda: methods.VarianceReducedEM(epoch_length=2.0), "epoch_length integer"),
    "memory order": (lambda: methods.FastIncrementalEM(memory_order="x"), "memory_order 'iid' or 'shuffled'"),
    "a name": (lambda: mixture("em"), r"method instance such as methods\.EM\(\)"),
    "a class": (lambda: mixture(methods.EM), r"method instance such as methods\.EM\(\)"),
}

RUN = {
    "n_iter -1": (lambda: mixture(n_iter=-1), "n_iter at least 0"),
    "n_iter 1.5": (lambda: mixture(n_iter=1.5), "n_iter integer"),
    "n_iter True": (lambda: mixture(n_iter=True), "n_iter integer"),
    "n_iter text": (lambda: mixture(n_iter="3"), "n_iter integer"),
    "record_every 0": (lambda: mixture(record_every=0), "record_every at least 1"),
    "record_every 2.0": (lambda: mixture(record_every=2.0), "record_every integer"),
    "seed text": (lambda: seeded("x"), "seed non-negative integer"),
    "seed -1": (lambda: seeded(-1), "seed non-negative integer"),
    "seed 0.5": (lambda: seeded(0.5), "seed non-negative integer"),
    "kernels": (lambda: mixture(kernels="gpu"), "kernels 'auto' or 'reference'"),
    "model name": (lambda: mixture(model="mixture"), "model must"),
    "model class": (lambda: mixture(model=models.GaussianMixtureModel), "model must"),
}

WEIGHTS = {
    "number": (lambda: mixture(sample_weight=[1.0, 2.0]), r"sample_weight shape \(20,\), one weight per row"),
    "two dimensions": (lambda: mixture(sample_weight=np.ones((20, 1))), r"sample_weight shape \(20,\)"),
    "a number": (lambda: mixture(sample_weight=1.0), r"sample_weight shape \(20,\)"),
    "per document": (lambda: topics(sample_weight=np.ones(20)), r"sample_weight shape \(3,\), .*document"),
    "negative": (lambda: mixture(sample_weight=[-1.0] + [1.0] * 19), "sample_weight not be negative, got -1"),
    "NaN": (lambda: mixture(sample_weight=[NAN] + [1.0] * 19), "sample_weight finite"),
    "infinite": (lambda: mixture(sample_weight=[INF] + [1.0] * 19), "sample_weight finite"),
    "all zero": (lambda: mixture(sample_weight=np.zeros(20)), "sample_weight positive entry"),
    "strings": (lambda: mixture(sample_weight=["a"] * 20), "sample_weight real numbers"),
    "beside a source": (
        lambda: mixture(data=swiftem.data.ArraySource([1.0, 2.0]), sample_weight=[1.0, 1.0]),
        "sample_weight given to the source",
    ),
}

SEQUENTIAL = helpers.SequentialSource(MIXTURE.data)
SOURCES = {
    f"sequential source for {name}": (
        lambda name=name: mixture(helpers.make_method(name), data=SEQUENTIAL, theta0=MIXTURE.theta0),
        f"data read in order.*{name}.*: use em,? or",  # and no other: all others are refused
    )
    for name in helpers.STOCHASTIC
}

CASES = {
    f"{group}: {name}": case
    for group, cases in [
        ("data", DATA),
        ("draws", DRAWS),
        ("method", METHODS),
        ("run", RUN),
        ("weights", WEIGHTS),
        ("source", SOURCES),
    ]
    for name, case in cases.items()
}


@helpers.parametrize_cases(CASES)
def test_refused_with_a_sentence(case):
    """The first word of what is expected is the argument."""
    attempt, expected = case
    assert_refused(attempt, *expected.split(" ", 1))


@pytest.mark.parametrize("name", helpers.NAMES)
@pytest.mark.parametrize("fails", [False, True], ids=["good run", "run that fails midway"])
def test_arguments_are_not_written_to(name, fails):
    problem = helpers.mixture(20, d=2)
    method = helpers.make_method(name, batch_size=2, step_size=0.3)
    first = problem.run(method, n_iter=4, seed=0)
    draws = helpers.random_draws(name, 20, 6, b=2)
    given = {"data": problem.data, "theta0": first.theta, "s0": first.s, "state": first.state, "draws": draws}
    before = pickle.dumps(given)

    def callback(iterate):
        if fails and iterate.k == 8:
            raise RuntimeError("midway")

    try:
        swiftem.run(problem.model, method=method, n_iter=6, record_every=1, callback=callback, **given)
    except RuntimeError:
        assert fails
    assert pickle.dumps(given) == before


@pytest.mark.parametrize("make", [helpers.mixture, helpers.topics])
def test_data_and_weights_are_not_written_to(make):
    problem = make(20)
    weight = np.linspace(0, 1, 20 if make is helpers.mixture else 4)
    before = pickle.dumps((problem.data, weight, problem.theta0))
    problem.run(methods.FastIncrementalEM(), n_iter=30, sample_weight=weight, seed=0)
    assert pickle.dumps((problem.data, weight, problem.theta0)) == before


def test_schedules_are_checked_where_they_are_used():
    """A schedule that is right as far as the run goes is no error."""
    result = mixture(methods.OnlineEM(step_size=lambda k: 0.3 * k), n_iter=3)
    assert result.n_iter == 3
    with pytest.raises(ValueError, match="at k = 4"):
        mixture(methods.OnlineEM(step_size=lambda k: 0.3 * k), n_iter=4)
