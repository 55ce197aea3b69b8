"""Private or new parts of scikit-learn, and the constraints of parameters that are made of them.

A version without these parts gives an error of one sentence.
"""

from __future__ import annotations

from importlib import import_module
from numbers import Integral, Real
from typing import Any

from swiftem.methods.accelerated import ACCELERATIONS

__all__ = [
    "AT_LEAST_ONE",
    "CONSTRAINTS",
    "NOT_NEGATIVE",
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "StrOptions",
    "_check_sample_weight",
    "_compute_precision_cholesky_from_precisions",
    "_fit_context",
    "with_callbacks",
]

PARTS = {
    "_fit_context": "sklearn.base",
    "CallbackSupportMixin": "sklearn.callback",
    "with_callbacks": "sklearn.callback",
    "_compute_precision_cholesky_from_precisions": "sklearn.mixture._gaussian_mixture",
    "HasMethods": "sklearn.utils._param_validation",
    "Interval": "sklearn.utils._param_validation",
    "StrOptions": "sklearn.utils._param_validation",
    "_check_sample_weight": "sklearn.utils.validation",
}
"""Names, and their modules."""
METHODS = ("_validate_params", "__sklearn_clone__", "__sklearn_tags__")
"""Members of ``sklearn.base.BaseEstimator``."""
WORKS = "1.9"
"""The supported version."""


def find_parts() -> dict[str, Any]:
    """Return the parts by name; raise an error if this scikit-learn does not have one of them.

    >>> find_parts()["Interval"].__name__
    'Interval'
    """
    import sklearn
    from sklearn.base import BaseEstimator

    found, missing = {}, [f"BaseEstimator.{name}" for name in METHODS if not hasattr(BaseEstimator, name)]
    for name, module in PARTS.items():
        try:
            found[name] = getattr(import_module(module), name)
        except (ImportError, AttributeError):
            missing.append(f"{module}.{name}")
    if missing:
        import swiftem

        raise ImportError(
            f"swiftem {swiftem.__version__} works with scikit-learn {WORKS}, not with {sklearn.__version__}, "
            f"which has no {missing[0]}: pip install 'scikit-learn=={WORKS}.*', or install a later swiftem."
        )
    return found


_parts = find_parts()
CallbackSupportMixin: Any = _parts["CallbackSupportMixin"]
HasMethods: Any = _parts["HasMethods"]
Interval: Any = _parts["Interval"]
StrOptions: Any = _parts["StrOptions"]
_check_sample_weight: Any = _parts["_check_sample_weight"]
_compute_precision_cholesky_from_precisions: Any = _parts["_compute_precision_cholesky_from_precisions"]
_fit_context: Any = _parts["_fit_context"]
with_callbacks: Any = _parts["with_callbacks"]

AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
NOT_NEGATIVE = Interval(Real, 0.0, None, closed="left")
CONSTRAINTS: dict[str, Any] = {
    "n_components": [AT_LEAST_ONE],
    "tol": [NOT_NEGATIVE],
    "batch_size": [StrOptions({"auto"}), AT_LEAST_ONE],
    "step_size": [
        StrOptions({"auto"}),
        Interval(Real, 0.0, 1.0, closed="right"),
        callable,
        HasMethods("resolve"),
    ],
    "acceleration": [None, StrOptions(set(ACCELERATIONS))],
    "device": [str],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "verbose_interval": [AT_LEAST_ONE],
}
"""What all estimators accept, as scikit-learn's ``_parameter_constraints``."""
