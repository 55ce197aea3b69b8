"""Compiled stretches do what methods do iteration by iteration, in every order and with any weights."""

from dataclasses import dataclass

import compiled_models
import helpers
import numpy as np
import own_method
import pytest
from helpers import STOCHASTIC, assert_close, leaves, make_method

from swiftem import methods, models
from swiftem.core.method import Update
from swiftem.testing import check_method


def damped(b):
    """A method of one's own: fiem whose correction counts by 0.7."""
    return own_method.own(own_method.UPDATES["damped memory"], batch_size=b)


@dataclass(frozen=True)
class Smaller(methods.IncrementalEM):
    """iem with smaller steps."""

    step_size: float = 0.3


OPT_FIEM = {
    f"opt-fiem, {correction}, {dtype}": {"correction": correction, "memory_dtype": dtype}
    for correction in ("optimal", 0.6) for dtype in ("float64", "float32")
}  # fmt: skip
METHODS = {
    **{
        f"{name}, {order}": lambda b, name=name, order=order: make_method(
            name, step_size=0.05, batch_size=b, order=order
        )
        for name in STOCHASTIC for order in ("shuffled", "weighted")
    },
    **{
        name: lambda b, options=options: methods.OptFIEM(step_size=0.1, batch_size=b, **options)
        for name, options in OPT_FIEM.items()
    },
    **{
        f"spider, {kind}": lambda b, kind=kind: methods.SpiderEM(0.1, b, epoch_length=9, renewals=kind)
        for kind in ("fixed", "geometric")
    },
    "damped": damped,
    "smaller steps": lambda b: Smaller(batch_size=b),
}  # fmt: skip


def problem_of(kind):
    if kind == "topics":
        return helpers.topics(90, D=6, V=7, K=3)._replace(sample_weight=np.linspace(2.0, 0.5, 6))
    weight = np.random.default_rng(0).exponential(size=120) + 0.05
    if kind == "functions":
        of = compiled_models.own(n=120)
        return helpers.Problem(of.model, of.y, of.theta0, 120, None, weight)
    y = np.random.default_rng(0).normal(size=(120, 2)) + 4.0 * (np.arange(120) % 2)[:, None]
    return helpers.Problem(models.GaussianMixtureModel(2, covariance=kind), y, None, 120, None, weight)


KINDS = ("unit", "full", "tied", "diag", "spherical", "topics", "functions")
SIZES = [(kind, b) for kind in KINDS for b in (1, 6)] + [("unit", 1100)]
"""Mixtures with unit variances have loops of their own for large batches."""


@pytest.mark.parametrize(("kind", "b"), SIZES)
@pytest.mark.parametrize("name", METHODS)
def test_stretches_do_the_same(kind, b, name):
    problem, method = problem_of(kind), METHODS[name](b)
    options = {"n_iter": 60, "seed": 5, "record_every": 7}
    compiled, plain = (problem.run(method, kernels=way, **options) for way in ("auto", "reference"))
    is_learned = isinstance(method, methods.OptFIEM) and method.correction == "optimal"
    loop = helpers.loop_of(problem.model, problem.data, method, problem.sample_weight)
    assert (loop == "Algorithm1") == is_learned  # a learned λ runs by its proxy
    assert (compiled.passes, compiled.rejected) == (plain.passes, plain.rejected)
    pairs = [(one.s, two.s) for one, two in zip(compiled.path, plain.path, strict=True)]
    pairs += zip(*(leaves(result.state.method or ()) for result in (compiled, plain)), strict=True)
    for ours, theirs in pairs:
        if "float32" in name:  # a difference in the last bit of float64 may round to the next float32
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
        else:
            assert_close(ours, theirs)


def test_a_method_of_ones_own_is_one():
    check_method(damped(1))


@pytest.mark.parametrize(
    ("update", "expected"),
    [(Update("memory", "drawn"), (1, True, "random")), (Update("anchor"), (1, False, "sequential"))],
)
def test_streams_and_memory_follow_from_the_update(update, expected):
    kind = type("Other", (methods.Method,), {"update": update})
    assert (kind.index_streams, kind.remembers, kind.access) == expected
