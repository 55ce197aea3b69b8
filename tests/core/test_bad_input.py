"""Bad input is refused with one sentence that names the argument and says what would be right."""

import pickle
from typing import Any, NamedTuple

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
SEM, FIEM, PAIRS = methods.OnlineEM(), methods.FastIncrementalEM(), methods.OnlineEM(batch_size=2)


def run(problem, **changed):
    """Run a problem, right but for what is given."""
    right = {"model": problem.model, "data": problem.data, "method": methods.EM(), "n_iter": 3, "seed": 0}
    return swiftem.run(**right | changed)


def mixture(**changed):
    return run(MIXTURE, **changed)


def topics(**changed):
    return run(TOPICS, **changed)


def sparse(*changes, dtype=float):
    """Return counts with some entries changed, (document, word, value) each."""
    counts = COUNTS.astype(dtype)
    for document, word, value in changes:
        counts[document, word] = value
    return sp.csr_array(counts)


def gmm_theta(weights=(0.5, 0.5), means=((0.0, 1.0), (1.0, 0.0))):
    """Return parameters as they are, unchecked."""
    return models.GaussianMixtureTheta(np.array(weights), np.array(means))


def plsa_theta(**changed):
    return TOPICS.theta0._replace(**{name: np.array(value) for name, value in changed.items()})


def checked(doc_topic, topic_word):
    return PLSA.theta(doc_topic=doc_topic, topic_word=topic_word)


def uniform(*shape):
    return np.full(shape, 1 / shape[-1])


class NotATheta(NamedTuple):
    weights: Any
    means: Any


