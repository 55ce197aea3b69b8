"""The content of the file of a fitted mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from swiftem.core.checks import in_numpy
from swiftem.fit.history import History
from swiftem.fit.model_content import (
    ModelContent,
    check_parameters,
    method_from_header,
    method_to_header,
)
from swiftem.fit.persistence import plain
from swiftem.methods import Method
from swiftem.mixture.content import ONLINE, SAMPLE, read_online, read_past
from swiftem.mixture.families import Blocks, Given, find_family, read_family
from swiftem.mixture.online import OnlineMixture, Past
from swiftem.mixture.prior import NormalInverseWishart

__all__ = [
    "family_from_header",
    "family_header",
    "flat",
    "mixture_from_file",
    "mixture_to_file",
    "read_state",
    "state_to_file",
]

LEFT_OUT = ("device",)
"""Parameters that belong to the fit, not to the model."""
PLAIN = (int, float, str, bool, type(None))
NUMBERS = {
    "converged_": bool,
    "n_iter_": int,
    "lower_bound_": float,
    "stationarity_": float,
    "log_likelihood_": float,
    "method_": str,
    "n_features_in_": int,
}
"""Fitted attributes in the header, and their types."""
ARRAYS = ("weights_init", "means_init", "precisions_init", "init_params")
"""Parameters that may be arrays."""


def mixture_to_file(estimator: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the content of a fitted mixture's file: header and arrays."""
    check_is_fitted(estimator)
    header, arrays = _parameters(estimator.get_params(deep=False))
    for name in NUMBERS:
        header[name] = plain(getattr(estimator, name, None))
    if hasattr(estimator, "feature_names_in_"):
        header["feature_names_in_"] = [str(name) for name in estimator.feature_names_in_]
    history = getattr(estimator, "history_", History())
    header["history"], header["moves"] = [list(moment) for moment in history], history.moves
    if hasattr(estimator, "family_"):
        header["family_"] = family_header(estimator.family_)
    if "_texts" in estimator.__dict__:  # codes are in the family
        header["categories_"] = [
            [name, [part if isinstance(part, PLAIN) else str(part) for part in parts]]
            for name, parts in estimator.__dict__["_texts"].items()
        ]
    arrays |= estimator._fitted_arrays()
    arrays["lower_bounds_"] = np.asarray(getattr(estimator, "lower_bounds_", []), dtype=np.float64)
    of_state = state_to_file(estimator)
    return header | of_state[0], arrays | of_state[1]


