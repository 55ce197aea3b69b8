"""Fits with checkpoints: one that died goes on exactly, and another one is refused."""

import os
import warnings
from functools import partial

import numpy as np
import pytest
from dying_fits import Death
from mixture_data import METHODS, blobs, given_start
from surroundings import fit_within, within

import swiftem
from swiftem import methods
from swiftem.mixture import fit as fit_of_mixtures


def rows_and_places(n, places):
    """Return normal rows, and rows at places without any spread."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 2))
    return np.concatenate(
        [rows, np.repeat(30 * rng.normal(size=(10, 2)), 3, axis=0) if places is None else places]
    )


LOST = rows_and_places(3000, np.repeat([[50.0, 50.0], [-90.0, -90.0]], [200, 3], axis=0))
SEVERAL = rows_and_places(2500, None)
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(np.where(RNG.random((1000, 1)) < 0.4, [1.0, 8.0, 3.0], [6.0, 1.0, 1.0]))
FEW, MANY = blobs(200, 2, 2, seed=3)[0], blobs(1500, 2, 3, apart=2.5, seed=8)[0]
FAR = {"weights_init": [0.5, 0.5], "means_init": [[0.0, 0.0], [1e5, 1e5]], "precisions_init": [np.eye(2)] * 2}
WEIGHT = np.random.default_rng(0).exponential(size=len(MANY))


def make(kind=swiftem.GaussianMixture, **options):
    given = {"n_components": 4, "tol": 1e-6, "max_iter": 20, "random_state": 0, "init_params": "kmeans"}
    return kind(**given | options)


of_family = partial(make, swiftem.Mixture)


def fit_and_warnings(X, sample_weight=None, made=make, **options):
    """Return a fit, and what it said of components that were set anew, and of convergence."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted = fit_within(made, X, sample_weight=sample_weight, **options)
    return fitted, [str(each.message) for each in said]


def fit(X, **options):
    return fit_and_warnings(X, **options)[0]


def assert_same_fit(actual, expected):
    for name in sorted(name for name in vars(expected) if name.endswith("_") and not name.startswith("_")):
        if name not in ("history_", "family_"):
            np.testing.assert_equal(getattr(actual, name), getattr(expected, name), err_msg=name)
    for name in ("passes", "objective", "step", "rejected", "method"):
        np.testing.assert_array_equal(getattr(actual.history_, name), getattr(expected.history_, name))
    assert (np.diff(actual.history_.seconds) > 0).all()


