"""``GaussianMixture.fit`` with checkpoints: a fit that died goes on exactly."""

import os
import warnings

import numpy as np
import pytest
from dying_fits import Death
from mixture_data import METHODS, assert_same_model, blobs, given_start
from surroundings import fit_within, within

import swiftem
from swiftem.fit.checkpoint import StartCheckpoint
from swiftem.mixture.fit import DegenerateComponentWarning


def make(**options):
    options = {
        "n_components": 4, "tol": 1e-6, "max_iter": 20, "random_state": 0, "init_params": "kmeans",
    } | options  # fmt: skip
    return swiftem.GaussianMixture(**options)


def fit(X, sample_weight=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_within(make, X, sample_weight=sample_weight, **options)


def assert_same_fit(actual, expected):
    assert_same_model(actual, expected)
    for name in ("converged_", "method_", "lower_bounds_", "stationarity_"):
        np.testing.assert_equal(getattr(actual, name), getattr(expected, name), err_msg=name)
    for name in ("passes", "objective", "step", "rejected", "method"):
        np.testing.assert_array_equal(getattr(actual.history_, name), getattr(expected.history_, name))
    assert (np.diff(actual.history_.seconds) > 0).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_init", [1, 2])
def test_a_fit_that_died_goes_on_exactly(tmp_path, deadly, method, n_init):
    X, _ = blobs(4000, components=4)
    whole = fit(X, method=method, n_init=n_init)
    kept = {"checkpoint": str(tmp_path), "checkpoint_every": 1, "resume": "auto"}
    deaths = 0
    for looks in (1, 3, 4, 2, 6):
        deadly(looks)
        try:
            fit(X, method=method, n_init=n_init, **kept)
        except Death:
            deaths += 1
    assert deaths >= 2
    deadly(np.inf)
    for _ in range(2):  # the second time there is nothing left to do
        assert_same_fit(fit(X, method=method, n_init=n_init, **kept), whole)


def test_fits_are_not_done_again(tmp_path, deadly):
    """What is looked at in all processes together is what one process looks at."""
    X, _ = blobs(4000, components=4)
    whole = fit(X, method="sem-vr")
    deadly(4)
    with pytest.raises(Death):
        fit(X, method="sem-vr", checkpoint=tmp_path, checkpoint_every=1)
    deadly(len(whole.history_) - 4)  # one fewer would not do
    assert_same_fit(fit(X, method="sem-vr", checkpoint=tmp_path, checkpoint_every=1, resume=True), whole)


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


def test_components_that_die_on_the_way(tmp_path, deadly):
    """Runs, repairs by em and runs again: seeds and generators go on, too."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(3000, 2)), np.full((200, 2), 50.0), np.full((3, 2), -90.0)])
    options = {"method": "fiem", "n_components": 8, "reg_covar": 0.0, "init_params": "random_from_data"}
    whole = fit(X, **options)
    died = 0
    for looks in (1, 2, 3, 4, 5):
        deadly(looks)
        try:
            fit(X, checkpoint=tmp_path, checkpoint_every=1, resume="auto", **options)
        except Death:
            died += 1
    deadly(np.inf)
    assert died
    assert_same_fit(fit(X, checkpoint=tmp_path, checkpoint_every=1, resume=True, **options), whole)


def test_a_second_reseed_after_a_death_draws_what_it_would_have_drawn(tmp_path, deadly):
    """Components die in several passes; the generator that sets them anew goes on where it was."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(2500, 2)), np.repeat(30 * rng.normal(size=(10, 2)), 3, axis=0)])
    options = {"method": "em", "n_components": 12, "reg_covar": 0.0, "init_params": "random_from_data"}
    whole = fit(X, **options)
    kept = {"checkpoint": tmp_path, "checkpoint_every": 1, "resume": "auto"}
    for _ in range(9):  # two passes at a time, in each of which there may be a reseed
        deadly(2)
        with pytest.raises(Death):
            fit(X, **options, **kept)
    deadly(np.inf)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert_same_fit(fit_within(make, X, **options, **kept), whole)
    (sentence,) = [str(one.message) for one in told if one.category is DegenerateComponentWarning]
    assert int(sentence.split(" times in all")[0].split()[-1]) > 2


@pytest.mark.parametrize("method", ["em", "sem-vr", "fiem"])
def test_a_death_one_pass_before_the_end_changes_no_end(tmp_path, deadly, method):
    """The gain of the last pass is over the bound before it, which was found before the death."""
    X, _ = blobs(1000, components=4)
    options = {"method": method, "tol": 1e-3, "max_iter": 100}
    whole = fit(X, **options)
    assert whole.converged_
    deadly(len(whole.history_) - 1)
    kept = {"checkpoint": tmp_path, "checkpoint_every": 1} | options
    with pytest.raises(Death):
        fit(X, **kept)
    deadly(np.inf)
    assert_same_fit(fit(X, **kept, resume=True), whole)


@pytest.mark.parametrize("method", ["sem-vr", "fiem"])
@pytest.mark.parametrize("looks", [2, 3])
def test_a_death_at_an_early_look_makes_the_next_one_no_end(tmp_path, deadly, method, looks):
    """The gain of the next look is per pass since the last one, not since the beginning."""
    X, _ = blobs(1500, 2, 3, apart=2.5, seed=8)
    options = {"n_components": 3, "method": method, "tol": 1e-3, "max_iter": 100}
    options |= given_start(X, 3, "full")
    whole = fit(X, **options)
    deadly(looks)
    with pytest.raises(Death):
        fit(X, checkpoint=tmp_path, checkpoint_every=1, **options)
    deadly(np.inf)
    assert_same_fit(fit(X, checkpoint=tmp_path, resume=True, checkpoint_every=1, **options), whole)


def test_seconds_go_on(tmp_path, deadly, monkeypatch):
    X, _ = blobs(1000, components=4)
    deadly(3)
    with pytest.raises(Death):
        fit(X, method="em", checkpoint=tmp_path, checkpoint_every=1)
    place = StartCheckpoint.load
    monkeypatch.setattr(StartCheckpoint, "load", lambda self: place(self) | {"seconds": 1000.0})
    deadly(np.inf)
    seconds = fit(X, method="em", checkpoint=tmp_path, resume=True).history_.seconds
    assert (seconds[:3] < 1000.0).all()
    assert (seconds[3:] > 1000.0).all()


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


@pytest.mark.parametrize("method", ["iem", "sem-vr", "fiem"])
def test_a_method_that_goes_on_after_a_repair(tmp_path, deadly, method):
    """Two runs of the method, with a pass of em between them: killed in each."""
    X, _ = blobs(200, 2, 2, seed=3)
    start = {"weights_init": [0.5, 0.5], "means_init": [[0.0, 0.0], [1e5, 1e5]]}
    options = {"n_components": 2, "method": method, "precisions_init": [np.eye(2)] * 2, **start}
    whole = fit(X, **options)
    assert whole.history_.method.tolist()[:3] == [method, "em", method]
    for looks in (1, 2, 2, 1):
        deadly(looks)
        with pytest.raises(Death):
            fit(X, checkpoint=tmp_path, checkpoint_every=1, resume="auto", **options)
    deadly(np.inf)
    assert_same_fit(fit(X, checkpoint=tmp_path, checkpoint_every=1, resume=True, **options), whole)
