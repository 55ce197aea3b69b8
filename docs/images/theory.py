"""Draw the picture of docs/theory.md: the three panels of ``python -m paper theory``.

Run it: PYTHONPATH=. python docs/images/theory.py
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from paper.experiments.theory import theory_in_numbers, theory_section

FILE = Path(__file__).with_name("theory.png")


def main() -> None:
    panels = theory_section(theory_in_numbers()).pictures[0].panels
    figure = Figure(figsize=(15.5, 4.2), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
        axes.set_title(panel.title, loc="left")
        panel.draw(axes)
    figure.savefig(FILE, dpi=85, metadata={"Software": None})
    print(f"Drawn: {FILE}")


if __name__ == "__main__":
    main()
