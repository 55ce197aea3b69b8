"""The content of the file of a fitted mixture of regressions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from swiftem.core.checks import check_simplex
from swiftem.fit.history import History
from swiftem.fit.model_content import ModelContent, method_from_header, method_to_header
from swiftem.fit.persistence import plain
from swiftem.methods import Method
from swiftem.mixture.file import (
    PLAIN,
    family_from_header,
    family_header,
    read_state,
    state_to_file,
)
from swiftem.regression.gaussian_regression import GaussianRegression
from swiftem.regression.joint_mixture import JointMixture

__all__ = ["regressions_from_file", "regressions_to_file"]

RESULTS = {
    "converged_": bool,
    "n_iter_": int,
    "method_": str,
    "log_likelihood_": float,
    "n_features_in_": int,
}
LATER = {"lower_bound_": float, "stationarity_": float, "response_name_": str}
"""Results that older files do not have."""
ARRAYS = ("weights_", "intercept_", "variances_")


def regressions_to_file(estimator: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays; functions and generators among the parameters are omitted."""
    check_is_fitted(estimator)
    given = {name: plain(value) for name, value in estimator.get_params(deep=False).items()}
    header: dict[str, Any] = {
        "parameters": {name: value for name, value in given.items() if isinstance(value, PLAIN)}
    }
    if isinstance(estimator.method, Method):
        header["method"] = method_to_header(estimator.method) or "auto"
    header |= {name: plain(getattr(estimator, name)) for name in RESULTS | LATER}
    if hasattr(estimator, "feature_names_in_"):
        header["feature_names_in_"] = [str(name) for name in estimator.feature_names_in_]
    header["history"] = [list(moment) for moment in estimator.history_]
    arrays = {name: getattr(estimator, name) for name in (*ARRAYS, "coef_")}
    arrays["lower_bounds_"] = np.asarray(estimator.lower_bounds_, dtype=np.float64)
    mixture: JointMixture | None = estimator.__dict__.get("_mixture")
    if mixture is not None:
        header["family_"] = family_header(mixture.family_)
        of_state = state_to_file(mixture)
        header, arrays = header | of_state[0], arrays | of_state[1]
    return header, arrays


def regressions_from_file(cls: type[Any], content: ModelContent) -> Any:
    """Return the mixture of a file, or raise an error that says what is wrong with the file."""
    parameters = content.parameters(left_out=())
    if "method" in content.header:
        parameters["method"] = method_from_header(content.header["method"])
    made = cls(**parameters)
    made._validate_params()
    d = content.integer("n_features_in_", 1)
    for name in ARRAYS:
        is_free = name == "variances_" and made.family == "poisson"
        setattr(made, name, content.array(name, (made.n_components,), finite=not is_free))
    made.coef_ = content.array("coef_", (made.n_components, d))
    check_simplex("weights_", made.weights_)
    if made.family == "gaussian" and not (made.variances_ > 0.0).all():
        raise ValueError("variances_ must be positive")
    for name, kind in RESULTS.items():
        setattr(made, name, content.result(name, kind))
    for name, kind in LATER.items():
        unknown = None if kind is str else np.nan
        setattr(made, name, content.result(name, kind) if name in content.header else unknown)
    names = content.names(d)
    if names is not None:
        made.feature_names_in_ = names
    made.history_ = content.history() if "history" in content.header else History()
    made.lower_bounds_ = []
    if "lower_bounds_" in content.arrays:
        made.lower_bounds_ = content.array("lower_bounds_", (None,), finite=False).tolist()
    if "family_" in content.header and made.family == "gaussian":
        _read_joint(made, content, d)
    return made


def _read_joint(made: Any, content: ModelContent, d: int) -> None:
    """Set the mixture of rows (x, y), with the state of ``partial_fit``."""
    family = family_from_header(content.header["family_"])
    known = isinstance(family, GaussianRegression) and family.centre is not None and family.scale is not None
    if not known or len(family.centre) != d + 1 or len(family.scale) != d + 1:
        raise ValueError(f"family_ must be a regression on {d} columns")
    if not (np.isfinite([*family.centre, *family.scale]).all() and min(family.scale) > 0.0):
        raise ValueError("family_ must have finite centres and positive scales")
    now = made._now()
    mixture = JointMixture.from_parameters(
        now.weights, {"coefficients": now.beta, "variances": now.variances}, family=family
    )
    read_state(mixture, content, mixture._fitted_model(), d + 1)
    made._mixture = mixture
