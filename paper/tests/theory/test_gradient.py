"""V, its gradient and B at random points, against finite differences and what the errata print."""

import numpy as np
import pytest

import swiftem
from paper import theory
from paper.tests.theory_problems import CASES, central, random_s
from paper.theory.family import family_of
from swiftem import models

cases = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
seeds = pytest.mark.parametrize("seed", range(3))


@cases
@seeds
def test_V_is_the_objective_at_the_m_step(case, seed):
    family, _ = family_of(case.model, case.data)
    s = random_s(case, seed)
    theta = family.bound.m_step(family.library_statistics(s))
    assert theory.V(case.model, case.data, s) == pytest.approx(
        swiftem.objective(case.model, case.data, theta), rel=1e-12
    )


@cases
@seeds
def test_gradient_is_the_derivative_of_V(case, seed):
    s = random_s(case, seed)
    slope = central(lambda x: theory.V(case.model, case.data, x), s)
    np.testing.assert_allclose(theory.gradient_V(case.model, case.data, s), slope, rtol=1e-6, atol=1e-8)


@cases
@seeds
def test_gradient_is_B_times_the_residual(case, seed):
    """Equation (grd_v), with B as a matrix."""
    s = random_s(case, seed)
    product = theory.B(case.model, case.data, s) @ theory.residual(case.model, case.data, s)
    np.testing.assert_allclose(theory.gradient_V(case.model, case.data, s), product, rtol=1e-10, atol=1e-12)


@cases
@seeds
def test_B_is_J_H_J(case, seed):
    """Equation (Bss), the Jacobian and the Hessian by finite differences."""
    family, _ = family_of(case.model, case.data)
    s = random_s(case, seed)
    theta = family.vector(family.theta(s))

    def L(vector):
        at = family.from_vector(vector)
        return family.bound.penalty(at) + family.psi(at) - s @ family.phi(at)

    J = central(lambda vector: family.phi(family.from_vector(vector)), theta).T
    H = central(lambda vector: central(L, vector, 1e-4), theta, 1e-4)
    np.testing.assert_allclose(family.jacobian_phi(family.theta(s)), J, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(family.hessian(s, family.theta(s)), H, rtol=1e-4, atol=1e-3)
    exact = family.jacobian_phi(family.theta(s)), family.hessian(s, family.theta(s))
    found = exact[0] @ np.linalg.inv(exact[1]) @ exact[0].T
    np.testing.assert_allclose(theory.B(case.model, case.data, s), found, rtol=1e-8, atol=1e-9)


@cases
@seeds
def test_the_m_step_minimises_L(case, seed):
    family, _ = family_of(case.model, case.data)
    s = random_s(case, seed)
    theta = family.theta(s)
    slope = family.gradient_penalty_psi(theta) - family.jacobian_phi(theta).T @ s
    np.testing.assert_allclose(slope, 0.0, atol=1e-8)
    assert np.linalg.eigvalsh(family.hessian(s, theta)).min() > 0


@cases
@seeds
def test_gradient_of_the_objective(case, seed):
    """Fisher's identity, against finite differences in θ."""
    family, _ = family_of(case.model, case.data)
    theta = family.theta(random_s(case, seed))
    slope = central(
        lambda vector: swiftem.objective(case.model, case.data, family.from_vector(vector)),
        family.vector(theta),
    )
    found = theory.gradient_objective(case.model, case.data, theta)
    np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-6)


@cases
@seeds
def test_lemma_global(case, seed):
    """Equation (grd_equiv): ∇V = J_θ̄ᵀ ∇L̄, the Jacobian of the M-step by finite differences."""
    family, _ = family_of(case.model, case.data)
    s = random_s(case, seed)
    J = central(lambda x: family.vector(family.theta(x)), s).T
    slope = J.T @ theory.gradient_objective(case.model, case.data, family.theta(s))
    np.testing.assert_allclose(theory.gradient_V(case.model, case.data, s), slope, rtol=1e-6, atol=1e-8)


@cases
def test_lemma_global_at_rest(case):
    """Where EM rests both gradients vanish."""
    rest = swiftem.run(case.model, case.data, swiftem.methods.EM(), n_iter=1000, seed=0)
    found = theory.stationarity(case.model, case.data, rest.s)
    assert found.residual < 1e-20
    assert found.gradient < 1e-17
    assert np.abs(theory.gradient_objective(case.model, case.data, rest.theta)).max() < 1e-7


@cases
@seeds
def test_lemma_semigrad(case, seed):
    """Equation (semigrad), with the eigenvalues of B at this very s."""
    s = random_s(case, seed)
    h = theory.residual(case.model, case.data, s)
    gradient = theory.gradient_V(case.model, case.data, s)
    family, _ = family_of(case.model, case.data)
    basis = case.directions(family)
    eigenvalues = np.linalg.eigvalsh(basis.T @ theory.B(case.model, case.data, s) @ basis)
    largest = np.linalg.eigvalsh(theory.B(case.model, case.data, s)).max()
    assert gradient @ h >= eigenvalues.min() * (h @ h) * (1 - 1e-9) - 1e-15
    assert h @ h >= (gradient @ gradient) / largest**2 * (1 - 1e-9)
    assert gradient @ h > 0


