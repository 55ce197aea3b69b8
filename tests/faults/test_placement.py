"""No compiled kernel's result depends on where its arrays lie in memory."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

import compiled_models
import helpers
import numpy as np
import pytest
import scipy.sparse as sp
from placement import KERNELS, Call, name_of, recorded_calls, results

import swiftem
from swiftem import models, posterior

GAPS = [[8 * gap] for gap in range(0, 65, 4)] + [[0, 8, 200], [504, 16]]
ALL_GAPS = [[8 * gap] for gap in range(65)] + [[0, 8, 200], [504, 16], [24, 0, 0, 128]]
BATCHES = {
    b: {name: helpers.make_method(name, step_size=0.05, batch_size=b) for name in helpers.NAMES}
    for b in (1, 7, 80)
}


def fits() -> None:
    """Call every kernel there is, on small problems; nine components or topics fill vectors and leave one."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(90, 3)) + 2 * rng.integers(0, 2, size=(90, 1))
    counts = sp.csr_array(rng.poisson(0.4, size=(12, 20)))
    for name in helpers.NAMES:
        few, some, many = (BATCHES[b][name] for b in BATCHES)
        swiftem.run(models.GaussianMixtureModel(9), y, few, n_iter=3, seed=0)
        for method in (few, some):
            result = swiftem.run(models.PLSAModel(9), counts, method, n_iter=3, seed=0)
        swiftem.objective(models.PLSAModel(9), counts, result.theta)
        for covariance in ("unit", "full", "tied", "diag", "spherical"):
            model = models.GaussianMixtureModel(9, covariance=covariance)
            result = swiftem.run(model, y, many, n_iter=3, seed=0)
            swiftem.objective(model, y, result.theta)
            posterior(model, y, result.theta, responsibilities=True)
        for family in ("poisson", "categorical"):
            model = models.MixtureModel(9, family)
            codes = rng.integers(0, 4, size=(90, 3))
            result = swiftem.run(model, codes, many, n_iter=3, seed=0)
            swiftem.objective(model, codes, result.theta)
            posterior(model, codes, result.theta, responsibilities=True)
        if name != "em":
            compiled_models.own().run(compiled_models.some(name), n_iter=3)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # of fits that did not converge
        for few in (
            "topics.read.FEW_ENTRIES",
            "topics.documents.FEW",
            "topics.compute.documents.FEW",
        ):
            patch.setattr(f"swiftem.{few}", -1)  # few documents compile nothing
        swiftem.GaussianMixture(9, max_iter=2, random_state=0).fit(y)
        for options in ({}, {"method": "em"}, {"method": "sem-vr"}):
            topics = swiftem.PLSA(9, max_iter=2, random_state=0, init="random", **options).fit(counts)
            topics.transform(counts)


def differing(calls: Iterable[Call], all_gaps: list[list[int]], firsts: Iterable[int]) -> set[str]:
    """Return the kernels whose results differ between places."""
    found = set()
    for call in calls:
        expected = results(call, [4096], 0)
        if any(results(call, gaps, first) != expected for gaps in all_gaps for first in firsts):
            found.add(call.name)
    return found


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    with pytest.MonkeyPatch.context() as patch:
        return recorded_calls(fits, patch)


def test_every_kernel_is_called(calls: list[Call]) -> None:
    from numba.core.caching import NullCache
    from numba.core.dispatcher import Dispatcher

    there = set()
    for name, module in sys.modules.items():
        if name.startswith(KERNELS):
            for value in vars(module).values():
                is_ours = isinstance(value, Dispatcher) and value.__module__ == name
                if is_ours and not isinstance(value._cache, NullCache):  # helpers have no cache of their own
                    there.add(name_of(value))
    # Loops of users' functions are compiled for a signature and called by address.
    assert {name for name in there - {call.name for call in calls} if "functions." not in name} == set()


def test_places_of_arrays_change_no_bit(calls: list[Call]) -> None:
    assert differing(calls, GAPS, (0, 1)) == set()


@pytest.mark.slow
def test_no_place_below_512_bytes_changes_a_bit(calls: list[Call]) -> None:
    assert differing(calls, ALL_GAPS, range(8)) == set()


@pytest.mark.slow
def test_vectors_of_other_processors_change_no_bit_either(tmp_path: Path) -> None:
    """Loops that take eight vectors at a time compare distances up to 256 bytes, as AVX-512 makes them."""
    script = (
        "import llvmlite.binding as llvm, sys\n"
        "llvm.set_option('', '-force-vector-interleave=8')\n"
        "sys.path[:0] = sys.argv[1:]\n"
        "import pytest, placement, test_placement\n"
        "with pytest.MonkeyPatch.context() as patch:\n"
        "    calls = placement.recorded_calls(test_placement.fits, patch)\n"
        "print(test_placement.differing(calls, test_placement.ALL_GAPS, range(8)))\n"
    )
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", script, str(here), str(here.parent / "_support")],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "set()", done.stderr
