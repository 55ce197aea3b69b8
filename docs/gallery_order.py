"""The order of the examples in the gallery: from a first fit to methods of one's own."""

from __future__ import annotations

ORDER = [
    "mixture_ellipses",
    "iris_clusters",
    "digits",
    "density",
    "anomalies",
    "colours",
    "model_choice",
    "selection_criteria",
    "weighted_rows",
    "priors",
    "conditional",
    "counts",
    "answers",
    "mixed_columns",
    "survey",
    "missing_values",
    "regressions",
    "regimes",
    "outliers",
    "own_family",
    "topics",
    "topic_map",
    "number_of_topics",
    "online_mixture",
    "larger_than_memory",
    "checkpoints",
    "convergence_by_method",
    "step_sizes",
    "own_model",
]


def by_place(name: str) -> tuple[int, str]:
    """Return the place of a file; those that the list does not have come last, by name."""
    stem = name.removesuffix(".py")
    return (ORDER.index(stem) if stem in ORDER else len(ORDER), stem)
