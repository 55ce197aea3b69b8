"""The share of the whole that is done, from jobs of unequal cost."""

import pytest

from paper.experiments.experiment import Tally


def test_shares_grow_from_zero_to_one():
    told = []
    tally = Tally(10.0, lambda doing, share: told.append((doing, share)))
    with tally.job("long", 8.0) as at:
        at(0.25)
    with tally.job("short", 2.0) as at:
        at(0.5)
    assert told == [
        ("long", 0.0), ("long", 0.2), ("long", 0.8), ("short", 0.8), ("short", 0.9), ("short", 1.0),
    ]  # fmt: skip


def test_more_than_the_whole_is_never_told():
    told = []
    tally = Tally(1.0, lambda doing, share: told.append(share))
    with tally.job("underestimated", 3.0) as at:
        at(0.5)
    assert max(told) == 1.0


def test_an_estimate_that_wavers_does_not_go_back():
    told = []
    with Tally(1.0, lambda doing, share: told.append(share)).job("wavers", 1.0) as at:
        at(0.5)
        at(0.4)
        at(0.6)
    assert told == [0.0, 0.5, 0.5, 0.6, 1.0]


def test_a_job_that_fails_is_not_counted_as_done():
    told = []
    tally = Tally(2.0, lambda doing, share: told.append(share))

    def broken_off():
        with tally.job("broken off", 1.0) as at:
            at(0.5)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    assert told == [0.0, 0.25]
