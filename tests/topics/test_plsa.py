"""``swiftem.PLSA`` as scikit-learn's users meet it."""

import os
import pickle
import signal
import tracemalloc
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from callbacks import AtPass, Listener
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits
from topic_fits import assert_same_with_any_threads, fit_topics, short_documents

import swiftem
from swiftem.data import CsrDocuments
from swiftem.methods import OnlineEM
from swiftem.topics.compute.corpus import SmallDocuments

METHODS = ("auto", "em", "sem", "iem", "sem-vr", "fiem")
NOISY = {
    name: "draws differ where rows are repeated instead of weighted, and with them the noise"
    for name in (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
}
EXPECTED = {"auto": {}, "em": {}, "sem-vr": NOISY, "fiem": NOISY}


def corpus(n_documents=600, n_words=60, n_topics=4, length=40, seed=0):
    """Documents of known topics, whose words are in blocks."""
    rng = np.random.default_rng(seed)
    topics = np.full((n_topics, n_words), 0.1)
    for k, block in enumerate(np.array_split(np.arange(n_words), n_topics)):
        topics[k, block] = 1.0 + rng.random(len(block)) * 5
    topics /= topics.sum(axis=1, keepdims=True)
    shares = rng.dirichlet(np.full(n_topics, 0.2), size=n_documents)
    lengths = rng.poisson(length, n_documents) + 1
    X = np.array([rng.multinomial(n, p) for n, p in zip(lengths, shares @ topics, strict=True)])
    return sp.csr_array(X), topics, shares


fit = partial(fit_topics, n_components=4)


@pytest.fixture(scope="module")
def data():
    return corpus()


@pytest.fixture(scope="module")
def fitted(data):
    return fit(data[0])


# scikit-learn's conventions


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", EXPECTED)
def test_check_estimator(method):
    check_estimator(
        swiftem.PLSA(3, method=method, random_state=0, max_iter=30),
        expected_failed_checks=EXPECTED[method],
        on_skip=None,
    )


def test_pipeline_clone_and_search():
    texts = [
        "the cat sat with a dog",
        "a dog and a cat",
        "stocks fell as rates rose",
        "rates and stocks rose",
    ] * 5
    pipeline = make_pipeline(CountVectorizer(), swiftem.PLSA(2, random_state=0))
    topics = pipeline.fit_transform(texts)
    labels = topics.argmax(axis=1)
    assert labels[0] == labels[1] != labels[2] == labels[3]
    words = pipeline[-1].top_words(pipeline[0], n=3)
    assert {"cat", "dog"} < set(words[labels[0]])
    assert pipeline[-1].top_words(pipeline[0].get_feature_names_out(), 3) == words
    assert clone(pipeline[-1]).get_params() == pipeline[-1].get_params()
    X = pipeline[0].transform(texts)
    search = GridSearchCV(swiftem.PLSA(random_state=0), {"n_components": [1, 2]}, cv=2).fit(X)
    assert search.best_params_ == {"n_components": 2}


def test_names_and_pandas(data):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(data[0].toarray(), columns=[f"w{v}" for v in range(60)])
    model = fit(X).set_output(transform="pandas")
    found = model.transform(X)
    assert list(found.columns) == ["plsa0", "plsa1", "plsa2", "plsa3"]
    assert list(model.feature_names_in_) == list(X.columns)
    assert all(word.startswith("w") for row in model.top_words(n=2) for word in row)
    assert fit(X, max_iter=3).to_pyldavis(X)["vocab"][0] == "w0"
    with pytest.raises(ValueError, match="feature names"):
        model.transform(X.rename(columns={"w0": "other"}))


def test_tensors_as_strengths_starts_weights_and_labels(data, tmp_path):
    torch = pytest.importorskip("torch")
    X, rng = data[0][:200], np.random.default_rng(0)
    given = {"alpha": rng.random(4), "beta": rng.random((4, 60)), "init": rng.random((4, 60))}
    weight, labels = rng.random(200), np.arange(200) % 3
    wanted = fit(X, **given, sample_weight=weight)
    tensors = {name: torch.tensor(value, requires_grad=True) for name, value in given.items()}
    found = fit(X, **tensors, sample_weight=torch.tensor(weight, requires_grad=True))
    np.testing.assert_array_equal(found.components_, wanted.components_)
    over = found.topics_over(torch.tensor(labels), X)
    np.testing.assert_array_equal(over.shares, wanted.topics_over(labels, X).shares)
    merged = found.merge_topics([[0, 1]])
    np.testing.assert_array_equal(merged.beta, wanted.merge_topics([[0, 1]]).beta)
    found.save(tmp_path / "a.model")
    np.testing.assert_array_equal(swiftem.PLSA.load(tmp_path / "a.model").alpha, given["alpha"])


def test_duplicates_disorder_and_stored_zeros(data, fitted):
    X = data[0].tocoo()
    order = np.random.default_rng(0).permutation(X.nnz)
    row, column, count = (np.tile(part[order], 3) for part in (X.row, X.col, X.data))
    count[: X.nnz], count[X.nnz : 2 * X.nnz], count[2 * X.nnz :] = X.data[order] - 1, 1, 0
    unsorted = sp.csr_array((count, (row, column)), shape=X.shape)
    before = unsorted.copy()
    np.testing.assert_array_equal(fit(unsorted).components_, fitted.components_)
    np.testing.assert_array_equal(fitted.coherence(unsorted), fitted.coherence(data[0]))
    np.testing.assert_array_equal(unsorted.data, before.data)


# What comes out


def test_topics_are_found(data, fitted):
    X, topics, shares = data
    similar = fitted.components_ @ topics.T / np.linalg.norm(topics, axis=1)
    order = similar.argmax(axis=0)
    assert sorted(order) == [0, 1, 2, 3]
    assert np.abs(fitted.components_[order] - topics).sum(axis=1).max() < 0.3
    assert np.abs(fitted.transform(X)[:, order] - shares).sum(axis=1).mean() < 0.4
    for rows in (fitted.components_, fitted.doc_topic_, fitted.transform(X)):
        np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    assert fitted.topic_counts_.sum() == pytest.approx(X.sum())
    np.testing.assert_allclose(fitted.topic_prevalence()[order], shares.mean(axis=0), atol=0.05)
    assert fitted.sorted_topics()[0] == fitted.topic_prevalence().argmax()


@pytest.mark.parametrize("method", METHODS[2:])
def test_every_method_comes_near_em(data, fitted, method):
    found = fit(data[0], method=method, max_iter=200)
    assert found.method_ == method
    # "auto" leaves one out, and so describes the training documents less well than it could.
    assert found.score(data[0]) == pytest.approx(fitted.score(data[0]), abs=0.015)
    assert found.score(data[0]) > fitted.score(data[0]) - 0.01


def test_documents_stop_by_themselves(data, fitted):
    X = data[0]
    whole = fitted.transform(X)
    np.testing.assert_array_equal(fitted.transform(X[[17]]), whole[[17]])
    np.testing.assert_array_equal(fitted.transform(X[::-3]), whole[::-3])


@pytest.mark.parametrize("method", METHODS)
def test_empty_documents(data, method):
    X = sp.vstack([data[0][:50], sp.csr_array((3, 60))]).tocsr()
    alpha = np.array([0.1, 0.2, 0.3, 0.4]) if method in ("auto", "em") else np.full(4, 0.1)
    model = fit(X, method=method, max_iter=10, alpha=alpha if method in ("auto", "em") else 0.1)
    np.testing.assert_allclose(model.transform(X)[-3:], np.tile(alpha / alpha.sum(), (3, 1)))
    assert np.isfinite(model.doc_topic_).all()


@pytest.mark.parametrize("method", METHODS)
def test_weight_zero_is_absence(data, method):
    X = data[0][:200]
    weight = np.ones(200)
    weight[::7] = 0.0
    one = fit(X, method=method, max_iter=10, sample_weight=weight)
    two = fit(X[weight > 0], method=method, max_iter=10)
    np.testing.assert_array_equal(one.components_, two.components_)
    assert one.doc_topic_.shape == (200, 4)
    np.testing.assert_array_equal(one.doc_topic_[weight > 0], two.doc_topic_)


@pytest.mark.parametrize(("method", "factor"), [("em", 1.0), ("auto", 0.7)])
def test_integer_weights_are_repetitions(data, method, factor):
    """A fraction of a token has added no more than itself, where one is left out."""
    X = data[0][:100] * factor
    weight = np.arange(100) % 3 + 1.0
    one = fit(X, method=method, max_iter=30, tol=0.0, sample_weight=weight)
    two = fit(X[np.repeat(np.arange(100), weight.astype(int))], method=method, max_iter=30, tol=0.0)
    np.testing.assert_allclose(one.components_, two.components_, rtol=0, atol=1e-9)
    assert one.score(X, sample_weight=weight) == pytest.approx(two.score(X, sample_weight=weight), abs=1e-9)


def test_seed_words_attract_topics(data):
    X = data[0]
    beta = np.full((4, 60), 0.05)
    for k, word in enumerate((50, 35, 20, 5)):  # one word of each block, in the reverse order
        beta[k, word] = 300.0
    for seed in range(3):
        found = fit(X, beta=beta, random_state=seed)
        blocks = np.array(
            [found.components_[:, start : start + 15].sum(axis=1) for start in range(0, 60, 15)]
        )
        np.testing.assert_array_equal(blocks.argmax(axis=0), [3, 2, 1, 0])


def test_strengths_in_counts(data):
    X = data[0]
    no_words = fit(X, beta=np.where(np.arange(60) == 3, 1e6, 0.05))
    assert no_words.components_[:, 3].min() > 0.9
    one = fit(X, alpha=[1e6, 0.0, 0.0, 0.0])
    assert one.transform(X)[:, 0].min() > 0.9
    assert fit(X, beta=0.0, alpha=0.0).components_.min() >= 0.0


def test_counts_mean_what_they_say(data):
    X = data[0][:100].astype(float)
    one = fit(X * 0.5, alpha=0.05, beta=0.025, method="em", max_iter=20, tol=0.0)
    two = fit(X, alpha=0.1, beta=0.05, method="em", max_iter=20, tol=0.0)
    np.testing.assert_allclose(one.components_, two.components_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", [*METHODS, "documents in blocks"])
def test_same_seed_same_model_with_any_threads(method):
    X = corpus(1500, 200, length=60)[0]
    if method not in METHODS:
        X, method = CsrDocuments(X), "auto"

    def results():
        model = fit(X, method=method, max_iter=8)
        return model.components_, model.doc_topic_, model.transform(X), model.history_.objective

    topics, *_ = assert_same_with_any_threads(results)
    assert (fit(X, method=method, max_iter=8, random_state=1).components_ != topics).any()


@pytest.mark.parametrize("options", [{}, {"alpha": "learn"}, {"method": "em", "sample_weight": True}])
def test_threads_of_blas_change_no_bit(options):
    rng = np.random.default_rng(3)
    X = corpus(450, 80, length=60)[0] * 0.37
    weight = rng.random(450) if options.pop("sample_weight", False) else None
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            assert X.nnz > 10_000  # fewer numbers are not divided among threads
            model = fit(X, max_iter=4, tol=0.0, sample_weight=weight, **options)
            scores = model.score(X, sample_weight=weight), model.perplexity(X)
            found.append((model.log_likelihood_, model.stationarity_, *model.alpha_, *scores))
    assert found[0] == found[1] == found[2]


# How it went


@pytest.mark.parametrize("method", METHODS)
def test_history(data, method):
    model = fit(data[0], method=method, max_iter=30)
    assert (np.diff(model.history_.passes) > 0).all()
    assert (np.diff(model.history_.seconds) >= 0).all()
    assert model.n_iter_ == int(np.ceil(model.history_.passes[-1] - 1e-9))
    assert model.history_.method[-1] == model.method_
    assert -model.history_.objective[-1] == pytest.approx(model.log_likelihood_, abs=0.05)


def test_objective_of_em_is_that_at_the_beginning_of_a_pass(data):
    X = data[0].toarray()
    model = fit(X, method="em", max_iter=5, tol=0.0)
    later = fit(X, method="em", max_iter=6, tol=0.0)
    p = (model.doc_topic_ @ model.components_)[X > 0]
    assert model.log_likelihood_ == pytest.approx((X[X > 0] * np.log(p)).sum() / X.sum(), abs=1e-12)
    assert later.history_.objective[-1] == pytest.approx(-model.log_likelihood_, abs=1e-12)
    np.testing.assert_array_equal(model.history_.passes, np.arange(1, 6))
    np.testing.assert_array_equal(model.history_.step, 1.0)


def test_stochastic_methods_are_evaluated_on_documents_that_stay_the_same():
    X, weight = short_documents(120, lengths=(5, 40)), np.random.default_rng(0).random(120) + 0.5
    model = fit_topics(X, 3, method="sem", tol=10.0, sample_weight=weight)
    assert model.converged_
    assert len(model.history_) == 3  # two gains are small, of which the first epoch has none
    documents = SmallDocuments(X, weight)
    found, value = documents.fold_in(model.components_, np.full(3, 0.1), max_iter=20, tol=1e-2)
    assert model.history_.objective[-1] == pytest.approx(-(weight @ value) / documents.total)
    assert found.shape == (120, 3)


def test_stationarity_falls_to_nothing(data):
    X = data[0][:100]
    far, near = (fit(X, method="em", max_iter=n, tol=0.0).stationarity_ for n in (3, 3000))
    assert near < 1e-6 < 1e-3 < far


def test_passes_are_evaluations_over_entries(data):
    X = data[0]
    em = fit(X, method="em", max_iter=7, tol=0.0)
    assert em.n_iter_ == 7
    sem = fit(X, method="sem", max_iter=1)
    assert len(sem.history_) == 1
    assert 2 <= sem.history_.passes[0] <= 6  # at most five rounds, and the sums
    reduced = fit(X, method="sem-vr", max_iter=1)
    assert 6 <= reduced.history_.passes[0] <= 18
    for most, passes in (
        (1, 4.0),
        (5, 4.0),
        (11, 10.0),
    ):  # one for the first statistics, three for each epoch
        assert fit(X, method="spider", max_iter=most, tol=0.0).history_.passes[-1] == passes
    longer = fit(X, method="sem", max_iter=12, tol=0.0)
    assert longer.history_.passes[-2] < 12 <= longer.history_.passes[-1]


def test_warning_when_passes_run_out(data):
    with pytest.warns(ConvergenceWarning, match="did not converge in 3 passes"):
        model = swiftem.PLSA(4, method="em", random_state=0, max_iter=3).fit(data[0])
    assert not model.converged_
    assert swiftem.PLSA(4, random_state=0, max_iter=500).fit(data[0]).converged_


def test_em_does_not_rest_where_topics_begin_to_part():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 5.0), size=2)
    X = np.array([rng.multinomial(60, topics[i % 2]) for i in range(200)])
    model = fit(X, n_components=2, method="em", max_iter=1000, tol=1e-4)
    assert np.abs(model.doc_topic_[::2].mean(axis=0) - model.doc_topic_[1::2].mean(axis=0)).max() > 0.5


