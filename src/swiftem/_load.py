"""``swiftem.load``: the estimator in a file, of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from swiftem import estimators
from swiftem.fit.model_file import read_header, shown

KINDS = ("GaussianMixture", "Mixture", "RegressionMixture", "HiddenMarkovModel", "PLSA")


def load(path: str | Path) -> Any:
    """Return the estimator that its ``save`` wrote to a file, whatever its class.

    Parameters
    ----------
    path : str or Path
        The file; nothing in it is executed.

    Raises
    ------
    FileNotFoundError, PermissionError, ValueError
        If the file is missing, cannot be read, is damaged, or is not a model of this version of swiftem.

    Examples
    --------
    >>> import pathlib, swiftem, tempfile
    >>> mixture = swiftem.Mixture.from_parameters([1.0], {"rates": [[2.0]]}, family="poisson")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mixture.save(pathlib.Path(folder, "model"))
    ...     swiftem.load(pathlib.Path(folder, "model"))
    Mixture(family='poisson')
    """
    kind = read_header(path)["kind"]
    if kind not in KINDS:
        raise ValueError(f"{path} must hold an estimator of swiftem, got a {shown(kind)}.")
    return getattr(estimators, kind).load(path)
