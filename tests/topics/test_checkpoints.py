"""``PLSA.fit`` with checkpoints: a fit that died goes on exactly."""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from dying_fits import Death
from surroundings import fit_within

import swiftem
from swiftem.data import CsrDocuments
from swiftem.methods import VarianceReducedEM


def corpus(n_documents=600, n_words=50, seed=0):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.2), size=4)
    X = [
        rng.multinomial(n, topics[k])
        for n, k in zip(rng.integers(1, 30, n_documents), rng.integers(4, size=n_documents), strict=True)
    ]
    return sp.csr_array(np.array(X, dtype=float))


def fit(X, **options):
    options = {"random_state": 0, "max_iter": 25, "tol": 1e-6} | options
    weight = options.pop("sample_weight", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_within(partial(swiftem.PLSA, 4), X, sample_weight=weight, **options)


def assert_same_fit(one, two):
    for name in ("components_", "doc_topic_", "topic_counts_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for name in ("converged_", "method_", "n_iter_", "stationarity_", "log_likelihood_"):
        assert getattr(one, name) == getattr(two, name), name
    for name in ("passes", "objective", "step", "rejected", "method"):
        np.testing.assert_array_equal(getattr(one.history_, name), getattr(two.history_, name))
    assert (np.diff(one.history_.seconds) > 0).all()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "em"},
        {"init": "k-means", "background": True, "n_init": 3},
        {"alpha": "learn"},
        {"method": "sem"},
        {"method": "sem-vr"},
        {"method": "iem"},
        {"method": "fiem"},
        {"method": VarianceReducedEM(batch_size=50)},
        {"streamed": True},
        {"streamed": True, "method": "sem-vr"},
    ],
    ids=str,
)
@pytest.mark.usefixtures("small_blocks")
def test_a_fit_that_died_goes_on_exactly(tmp_path, deadly, options):
    options = dict(options)
    X = CsrDocuments(corpus()) if options.pop("streamed", False) else corpus()
    whole = fit(X, **options)
    kept = {"checkpoint": str(tmp_path), "checkpoint_every": 1, "resume": "auto"}
    deaths = 0
    for looks in (1, 2, 1, 3):
        deadly(looks)
        try:
            fit(X, **options, **kept)
        except Death:
            deaths += 1
    assert deaths >= 1
    deadly(np.inf)
    for _ in range(2):  # the second time there is nothing left to do
        assert_same_fit(fit(X, **options, **kept), whole)


def test_what_was_done_is_not_done_again(tmp_path, deadly):
    X = corpus()
    looks = len(fit(X, method="em").history_)
    kept = {"checkpoint": str(tmp_path), "checkpoint_every": 1, "resume": "auto"}
    deadly(7)
    with pytest.raises(Death):
        fit(X, method="em", **kept)
    # 6 looks are in the checkpoint; the eighth was the end.
    deadly(looks - 6)
    assert len(fit(X, method="em", **kept).history_) == looks


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"alpha": 0.2}, "alpha"),
        ({"method": "sem"}, "method"),
        ({"random_state": 1}, "random_state"),
        ({"random_state": np.int64(1)}, "random_state"),
        ({"sample_weight": np.r_[np.full(300, 2.0), np.ones(300)]}, "data"),
        ({"decorrelation": 2.0}, "decorrelation"),
    ],
)
def test_another_fit_is_refused(tmp_path, change, match):
    X = corpus()
    fit(X, method="em", checkpoint=tmp_path)
    with pytest.raises(ValueError, match=match):
        fit(X, **{"method": "em", "checkpoint": tmp_path, "resume": True} | change)


@pytest.mark.parametrize("wrap", [lambda X: X, CsrDocuments], ids=["matrix", "source"])
def test_another_number_of_words_is_refused(tmp_path, wrap):
    """Words that no document has are part of the data: topics have a column for each."""
    X = corpus(100)
    fit(wrap(X), method="em", checkpoint=tmp_path)
    for n_words in (49, 60):
        other = sp.csr_array((X.data, X.indices % n_words, X.indptr), shape=(100, n_words))
        with pytest.raises(ValueError, match="belongs to another run: its data is"):
            fit(wrap(other), method="em", checkpoint=tmp_path, resume=True)


def test_a_seed_that_nobody_gave_is_kept(tmp_path, deadly):
    X = corpus()
    deadly(2)
    with pytest.raises(Death):
        fit(X, method="em", checkpoint=tmp_path, checkpoint_every=1, random_state=None)
    deadly(np.inf)
    one = fit(X, method="em", checkpoint=tmp_path, resume=True, random_state=None)
    two = fit(X, method="em", checkpoint=tmp_path, resume=True, random_state=None)
    assert_same_fit(one, two)