@pytest.mark.parametrize("method", METHODS)
def test_interruption_leaves_a_fitted_model(data, method):
    callback = AtPass(2, lambda: os.kill(os.getpid(), signal.SIGINT))
    model = swiftem.PLSA(4, method=method, random_state=0, max_iter=500, tol=0.0).set_callbacks(callback)
    with pytest.warns(ConvergenceWarning, match="interrupted after"):
        model.fit(data[0])
    assert callback.left >= -1
    np.testing.assert_allclose(model.transform(data[0]).sum(axis=1), 1.0)
    assert model.score(data[0]) < 0


def test_callbacks_see_a_model_and_may_stop(data):
    callback = Listener("pass", 3)
    model = swiftem.PLSA(4, method="em", random_state=0, max_iter=50).set_callbacks(callback)
    with pytest.warns(ConvergenceWarning):
        model.fit(data[0])
    scores = [fitted.score(data[0]) for name, fitted in callback.fitted if name == "pass"]
    assert len(scores) == model.n_iter_ == 3
    assert scores == sorted(scores)


# Files


def test_saved_without_the_corpus(data, fitted, tmp_path):
    X = data[0]
    fitted.save(tmp_path / "topics")
    found = swiftem.PLSA.load(tmp_path / "topics")
    np.testing.assert_array_equal(found.transform(X), fitted.transform(X))
    assert found.perplexity(X) == fitted.perplexity(X)
    assert found.get_params() == fitted.get_params()
    assert found.history_.table().keys() == fitted.history_.table().keys()
    assert not hasattr(found, "doc_topic_")
    assert pickle.loads(pickle.dumps(fitted)).score(X) == fitted.score(X)
    assert (tmp_path / "topics").stat().st_size < 60 * 4 * 8 * 2 + 30_000


