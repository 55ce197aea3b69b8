"""Several mixtures at once, on the same rows."""

import numpy as np
import pytest
from mixture_data import blobs

from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.mixture.compute.batched import BatchedCompute, is_batchable, m_steps
from swiftem.mixture.starts.candidate_starts import KINDS, candidate_starts, em_of_candidates, run_k_means
from swiftem.models import GaussianMixtureModel, MixtureModel, NormalInverseWishart

rng = np.random.default_rng(0)
ROWS = blobs(1500, 3, 4, apart=1.0)[0]
HOLES = np.where(rng.random(ROWS.shape) < 0.1, np.nan, ROWS)
MODELS = {
    **{kind: (GaussianMixtureModel(5, covariance=kind, reg_covar=1e-6), ROWS)
       for kind in ("full", "diag", "spherical")},
    "holes": (GaussianMixtureModel(5, covariance="diag", reg_covar=1e-6, missing="ignore"), HOLES),
    "prior": (GaussianMixtureModel(
        5, covariance="full", concentration=2.0, prior=NormalInverseWishart(degrees_of_freedom=6, scale=4.0)
    ), ROWS),
    "poisson": (MixtureModel(5, "poisson", smoothing=0.5), rng.poisson(np.exp(0.3 * ROWS)).astype(float)),
    "categorical": (MixtureModel(5, "categorical"), rng.integers(0, 4, size=(1500, 4)).astype(float)),
    "blocks": (MixtureModel(5, {"gaussian": [0], "categorical": [1, 2]}),
               np.column_stack([ROWS[:, 0], rng.integers(0, 3, size=(1500, 2))])),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_they_are_those_one_by_one(name, weighted):
    model, rows = MODELS[name]
    weight = np.random.default_rng(0).random(1500) + 0.5 if weighted else None
    problem = Problem(model, ArraySource(rows, weight, allow_missing=name == "holes"))
    assert is_batchable(problem)
    kinds = [kind for kind in KINDS if kind[0] != "grown" and (kind[1] == "scaled" or problem.bound.kind)]
    starts = candidate_starts(problem, kinds, 7, np.random.default_rng(3))
    batched = BatchedCompute(problem)
    s, objectives = batched.passes(starts)
    np.testing.assert_allclose(objectives, [problem.compute.objective(theta) for theta in starts], rtol=1e-10)
    for one, theta in zip(s, starts, strict=True):
        np.testing.assert_allclose(one, problem.compute.full(theta), rtol=1e-7, atol=1e-10)
    for one, theta in zip(s, m_steps(problem.bound, s), strict=True):
        np.testing.assert_allclose(
            problem.compute.objective(theta), problem.compute.objective(problem.bound.m_step(one)), rtol=1e-10
        )
    together = em_of_candidates(problem, starts, 20, 1e-4, batched=batched)
    single = [em_of_candidates(problem, [theta], 20, 1e-4)[0] for theta in starts]
    assert [one.passes for one in together] == [one.passes for one in single]
    np.testing.assert_allclose(
        [problem.compute.objective(one.theta) for one in together],
        [problem.compute.objective(one.theta) for one in single],
        rtol=1e-6,
    )


def test_those_without_an_m_step_have_none():
    problem = Problem(GaussianMixtureModel(2, covariance="diag"), ArraySource(ROWS))
    good = candidate_starts(problem, KINDS[:1], 2, np.random.default_rng(0))
    batched = BatchedCompute(problem)
    s, _ = batched.passes(good)
    s[0, 0] = 0.0
    assert [theta is None for theta in m_steps(problem.bound, s)] == [True, False]
    assert m_steps(problem.bound, s[:0]) == []


@pytest.mark.parametrize(
    "model",
    [GaussianMixtureModel(3, covariance="tied"), MixtureModel(3, "student-t")],
    ids=["tied", "student-t"],
)
def test_models_that_are_no_matrix_products_are_not_served(model):
    assert not is_batchable(Problem(model, ArraySource(ROWS)))


def test_rows_far_from_narrow_components_are_refused():
    model = GaussianMixtureModel(2, covariance="full", reg_covar=1e-6)
    theta = model.theta(means=[[0.0] * 3, [1e7, 0.0, 0.0]], covariances=[1e-9 * np.eye(3)] * 2)
    with pytest.raises(ValueError, match="too far"):
        BatchedCompute(Problem(model, ArraySource(ROWS))).passes([theta])


def test_k_means_at_once():
    """Every row has the nearest of the means of labels, up to the last iteration, and runs differ."""
    z = rng.normal(size=(150, 3)) + 6.0 * rng.integers(0, 3, size=(150, 1))
    labels = run_k_means(z, rng.random(150) + 0.1, 3, 5, 30, np.random.default_rng(7))
    assert labels.shape == (5, 150)
    for one in labels:
        means = np.array([z[one == k].mean(axis=0) for k in range(3)])
        nearest = ((z[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
        assert (nearest == one).mean() > 0.97
    assert len(np.unique(labels, axis=0)) > 1
    assert run_k_means(np.zeros((20, 2)), None, 3, 2, 5, np.random.default_rng(0)).max() == 0
