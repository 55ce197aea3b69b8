"""What of a fitted mixture is kept in its file."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from swiftem.estimators.fit_checkpoint import KEEPING
from swiftem.estimators.history import History
from swiftem.estimators.mixture.content import ONLINE, SAMPLE, Past, read_fitted, read_online, read_past
from swiftem.estimators.mixture.online import OnlineMixture
from swiftem.estimators.mixture.queries import FITTED
from swiftem.estimators.model_content import ModelContent, check_parameters
from swiftem.estimators.persistence import plain
from swiftem.models import GaussianMixtureModel, NormalInverseWishart
from swiftem.schedules import constant, inverse, power, sample_size

__all__ = ["MixtureFile"]

PLAIN = (int, float, str, bool, type(None))
SCHEDULES = {schedule.__name__: schedule for schedule in (constant, inverse, power, sample_size)}
NUMBERS = {
    "converged_": bool, "n_iter_": int, "lower_bound_": float, "stationarity_": float, "method_": str,
    "n_features_in_": int,
}  # fmt: skip
"""Fitted attributes in the header, and their types."""
ARRAYS = ("weights_init", "means_init", "precisions_init", "init_params")
"""Parameters that may be arrays."""


class MixtureFile:
    """What :class:`swiftem.estimators.persistence.Persistent` asks of :class:`swiftem.GaussianMixture`."""

    if TYPE_CHECKING:  # what the estimator has
        prior: NormalInverseWishart | None
        n_features_in_: int
        feature_names_in_: NDArray[Any]
        lower_bounds_: list[float]
        history_: History
        _online: OnlineMixture
        _past: Past

        def _validate_params(self) -> None: ...
        def _check_parameters(self, X: Any, xp: Any) -> None: ...
        def __init__(self, **parameters: Any) -> None: ...
        def _set_parameters(self, params: Any) -> None: ...
        def _model(self) -> GaussianMixtureModel: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters."""

    def _to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        check_is_fitted(self)
        header, arrays = _parameters(self.get_params(deep=False))
        for name in NUMBERS:
            value = getattr(self, name, None)
            header[name] = plain(value)
        if hasattr(self, "feature_names_in_"):
            header["feature_names_in_"] = [str(name) for name in self.feature_names_in_]
        header["history"] = [list(moment) for moment in getattr(self, "history_", [])]
        arrays |= {name: np.asarray(getattr(self, name)) for name in FITTED}
        arrays["lower_bounds_"] = np.asarray(getattr(self, "lower_bounds_", []), dtype=np.float64)
        past: Past | None = self.__dict__.get("_past")
        if past is not None and past.s is not None:
            header["past_weight"] = past.weight
            arrays |= {"past_s": past.s, "past_centre": past.centre}
        online: OnlineMixture | None = self.__dict__.get("_online")
        if online is not None:
            header["online"] = {name: getattr(online, name) for name in ONLINE} | {
                "size": online.sample.size, "threshold": online.sample.threshold,
                "rng": online.rng.bit_generator.state,
            }  # fmt: skip
            arrays |= {"online_s": online.s, "online_centre": online.centre}
            arrays |= {f"online_{name}": getattr(online.sample, name) for name in SAMPLE}
        return header, arrays

    @classmethod
    def _from_file(cls, content: ModelContent) -> Self:
        made = cls(**_parameters_of(content))
        made._validate_params()
        check_parameters(made)
        model, d = made._model(), content.integer("n_features_in_", 1)
        # First what is as large as the file says: the rest may say anything of its size.
        made._set_parameters(read_fitted(content, model, d))
        made._check_parameters(np.empty((0, d)), xp=np)
        if made.prior is not None:
            made.prior.bind(np.zeros(d))
        for name, kind in NUMBERS.items():
            setattr(made, name, content.result(name, kind))
        names = content.names(d)
        if names is not None:
            made.feature_names_in_ = names
        made.lower_bounds_ = content.array("lower_bounds_", (None,), finite=False).tolist()
        made.history_ = content.history()
        if "past_weight" in content.header:
            made._past = read_past(content, model, d)
        if "online" in content.header:
            made._online = read_online(content, model, d)
        return made


def _parameters_of(content: ModelContent) -> dict[str, Any]:
    """Return the estimator's parameters as a file has them."""
    parameters = content.parameters(left_out=KEEPING)
    if "step_size" in content.header:
        name, values = content.header["step_size"]
        parameters["step_size"] = SCHEDULES[name](*values)
    if "prior" in content.header:
        parameters["prior"] = NormalInverseWishart(*content.header["prior"])
    for name in ARRAYS:
        found = content.numbers(f"parameter_{name}")
        if found is not None:
            parameters[name] = found
    return parameters


def _parameters(parameters: dict[str, Any]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return parameters as a header and arrays; functions, generators and checkpoints are left out."""
    header: dict[str, Any] = {"parameters": {}}
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in parameters.items():
        if name in KEEPING:  # they belong to a fit, not to its model
            continue
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, PLAIN):
            header["parameters"][name] = value
        elif isinstance(value, NormalInverseWishart):
            header["prior"] = [getattr(value, field.name) for field in fields(value)]
        elif type(value) in SCHEDULES.values():
            header[name] = [type(value).__name__, [getattr(value, field.name) for field in fields(value)]]
        elif name in ARRAYS and not callable(value):
            arrays[f"parameter_{name}"] = np.asarray(value)
    return header, arrays