def test_saved_strengths_and_going_on(data, tmp_path):
    model = fit(data[0], alpha=[0.1, 0.2, 0.3, 0.4], beta=np.linspace(0.01, 0.1, 60), max_iter=5)
    model.save(tmp_path / "topics")
    found = swiftem.PLSA.load(tmp_path / "topics")
    np.testing.assert_array_equal(
        found.partial_fit(data[0]).components_, model.partial_fit(data[0]).components_
    )


@pytest.mark.filterwarnings("ignore:The fit did not converge")
def test_method_objects_and_starts_are_saved(data, tmp_path):
    start = np.random.default_rng(0).random((3, 60))
    method = swiftem.methods.OnlineEM(batch_size=7)
    swiftem.PLSA(3, method=method, init=start, max_iter=2).fit(data[0]).save(tmp_path / "topics")
    found = swiftem.PLSA.load(tmp_path / "topics")
    assert (found.method, found.method_, found.random_state) == (method, "sem", None)
    np.testing.assert_array_equal(found.init, start)


# Streams


@pytest.mark.parametrize("size", [1, 37, 600])
def test_documents_in_any_number_of_calls(data, fitted, size):
    X = data[0]
    model = swiftem.PLSA(4, random_state=0)
    for _ in range(6 if size > 1 else 2):
        for start in range(0, 600, size):
            model.partial_fit(X[start : start + size])
    assert model.perplexity(X) < 1.05 * fitted.perplexity(X)
    assert model.doc_topic_.shape[0] in (size, 600 % size)
    assert not hasattr(model, "stationarity_")


