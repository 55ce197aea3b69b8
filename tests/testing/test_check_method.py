"""check_method accepts a method of one's own and finds what is broken."""

from dataclasses import dataclass
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
class ForgetsAccess(IncrementalEM):
    access = "sequential"


@dataclass(frozen=True)
class NoName(Method):
    batch_size: int = 1
    init = OnlineEM.init
    proxy = OnlineEM.proxy


@dataclass(frozen=True)
class PlainTupleState(OnlineEM):
    def init(self, theta, s, memory):
        return ()


@dataclass(frozen=True)
class TwoStreamsOneOrder(FastIncrementalEM):
    orders = ("iid",)


@dataclass(frozen=True)
class MissingFactor(IncrementalEM):
    """The appendix's misprint: increments without 1/n."""

    def proxy(self, k, theta, draws, state, e_step):
        (i,) = draws
        batch = e_step.take(i)
        rows = e_step.rows(batch, theta)
        centre = state.centre + e_step.n * e_step.share(batch, rows - state.memory[i])
        state.memory[i] = rows
        return centre, state._replace(centre=centre)


@dataclass(frozen=True)
class WrongSign(VarianceReducedEM):
    def proxy(self, k, theta, draws, state, e_step):
        proxy, state = super().proxy(k, theta, draws, state, e_step)
        return 2 * state.centre - proxy, state


@dataclass(frozen=True)
class OwnRandomness(OnlineEM):
    def proxy(self, k, theta, draws, state, e_step):
        index = np.random.default_rng().permutation(e_step.n)[: len(draws[0])]
        return super().proxy(k, theta, (index,), state, e_step)


COUNTER = [0]


@dataclass(frozen=True)
class KeepsStateOutside(OnlineEM):
    def proxy(self, k, theta, draws, state, e_step):
        COUNTER[0] += 1
        proxy, state = super().proxy(k, theta, draws, state, e_step)
        return proxy * (1 + (COUNTER[0] % 2) * 1e-6 * (len(draws[0]) == 1)), state


@dataclass(frozen=True)
class WritesToDraws(OnlineEM):
    def proxy(self, k, theta, draws, state, e_step):
        draws[0][:] = 0
        return super().proxy(k, theta, draws, state, e_step)


@dataclass(frozen=True)
class WrongShape(OnlineEM):
    def proxy(self, k, theta, draws, state, e_step):
        proxy, state = super().proxy(k, theta, draws, state, e_step)
        return proxy[:-1], state


@dataclass(frozen=True)
class HoldsAFile(OnlineEM):
    def init(self, theta, s, memory):
        return FileState(part for part in ())


class FileState(NamedTuple):
    handle: Any


@dataclass(frozen=True)
class GoesUphill(OnlineEM):
    """Exact with a full batch, away from it otherwise."""

    def proxy(self, k, theta, draws, state, e_step):
        proxy, state = super().proxy(k, theta, draws, state, e_step)
        if len(draws[0]) == 1:
            proxy = np.full_like(proxy, proxy.mean())
        return proxy, state


@dataclass(frozen=True)
class OtherDeclaration(Library):
    """Its proxy is corrected since the last iteration, and it declares: since the anchor."""

    update = Update(reference="anchor")


@dataclass(frozen=True)
class SharesForMeans(VarianceReducedEM):
    update = VarianceReducedEM.update

    def proxy(self, k, theta, draws, state, e_step):
        if self.renewal(k, e_step.n) == k:
            state = type(state)(theta, e_step.full(theta))
        batch = e_step.take(draws[0])
        change = e_step.rows(batch, theta) - e_step.rows(batch, state.anchor)
        return state.centre + e_step.share(batch, change), state


class Before(NamedTuple):
    before: Any
    centre: np.ndarray


@dataclass(frozen=True)
class OtherFields(Library):
    update = Library.update

    def init(self, theta, s, memory):
        return Before(theta, s)


class Cells(NamedTuple):
    cells: np.ndarray
    centre: np.ndarray


@dataclass(frozen=True)
class RemembersElsewhere(IncrementalEM):
    update = None

    def init(self, theta, s, memory):
        return Cells(memory, s)


@dataclass(frozen=True)
class RenewsBefore(VarianceReducedEM):
    def renewal(self, k, n):
        return max(0, super().renewal(k, n) - 1)


@dataclass(frozen=True)
class RenewsByTheClock(VarianceReducedEM):
    def renewal(self, k, n):
        COUNTER[0] += 1
        return k + COUNTER[0] % 3


@pytest.mark.parametrize("method", [SpiderEM(), SpiderEM(step_size=0.1, batch_size=5), Thawed()], ids=repr)
def test_accepts_a_method_of_ones_own(method):
    check_method(method)


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (NotFrozen(), "frozen"),
        (NoName(), "name"),
        (ForgetsAccess(), "access = 'random'"),
        (TwoStreamsOneOrder(), "one order per index stream"),
        (PlainTupleState(), "NamedTuple"),
        (MissingFactor(), "full batches"),
        (WrongSign(step_size=0.1), "full batches"),
        (OwnRandomness(), "same seed"),
        (KeepsStateOutside(), "same seed|resumed"),
        (WrongShape(), "shape of s"),
        (HoldsAFile(), "pickle"),
        (GoesUphill(step_size=0.5), "objective"),
        (OtherDeclaration(step_size=0.1, batch_size=5), "update must declare what proxy computes"),
        (SharesForMeans(step_size=0.1, batch_size=5), "update must declare what proxy computes"),
        (OtherFields(), "must have the fields anchor, centre, got Before"),
        (RemembersElsewhere(), "must have the fields memory, got Cells"),
        (RenewsBefore(), "renewal must return the first full pass"),
        (RenewsByTheClock(), "renewal must return the first full pass"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Method) else "",
)
def test_says_what_is_broken(method, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_method(method)


def test_arguments_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        check_method(WritesToDraws())


def test_refuses_what_is_no_method():
    with pytest.raises(AssertionError, match="must derive from"):
        check_method("fiem")
