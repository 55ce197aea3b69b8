"""Starts that race: they end in better places, at any number of threads, with weights and from files."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from dying_fits import Death
from mixture_data import KINDS, assert_same_model, blobs

import swiftem
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.kernels.threads import get_threads, set_threads
from swiftem.mixture.starts import race as racing
from swiftem.mixture.starts import sample as sampling
from swiftem.mixture.starts.accelerated import accelerated
from swiftem.mixture.starts.kinds import KINDS as STARTS
from swiftem.mixture.starts.kinds import gaussians, kinds_for, start
from swiftem.mixture.starts.moves import merge_costs, merged, moved, proposals
from swiftem.mixture.starts.race import race
from swiftem.mixture.starts.sample import draw_sample, units
from swiftem.models import GaussianMixtureModel, MixtureModel

CENTRES = np.concatenate([np.stack(np.divmod(np.arange(9), 3), axis=1) * scale for scale in (1.0, 60.0)])
CENTRES[9:] += 40.0


def clusters(n=4000, seed=0):
    """Return rows of nine small clusters close to each other and nine large ones, which k-means divides."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(18, n, p=rng.dirichlet(np.full(18, 5.0)))
    return CENTRES[labels] + np.where(labels < 9, 0.12, 8.0)[:, None] * rng.normal(size=(n, 2))


@pytest.fixture
def _threads():
    before = get_threads()
    yield
    set_threads(before)


ROWS = clusters()
BEST = swiftem.GaussianMixture(
    18, means_init=CENTRES, weights_init=np.full(18, 1 / 18), random_state=0,
    precisions_init=np.repeat([70.0, 0.015], 9)[:, None, None] * np.eye(2),
)  # fmt: skip