ROWS = {
    "NaN": ([0.0, NAN, 1.0], "finite.*NaN at position 1"),
    "infinity": ([[0.0, 1.0], [1.0, -INF]], r"finite.*infinity at position \(1, 1\)"),
    "None among numbers": ([0.0, None, 1.0], "finite"),
    "empty": ([], "at least one row"),
    "no rows": (np.empty((0, 2)), "at least one row"),
    "no columns": (np.empty((3, 0)), "one column"),
    "one row": ([1.0], "at least n_components=2 rows, got 1"),
    "strings": (np.array(["a", "b"]), "real numbers"),
    "complex": ([1 + 2j, 2.0], "real numbers"),
    "objects": ([object(), object()], "real numbers"),
    "dates": (np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"), "real numbers"),
    "a number": (5.0, r"shape \(n,\) or \(n, d\)"),
    "three dimensions": (np.ones((3, 2, 2)), r"shape \(n,\) or \(n, d\)"),
    "ragged": ([[1.0, 2.0], [3.0]], "rectangular"),
    "None": (None, "must"),
    "sparse": (TOPICS.data, "rows of numbers for a mixture"),
    "tokens": (([0, 1], [1, 0]), "rows of numbers for a mixture"),
}
COUNTED = {
    "dense": (COUNTS, "data sparse matrix of counts"),
    "negative count": (sparse((0, 1, -2)), "data at least 0, got -2"),
    "NaN count": (sparse((0, 1, NAN)), "data finite"),
    "infinite count": (sparse((0, 1, INF)), "data finite"),
    "complex counts": (sparse(dtype=complex), "data real numbers"),
    "no documents": (sp.csr_array((0, 4)), "data at least one document"),
    "no words": (sp.csr_array((3, 0)), "data one word"),
    "no tokens": (sp.csr_array((3, 4)), "data at least one token"),
    "one token": (sp.csr_array([[1, 0], [0, 0]]), "data at least n_topics=2 tokens, got 1"),
    "a triple": (([0], [0], [0]), r"data \(documents, words\)"),
    "a pair of matrices": ((COUNTS, COUNTS), "data two one-dimensional arrays"),
    "a pair, ragged": (([[0], [0, 1]], [0, 1]), "data two one-dimensional arrays"),
    "tokens of unequal number": (([0, 0, 1], [1, 0]), "words length of documents, 3, got 2"),
    "negative document": (([0, -1], [1, 0]), "documents count from 0, got -1"),
    "negative word": (([0, 1], [1, -3]), "words count from 0, got -3"),
    "tokens of floats": (([0.0, 1.0], [1, 0]), "documents integers"),
    "an empty pair": (([], []), "data at least one token"),
}
DRAWS = {
    "too large": (SEM, [0, 20, 1], "from 0 to 19, got 20"),
    "negative": (SEM, [0, -1, 1], "from 0 to 19, got -1"),
    "too few": (SEM, [0, 1], r"shape .*\(3,\)"),
    "too many": (SEM, [0, 1, 2, 3], r"shape .*\(3,\)"),
    "no batches": (PAIRS, [0, 1, 2], r"shape .*\(3, 2\)"),
    "other batches": (PAIRS, np.zeros((3, 4), int), r"shape .*\(3, 2\)"),
    "three dimensions": (SEM, np.zeros((3, 1, 1), int), "shape"),
    "ragged": (PAIRS, [[0, 1], [2], [3, 4]], "must"),
    "floats": (SEM, [0.0, 1.0, 2.0], "integers"),
    "bools": (SEM, [True, False, True], "integers"),
    "for em": (methods.EM(), [0, 1, 2], "left out"),
    "one array for fiem": (FIEM, [0, 1, 2], "2 index arrays"),
    "one array of two for fiem": (FIEM, [0, 1], "must"),
    "a number for fiem": (FIEM, 3, "2 index arrays"),
    "three arrays for fiem": (FIEM, ([0] * 3,) * 3, "2 index arrays"),
    "a pair for sem": (SEM, ([0, 1, 2], [0, 1, 2]), "shape"),
    "j too large": (FIEM, ([0, 1, 2], [0, 1, 20]), "from 0 to 19"),
}
STEPS = {
    "0": (0, r"in \(0, 1\]"),
    "text": ("a", "number or a function of k"),
    "leaves (0, 1] above": (lambda k: 0.4 * k, r"in \(0, 1\].* at k = 3"),
    "leaves (0, 1] below": (lambda k: 2.0 - k, r"in \(0, 1\].* at k = 2"),
    "gives no number": (lambda k: None, "number.* at k = 1"),
}
METHODS = {
    "batch size 0": (lambda: methods.OnlineEM(batch_size=0), "batch_size at least 1"),
    "batch size 2^31": (lambda: methods.OnlineEM(batch_size=2**31), "batch_size at most 2147483647"),
    "batch size 1.5": (lambda: methods.IncrementalEM(batch_size=1.5), "batch_size integer"),
    "epoch length 0": (lambda: methods.VarianceReducedEM(epoch_length=0), "epoch_length at least 1"),
    "memory order": (lambda: methods.FastIncrementalEM(memory_order="x"), "memory_order 'iid' or 'shuffled'"),
}
ARGUMENTS = {
    "rows of a start": ({"data": [1.0, 2.0, 3.0], "model": models.GaussianMixtureModel(4)}, "data .*=4 rows"),
    "rows with weight": (
        {"data": [1.0, 2.0, 3.0], "sample_weight": [0, 1, 0]},
        "data at least n_comp.* got 1",
    ),
    "method, a name": ({"method": "em"}, r"method instance such as methods\.EM\(\)"),
    "method, a class": ({"method": methods.EM}, r"method instance such as methods\.EM\(\)"),
    "n_iter -1": ({"n_iter": -1}, "n_iter at least 0"),
    "n_iter 1.5": ({"n_iter": 1.5}, "n_iter integer"),
    "record_every 0": ({"record_every": 0}, "record_every at least 1"),
    "seed text": ({"seed": "x"}, "seed non-negative integer"),
    "seed -1": ({"seed": -1}, "seed non-negative integer"),
    "seed 0.5": ({"seed": 0.5}, "seed non-negative integer"),
    "kernels": ({"kernels": "gpu"}, "kernels 'auto' or 'reference'"),
    "model name": ({"model": "mixture"}, "model must"),
    "model class": ({"model": models.GaussianMixtureModel}, "model must"),
}
WEIGHTS = {
    "number": ([1.0, 2.0], r"shape \(20,\), one weight per row"),
    "two dimensions": (np.ones((20, 1)), r"shape \(20,\)"),
    "a number": (1.0, r"shape \(20,\)"),
    "negative": ([-1.0] + [1.0] * 19, "not be negative, got -1"),
    "NaN": ([NAN] + [1.0] * 19, "finite"),
    "infinite": ([INF] + [1.0] * 19, "finite"),
    "all zero": (np.zeros(20), "positive entry"),
    "strings": (["a"] * 20, "real numbers"),
}
MODELS = {
    "covariance": (lambda: models.GaussianMixtureModel(2, covariance="half"), "covariance 'unit'"),
    "no components": (lambda: models.GaussianMixtureModel(0), "n_components at least 1"),
    "delta": (lambda: models.GaussianMixtureModel(2, delta=-1e-3), "delta at least 0"),
    "epsilon": (lambda: models.GaussianMixtureModel(2, epsilon=NAN), "epsilon at least 0"),
    "known weights": (lambda: models.GaussianMixtureModel(2, known_weights=[1.0]), "known_weights shape"),
    "known weights' sum": (
        lambda: models.GaussianMixtureModel(2, known_weights=[0.2, 0.9]),
        "known_weights sum to 1, got a sum of 1.1",
    ),
    "no topics": (lambda: models.PLSAModel(0), "n_topics at least 1"),
    "alpha": (lambda: models.PLSAModel(2, alpha=-1), "alpha at least 0"),
    "beta": (lambda: models.PLSAModel(2, beta="a"), "beta number"),
    "weights' number": (lambda: GMM.theta(weights=[1.0], means=[[0.0], [1.0]]), r"weights shape \(2,?\)"),
    "weights' sum": (lambda: GMM.theta(weights=[0.5, 0.6], means=[[0.0], [1.0]]), "weights sum to 1"),
    "negative weight": (lambda: GMM.theta(weights=[1.5, -0.5], means=[[0.0], [1.0]]), "weights negative"),
    "means' shape": (lambda: GMM.theta(means=[0.0, 1.0]), r"means shape \(2, any\)"),
    "NaN mean": (lambda: GMM.theta(means=[[0.0], [NAN]]), "means finite"),
    "not the known weights": (
        lambda: models.GaussianMixtureModel(2, known_weights=[0.2, 0.8]).theta(
            weights=[0.5, 0.5], means=[[0], [1]]
        ),
        r"weights the known ones, \(0\.2, 0\.8\)",
    ),
    "doc_topic's shape": (lambda: checked(uniform(3, 5), uniform(2, 4)), r"doc_topic shape \(any, 2\)"),
    "doc_topic's sum": (lambda: checked(np.ones((3, 2)), uniform(2, 4)), "doc_topic sum to 1"),
    "one document's sum": (
        lambda: checked([[0.5, 0.5], [1.5, 1.5], [0.5, 0.5]], uniform(2, 4)),
        "doc_topic sum to 1, got a sum of 3",
    ),
    "topic_word's shape": (lambda: checked(uniform(3, 2), uniform(3, 4)), r"topic_word shape \(2, any\)"),
}
OF_GMM = {
    "shape of weights": (gmm_theta(weights=[1.0]), r"shape \(2,?\)"),
    "shape of means": (gmm_theta(means=[0.0, 1.0]), "shape"),
    "number of means": (gmm_theta(means=np.ones((3, 2))), "shape"),
    "other dimension": (gmm_theta(means=[[0.0], [1.0]]), "as many columns as data, 2, got 1"),
    "sum of weights": (gmm_theta(weights=[0.5, 0.6]), "sum to 1"),
    "negative weight": (gmm_theta(weights=[1.5, -0.5]), "negative"),
    "NaN weight": (gmm_theta(weights=[NAN, 0.5]), "finite"),
    "NaN mean": (gmm_theta(means=[[0.0, 1.0], [NAN, 0.0]]), "finite"),
    "other type": (NotATheta([0.5, 0.5], np.ones((2, 2))), r"made by model\.theta"),
    "other model": (TOPICS.theta0, r"made by model\.theta"),
}
OF_PLSA = {
    "other model": (gmm_theta(), r"made by model\.theta"),
    "number of documents": (plsa_theta(doc_topic=uniform(4, 2)), r"shape \(3, 2\)"),
    "number of words": (plsa_theta(topic_word=uniform(2, 5)), r"shape \(2, 4\)"),
    "number of topics": (plsa_theta(doc_topic=uniform(3, 3)), "shape"),
    "sum of topics": (plsa_theta(doc_topic=np.ones((3, 2))), "sum to 1"),
    "negative": (plsa_theta(topic_word=[[1.5, -0.5, 0, 0], [1, 0, 0, 0]]), "negative"),
    "NaN": (plsa_theta(topic_word=[[NAN, 0.5, 0, 0], [1, 0, 0, 0]]), "finite"),
}
OUTSIDE = [1.5, -0.5, 0, 0, 0, 0]
S0 = {
    "size": (np.ones(5), r"shape \(6,\)"),
    "other dimension": (np.ones(4), r"shape \(6,\)"),
    "two dimensions": (np.ones((2, 3)), "shape"),
    "NaN": ([0.5, 0.5, NAN, 0, 0, 0], "finite"),
    "out of the domain": (OUTSIDE, "domain"),
    "strings": (["a"] * 6, "real numbers"),
}
SEQUENTIAL = helpers.SequentialSource(MIXTURE.data)
OTHERS = {
    "tokens with weight": (
        lambda: topics(data=sp.csr_array([[0, 0], [1, 1]]), sample_weight=[1, 0]),
        "data at least one token",
    ),
    "weights per document": (
        lambda: topics(sample_weight=np.ones(20)),
        r"sample_weight shape \(3,\), .*document",
    ),
    "weights of a source": (
        lambda: mixture(data=swiftem.data.ArraySource([1.0, 2.0]), sample_weight=[1.0, 1.0]),
        "sample_weight given to the source",
    ),
    "schedule under random termination": (
        lambda: mixture(
            method=methods.OnlineEM(step_size=lambda k: 0.4 * k), n_iter=swiftem.RandomTermination(5)
        ),
        r"step_size in \(0, 1\].* at k = 3",
    ),
    "s0 beside theta0": (lambda: mixture(s0=np.ones(5), theta0=MIXTURE.theta0), r"s0 shape \(6,\)"),
    "s0 out of the domain beside theta0": (
        lambda: mixture(method=SEM, s0=OUTSIDE, theta0=MIXTURE.theta0),
        "s0 domain",
    ),
    "s0 of pLSA": (lambda: topics(s0=np.ones(13)), r"s0 shape \(14,\)"),
    "s0 out of the domain of pLSA": (
        lambda: topics(s0=np.r_[np.ones(6), -np.ones(4), np.ones(4)]),
        "s0 domain",
    ),
    **{
        f"sequential source for {name}": (
            lambda name=name: mixture(
                method=helpers.make_method(name), data=SEQUENTIAL, theta0=MIXTURE.theta0
            ),
            f"data read in order.*{name}.*: use em,? or",  # and no other: all others are refused
        )
        for name in helpers.STOCHASTIC
    },
}


def of(call, argument, table):
    """Yield cases of values for one argument; what is expected then begins with its name."""
    for name, (value, expected) in table.items():
        yield f"{argument} {name}", (lambda value=value: call(**{argument: value})), f"{argument} {expected}"


CASES = [
    *of(mixture, "data", ROWS),
    *(
        (f"counts {n}", lambda value=value: topics(data=value), expected)
        for n, (value, expected) in COUNTED.items()
    ),
    *(
        (
            f"draws {name}",
            lambda method=method, draws=draws: mixture(method=method, draws=draws),
            f"draws {expected}",
        )
        for name, (method, draws, expected) in DRAWS.items()
    ),
    *of(lambda step_size: mixture(method=methods.OnlineEM(step_size=step_size)), "step_size", STEPS),
    *(
        (name, lambda changed=changed: mixture(**changed), expected)
        for name, (changed, expected) in ARGUMENTS.items()
    ),
    *of(mixture, "sample_weight", WEIGHTS),
    *of(mixture, "theta0", OF_GMM),
    *of(topics, "theta0", OF_PLSA),
    *of(mixture, "s0", S0),
    *((name, *case) for name, case in (METHODS | MODELS | OTHERS).items()),
]


@pytest.mark.parametrize(
    ("attempt", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_refused_with_a_sentence(attempt, expected):
    """The first word of what is expected is the argument."""
    assert_refused(attempt, *expected.split(" ", 1))


@pytest.mark.parametrize("method", [methods.OnlineEM(), methods.IncrementalEM()])
def test_size_of_s0_for_a_model_of_ones_own(method):
    model = models.FunctionModel(
        initial_theta=lambda y, rng: np.zeros(1),
        expected_statistics=lambda y, theta: (y[:, None], -0.5 * (y - theta) ** 2),
        m_step=lambda s: s.copy(),
        penalty=lambda theta: 0.0,
    )
    with pytest.raises(ValueError, match="s0"):
        swiftem.run(model, [1.0, 2.0, 3.0], method, n_iter=2, s0=[1.0, 2.0], seed=0)


@pytest.mark.parametrize("make", [helpers.mixture, helpers.topics])
@pytest.mark.parametrize("name", helpers.NAMES)
@pytest.mark.parametrize("fails", [False, True], ids=["good run", "run that fails midway"])
def test_arguments_are_not_written_to(make, name, fails):
    problem = make(20)
    method = helpers.make_method(name, batch_size=2, step_size=0.3)
    weight = np.linspace(0, 1, 20 if make is helpers.mixture else 4)
    first = problem.run(method, n_iter=4, seed=0, sample_weight=weight)
    given = {"theta0": first.theta, "s0": first.s, "state": first.state, "sample_weight": weight}
    given |= {"data": problem.data, "draws": helpers.random_draws(name, first.state.n, 6, b=2)}
    before = pickle.dumps(given)

    def callback(iterate):
        if fails and iterate.k == 8:
            raise RuntimeError("midway")

    try:
        swiftem.run(problem.model, method=method, n_iter=6, record_every=1, callback=callback, **given)
    except RuntimeError:
        assert fails
    assert pickle.dumps(given) == before


def test_schedules_are_checked_where_they_are_used():
    """A schedule that is right as far as the run goes is no error."""
    method = methods.OnlineEM(step_size=lambda k: 0.3 * k)
    assert mixture(method=method, n_iter=3).n_iter == 3
    with pytest.raises(ValueError, match="at k = 4"):
        mixture(method=method, n_iter=4)
