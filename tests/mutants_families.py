"""Mutants of families, mixtures of them, and what all mixtures share."""

MODELS = "tests/models/test_families.py"
MIXTURE = "tests/estimators/test_mixture.py"
MODEL, POISSON, BERNOULLI = "models/mixture.py", "models/families/poisson.py", "models/families/bernoulli.py"
PASS = "engine/block_expectation.py"

MUTANTS = [
    (
        "families: the prior's rows are not counted",
        MODEL,
        "counts = counts + self.kappa\n",
        "counts = counts + 0.0\n",
        f"{MODELS}::test_smoothing_is_the_maximum_a_posteriori",
    ),
    (
        "families: the prior's features are those of no row",
        MODEL,
        "(sums + self.kappa * self.mean) / counts",
        "sums / counts",
        f"{MODELS}::test_smoothing_is_the_maximum_a_posteriori",
    ),
    (
        "families: noise below the bound stays",
        MODEL,
        "sums = np.maximum(sums, low * counts)",
        "sums = np.maximum(sums, -np.inf)",
        f"{MODELS}::test_noise_below_the_bound_is_no_reason_to_reject_a_step",
    ),
    (
        "families: the penalty leaves out the constants",
        MODEL,
        "float((phi @ self.mean).sum() + constant.sum())",
        "float((phi @ self.mean).sum())",
        f"{MODELS}::test_smoothing_is_the_maximum_a_posteriori",
    ),
    (
        "families: a row that cannot be is the first of its block",
        "models/families/family.py",
        "said, row = str(one), first + place",
        "said, row = str(one), first",
        f"{MODELS}::test_rows_that_cannot_be",
    ),
    (
        "families: weights are not in the logits",
        MODEL,
        "constant = constant + np.log(theta.weights)",
        "constant = constant + 0.0 * np.log(theta.weights)",
        f"{MODELS}::test_em_by_hand",
    ),
    (
        "families: components without rows stay where they are",
        MODEL,
        "parts.sums[gone] = self._around(rows) / self.n_components",
        "parts.sums[gone] = parts.sums[gone]",
        f"{MIXTURE}::test_components_without_rows_are_set_anew",
    ),
    (
        "families: a little smoothing holds dead components",
        MODEL,
        "return self.model.smoothing >= 1.0 or",
        "return self.model.smoothing > 0.0 or",
        f"{MODELS}::test_a_prior_of_a_row_holds_components_without_rows",
    ),
    (
        "poisson: factorials of one less",
        POISSON,
        "gammaln(np.arange(int(y.max()) + 1.0) + 1.0)",
        "gammaln(np.arange(int(y.max()) + 1.0) + 2.0)",
        f"{MODELS}::test_the_density_is_scipys",
    ),
    (
        "bernoulli: the chance of no is not in the constant",
        BERNOULLI,
        "- of_no, of_no.sum(axis=1)",
        "- of_no, 0.0 * of_no.sum(axis=1)",
        f"{MODELS}::test_the_density_is_scipys",
    ),
    (
        "mixture: log h(y) is not in the objective",
        PASS,
        "self._last[1] - self._mean_base()",
        "self._last[1]",
        f"{MODELS}::test_compiled_runs_are_the_references",
    ),
    (
        "mixture: log h(y) is not in the score",
        PASS,
        "found.log_likelihood[there] += base",
        "found.log_likelihood[there] += 0.0 * base",
        f"{MIXTURE}::test_weights_count_as_repetitions {MODELS}::test_compiled_runs_are_the_references",
    ),
    (
        "sums: likelihoods of parts are not added",
        PASS,
        "self.log_likelihood += other.log_likelihood",
        "self.log_likelihood = other.log_likelihood",
        "tests/engine/test_gaussian_components.py::test_a_pass_is_a_sum_of_parts_that_can_be_sent_away",
    ),
    (
        "mixture: ICL without the entropy",
        "estimators/mixture/scores.py",
        '"icl": bic + 2.0 * entropy',
        '"icl": bic',
        f"{MIXTURE}::test_queries",
    ),
    (
        "mixture: a family's choices are not kept in its file",
        "estimators/mixture/file.py",
        'parameters["family"] = find_family(name)(**values)',
        'parameters["family"] = find_family(name)()',
        f"{MIXTURE}::test_a_family_of_ones_own_in_a_file",
    ),
    (
        "plan: a method object with a batch of the estimator's",
        "estimators/mixture/plan.py",
        'if not (isinstance(value, str) and value == "auto"):',
        "if False:",
        "tests/estimators/test_plan.py",
    ),
    (
        "select: a doubled component has all of its weight twice",
        "estimators/mixture/candidate_fits.py",
        "np.where(index == largest, 2.0, 1.0)",
        "np.where(index == largest, 1.0, 1.0)",
        f"{MIXTURE}::test_select_finds_the_number_of_components",
    ),
]