def state_to_file(estimator: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the state of ``partial_fit``, or what it needs after a fit: header and arrays."""
    header: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    past: Past | None = estimator.__dict__.get("_past")
    if past is not None and past.s is not None:
        header["past_weight"] = past.weight
        arrays |= {"past_s": past.s, "past_centre": past.centre}
    online: OnlineMixture | None = estimator.__dict__.get("_online")
    if online is not None:
        header["online"] = {name: getattr(online, name) for name in ONLINE} | {
            "size": online.sample.size,
            "threshold": online.sample.threshold,
            "rng": online.rng.bit_generator.state,
        }
        arrays |= {"online_s": online.s, "online_centre": online.centre}
        arrays |= {f"online_{name}": getattr(online.sample, name) for name in SAMPLE}
    return header, arrays


def mixture_from_file(cls: type[Any], content: ModelContent) -> Any:
    """Return the mixture of a file, or raise an error that says what is wrong with the file."""
    made = cls(**_parameters_of(content))
    made._validate_params()
    check_parameters(made)
    d = content.integer("n_features_in_", 1)
    # First the arrays, whose size is bounded by the file's: the header may claim any size.
    made._read_fitted(content, d)
    model = made._fitted_model()
    for name, kind in NUMBERS.items():
        setattr(made, name, content.result(name, kind))
    names = content.names(d)
    if names is not None:
        made.feature_names_in_ = names
    if "categories_" in content.header:
        made._texts = _categories(content.header["categories_"])
    made.lower_bounds_ = content.array("lower_bounds_", (None,), finite=False).tolist()
    made.history_ = content.history()
    read_state(made, content, model, d)
    return made


def read_state(made: Any, content: ModelContent, model: Any, d: int) -> None:
    """Set the state of ``partial_fit`` from a file, if it has one."""
    if "past_weight" in content.header:
        made._past = read_past(content, model, d)
    if "online" in content.header:
        made._online = read_online(content, model, d)


def _categories(header: Any) -> dict[Any, tuple[Any, ...]]:
    """Return the categories of columns from a file."""
    columns: Any = header if isinstance(header, list) else [None]
    for column in columns:
        is_pair = isinstance(column, list) and len(column) == 2 and isinstance(column[0], str | int)
        parts = column[1] if is_pair else None
        if not isinstance(parts, list) or not all(isinstance(part, PLAIN) for part in parts):
            raise ValueError("categories_ must be a list of columns and their categories")
    return {name: tuple(parts) for name, parts in columns}


def _parameters_of(content: ModelContent) -> dict[str, Any]:
    """Return the estimator's parameters from a file."""
    parameters = content.parameters(left_out=LEFT_OUT)
    if "method" in content.header:
        parameters["method"] = method_from_header(content.header["method"])
    if "family" in content.header:
        parameters["family"] = family_from_header(content.header["family"])
    if "prior" in content.header:
        parameters["prior"] = NormalInverseWishart(*content.header["prior"])
    start = [name for name in content.arrays if name.startswith("parameter_params_init.")]
    if start:
        parameters["params_init"] = {}
    for name in start:
        inside, *path = parameters["params_init"], *name.split(".")[1:]
        for part in path[:-1]:
            inside = inside.setdefault(part, {})
            if not isinstance(inside, dict):
                raise ValueError("params_init must be arrays by name, or by family and name")
        inside[path[-1]] = content.numbers(name)
    for name in ARRAYS:
        found = content.numbers(f"parameter_{name}")
        if found is not None:
            parameters[name] = found
    return parameters


def family_header(family: Given) -> Any:
    """Return a family as JSON can hold it: its name and fields, or the blocks that it is made of."""
    if isinstance(family, str):
        return family
    if isinstance(family, Mapping):
        blocks = read_family(family)
        assert isinstance(blocks, Blocks)
        pairs = zip(family, blocks.columns, strict=True)
        return {"dict": [[family_header(key), list(columns)] for key, columns in pairs]}
    if isinstance(family, Blocks):
        pairs = zip(family.families, family.columns, strict=True)
        return {"blocks": [[family_header(part), list(columns)] for part, columns in pairs]}
    return [family.name, {part.name: getattr(family, part.name) for part in fields(family)}]  # type: ignore[arg-type]


def family_from_header(header: Any) -> Any:
    """Return what a file holds for a family: its name, itself, a dict of blocks, or blocks."""
    if isinstance(header, str):
        return header
    if isinstance(header, dict):
        ((kind, pairs),) = header.items()
        found = {family_from_header(part): columns for part, columns in pairs}
        return found if kind == "dict" else read_family(found)
    name, values = header
    return find_family(name)(**{key: _tuples(value) for key, value in values.items()})


def _tuples(value: Any) -> Any:
    """Return lists as tuples, which JSON has not."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def flat(params: Mapping[str, Any], prefix: str = "") -> dict[str, NDArray[Any]]:
    """Return arrays in dicts by name, with those of a block after its name and a dot."""
    found: dict[str, NDArray[Any]] = {}
    for name, part in params.items():
        found |= (
            flat(part, f"{prefix}{name}.")
            if isinstance(part, Mapping)
            else {f"{prefix}{name}": np.asarray(part)}
        )
    return found


def _parameters(parameters: dict[str, Any]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return parameters as header and arrays; functions and generators are omitted."""
    header: dict[str, Any] = {"parameters": {}}
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in parameters.items():
        if name in LEFT_OUT:
            continue
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, PLAIN):
            header["parameters"][name] = value
        elif name == "family":
            header["family"] = family_header(value)
        elif name == "params_init":
            arrays |= flat(value, "parameter_params_init.")
        elif isinstance(value, NormalInverseWishart):
            header["prior"] = [getattr(value, field.name) for field in fields(value)]
        elif isinstance(value, Method):
            header["method"] = method_to_header(value) or "auto"
        elif name in ARRAYS and not callable(value):
            arrays[f"parameter_{name}"] = np.asarray(in_numpy(value))
    return header, arrays
