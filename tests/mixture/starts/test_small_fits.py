"""Fits of small data: nothing is compiled for them, and bits depend neither on threads nor on a cache."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from mixture_data import blobs

import swiftem
from swiftem.core.compute import Compute, Placement
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.mixture.compute.numpy import LOWEST, NumpyCompute, exponentials
from swiftem.models import GaussianMixtureModel
from swiftem.topics import read as read_topics
from swiftem.topics.compute.corpus import Documents, SmallDocuments

FIT = """
import hashlib, json, sys
import numpy as np, swiftem
rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(0, 1, size=(6000, 2)), rng.normal(4, [1, 3], size=(4000, 2))]).astype(DTYPE)
X = X[:: 1 if KIND == "full" else 10]
mixture = swiftem.GaussianMixture(2, covariance_type=KIND, random_state=0).fit(X)
mixture.partial_fit(rng.normal(4, [1, 3], size=(500, 2)).astype(DTYPE))
parts = [mixture.weights_, mixture.means_, mixture.covariances_, mixture.predict_proba(X), mixture.predict(X)]
numbers = [mixture.score(X), mixture.bic(X), mixture.icl(X), mixture.lower_bound_]
kinds = sorted({"full", KIND})
found = swiftem.select(X, n_components=range(1, 4), covariance_types=kinds, random_state=0)
numbers += [row.bic for row in found.ranking]
counts = rng.poisson(3.0, size=(500, 3))
family = swiftem.Mixture(2, family="poisson", random_state=0).fit(counts)
parts += list(family.params_.values())
digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()
print(json.dumps([digest, numbers, "numba" in sys.modules]))
"""


def in_a_process(kind="full", dtype="float64", code=FIT, **variables):
    code = code.replace("KIND", repr(kind)).replace("DTYPE", repr(dtype))
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    assert "compile" not in done.stderr
    return json.loads(done.stdout)


def test_the_objective_is_that_of_the_parameters_that_are_given():
    """The value of the last pass is used again only at the same θ."""
    X, _ = blobs(301, 2, 3)
    problem = Problem(
        GaussianMixtureModel(3, covariance="tied"), ArraySource(X), placement=Placement.named("numpy")
    )
    one, other = (problem.bound.initial_theta(np.random.default_rng(seed)) for seed in (0, 1))
    plain = Compute(problem.bound, problem.source)
    expected = [plain.objective(theta) for theta in (one, other, one)]
    assert type(problem.compute) is NumpyCompute
    problem.compute.full(one)
    found = [problem.compute.objective(theta) for theta in (one, other, one)]
    assert found == pytest.approx(expected, rel=1e-12)
    assert found[0] != pytest.approx(found[1], rel=1e-6)


TOPICS = """
import hashlib, json, sys
import numpy as np, scipy.sparse as sp, swiftem
X = sp.csr_array(np.random.default_rng(0).poisson(0.1, size=(700, 60)))
topics = swiftem.PLSA(3, random_state=0).fit(X)
parts = [topics.components_, topics.doc_topic_, topics.transform(X)]
numbers = [topics.score(X), topics.perplexity(X), topics.log_likelihood_, topics.stationarity_]
topics.partial_fit(X[:50])
parts.append(topics.components_)
digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()
print(json.dumps([digest, numbers, "numba" in sys.modules]))
"""


@pytest.mark.parametrize(
    ("code", "dtype"),
    [(FIT, "float64"), (FIT, "float32"), (TOPICS, "float64")],
    ids=["double", "single", "topics"],
)
def test_nothing_is_compiled_and_bits_do_not_depend_on_threads(code, dtype, tmp_path):
    found = [
        in_a_process(
            "full", dtype, code, OPENBLAS_NUM_THREADS=threads, OMP_NUM_THREADS=threads,
            SWIFTEM_NUM_THREADS=threads, NUMBA_CACHE_DIR=str(tmp_path / threads),
        )
        for threads in ("1", "2")
    ]  # fmt: skip
    assert found[0] == found[1]
    assert found[0][2] is False
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["tied", "diag", "spherical"])
def test_nothing_is_compiled_for_the_other_kinds(kind, tmp_path):
    assert in_a_process(kind, NUMBA_CACHE_DIR=str(tmp_path))[2] is False


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("method", ["auto", "em", "sem", "sem-vr"])
def test_topics_are_those_of_compiled_code(method, monkeypatch):
    counts = np.random.default_rng(0).poisson(0.15, size=(520, 40))

    def fit():
        options = {"method": method, "max_iter": 3, "tol": 0.0}
        return swiftem.PLSA(3, random_state=0, **options).fit(counts)

    small = fit()
    monkeypatch.setattr(read_topics, "FEW_ENTRIES", 0)
    compiled = fit()
    assert small.n_iter_ == compiled.n_iter_
    np.testing.assert_allclose(small.components_, compiled.components_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(small.doc_topic_, compiled.doc_topic_, rtol=1e-9, atol=1e-12)


def test_the_rule_for_documents_is_one_of_sizes():
    few = sp.csr_array(np.ones((10, 10)))
    limit = read_topics.FEW_ENTRIES // few.nnz
    assert type(read_topics.documents_for(few, None, limit)) is SmallDocuments
    assert type(read_topics.documents_for(few, None, limit + 1)) is Documents
    many = sp.csr_array((read_topics.FEW_DOCUMENTS + 1, 2))
    assert type(read_topics.documents_for(many, None, 2)) is Documents


def test_exponentials_off_the_slow_path_are_the_same_bits():
    logits = -np.random.default_rng(0).exponential(200.0, size=4000)
    logits[:3] = 0.0, -46.0, -np.inf
    expected = np.where(logits < LOWEST, 0.0, np.exp(logits))
    exponentials(logits)
    np.testing.assert_array_equal(logits, expected)
