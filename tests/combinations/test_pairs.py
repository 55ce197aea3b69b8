"""The generator of cases: every allowed pair of values occurs, in few cases, and equal seeds repeat them."""

from itertools import combinations, product

import numpy as np
import pytest
from combinations.pairs import all_pairs

FACTORS = {
    "a": list(range(6)),
    "b": ["x", "y", "z"],
    "c": [None, [1], {"k": 2}, np.zeros(2)],  # also what cannot be hashed or compared
    "d": [False, True],
    "e": list(range(5)),
}


def pairs_of(case):
    return {((a, id(case[a])), (b, id(case[b]))) for a, b in combinations(case, 2)}


def wanted(factors):
    for a, b in combinations(factors, 2):
        yield from (((a, id(x)), (b, id(y))) for x, y in product(factors[a], factors[b]))


@pytest.mark.parametrize("seed", range(3))
def test_every_pair_occurs_in_few_cases(seed):
    cases = all_pairs(FACTORS, np.random.default_rng(seed))
    assert set().union(*map(pairs_of, cases)) == set(wanted(FACTORS))
    assert len(cases) <= 6 * 5 + 8  # 30 are needed; all combinations would be 720
    assert all(list(case) == list(FACTORS) for case in cases)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_forbidden_does_not_occur_and_all_else_does(seed):
    def allowed(case):
        return not (case["d"] and case["a"] > 3) and not (
            case["b"] == "x" and case["e"] == 0 and not case["d"]
        )

    cases = all_pairs(FACTORS, np.random.default_rng(seed), allowed=allowed)
    assert all(map(allowed, cases))
    every = [dict(zip(FACTORS, values, strict=True)) for values in product(*FACTORS.values())]
    possible = set().union(*(pairs_of(case) for case in every if allowed(case)))
    assert possible < set(wanted(FACTORS))
    assert set().union(*map(pairs_of, cases)) == possible


def test_equal_seeds_give_equal_cases():
    def draw(seed):
        return [[id(v) for v in case.values()] for case in all_pairs(FACTORS, np.random.default_rng(seed))]

    assert draw(1) == draw(1) != draw(2)


def test_fewer_cases_may_be_asked_for():
    cases = all_pairs(FACTORS, np.random.default_rng(0), most=12)
    assert len(cases) == 12
    covered = set().union(*map(pairs_of, cases))
    assert len(covered) > 0.6 * len(set(wanted(FACTORS)))
