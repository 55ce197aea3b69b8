"""Draw the pictures of docs/hidden_markov_models.md: decoded states, and transitions.

Run it: PYTHONPATH=. python docs/images/hidden_markov_models.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import swiftem

FOLDER = Path(__file__).parent


def walks() -> np.ndarray:
    """Return the speed of an animal that rests, feeds and travels, and its turning, (600, 2)."""
    transmat = [[0.96, 0.04, 0.0], [0.03, 0.92, 0.05], [0.0, 0.08, 0.92]]
    means, covariances = [[0.2, 0.0], [1.0, 0.5], [3.0, 0.0]], [[0.02, 1.0], [0.15, 1.0], [0.4, 0.1]]
    params = {"means": means, "covariances": covariances}
    truth = swiftem.HiddenMarkovModel.from_parameters([1.0, 0.0, 0.0], transmat, params, random_state=3)
    return truth.sample(600)[0]


def main() -> None:
    """Fit, and write both pictures."""
    X = walks()
    model = swiftem.HiddenMarkovModel(3, random_state=0).fit(X)
    for name, size in (("states", (8.0, 3.2)), ("transitions", (4.2, 3.6))):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        if name == "states":
            model.plot_states(X[:300], axes=axes)
            axes.set_ylabel("speed")
        else:
            model.plot_transitions(axes)
        figure.savefig(FOLDER / f"hmm_{name}.png", dpi=110)


if __name__ == "__main__":
    main()