def test_order_matters_little_after_several_passes(data, fitted):
    X, _, shares = data
    X = X[np.argsort(shares.argmax(axis=1), kind="stable")]
    model = swiftem.PLSA(4, random_state=0)
    for _ in range(10):
        for start in range(0, 600, 50):
            model.partial_fit(X[start : start + 50])
    assert model.perplexity(X) < 1.1 * fitted.perplexity(X)


def test_calls_are_checked(data):
    X = data[0]
    model = swiftem.PLSA(4, random_state=0).partial_fit(X[:10])
    with pytest.raises(ValueError, match="60 features"):
        model.partial_fit(X[:, :10])
    with pytest.raises(ValueError, match="n_components must stay 4"):
        model.set_params(n_components=5).partial_fit(X)
    kept = model.set_params(n_components=4).components_.copy()
    np.testing.assert_allclose(model.partial_fit(sp.csr_array((2, 60))).components_, kept, atol=1e-12)


# What is refused


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        ([[1.0, np.nan]], "^X must be counts, got NaN: put 0 where .*, or leave the document out.$"),
        (sp.csr_array([[1.0, np.nan]]), "^X must be counts, got NaN"),
        ([[1.0, -1.0]], "Negative values"),
        (np.zeros((3, 2)), "X must have at least one token"),
        (np.zeros((0, 2)), "minimum of 1 is required"),
        ([["a", "b"]], "X must have numbers in every column, got text"),
        (["a text"], "X must be counts of words, got texts"),
    ],
    ids=["nan", "sparse nan", "negative", "all zero", "no document", "strings", "texts"],
)
def test_bad_data(X, sentence):
    with pytest.raises(ValueError, match=sentence):
        swiftem.PLSA(1).fit(np.asarray(X, dtype=object) if "string" in sentence else X)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"alpha": [0.1, 0.2]}, r"alpha must be a number or an array of shape \(4,\)"),
        ({"beta": np.ones(3)}, r"beta must be a number or an array of shape \(60,\) or \(4, 60\)"),
        ({"beta": -np.ones(60)}, "beta must be finite and not negative"),
        (
            {"method": "fiem", "n_components": 10**5},
            r"^n_components must be at most \d+, the number of tokens",
        ),
        ({"method": OnlineEM(step_size=lambda k: 2.0)}, r"step_size must lie in \(0, 1\], got 2.0"),
    ],
)
def test_bad_options(data, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        swiftem.PLSA(**{"n_components": 4} | options).fit(data[0])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "X",
    [[[3, 0, 1, 2]], [[5], [1], [0]], [[1, 2], [2, 1], [9, 0]], [[0.5, 0.25, 0.0], [0.0, 1.5, 2.0]]],
    ids=["one document", "one word", "fewer words than topics", "fractions"],
)
def test_small_data(method, X):
    model = fit(np.array(X), n_components=3 if method in ("auto", "em") else 2, method=method, max_iter=10)
    assert np.isfinite(model.components_).all()
    np.testing.assert_allclose(model.transform(np.array(X)).sum(axis=1), 1.0)


