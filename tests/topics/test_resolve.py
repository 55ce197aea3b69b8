"""What "auto" means: parameters and facts about the data, and the specification they become."""

import re
from dataclasses import replace

import numpy as np
import pytest

from swiftem import PLSA, methods
from swiftem.core.schedules import constant, power, sample_size
from swiftem.topics import resolve as module
from swiftem.topics.resolve import Facts, resolve

SEM = methods.OnlineEM(power(1.0, 0.7, 10.0), 256)
FIEM = methods.FastIncrementalEM(sample_size(10, exponent=1), 1, memory_dtype="float32")
EM = {
    "method": methods.EM(), "first": None, "leaves_one_out": False, "momentum": 0.0, "background": False,
    "decorrelation": 0.0, "clustered": 0, "n_starts": 1, "draws": "documents", "dtype": np.float32,
}  # fmt: skip
AUTO = EM | {
    "first": SEM, "leaves_one_out": True, "momentum": 0.95, "background": True, "decorrelation": 30.0,
    "clustered": 5_000, "n_starts": 6,
}  # fmt: skip
DOCUMENTS = EM | {"clustered": 2_000}
TABLE = {
    "many documents": ({}, {}, AUTO),
    "a background that nobody wants": ({"background": False}, {}, AUTO | {"background": False}),
    "few documents": ({}, {"documents": 499}, EM | {"leaves_one_out": True}),
    "500 documents": (
        {},
        {"documents": 500},
        AUTO | {"first": methods.OnlineEM(SEM.step_size, 25), "clustered": 500},
    ),
    "few topics": ({"n_components": 7}, {}, AUTO | {"background": False, "decorrelation": 0.0}),
    "many topics": ({"n_components": 50}, {}, AUTO | {"n_starts": 2}),
    "more topics than documents": ({"n_components": 700}, {"documents": 600}, AUTO
        | {"first": methods.OnlineEM(SEM.step_size, 30), "clustered": 0, "n_starts": 2}),
    "given topics": ({"init": np.ones((20, 300))}, {}, AUTO
        | {"background": False, "decorrelation": 0.0, "clustered": 0, "n_starts": 1}),
    "seed words": ({"beta": np.ones((20, 300))}, {}, AUTO
        | {"background": False, "decorrelation": 0.0, "clustered": 0, "n_starts": 1}),
    "random starts": ({"init": "random", "n_init": 3}, {}, AUTO | {"clustered": 0, "n_starts": 3}),
    "counts below 1e-6": ({}, {"extent": (1e-7, 1.0)}, AUTO | {"dtype": np.float64}),
    "priors below 1e-6": ({"alpha": 1e-8}, {}, AUTO | {"dtype": np.float64}),
    "a small tolerance": ({"tol": 1e-8}, {}, AUTO | {"dtype": np.float64}),
    "units": ({}, {"place": "units"}, AUTO | {"momentum": 0.0}),
    "em": ({"method": "em"}, {}, EM),
    "em from clusters": ({"method": "em", "init": "k-means"}, {}, EM | {"clustered": 5_000}),
    "sem": ({"method": "sem"}, {}, DOCUMENTS | {"method": SEM}),
    "sem-vr": ({"method": "sem-vr"}, {}, DOCUMENTS
        | {"method": methods.VarianceReducedEM(4 * 256 / 10_000, 256)}),
    "sem with batches": ({"method": methods.OnlineEM(batch_size=7)}, {}, DOCUMENTS
        | {"method": methods.OnlineEM(SEM.step_size, 7)}),
    "sem-vr with batches": ({"method": methods.VarianceReducedEM(batch_size=7)}, {}, DOCUMENTS
        | {"method": methods.VarianceReducedEM(4 * 7 / 10_000, 7)}),
    "sem with a step": ({"method": methods.OnlineEM(constant(0.25), 10**6)}, {"documents": 1000}, DOCUMENTS
        | {"method": methods.OnlineEM(constant(0.25), 1000), "clustered": 1000}),
    "averages": ({"method": methods.Averaged(methods.OnlineEM())}, {}, DOCUMENTS
        | {"method": methods.Averaged(SEM)}),
    "iem": ({"method": "iem"}, {}, EM
        | {"method": methods.IncrementalEM(1, memory_dtype="float32"), "draws": "tokens"}),
    "fiem": ({"method": "fiem"}, {}, EM | {"method": FIEM, "draws": "tokens"}),
    "fiem with batches": ({"method": methods.FastIncrementalEM(batch_size=9)}, {}, EM
        | {"method": replace(FIEM, batch_size=9), "draws": "tokens"}),
}  # fmt: skip


def spec_of(parameters, facts):
    facts = {"place": "memory", "documents": 10_000, "n_words": 300} | facts
    facts = {"with_words": facts["documents"]} | facts
    return resolve(PLSA(**{"n_components": 20} | parameters).get_params(), Facts(**facts))


@pytest.mark.parametrize("case", TABLE)
def test_what_is_chosen(case):
    parameters, facts, expected = TABLE[case]
    spec = spec_of(parameters, facts)
    assert {name: getattr(spec, name) for name in expected} == expected


def test_strengths():
    assert [spec_of({"n_components": k}, {}).beta.item() for k in (10, 50)] == [0.05, 0.02]
    learned = spec_of({"alpha": "learn"}, {})
    assert learned.learns_alpha
    np.testing.assert_array_equal(learned.alpha, np.full(20, 0.1))


def test_a_pass_with_momentum_counts_as_two():
    assert [spec_of({"method": name, "tol": 0.5}, {}).gain for name in ("auto", "em")] == [1.0, 0.5]


@pytest.mark.parametrize(
    ("parameters", "facts", "sentence"),
    [
        ({"method": methods.Accelerated(methods.EM(), "squarem")}, {}, "method must not be accelerated for"),
        (
            {"method": "fiem", "alpha": np.arange(20.0)},
            {},
            "alpha and beta must be numbers for method='fiem'",
        ),
        ({"method": "sem", "alpha": "learn"}, {}, "alpha must be numbers for method='sem', got 'learn'."),
        ({"method": "sem", "background": True}, {}, "background must be 'auto' or False for method='sem'"),
        ({"method": "iem", "decorrelation": 2}, {}, "decorrelation must be 'auto' or 0 for method='iem'"),
        ({"method": "fiem"}, {"place": "device"}, "method must be 'auto', 'em', 'sem' or 'sem-vr' for a GPU"),
        ({"method": "fiem"}, {"place": "blocks"}, "'sem-vr' for documents read in blocks, got 'fiem'"),
        ({"method": "sem-vr"}, {"place": "units"}, "'em' or 'sem' for a Dask collection, got 'sem-vr'."),
        ({"alpha": "learn"}, {"place": "units"}, "alpha must be numbers for a Dask collection, got 'learn'"),
        ({"init": "k-means"}, {"with_words": 2}, "init must be 'random' if there are fewer documents"),
        ({"alpha": np.inf}, {}, "alpha must be finite and not negative, got inf."),
    ],
)
def test_what_does_not_go_together(parameters, facts, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        spec_of(parameters, facts)


def test_every_method_has_a_meaning():
    for name in module.METHOD_NAMES:
        assert spec_of({"method": name}, {}).method.name == ("em" if name == "auto" else name)
