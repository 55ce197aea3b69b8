"""The driver: phases, the end of fits, Ctrl-C and checkpoints, on steps that only count."""

import signal
from dataclasses import dataclass

import pytest
from dying_fits import Death

from swiftem.core.checkpoint import Store
from swiftem.fit.driver import FitState, Outcome, Phase, StartCheckpoint, StartWatch, drive


@dataclass
class Count(FitState):
    """A fit whose parameter is a number."""

    theta: int


class Add:
    """Adds a number in each pass; ends with an outcome after some passes, or when no pass is left."""

    def __init__(self, fit, number, passes=99, outcome=Outcome.CONVERGED, then=lambda: None):
        self.fit, self.number, self.passes, self.outcome, self.then = fit, number, passes, outcome, then

    def begin(self, drive):
        self.done = 0

    def advance(self, drive):
        if drive.left < 1.0:
            return Outcome.TOO_FEW_PASSES
        drive.check()
        self.done += 1
        self.fit.theta += self.number
        self.fit.passes += 1.0
        drive.note(-float(self.fit.theta), 1.0, "add", self.fit.theta)
        self.then()
        if self.done == self.passes:
            return self.outcome
        return None if drive.left >= 1.0 else Outcome.OUT_OF_PASSES

    def kept(self):
        return self.done

    def restore(self, kept):
        self.done = kept


class Watch(StartWatch):
    """Ends the fit after some passes."""

    def __init__(self, most=99):
        super().__init__()
        self.most, self.seen = most, []

    def __call__(self, moment, theta):
        self.seen.append(theta)
        return len(self.seen) == self.most


def three_phases(fit, then=lambda: None):
    """Return phases 0 → 1 → 0 ... of 2 and at most 1 passes, and 2 for the end."""
    return [
        Phase(Add(fit, 1, 2, Outcome.DEAD_COMPONENT), {Outcome.DEAD_COMPONENT: 1, Outcome.TOO_FEW_PASSES: 2}),
        Phase(Add(fit, 10, then=then), {Outcome.OUT_OF_PASSES: 0}, most_passes=1),
        Phase(Add(fit, 100)),
    ]


@pytest.mark.parametrize(
    ("max_passes", "theta", "converged"), [(0, 0, False), (2, 2, False), (4, 13, False), (6, 24, False)]
)
def test_phases_follow_outcomes_until_no_pass_is_left(max_passes, theta, converged):
    fit, watch = Count(0), Watch()
    drive(fit, three_phases(fit), max_passes=max_passes, watch=watch)
    assert (fit.theta, fit.passes, fit.converged, fit.interrupted) == (theta, max_passes, converged, False)
    assert watch.seen == [1, 2, 12, 13, 14, 24][:max_passes]
    assert [moment.passes for moment in fit.moments] == [*range(1, max_passes + 1)]
    assert fit.bound == (theta if max_passes else -float("inf"))


def test_only_the_last_phase_converges():
    fit = Count(0)
    drive(fit, [Phase(Add(fit, 1, 2), {Outcome.CONVERGED: 1}), Phase(Add(fit, 5, 1))], max_passes=9)
    assert (fit.theta, fit.passes, fit.converged) == (7, 3.0, True)


@pytest.mark.parametrize(("most", "converged"), [(1, False), (2, True)])
def test_an_observer_ends_the_fit(most, converged):
    fit = Count(0)
    phases = [Phase(Add(fit, 1, 2), {Outcome.CONVERGED: 1}), Phase(Add(fit, 5))]
    drive(fit, phases, max_passes=9, watch=Watch(most))
    assert (fit.theta, fit.converged) == (most, converged)


@pytest.mark.parametrize("by", ["key", "watch"])
def test_ctrl_c_leaves_the_fit_of_the_last_pass(by):
    fit, watch, passes = Count(0), Watch(), []

    def interrupted():
        raise KeyboardInterrupt

    def then():
        passes.append(fit.theta)
        if len(passes) == 3:
            if by == "key":
                signal.raise_signal(signal.SIGINT)
            else:
                watch.check = interrupted

    drive(fit, [Phase(Add(fit, 1, then=then))], max_passes=9, watch=watch)
    assert (fit.theta, fit.interrupted, fit.converged) == (3, True, False)


def test_a_killed_fit_resumes_in_its_phase(tmp_path):
    def keeper():
        return StartCheckpoint(Store(tmp_path / "start", {"kind": "count"}, "auto"), 1)

    def die():
        raise Death

    whole = Count(0)
    drive(whole, three_phases(whole), max_passes=6)
    fit = Count(0)
    with pytest.raises(Death):
        drive(fit, three_phases(fit, then=die), max_passes=6, keeper=keeper())
    again, watch = Count(0), Watch()
    drive(again, three_phases(again), max_passes=6, watch=watch, keeper=keeper())
    assert (again.theta, again.passes, again.bound) == (whole.theta, whole.passes, whole.bound)
    assert watch.seen == [2, 12, 13, 14, 24]  # the first pass is not repeated
    over, unseen = Count(0), Watch()
    drive(over, three_phases(over), max_passes=6, watch=unseen, keeper=keeper())
    assert (over.theta, over.moments, unseen.seen) == (again.theta, again.moments, [])