def fit(X=ROWS, n_components=18, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few passes, and starts that end with components on a few rows
        weight = parameters.pop("sample_weight", None)
        return swiftem.GaussianMixture(n_components, **{"random_state": 0, **parameters}).fit(
            X, sample_weight=weight
        )


def test_it_finds_what_single_starts_miss():
    best = BEST.fit(ROWS).score(ROWS)
    raced = [fit(random_state=seed).score(ROWS) for seed in range(6)]
    single = [fit(random_state=seed, init_params="k-means++").score(ROWS) for seed in range(6)]
    assert np.mean(raced) > best - 0.2
    assert min(raced) > max(single) + 0.3


def test_moves_leave_poor_optima_and_are_counted(monkeypatch):
    with_moves = [fit(random_state=seed) for seed in range(6)]
    monkeypatch.setattr(racing, "MOVES", 0)
    without = [fit(random_state=seed) for seed in range(6)]
    assert sum(one.history_.moves for one in with_moves) > 0
    assert all(one.history_.moves == 0 for one in without)
    assert np.mean([one.score(ROWS) for one in with_moves]) > np.mean([one.score(ROWS) for one in without])


def test_moves_are_kept_in_files(tmp_path):
    made = next(one for one in (fit(random_state=seed) for seed in range(9)) if one.history_.moves)
    made.save(tmp_path / "m.model")
    assert swiftem.GaussianMixture.load(tmp_path / "m.model").history_.moves == made.history_.moves


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("kind", KINDS)
def test_threads_change_no_bit(kind):
    found = []
    for threads in (1, 3):
        set_threads(threads)
        found.append(fit(covariance_type=kind, n_init=2))
    assert_same_model(*found)
    assert found[0].history_.moves == found[1].history_.moves


def test_more_starts_are_no_worse_and_no_more_fits():
    for seed in range(4):
        one, more = fit(random_state=seed, max_iter=1), fit(random_state=seed, n_init=8, max_iter=1)
        assert more.lower_bound_ >= one.lower_bound_ - 1e-12
    assert len(more.lower_bounds_) == 1


def test_the_cost_is_bounded(monkeypatch):
    """What moves take is part of the budget, and more candidates have one of their own."""
    spent = []
    monkeypatch.setattr(
        racing, "accelerated",
        lambda on, *given: spent.append((on.source.n, found := accelerated(on, *given))) or found,
    )  # fmt: skip
    X, _ = blobs(40_000, 3, 6, apart=1.0)
    fit(X, 6, max_iter=1)
    work = sum(n * passes for n, (_, passes) in spent)
    assert work <= min(sampling.MOST_WORK, sampling.WORK * len(X)) + 26_000 * racing.WIDER
    spent.clear()
    fit(X, 6, max_iter=1, n_init=10)
    assert sum(n * passes for n, (_, passes) in spent) <= 2.5 * work


def test_weights_count():
    """Rows of a small weight are as good as absent: the race is decided by the others."""
    rng = np.random.default_rng(1)
    noise = rng.uniform(-40, 80, size=(4000, 2))
    X, weight = np.concatenate([ROWS, noise]), np.repeat([1.0, 1e-6], [4000, 4000])
    best = BEST.fit(ROWS).score(ROWS)
    found = [fit(X, sample_weight=weight, random_state=seed).score(ROWS) for seed in range(3)]
    assert max(found) > best - 0.3


def test_rows_in_a_file_give_the_start_of_rows_in_memory(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    stored, rows = fit(tmp_path / "rows.npy", method="em"), fit(method="em")
    np.testing.assert_allclose(stored.means_, rows.means_, rtol=1e-9)


def test_more_rows_than_the_sample_in_a_file(tmp_path):
    X = clusters(40_000)
    np.save(tmp_path / "rows.npy", X)
    best = BEST.fit(X).score(X)
    assert fit(tmp_path / "rows.npy").score(X) > best - 0.3


def test_a_fit_that_died_starts_where_it_did(tmp_path, deadly):
    X, _ = blobs(4000, components=6, apart=1.0)
    options = {"tol": 1e-9, "max_iter": 20, "method": "em"}
    whole = fit(X, 6, **options)
    deadly(3)
    with pytest.raises(Death), swiftem.checkpoint(tmp_path, every=1):
        fit(X, 6, **options)
    deadly(np.inf)
    with swiftem.checkpoint(tmp_path, resume=True):
        again = fit(X, 6, **options)
    assert_same_model(again, whole)
    assert again.history_.moves == whole.history_.moves


@pytest.mark.parametrize("family", ["poisson", "bernoulli"])
def test_families_race_too(family):
    rng = np.random.default_rng(0)
    labels = rng.integers(5, size=3000)
    means = rng.gamma(1.0, 6.0, size=(5, 8)) if family == "poisson" else rng.random((5, 8))
    X = rng.poisson(means[labels]) if family == "poisson" else (rng.random((3000, 8)) < means[labels])
    name = "rates" if family == "poisson" else "probabilities"
    truth = swiftem.Mixture(5, family=family, params_init={name: np.clip(means, 1e-3, 0.999)
                            if family == "bernoulli" else means}).fit(X.astype(float))  # fmt: skip
    found = swiftem.Mixture(5, family=family, random_state=1).fit(X.astype(float))
    assert found.score(X.astype(float)) > truth.score(X.astype(float)) - 0.01
    bound = MixtureModel(5, family).bind(ArraySource(X.astype(float)))
    assert {kind for kind, _ in kinds_for(bound)} == {"k-means", "rows", "k-means++", "pooled"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STARTS, ids=" ".join)
def test_every_kind_of_start_is_a_mixture(kind, name):
    X, _ = blobs(1500, 3, 4)
    problem = Problem(GaussianMixtureModel(5, covariance=kind, reg_covar=1e-6), ArraySource(X))
    theta = start(name, problem, np.random.default_rng(0))
    checked = problem.bound.check_theta(theta)
    assert checked.weights.sum() == pytest.approx(1)
    assert (checked.weights > 0).all()


def test_units_of_columns_do_not_matter():
    scaled = ROWS * [1e-3, 1e5] + [7.0, -1e6]
    one, other = fit(method="em", reg_covar=0.0), fit(scaled, method="em", reg_covar=0.0)
    np.testing.assert_allclose(np.sort(one.weights_), np.sort(other.weights_), atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_merging_costs_no_more_than_the_bound(kind):
    """The bound is on the divergence from the mixture, so on rows of the mixture itself."""
    X, _ = blobs(20_000, 2, 4, apart=1.5, seed=3)
    mixture = fit(X, 4, covariance_type=kind)
    theta = Problem(mixture._model(), ArraySource(X)).bound
    parts = gaussians(theta, mixture._theta(2))
    costs = merge_costs(parts)
    np.testing.assert_allclose(np.diag(costs), 0.0, atol=1e-12)
    assert (costs[~np.eye(4, dtype=bool)] > 0).all()
    rows, _ = mixture.sample(20_000)
    for i, j in ((0, 1), (1, 3), (2, 3)):
        less = swiftem.GaussianMixture.from_parameters(*merged(parts, i, j)[1:], covariance_type=kind)
        assert mixture.score(rows) - less.score(rows) <= costs[i, j] + 0.01


def test_the_best_move_is_the_one_that_is_needed():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1.0, size=(500, 2)) for m in (0.0, 20.0, 40.0)])
    problem = Problem(GaussianMixtureModel(3, covariance="full", reg_covar=1e-6), ArraySource(X))
    model = problem.model
    theta = model.theta(
        weights=[1 / 6, 1 / 6, 2 / 3], means=[[0.0, 0.0], [0.1, 0.1], [30.0, 30.0]],
        covariances=[np.eye(2), np.eye(2), [[101.0, 100.0], [100.0, 101.0]]],
    )  # fmt: skip
    first = proposals(problem, problem, theta, 4).sure[0]
    assert [(one.pair, one.split.k) for one in first] == [((0, 1), 2)]
    assert sorted(moved(problem, theta, first).means[:, 0].round()) == pytest.approx([0.0, 20.0, 40.0], abs=1)


