"""The step of SPIDER-EM's theorem, with the constants of the paper."""

import numpy as np

import swiftem
from paper import theory
from paper.experiments.gmm_precision import gmm_data
from swiftem import methods, models, schedules


def test_the_step_of_the_theorem_does_not_depend_on_n_and_lowers_the_objective():
    y, model = gmm_data(900, np.random.default_rng(0)), models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0)
    found = theory.constants(model, y)
    constants = {name: getattr(found, name).value for name in ("L_s", "L_V", "upsilon_min", "upsilon_max")}
    step = schedules.spider_bound(**constants)
    assert step.resolve(900, 30)(1) == step.resolve(90_000, 300)(1)
    theta0 = model.theta(weights=[0.4, 0.6], means=[[-1.0], [2.0]])
    method = methods.SpiderEM.by_theorem(len(y), step)
    end = swiftem.run(model, y, method, theta0=theta0, n_iter=300, seed=0)
    assert swiftem.objective(model, y, end.theta) < swiftem.objective(model, y, theta0)
    ended = swiftem.run(
        model, y, method, theta0=theta0, n_iter=swiftem.RandomTermination(300), seed=0, record_every=1
    )
    whole = swiftem.run(model, y, method, theta0=theta0, n_iter=300, seed=0, record_every=1)
    assert ended.n_iter < 300
    np.testing.assert_array_equal(ended.s, whole.path[ended.n_iter].s)
