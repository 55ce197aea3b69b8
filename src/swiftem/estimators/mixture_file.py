"""What of a fitted mixture is kept in its file."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from swiftem._typing import Array
from swiftem.estimators.fit_checkpoint import KEEPING
from swiftem.estimators.history import History, Moment
from swiftem.estimators.mixture_queries import FITTED
from swiftem.estimators.online import OnlineMixture
from swiftem.estimators.persistence import plain
from swiftem.estimators.reservoir import Reservoir
from swiftem.models import GaussianMixtureModel, NormalInverseWishart
from swiftem.models.gaussian_theta import GaussianTheta
from swiftem.schedules import constant, inverse, power, sample_size

__all__ = ["MixtureFile", "Past"]

PLAIN = (int, float, str, bool, type(None))
SCHEDULES = {schedule.__name__: schedule for schedule in (constant, inverse, power, sample_size)}
NUMBERS = ("converged_", "n_iter_", "lower_bound_", "stationarity_", "method_", "n_features_in_")
"""Fitted attributes in the header."""
ARRAYS = ("weights_init", "means_init", "precisions_init", "init_params")
"""Parameters that may be arrays."""
ONLINE, SAMPLE = ("seen", "refit_at", "bound", "n_batches"), ("rows", "weight", "rank")
"""What is kept of the state of ``partial_fit``."""


class Past(NamedTuple):
    """What a fit leaves for ``partial_fit`` to go on from: statistics, their centre, and the rows' weight."""

    s: Array | None
    centre: Array
    weight: float


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

        def __init__(self, **parameters: Any) -> None: ...
        def _set_parameters(self, params: Any) -> None: ...
        def _theta(self, d: int | None = None) -> GaussianTheta: ...
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
    def _from_file(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        parameters = dict(header["parameters"])
        if "step_size" in header:
            name, values = header["step_size"]
            parameters["step_size"] = SCHEDULES[name](*values)
        if "prior" in header:
            parameters["prior"] = NormalInverseWishart(*header["prior"])
        for name in ARRAYS:
            if f"parameter_{name}" in arrays:
                parameters[name] = arrays[f"parameter_{name}"]
        made = cls(**parameters)
        made._set_parameters(tuple(arrays[name] for name in FITTED))
        for name in NUMBERS:
            setattr(made, name, header[name])
        for name, part in zip(FITTED, made._theta(made.n_features_in_), strict=True):
            if not np.isfinite(part).all():
                raise ValueError(name)
        if "feature_names_in_" in header:
            made.feature_names_in_ = np.array(header["feature_names_in_"], dtype=object)
        made.lower_bounds_ = arrays["lower_bounds_"].tolist()
        made.history_ = History([Moment(*moment) for moment in header["history"]])
        if "past_weight" in header:
            made._past = Past(arrays["past_s"], arrays["past_centre"], header["past_weight"])
        if "online" in header:
            kept = header["online"]
            rng = np.random.default_rng()
            rng.bit_generator.state = kept["rng"]
            rows, weight, rank = (arrays[f"online_{name}"] for name in SAMPLE)
            sample = Reservoir(kept["size"], rows, weight, rank, kept["threshold"])
            made._online = OnlineMixture(
                made._model(), arrays["online_centre"], arrays["online_s"], sample=sample, rng=rng,
                **{name: kept[name] for name in ONLINE},
            )  # fmt: skip
        return made


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