def test_moves_after_those_that_fail_are_tried(monkeypatch):
    """The first four are poor: they merge the two components that are furthest apart."""

    def poor_first(on, held, theta, most):
        costs = merge_costs(gaussians(on.bound, theta))
        pair = tuple(int(k) for k in np.unravel_index(costs.argmax(), costs.shape))
        found = proposals(on, held, theta, most)
        good = [*found.sure, *found.others]
        poor = [[moves[0]._replace(pair=pair)] for moves in good if moves[0].split.k not in pair]
        return found._replace(sure=[], others=poor[:1] * racing.TRIES + good)

    monkeypatch.setattr(racing, "proposals", poor_first)
    X = clusters(6000)
    assert sum(fit(X, random_state=seed).history_.moves for seed in range(4)) > 0


def test_a_start_that_is_given_does_not_race(monkeypatch):
    monkeypatch.setattr(racing, "race", None)  # a call would fail
    fit(means_init=BEST.means_init, max_iter=2)
    fit(init_params="kmeans", max_iter=2)
    fit(ROWS[:900], max_iter=2)
    with pytest.raises(TypeError):
        fit(max_iter=2)


def test_few_rows_repeat_in_the_sample():
    sample = draw_sample(ArraySource(ROWS), np.random.default_rng(0), dither=True)
    assert sample.seen.n + sample.held.n == len(ROWS)
    rows = np.concatenate([sample.seen.y, sample.held.y])
    assert len(np.unique(rows, axis=0)) == len(ROWS)


def test_a_race_has_what_it_says(tmp_path):
    problem = Problem(GaussianMixtureModel(18, covariance="full", reg_covar=1e-6), ArraySource(ROWS))
    won = race(problem, 3, n_init=3, moves=0)
    assert won.candidates == racing.CANDIDATES + 2 * racing.MORE
    assert won.moves == 0
    assert tuple(won.kind.rsplit(" ", 1)) in STARTS


def test_the_first_of_shuffled_rows_tell_that_values_do_not_repeat():
    rng = np.random.default_rng(0)
    twice = rng.permutation(np.repeat(np.arange(13_000.0), 2))
    y = np.stack([twice, rng.integers(0, 5000, 26_000) / 8, rng.normal(size=26_000)], axis=1)
    np.testing.assert_array_equal(units(y, shuffled=True), units(y))
    np.testing.assert_array_equal(units(y), [1.0, 0.125, 0.0])


@pytest.mark.parametrize("n", [2000, 8000])
@pytest.mark.parametrize("worse", [False, True])
def test_a_move_that_loses_on_the_rows_seen_is_not_accepted(monkeypatch, worse, n):
    X, _ = blobs(n, 2, 3)
    problem = Problem(GaussianMixtureModel(3, covariance="full", reg_covar=1e-6), ArraySource(X))
    good = problem.bound.initial_theta(np.random.default_rng(0))
    for _ in range(10):
        good = problem.bound.m_step(problem.compute.full(good))
    other = (
        good._replace(means=good.means + 0.1) if worse else problem.bound.m_step(problem.compute.full(good))
    )
    with ThreadPoolExecutor(1) as pool:
        run = racing._Race(problem, 0, pool, lambda: None)
        tried = racing._Candidate(other, "moved", 1.0)
        monkeypatch.setattr(run, "_em_of_all", lambda *given: ([tried], []))
        found = run._move(racing._Candidate(good, "good", 0.0), run._on(run._plan.many), [])
    assert (found is None) is worse
