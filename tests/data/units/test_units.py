"""Units of rows in this process: the same fits as rows in an array, whatever the cut."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from cluster_processes import METHODS
from helpers import leaves

import swiftem
from swiftem import methods, models
from swiftem.cli.out_file import write_table
from swiftem.core.problem import Problem
from swiftem.data import ArraySource, UnitSource, open_units
from swiftem.data.units import source as unit_source
from swiftem.data.units.compute import UnitCompute, pairwise_sum


def assert_close(one, other, rtol=1e-12):
    np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


RNG = np.random.default_rng(0)
X = RNG.permutation(np.concatenate([RNG.normal(0, 1, (700, 3)), RNG.normal(4, 2, (500, 3))]))
WEIGHT = RNG.integers(0, 3, len(X)).astype(float)
EDGES = [0, 0, 300, 310, 800, 1200]
CUT = [X[a:b] for a, b in pairwise(EDGES)]
WEIGHTS = [WEIGHT[a:b] for a, b in pairwise(EDGES)]


def start(kind):
    model = models.GaussianMixtureModel(2, covariance=kind)
    covariances = {"full": [4 * np.eye(3)] * 2, "tied": 4 * np.eye(3), "diag": np.full((2, 3), 4.0)}
    options = {"covariances": covariances[kind]} if kind in covariances else {}
    return model, model.theta(means=X[:2], **options)


@pytest.mark.parametrize("kind", ["unit", "full", "tied", "diag"])
@pytest.mark.parametrize("weighted", [False, True])
def test_em_of_units_is_em_of_rows(kind, weighted):
    model, theta0 = start(kind)
    units = UnitSource(CUT, WEIGHTS if weighted else None)
    ours = swiftem.run(model, units, methods.EM(), theta0=theta0, n_iter=15)
    rows = swiftem.run(
        model, X, methods.EM(), theta0=theta0, n_iter=15, sample_weight=WEIGHT if weighted else None
    )
    for one, other in zip(ours.theta, rows.theta, strict=True):
        assert_close(one, other, 1e-11)
    weight = WEIGHT if weighted else None
    assert_close(
        swiftem.objective(model, units, rows.theta),
        swiftem.objective(model, X, rows.theta, sample_weight=weight),
    )
    assert (units.n, units.rows) == (4, int((WEIGHT > 0).sum()) if weighted else len(X))


@pytest.mark.parametrize("name", METHODS)
def test_a_run_of_units_is_resumed_to_the_same_bits(name, tmp_path):
    model, theta0 = start("full")
    options = {"theta0": theta0, "seed": 0, "n_iter": 12, "record_every": 1}
    whole = swiftem.run(model, UnitSource(CUT), METHODS[name], **options)
    options |= {"checkpoint": tmp_path / "kept", "checkpoint_every": 1}

    def interrupt(now):
        if now.k == 5:
            raise KeyboardInterrupt

    left = swiftem.run(model, UnitSource(CUT), METHODS[name], callback=interrupt, **options)
    assert left.status == "interrupted"
    ended = swiftem.run(model, UnitSource(CUT), METHODS[name], resume=True, **options)
    assert ended.n_iter == 12
    for one, other in zip(leaves(whole.theta), leaves(ended.theta), strict=True):
        assert np.array_equal(one, other)


def test_another_cut_is_other_data():
    assert UnitSource(CUT).fingerprint() == UnitSource(CUT).fingerprint()
    assert UnitSource(CUT).fingerprint() != UnitSource([X[:500], X[500:]]).fingerprint()


def test_what_tasks_are_sent_has_no_rows():
    from swiftem.core.problem import Problem

    problem = Problem(start("full")[0], UnitSource([np.tile(X, (10, 1))]))
    assert isinstance(problem.compute, UnitCompute)
    assert len(pickle.dumps(problem.compute._task_model)) < 4000


def test_row_groups_are_units(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for number, part in enumerate(np.array_split(X, 3)):
        table = pa.table({"a": part[:, 0], "b": part[:, 1], "w": np.ones(len(part))})
        parquet.write_table(table, tmp_path / f"part-{number}.parquet", row_group_size=100)
    units = open_units(str(tmp_path / "part-*.parquet"), weight="w")
    assert (units.n, units.rows, units.names) == (12, len(X), ("a", "b"))
    assert_close(units.mean, X[:, :2].mean(axis=0))
    model = models.GaussianMixtureModel(2, covariance="diag")
    theta0 = model.theta(means=X[:2, :2], covariances=np.full((2, 2), 4.0))
    ours, rows = (
        swiftem.run(model, data, methods.EM(), theta0=theta0, n_iter=10) for data in (units, X[:, :2])
    )
    assert_close(ours.theta.means, rows.theta.means, 1e-11)


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_a_file_that_was_written_again_is_read_again(tmp_path, ending):
    """A process keeps sources open from one fit to the next, but not those of files that have changed."""
    pytest.importorskip("pyarrow")
    file = tmp_path / f"rows{ending}"
    for n in (300, 300, 500, 20):
        rows = RNG.normal(size=n)
        write_table(file, {"a": rows, "b": rows + 1.0})
        units = open_units(str(file))
        assert units.rows == n
        assert_close(units.mean, [rows.mean(), rows.mean() + 1.0])
        assert_close(units.sample(n, 0).y[:, 0], rows)


def test_bad_rows_name_file_and_row(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    values = np.arange(300.0)
    values[257] = np.nan
    parquet.write_table(pa.table({"a": values}), tmp_path / "part.parquet", row_group_size=100)
    with pytest.raises(ValueError, match=r"part\.parquet must hold .* row 257 "):
        open_units(str(tmp_path / "part.parquet")).mean  # noqa: B018


def test_a_sample_has_the_share_of_each_unit():
    units = UnitSource([np.zeros((900, 1)), np.ones((100, 1))])
    some = units.sample(100, 0)
    assert (some.n, some.y.sum()) == (100, 10)
    assert np.array_equal(some.y, units.sample(100, 0).y)


def test_sums_are_pairwise():
    parts = RNG.normal(size=(7, 3))
    assert_close(pairwise_sum(parts), parts.sum(axis=0))
    assert np.array_equal(pairwise_sum(parts[:1]), parts[0])


@pytest.mark.parametrize(
    ("units", "weights", "said"),
    [
        ([np.zeros((0, 2))], None, "at least one row"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], None, "same columns in all units, got 1 columns in unit 1"),
        ([np.array([[1.0], [np.nan]])], None, r"unit 0 of data must be finite, got NaN at position \(1, 0\)"),
        ([np.zeros((3, 2))], [np.ones(2)], "chunked like the rows: 3 rows and 2 weights in unit 0"),
        ([np.zeros((3, 2))], [np.ones(3), np.ones(3)], "in 1 units, got 2"),
        ([np.zeros((3, 2))], [-np.ones(3)], "sample_weight of unit 0 of data must not be negative"),
        ([np.zeros(3)], None, "rows and columns"),
        ([np.full((3, 1), "a")], None, "numbers in every column"),
    ],
)
def test_units_that_cannot_be_used(units, weights, said):
    with pytest.raises((TypeError, ValueError), match=said):
        UnitSource(units, weights)


def test_the_objective_is_that_of_the_parameters_that_are_given():
    """The values of the last pass are used again only at the same θ."""
    model, theta0 = start("full")
    _, other = start("full")
    other = other._replace(means=other.means + 1.0)
    compute = Problem(model, UnitSource(CUT)).compute
    rows = [swiftem.objective(model, X, theta) for theta in (theta0, other)]
    compute.full(theta0)
    assert_close([compute.objective(theta0), compute.objective(other), compute.objective(theta0)],
                 [rows[0], rows[1], rows[0]])  # fmt: skip


def test_a_batch_of_units_is_in_the_order_of_the_draws():
    model, theta0 = start("diag")
    units = UnitSource(CUT)
    compute = Problem(model, units).compute
    drawn = np.array([3, 0, 2, 0])
    single = [compute.rows(units.take(np.array([u])), theta0)[0] for u in drawn]
    np.testing.assert_array_equal(compute.rows(units.take(drawn), theta0), single)


def test_a_prior_counts_as_for_all_rows(monkeypatch):
    """The model is bound to a sample of the rows, which stands for all of them."""
    monkeypatch.setattr(unit_source, "SAMPLE", 100)
    model = models.GaussianMixtureModel(
        2, covariance="diag", prior=models.NormalInverseWishart(5.0, 1.0, mean_precision=50.0)
    )
    theta0 = model.theta(means=X[:2], covariances=np.full((2, 3), 4.0))
    ours, rows = (
        swiftem.run(model, data, methods.EM(), theta0=theta0, n_iter=10) for data in (UnitSource(CUT), X)
    )
    assert_close(ours.theta.means, rows.theta.means, 1e-9)


def test_a_unit_whose_rows_are_far_away_from_the_others():
    """How far rows are decides how squares are computed: for all rows, as soon as all units are known."""
    along, across = np.array([1.0, 1.0]), np.array([1.0, -1.0])
    rows = np.random.default_rng(3).normal(size=(1200, 1)) * 0.1 * across
    rows[600:] += np.repeat([1e5, -1e5], 300)[:, None] * along  # expanded squares of these lose 12 digits
    model = models.GaussianMixtureModel(2, covariance="full")
    wide = 1e8 * np.outer(along, along) + 0.01 * np.outer(across, across)
    theta0 = model.theta(means=[0.05 * across, -0.05 * across], covariances=[wide, wide])
    compute = Problem(model, UnitSource([rows[:600], rows[600:]])).compute
    first, second = compute.full(theta0), compute.full(theta0)
    assert_close(second[:2], first[:2], 1e-10)
    assert_close(first[:2], Problem(model, ArraySource(rows)).compute.full(theta0)[:2], 1e-10)


def test_the_mean_is_that_of_the_rows():
    assert_close(UnitSource(CUT).mean, X.mean(axis=0))
    assert_close(UnitSource(CUT, WEIGHTS).mean, WEIGHT @ X / WEIGHT.sum())


def test_other_lengths_and_weights_are_other_data():
    """Of the same means."""
    rows = np.repeat(X[:10], 6, axis=0)
    units = [UnitSource([rows[:30], rows[30:]]), UnitSource([rows[:30:2], rows[30::2]])]
    units.append(UnitSource([rows[:30], rows[30:]], [np.full(30, 2.0), np.full(30, 2.0)]))
    units.append(UnitSource([rows[:30], rows[30:]], [np.ones(30), np.full(30, 2.0)]))
    assert len({one.fingerprint() for one in units}) == len(units)


def test_units_are_sampled_each_in_its_own_way():
    rows = np.arange(1000.0)[:, None]
    some = UnitSource([rows, rows]).sample(200, 0)
    first, second = np.split(some.y[:, 0], 2)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("kind", ["a Dask collection", "units"])
def test_posterior_names_what_it_was_given(kind):
    da = pytest.importorskip("dask.array")
    model, theta0 = start("full")
    data = da.from_array(X) if kind != "units" else UnitSource(CUT)
    with pytest.raises(TypeError, match=rf"^data must be an array or a file for posterior, got {kind}: call"):
        swiftem.posterior(model, data, theta0)


def test_values_of_each_row_are_refused():
    model, theta0 = start("full")
    from swiftem.core.problem import Problem

    with pytest.raises(TypeError, match="for values of each row, got units"):
        Problem(model, UnitSource(CUT)).compute.evaluate(theta0)
    with pytest.raises(TypeError, match="for values of each row"):
        swiftem.GaussianMixture(2, random_state=0).fit(X).predict(UnitSource(CUT))
    with pytest.raises(FileNotFoundError, match="matches none"):
        open_units("no-such-*.parquet")
    for path in (3, []):
        with pytest.raises(TypeError, match="path must be the name of a file, a pattern or a list of them"):
            open_units(path)
