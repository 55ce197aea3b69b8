"""Models and rows for passes on a device: a GPU if there is one, else PyTorch's CPU.

``DEVICE`` is its name for :class:`swiftem.problem.Problem`, ``ON`` for estimators and ``swiftem.run``.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

from swiftem import models  # noqa: E402
from swiftem.core.compute import Placement  # noqa: E402
from swiftem.core.problem import Problem  # noqa: E402
from swiftem.data import ArraySource  # noqa: E402

DEVICE = "torch:cuda:0" if torch.cuda.is_available() else "torch:cpu"
ON = "cuda" if torch.cuda.is_available() else "torch:cpu"
KINDS = ("full", "tied", "diag", "spherical")


class Elsewhere(torch.Tensor):
    """A tensor that NumPy cannot read before it is copied by ``cpu``, like those of a GPU."""

    def cpu(self):
        return self.as_subclass(torch.Tensor)

    def numpy(self, **options):
        raise TypeError("can't convert cuda:0 device type tensor to numpy: use Tensor.cpu() first.")

    def __array__(self, *options):
        return self.numpy()


def on_device(values):
    """Return an array as a tensor on the device."""
    tensor = torch.as_tensor(values)
    return tensor.cuda() if torch.cuda.is_available() else tensor.as_subclass(Elsewhere)


def clusters(n=3000, d=3, n_components=4, *, offset=0.0, spread=2.0, seed=0, dtype=np.float64):
    """Return rows of clusters ``spread`` standard deviations apart."""
    rng = np.random.default_rng(seed)
    means = spread * rng.normal(size=(n_components, d))
    mixing = np.eye(d) + 0.3 * rng.normal(size=(n_components, d, d))
    which = rng.integers(n_components, size=n)
    rows = means[which] + np.einsum("nij,nj->ni", mixing[which], rng.normal(size=(n, d)))
    return (rows + offset).astype(dtype)


def problem(y, kind="full", n_components=4, placement=Placement(DEVICE), weight=None):
    """Return a problem of Gaussians, and parameters near its start."""
    model = models.GaussianMixtureModel(n_components, covariance=kind, reg_covar=1e-6)
    made = Problem(model, ArraySource(y, weight), placement=placement)
    return made, made.bound.initial_theta(np.random.default_rng(1))


def lines_of(script, *numbers):
    """Return the lines of JSON that a script prints for the cases with these numbers; by default for all.

    Without a GPU its kernels are interpreted.
    """
    environment = dict(os.environ)
    if not torch.cuda.is_available():
        environment["TRITON_INTERPRET"] = "1"
    done = subprocess.run(
        [sys.executable, script, *map(str, numbers)], env=environment, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