def test_not_fitted():
    for call in ("transform", "score", "perplexity", "coherence"):
        with pytest.raises(NotFittedError):
            getattr(swiftem.PLSA(), call)(np.ones((2, 2)))
    with pytest.raises(NotFittedError):
        swiftem.PLSA().top_words()


@pytest.mark.parametrize("method", ["auto", "em", "sem", "sem-vr"])
def test_no_array_of_entries_by_topics(method):
    X = sp.random_array((3000, 400), density=0.2, format="csr", rng=np.random.default_rng(0))
    X.data = np.ceil(X.data * 3)
    fit(X[:700], n_components=64, method=method, max_iter=1)
    tracemalloc.start()
    try:
        fit(X, n_components=64, method=method, max_iter=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.25 * X.nnz * 64 * 8


def test_progress(data, capsys):
    fit(data[0], verbose=1, verbose_interval=1, max_iter=4, method="em")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "4 topics"
    assert len(lines) == 6


@pytest.mark.parametrize("loaded", [False, True])
def test_every_token_counts_once_after_a_fit(loaded, tmp_path):
    rng = np.random.default_rng(0)
    words = np.kron(np.eye(2), np.ones((1, 10)) / 10)

    def documents(n, share):
        return np.stack([rng.multinomial(50, words[int(rng.random() < share)]) for _ in range(n)])

    old, new = documents(400, 0.1), documents(80, 0.8)
    model = swiftem.PLSA(2, random_state=0).fit(old)
    if loaded:
        model.save(tmp_path / "model")
        model = swiftem.PLSA.load(tmp_path / "model")
    model.partial_fit(new)
    both = swiftem.PLSA(2, random_state=0).fit(np.concatenate([old, new]))
    shares = (np.sort(one.topic_counts_ / one.topic_counts_.sum()) for one in (model, both))
    np.testing.assert_allclose(*shares, atol=0.02)
    # A stream that begins with partial_fit still forgets its first documents.
    stream = swiftem.PLSA(2, random_state=0).partial_fit(old)
    stream.save(tmp_path / "stream")
    stream = swiftem.PLSA.load(tmp_path / "stream").partial_fit(new)
    assert np.sort(stream.topic_counts_ / stream.topic_counts_.sum())[0] > 0.25
