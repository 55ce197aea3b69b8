"""Compiled loops stay inside their arrays: as Python they do the same, where NumPy checks every index.

Compiled code checks none. Without compilation (NUMBA_DISABLE_JIT) the same functions run on NumPy's arrays,
in a process of their own; NUMBA_BOUNDSCHECK would find the same after compiling everything anew.
"""

import json
import os
import subprocess
import sys
import warnings

import numpy as np

import swiftem
from swiftem import methods, models

CODE = f"""
import json, runpy
from swiftem.kernels import vector  # intrinsics are compiled code only
vector.matrix = lambda values, rows, columns: values.reshape(-1)[: rows * columns].reshape(rows, columns)
vector.vector = lambda values: values.reshape(-1)
vector.borrowed = lambda values: values
vector.piece = lambda values, row, first, stop: values[row, first:stop]
print(json.dumps(runpy.run_path({__file__!r})['results']()))
"""


def results():
    """Return what passes and fits at the edges of blocks and buffers give, as lists of numbers."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a pass is not enough; and as Python, infinities are computed with
        found["documents"] = documents().tolist()
        for kind in ("unit", "full", "tied", "diag", "spherical"):
            model = models.GaussianMixtureModel(2, covariance=kind)
            for n, b in ((505, 1), (40, 7)):  # one more than a block of passes; more than a batch
                y = np.random.default_rng(0).normal(size=(n, 2)) + np.where(np.arange(n) % 2, 3, 0)[:, None]
                for name in ("sem-vr", "fiem"):
                    method = methods.METHODS[name](step_size=0.01, batch_size=b)
                    result = swiftem.run(model, y, method, n_iter=3, seed=0)
                    found[f"{kind}, {name}, {b}"] = result.s.tolist()
    return found


def documents():
    """Return topics of documents with as many words as a buffer has rows, one fewer and one more."""
    rng = np.random.default_rng(0)
    X = np.zeros((4, 600))
    for place, words in enumerate((511, 512, 513, 600)):
        X[place, rng.choice(600, words, replace=False)] = rng.integers(1, 4, size=words)
    topics = rng.dirichlet(np.ones(600), size=2)
    return swiftem.PLSA(2, method="em", init=topics, max_iter=1, random_state=0).fit(X).transform(X)


def test_no_index_is_out_of_bounds():
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    checked, compiled = json.loads(done.stdout), results()
    assert checked.keys() == compiled.keys()
    for name, values in compiled.items():
        np.testing.assert_allclose(values, checked[name], rtol=1e-9, atol=1e-12, err_msg=name)
