"""Draw the picture of docs/methods.md: the panel against epochs of ``python -m paper gmm-precision``.

Run it: PYTHONPATH=. python docs/images/gmm_precision.py
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from paper.experiments.gmm_precision import gmm_precision, precision_section

FILE = Path(__file__).with_name("gmm-precision.png")


def main() -> None:
    by_epochs = precision_section(gmm_precision()).pictures[0].panels[0]
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    by_epochs.draw(axes)
    axes.set_title("Five EM methods on 10,000 samples; bands: range over 5 runs", loc="left")
    figure.savefig(FILE, dpi=110, metadata={"Software": None})
    print(f"Drawn: {FILE}")


if __name__ == "__main__":
    main()
