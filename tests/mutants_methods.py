"""Mutants of the methods' equations, of covariances and of what topics learn: see ``tests/mutate.py``."""

PLAIN = "tests/methods/test_trajectories.py::test_two_thousand_iterations"
"""In NumPy, against the dense implementation: most other tests of methods run compiled loops."""
SPIDER = "tests/methods/test_spider_em.py"
COVARIANCES = "tests/models/test_covariances.py"
ALPHA = "tests/estimators/test_learned_alpha.py"
SCHEDULES = "tests/test_schedules.py"

MUTANTS = [
    (
        "fiem: i has the memory of j",
        "methods/fast_incremental_em.py",
        "rows_i - state.memory[i]",
        "rows_i - state.memory[j]",
        f"{PLAIN}[mixture-fiem-reference]",
    ),
    (
        "fiem: the memory of i is renewed",
        "methods/fast_incremental_em.py",
        "state.memory[j] = rows_j",
        "state.memory[i] = rows_j",
        f"{PLAIN}[mixture-fiem-reference]",
    ),
    (
        "iem: the centre moves by the mean of a batch, not by its share",
        "methods/incremental_em.py",
        "state.centre + e_step.share(batch, change)",
        "state.centre + e_step.mean(batch, change)",
        f"{PLAIN}[mixture-iem-reference]",
    ),
    (
        "sem-vr: the anchor is renewed one iteration late",
        "methods/variance_reduced_em.py",
        "if self.renewal(k, e_step.n) == k:",
        "if self.renewal(k - 1, e_step.n) == k - 1:",
        f"{PLAIN}[mixture-sem-vr-reference]",
    ),
    (
        "spider: the anchor stays where it was",
        "methods/spider_em.py",
        "return proxy, SpiderEMState(theta, proxy)",
        "return proxy, SpiderEMState(state.anchor, proxy)",
        f"{SPIDER}::test_the_equation",
    ),
    (
        "spider: the change of a batch is added to the last full pass",
        "methods/spider_em.py",
        "return proxy, SpiderEMState(theta, proxy)",
        "return proxy, SpiderEMState(theta, state.centre)",
        f"{SPIDER}::test_the_equation",
    ),
    (
        "opt-fiem: λ has no bounds",
        "methods/method.py",
        "min(max(covariance / variance, 0.0), LARGEST)",
        "covariance / variance",
        "tests/methods/test_opt_fiem.py::test_the_rule",
    ),
    (
        "tied: priors on means have no part in the degrees of freedom",
        "models/covariance/tied.py",
        "return nu + d + 1 + on_means * n_components",
        "return nu + d + 1",
        f"'{COVARIANCES}::test_reported_penalty_is_the_log_density_of_the_prior[tied]'",
    ),
    (
        "tied: the prior on the mean of one component",
        "models/covariance/tied.py",
        "n_components * kappa * np.outer(prior.mean, prior.mean)",
        "kappa * np.outer(prior.mean, prior.mean)",
        f"'{COVARIANCES}::test_the_m_step_is_the_maximum_a_posteriori[tied-2.0]'",
    ),
    (
        "spherical: the variance of all columns together",
        "models/covariance/spherical.py",
        "inverse = 1.0 / (means.shape[1] * (s.weights + prior.degrees))",
        "inverse = 1.0 / (s.weights + prior.degrees)",
        f"'{COVARIANCES}::test_an_iteration_is_scikit_learns[spherical-0.0-reference]'",
    ),
    (
        "spherical: the penalty has the volume of one column",
        "models/covariance/spherical.py",
        "log_det = -2.0 * means.shape[1] * np.log(factors).sum()",
        "log_det = -2.0 * np.log(factors).sum()",
        f"'{COVARIANCES}::test_reported_penalty_is_the_log_density_of_the_prior[spherical]'",
    ),
    (
        "learned α: counts include α itself",
        "estimators/topics/learned_alpha.py",
        "doc_topic[some] * (length + total)[:, None] - alpha, 0.0)",
        "doc_topic[some] * (length + total)[:, None], 0.0)",
        f"{ALPHA}::test_a_step_is_the_plain_one",
    ),
    (
        "learned α: documents without their weights",
        "estimators/topics/learned_alpha.py",
        "above = (weight[:, None] * more)",
        "above = (weight.mean() * more)",
        f"{ALPHA}::test_a_step_is_the_plain_one",
    ),
    (
        "learned α: the lengths of the first documents",
        "estimators/topics/learned_alpha.py",
        "length, weight, total = documents.length[some], documents.weight[some], alpha.sum()",
        "length, weight, total = documents.length[: len(some)], documents.weight[some], alpha.sum()",
        f"{ALPHA}::test_many_documents_are_represented_by_some",
    ),
    (
        "schedules: a step of the sample size that is larger than one",
        "schedules.py",
        "constant(min(1.0, float(self.c) * batch_size * n ** -float(self.exponent)))",
        "constant(float(self.c) * batch_size * n ** -float(self.exponent))",
        f"{SCHEDULES}::test_sample_size",
    ),
    (
        "schedules: the batch has no part in the step",
        "schedules.py",
        "float(self.c) * batch_size * n ** -float(self.exponent)",
        "float(self.c) * n ** -float(self.exponent)",
        f"{SCHEDULES}::test_sample_size",
    ),
]
