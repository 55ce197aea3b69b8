"""Parameters and the state of ``partial_fit`` in the file of a mixture."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import check_simplex
from swiftem.core.types import Array
from swiftem.fit.model_file import LARGEST, PARTS, ModelContent
from swiftem.mixture.covariance import COVARIANCES, Covariance
from swiftem.mixture.families import Family
from swiftem.mixture.gaussians import GaussianMixtureModel
from swiftem.mixture.online import POWER, AnyMixtureModel, OnlineMixture, Past, Reservoir
from swiftem.mixture.prior import NormalInverseWishart

ONLINE, SAMPLE = ("seen", "refit_at", "bound", "n_batches", "power"), ("rows", "weight", "rank")
"""Entries of the state of ``partial_fit``."""
FITTED = ("weights_", "means_", "covariances_", "precisions_cholesky_")
"""Attributes of Gaussian mixtures that are the parameters, in the order of θ."""
SYMMETRIC, APART = 1e-6, 1e-2
"""Tolerances beyond rounding: asymmetry of a covariance, and its distance from its precision's inverse."""


def file_types() -> dict[str, type[Any]]:
    """Return the dataclasses among the parameters of mixtures, by their names in files."""
    found: dict[str, type[Any]] = {**PARTS, "NormalInverseWishart": NormalInverseWishart}
    left = Family.__subclasses__()
    while left:
        kind = left.pop()
        found[kind.__name__] = kind
        left += kind.__subclasses__()
    return found