LOST_OPTIONS = {"n_components": 8, "reg_covar": 0.0, "init_params": "random_from_data"}
PASSES = {"max_iter": 9, "tol": 0.0, "n_components": 2, "init_params": "race", "made": of_family}
THREE = given_start(MANY, 3, "full") | {"n_components": 3, "tol": 1e-3, "max_iter": 100}
FITS = {
    **{f"{method}, two starts": (FEW, {"method": method, "n_init": 2}) for method in METHODS},
    **{f"{method} converges": (MANY, {"method": method, **THREE}) for method in ("em", "sem-vr", "fiem")},
    **{
        f"{method}, weights": (MANY, {"method": method, "sample_weight": WEIGHT, **THREE})
        for method in METHODS
    },
    **{
        f"accelerated by {name}": (
            MANY,
            THREE | {"method": methods.Accelerated(methods.EM(), name), "tol": 1e-7},
        )
        for name in ("squarem", "anderson")
    },
    "components are set anew": (LOST, {"method": "fiem", **LOST_OPTIONS}),
    "components are set anew several times": (SEVERAL, {"method": "em", **LOST_OPTIONS, "n_components": 12}),
    **{
        f"{method} goes on after a repair": (FEW, {"n_components": 2, "method": method, **FAR})
        for method in ("iem", "sem-vr", "fiem")
    },
    "poisson": (COUNTS, {"family": "poisson", "method": "sem-vr", **PASSES}),
    "categorical": (COUNTS % 4, {"family": "categorical", "method": "fiem", **PASSES}),
    "student-t": (FEW, {"family": "student-t", "method": "em", **PASSES}),
    "blocks": (COUNTS, {"family": {"student-t": [1], "poisson": [0, 2]}, "method": "fiem", **PASSES}),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_dies_again_and_again_goes_on_exactly(name, tmp_path, deadly, monkeypatch):
    """After one look and later after more, as passes of em within other methods are done as a whole."""
    X, options = FITS[name]
    if "weights" in name:  # looks are at some of the rows, and at all of them from time to time
        monkeypatch.setattr(fit_of_mixtures, "LOOKED_AT", 300)
    whole, said = fit_and_warnings(X, **options)
    assert any("re-initialised" in each for each in said) == ("anew" in name or "repair" in name)
    kept = {"checkpoint": tmp_path, "checkpoint_every": 1, "resume": "auto"}
    found, deaths = None, 0
    while found is None and deaths < 200:
        deadly(1 + deaths**2 // 4)
        try:
            found, heard = fit_and_warnings(X, **options, **kept)
        except Death:
            deaths += 1
    assert heard == said
    assert_same_fit(found, whole)
    assert deaths >= 2
    deadly(0)  # there is nothing left to do
    assert_same_fit(fit(X, **options, **kept), whole)


def test_fits_are_not_done_again(tmp_path, deadly):
    """What is looked at in all processes together is what one process looks at."""
    whole = fit(MANY, method="sem-vr")
    deadly(4)
    with pytest.raises(Death):
        fit(MANY, method="sem-vr", checkpoint=tmp_path, checkpoint_every=1)
    deadly(len(whole.history_) - 4)  # one fewer would not do
    assert_same_fit(fit(MANY, method="sem-vr", checkpoint=tmp_path, checkpoint_every=1, resume=True), whole)


@pytest.mark.parametrize("method", ["em", "fiem"])
def test_a_fit_without_a_seed_goes_on_with_its_own(tmp_path, deadly, method):
    X, _ = blobs(2000, components=4)
    kept = {"checkpoint": tmp_path, "checkpoint_every": 1, "method": method, "random_state": None}
    deadly(3)
    with pytest.raises(Death):
        fit(X, **kept)
    deadly(np.inf)
    first = fit(X, **kept, resume=True)
    again = fit(X, **kept, resume=True, verbose=0)
    assert_same_fit(again, first)
    assert len(first.history_) > 3


REFUSED = {
    "other data": ({"X": 1e-9}, "belongs to another run: its data is"),
    "other weights": ({"sample_weight": np.arange(1.0, 1001.0)}, "its data is"),
    "another parameter": ({"tol": 0.1}, "belongs to another run: its tol is 1e-06, here it is 0.1."),
    "another seed": ({"random_state": 1}, "its random_state is 0"),
    "another seed of NumPy's": ({"random_state": np.int64(1)}, "its random_state is 0"),
    "without resume": ({"resume": False}, "use resume=True to resume it"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_another_fit_is_refused(tmp_path, case):
    X, _ = blobs(1000, components=4)
    fit(X, method="em", checkpoint=tmp_path)
    change, message = case
    change = {"resume": True} | change
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=message):
        fit(X + change.pop("X", 0.0), method="em", checkpoint=tmp_path, **change)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("first", [np.int64(1), np.uint8(1), 1], ids=["int64", "uint8", "int"])
def test_a_seed_of_any_integer_type_is_compared(tmp_path, first):
    X, _ = blobs(200, components=2)
    kept = {"n_components": 2, "init_params": "random", "checkpoint": tmp_path}
    one = fit(X, random_state=first, **kept)
    assert_same_fit(fit(X, random_state=1, resume=True, **kept), one)
    for other in (np.int64(2), 2):
        with pytest.raises(ValueError, match="its random_state is 1, here it is"):
            fit(X, random_state=other, resume=True, **kept)


def test_the_block_of_a_fit(tmp_path):
    X, _ = blobs(100, components=2)
    for options, message in (
        ({"folder": 3}, "folder must be a path, got 3"),
        ({"every": 0}, "every must be at least 1, got 0"),
        ({"resume": "never"}, "resume must be True, False or 'auto', got 'never'"),
    ):
        with (
            pytest.raises((TypeError, ValueError), match=message),
            swiftem.checkpoint(**{"folder": tmp_path} | options),
        ):
            pass
    with swiftem.checkpoint(tmp_path):
        make(n_components=2, tol=1.0).fit(X)
        with pytest.raises(ValueError, match="must have one fit in its block, got another"):
            make(n_components=2, tol=1.0).fit(X)
        with pytest.raises(ValueError, match="not be used within another"), swiftem.checkpoint(tmp_path):
            pass
    make(n_components=2, tol=1.0).fit(X)
    with pytest.raises(ValueError, match="one fit in its block, got none"), swiftem.checkpoint(tmp_path):
        pass


def test_partial_fit_writes_no_checkpoint(tmp_path):
    X, _ = blobs(300, components=2)
    with pytest.raises(ValueError, match="got none"), within(checkpoint=tmp_path):
        make(n_components=2).partial_fit(X).partial_fit(X)
    assert os.listdir(tmp_path) == []


def test_a_finished_fit_has_few_files(tmp_path):
    X, _ = blobs(2000, components=3)
    fit(X, n_components=3, method="fiem", checkpoint=tmp_path, checkpoint_every=1)
    assert sorted(os.listdir(tmp_path)) == ["lock", "start-0", "state"]
    left = set(os.listdir(tmp_path / "start-0")) - {"lock", "state"}
    assert all(name.startswith("memory-0-") for name in left)
    assert len(left) <= 1
