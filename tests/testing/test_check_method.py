"""check_method accepts a method of one's own and finds what is broken."""

from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from swiftem.core.schedules import StepSize, sample_size
from swiftem.methods import FastIncrementalEM, IncrementalEM, Method, OnlineEM, Update, VarianceReducedEM
from swiftem.methods import SpiderEM as Library
from swiftem.testing import check_method


class SpiderState(NamedTuple):
    before: Any
    centre: np.ndarray


@dataclass(frozen=True)
class SpiderEM(Method):
    """SPIDER-EM: the proxy follows the change of the drawn samples, and is made exact at each epoch."""

    step_size: StepSize = sample_size()
    batch_size: int = 1
    name: ClassVar[str] = "spider"

    def init(self, theta, s, memory):
        return SpiderState(theta, s)

    def proxy(self, k, theta, draws, state, e_step):
        if k % self.epoch(e_step.n) == 0:
            centre = e_step.full(theta)
        else:
            batch = e_step.take(draws[0])
            change = e_step.rows(batch, theta) - e_step.rows(batch, state.before)
            centre = state.centre + e_step.mean(batch, change)
        return centre, SpiderState(theta, centre)


class Thawed(OnlineEM):
    """Not a frozen dataclass of its own making, but a subclass keeps the parameters: allowed."""


@dataclass
class NotFrozen(Method):
    name: ClassVar[str] = "not-frozen"
    init = OnlineEM.init
    proxy = OnlineEM.proxy


@dataclass(frozen=True)
class NoName(Method):
    batch_size: int = 1
    init = OnlineEM.init
    proxy = OnlineEM.proxy


class FileState(NamedTuple):
    handle: Any


class Before(NamedTuple):
    before: Any
    centre: np.ndarray


class Cells(NamedTuple):
    cells: np.ndarray
    centre: np.ndarray


def missing_factor(self, k, theta, draws, state, e_step):
    """The appendix's misprint: increments without 1/n."""
    batch = e_step.take(draws[0])
    rows = e_step.rows(batch, theta)
    centre = state.centre + e_step.n * e_step.share(batch, rows - state.memory[draws[0]])
    state.memory[draws[0]] = rows
    return centre, state._replace(centre=centre)


def wrong_sign(self, *arguments):
    proxy, state = VarianceReducedEM.proxy(self, *arguments)
    return 2 * state.centre - proxy, state


def own_randomness(self, k, theta, draws, state, e_step):
    index = np.random.default_rng().permutation(e_step.n)[: len(draws[0])]
    return OnlineEM.proxy(self, k, theta, (index,), state, e_step)


CALLS = count()


def state_outside(self, k, theta, draws, state, e_step):
    proxy, state = OnlineEM.proxy(self, k, theta, draws, state, e_step)
    return proxy * (1 + (next(CALLS) % 2) * 1e-6 * (len(draws[0]) == 1)), state


def writes_to_draws(self, k, theta, draws, state, e_step):
    draws[0][:] = 0
    return OnlineEM.proxy(self, k, theta, draws, state, e_step)


def wrong_shape(self, *arguments):
    proxy, state = OnlineEM.proxy(self, *arguments)
    return proxy[:-1], state


def uphill(self, k, theta, draws, state, e_step):
    """Exact with a full batch, away from it otherwise."""
    proxy, state = OnlineEM.proxy(self, k, theta, draws, state, e_step)
    return np.full_like(proxy, proxy.mean()) if len(draws[0]) == 1 else proxy, state


def shares_for_means(self, k, theta, draws, state, e_step):
    if self.renewal(k, e_step.n) == k:
        state = type(state)(theta, e_step.full(theta))
    batch = e_step.take(draws[0])
    change = e_step.rows(batch, theta) - e_step.rows(batch, state.anchor)
    return state.centre + e_step.share(batch, change), state


def renewal_before(self, k, n):
    return max(0, VarianceReducedEM.renewal(self, k, n) - 1)


def broken(base, of=(), **members):
    """Return a method that differs from another in one thing; ``of`` are its hyper-parameters."""
    return dataclass(frozen=True)(type("Broken", (base,), members))(**dict(of))


FEW = {"step_size": 0.1, "batch_size": 5}


@pytest.mark.parametrize("method", [SpiderEM(), SpiderEM(**FEW), Thawed()], ids=repr)
def test_accepts_a_method_of_ones_own(method):
    check_method(method)


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (NotFrozen(), "frozen"),
        (NoName(), "name"),
        (broken(IncrementalEM, access="sequential"), "access = 'random'"),
        (broken(FastIncrementalEM, orders=("iid",)), "one order per index stream"),
        (broken(OnlineEM, init=lambda self, *_: ()), "NamedTuple"),
        (broken(IncrementalEM, proxy=missing_factor), "full batches"),
        (broken(VarianceReducedEM, {"step_size": 0.1}, proxy=wrong_sign), "full batches"),
        (broken(OnlineEM, proxy=own_randomness), "same seed"),
        (broken(OnlineEM, proxy=state_outside), "same seed|resumed"),
        (broken(OnlineEM, proxy=wrong_shape), "shape of s"),
        (broken(OnlineEM, init=lambda self, *_: FileState(part for part in ())), "pickle"),
        (broken(OnlineEM, {"step_size": 0.5}, proxy=uphill), "objective"),
        (broken(Library, FEW, update=Update("anchor")), "update must declare what proxy computes"),
        (
            broken(VarianceReducedEM, FEW, update=VarianceReducedEM.update, proxy=shares_for_means),
            "update must declare what proxy computes",
        ),
        (
            broken(Library, update=Library.update, init=lambda self, theta, s, memory: Before(theta, s)),
            "must have the fields anchor, centre, got Before",
        ),
        (
            broken(IncrementalEM, update=None, init=lambda self, theta, s, memory: Cells(memory, s)),
            "must have the fields memory, got Cells",
        ),
        (broken(VarianceReducedEM, renewal=renewal_before), "renewal must return the first full pass"),
        (
            broken(VarianceReducedEM, renewal=lambda self, k, n: k + next(CALLS) % 3),
            "renewal must return the first full pass",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_says_what_is_broken(method, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_method(method)


def test_arguments_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        check_method(broken(OnlineEM, proxy=writes_to_draws))


def test_refuses_what_is_no_method():
    with pytest.raises(AssertionError, match="must derive from"):
        check_method("fiem")