def state_to_file(
    past: Past | None, online: OnlineMixture | None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the state of ``partial_fit``, and what it needs after a fit: header and arrays."""
    header: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    if past is not None and past.s is not None:
        header["past_weight"] = past.weight
        arrays |= {"past_s": past.s, "past_centre": past.centre}
    if online is not None:
        header["online"] = {name: getattr(online, name) for name in ONLINE} | {
            "size": online.sample.size,
            "threshold": online.sample.threshold,
            "rng": online.rng.bit_generator.state,
        }
        arrays |= {"online_s": online.s, "online_centre": online.centre}
        arrays |= {f"online_{name}": getattr(online.sample, name) for name in SAMPLE}
    return header, arrays


def flat(params: Mapping[str, Any], prefix: str = "") -> dict[str, NDArray[Any]]:
    """Return arrays in dicts by name; in a block, after its name and a dot."""
    found: dict[str, NDArray[Any]] = {}
    for name, part in params.items():
        found |= (
            flat(part, f"{prefix}{name}.")
            if isinstance(part, Mapping)
            else {f"{prefix}{name}": np.asarray(part)}
        )
    return found


def read_params(content: ModelContent, shapes: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the arrays of :func:`flat` in dicts, of these shapes."""
    return {
        name: read_params(content, shape, f"{prefix}{name}.")
        if isinstance(shape, dict)
        else content.array(f"{prefix}{name}", shape, single=True)
        for name, shape in shapes.items()
    }


def read_gaussians(content: ModelContent, model: GaussianMixtureModel, d: int) -> tuple[NDArray[Any], ...]:
    """Return weights, means, covariances and ``precisions_cholesky`` (:data:`FITTED`)."""
    n_components, kind = model.n_components, COVARIANCES[model.covariance]
    shapes = (n_components,), (n_components, d), *[kind.shape(n_components, d)] * 2
    found = tuple(content.array(name, shape, single=True) for name, shape in zip(FITTED, shapes, strict=True))
    check_simplex("weights_", found[0])
    with np.errstate(all="ignore"):  # comparisons with invalid numbers are false
        means, covariances, factors = (part.astype(np.float64) for part in found[1:])
        _check_covariances(kind, means, covariances, factors, found[2].dtype)
    return found


def _check_covariances(
    kind: Covariance, means: Array, covariances: Array, factors: Array, dtype: Any
) -> None:
    """Raise ValueError if covariances are invalid or ``precisions_cholesky`` does not match them."""
    d = means.shape[1]
    if kind.name in ("full", "tied"):
        eps = float(np.finfo(dtype).eps)
        _check_matrices(covariances.reshape(-1, d, d), factors.reshape(-1, d, d), eps)
    elif not (covariances > 0).all() or not (factors > 0).all():
        raise ValueError("covariances_ and precisions_cholesky_ must be positive")
    else:
        rounding = np.spacing(covariances.astype(dtype)) / covariances
        if not (np.abs(covariances * factors**2 - 1.0) <= APART + rounding).all():
            raise ValueError("precisions_cholesky_ must belong to covariances_")
    stacked = kind.stacked(factors)
    whitened = means[:, None, :] @ stacked if stacked.ndim == 3 else means * stacked
    if not (np.abs(whitened) <= LARGEST).all():
        raise ValueError(f"means_ must be at most {LARGEST:g} standard deviations from zero")


def _check_matrices(covariances: Array, factors: Array, eps: float) -> None:
    """Raise ValueError if covariances (M, d, d) are not positive definite, or factors do not match them.

    Rounding to ``eps`` is allowed for in nearly singular matrices.
    """
    d = covariances.shape[-1]
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    if not (variances > 0).all():
        raise ValueError("covariances_ must have positive variances")
    size = np.sqrt(variances)
    scaled = covariances / size[:, :, None] / size[:, None, :]
    if not (np.abs(scaled - np.swapaxes(scaled, 1, 2)) <= SYMMETRIC).all():
        raise ValueError("covariances_ must be symmetric")
    rounding = 100.0 * d * eps
    try:
        np.linalg.cholesky(scaled + rounding * np.eye(d))
    except np.linalg.LinAlgError:
        raise ValueError("covariances_ must be positive definite") from None
    if not (np.diagonal(factors, axis1=1, axis2=2) > 0).all() or np.tril(factors, -1).any():
        raise ValueError("precisions_cholesky_ must be upper triangular, with a positive diagonal")
    scaled_factors = factors * size[:, :, None]
    whitened = np.swapaxes(scaled_factors, 1, 2) @ scaled @ scaled_factors
    # Eigenvalues of ``scaled`` are at most d; the eigenvalues of its inverse are at most the sum of squares.
    allowed = APART + rounding * d * (scaled_factors**2).sum(axis=(1, 2))
    if not (np.abs(whitened - np.eye(d)).max(axis=(1, 2)) <= allowed).all():
        raise ValueError("precisions_cholesky_ must belong to covariances_")


def read_past(content: ModelContent, model: AnyMixtureModel, d: int) -> Past | None:
    """Return what ``partial_fit`` needs after a fit, if the file has it."""
    if "past_weight" not in content.header:
        return None
    model = _for_rows(content, "past_s", model, d)
    s, centre = content.array("past_s", (model.size(d),)), content.array("past_centre", (model.width(d),))
    return Past(s, centre, content.real("past_weight", 1.0 / LARGEST))


def _for_rows(content: ModelContent, name: str, model: AnyMixtureModel, d: int) -> AnyMixtureModel:
    """Return the model for the rows whose statistics a file has: with missing cells they have more."""
    wide = model.with_holes() if model.missing == "ignore" else model
    return wide if len(content.array(name, (None,))) == wide.size(d) else model


def read_online(content: ModelContent, model: AnyMixtureModel, d: int) -> OnlineMixture | None:
    """Return the state of ``partial_fit``, if the file has it."""
    if "online" not in content.header:
        return None
    kept = content.within("online")
    model = _for_rows(content, "online_s", model, d)
    seen = kept.real("seen", 0.0)
    s = content.array("online_s", (None,))
    # There are no statistics before the first batch.
    if len(s) != model.size(d) and (seen > 0.0 or len(s)):
        raise ValueError(f"online_s must have length {model.size(d)}, got {len(s)}")
    rows = content.array("online_rows", (None, d), finite=not model.has_holes)
    if np.isinf(rows).any():
        raise ValueError("online_rows must be finite, or missing")
    weight, rank = (content.array(f"online_{name}", (len(rows),), finite=False) for name in SAMPLE[1:])
    threshold = kept.real("threshold", 0.0, finite=False)
    sample = Reservoir(kept.integer("size", max(1, len(rows))), rows, weight, rank, threshold)
    with np.errstate(all="ignore"):
        stands_for = sample.weights()
    if not ((weight > 0) & (stands_for > 0) & (stands_for <= LARGEST) & (rank >= 0)).all():
        raise ValueError("online_weight and online_rank must be those of a sample, positive and finite")
    if not (seen <= LARGEST and threshold > 0.0):
        raise ValueError("seen and threshold must be those of a sample")
    rng = np.random.default_rng()
    try:
        rng.bit_generator.state = kept.header["rng"]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError("rng must be the state of a generator") from None
    return OnlineMixture(
        model,
        content.array("online_centre", (model.width(d),)),
        s,
        seen,
        sample,
        rng,
        refit_at=kept.real("refit_at", 0.0),
        bound=kept.real("bound", -inf, finite=False),
        n_batches=kept.integer("n_batches"),
        power=kept.real("power", 0.0) if "power" in kept.header else POWER,
    )