def closed_form(s1, s2, s3, delta, epsilon):
    """The blocks of the errata for the mixture, with 2M − 1 coordinates."""
    s_M = 1 - s1.sum()
    mu, mu_M = s2 / (s1 + delta), (s3 - s2.sum()) / (s_M + delta)
    one = np.ones(len(s1))
    A = {c: np.diag(1 / (s1 + c)) + np.outer(one, one) / (s_M + c) for c in (delta, epsilon)}
    B11 = A[epsilon] + np.diag(mu**2 / (s1 + delta)) + mu_M**2 * np.outer(one, one) / (s_M + delta)
    B12 = -np.diag(mu / (s1 + delta)) - mu_M * np.outer(one, one) / (s_M + delta)
    B13, B23 = mu_M * one[:, None] / (s_M + delta), -one[:, None] / (s_M + delta)
    return np.block(
        [[B11, B12, B13], [B12.T, A[delta], B23], [B13.T, B23.T, np.array([[1 / (s_M + delta)]])]]
    )


@seeds
@pytest.mark.parametrize("M", [2, 3, 5])
def test_mixture_beside_the_printed_blocks(M, seed):
    rng = np.random.default_rng(seed)
    model = models.GaussianMixtureModel(M, delta=0.3, epsilon=0.2)
    s1, s2, s3 = rng.dirichlet(np.ones(M))[:-1], rng.normal(size=M - 1), rng.normal()
    found = theory.B(model, np.arange(10.0), np.concatenate([s1, s2, [s3]]))
    np.testing.assert_allclose(found, closed_form(s1, s2, s3, 0.3, 0.2), rtol=1e-12, atol=1e-13)
    assert np.linalg.eigvalsh(found).min() > 0


@pytest.mark.parametrize("M", [2, 3])
def test_known_weights_have_rank_M(M):
    model = models.GaussianMixtureModel(M, delta=0.3, epsilon=0.2, known_weights=np.full(M, 1 / M))
    rng = np.random.default_rng(0)
    s = np.concatenate([rng.dirichlet(np.ones(M))[:-1], rng.normal(size=M)])
    eigenvalues = np.linalg.eigvalsh(theory.B(model, np.arange(10.0), s))
    assert (eigenvalues > 1e-9).sum() == M
    assert eigenvalues[0] == pytest.approx(0.0, abs=1e-12)


def test_one_component():
    model = models.GaussianMixtureModel(1, delta=0.5)
    np.testing.assert_allclose(theory.B(model, [0.0, 2.0], [1.0]), [[1 / 1.5]])
    assert theory.stationarity(model, [0.0, 2.0], [1.0]).residual == pytest.approx(0.0, abs=1e-30)
    assert theory.gradient_V(model, [0.0, 2.0], [1.3]) == pytest.approx([0.3 / 1.5])


def test_plsa_has_as_many_zero_eigenvalues_as_documents_and_topics():
    case = CASES["topics"]
    family, _ = family_of(case.model, case.data)
    eigenvalues = np.linalg.eigvalsh(theory.B(case.model, case.data, random_s(case, 0)))
    assert (eigenvalues < 1e-10 * eigenvalues.max()).sum() == family.D + family.K


def test_statistics_of_a_run_are_the_papers_with_one_more():
    case = CASES["three"]
    s = swiftem.run(case.model, case.data, swiftem.methods.IncrementalEM(), n_iter=30, seed=0).s
    family, _ = family_of(case.model, case.data)
    x = family.coordinates(s)
    assert x.shape == (5,)
    np.testing.assert_allclose(family.library_statistics(x), s, atol=1e-12)
    assert theory.V(case.model, case.data, s) == theory.V(case.model, case.data, x)
    assert x[-1] == pytest.approx(np.mean(case.data))


def test_sample_weights():
    case = CASES["two"]
    weight = np.random.default_rng(0).integers(1, 4, size=len(case.data))
    s = random_s(case, 0)
    found = theory.gradient_V(case.model, case.data, s, sample_weight=weight)
    expected = theory.gradient_V(case.model, np.repeat(case.data, weight), s)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("case", "theta"),
    [
        (CASES["two"], CASES["two"].model.theta(weights=[0.0, 1.0], means=[[0.0], [1.0]])),
        (
            CASES["topics"],
            CASES["topics"].model.theta(doc_topic=np.eye(2)[[0, 1, 0, 1]], topic_word=np.full((2, 6), 1 / 6)),
        ),
    ],
    ids=["mixture", "topics"],
)
def test_no_gradient_at_the_edge(case, theta):
    with pytest.raises(ValueError, match=r"^theta must have positive probabilities"):
        theory.gradient_objective(case.model, case.data, theta)


def test_a_matrix_that_would_fill_the_memory_is_refused():
    model = models.PLSAModel(n_topics=2, alpha=0.1, beta=0.1)
    data = (np.arange(6000), np.arange(6000))
    s = np.full(24_000, 1e-4)
    with pytest.raises(ValueError, match=r"^data must give at most 10,000 statistics"):
        theory.B(model, data, s)
    assert theory.gradient_V(model, data, s).shape == (24_000,)


@pytest.mark.parametrize(
    ("model", "data", "s", "message"),
    [
        (CASES["two"].model, CASES["two"].data, np.zeros(2), r"^s must have shape \(3,\), .* or \(4,\)"),
        (CASES["two"].model, CASES["two"].data, [1.5, 0.0, 0.0], r"^s must lie in the domain of the M-step"),
        (CASES["two"].model, CASES["two"].data, [0.5, 0.6, 0.0, 0.0], r"^s must have weights that sum to 1"),
        (CASES["two"].model, CASES["two"].data, [np.nan, 0.6, 0.0], r"^s must be finite"),
        (
            CASES["topics"].model,
            CASES["topics"].data,
            np.full(20, -1.0),
            r"^s must lie in the domain of .*α'",
        ),
        (models.GaussianMixtureModel(2, covariance="full"), np.eye(3), np.zeros(3), r"^model must be"),
    ],
)
def test_bad_input(model, data, s, message):
    with pytest.raises((TypeError, ValueError), match=message):
        theory.V(model, data, s)
