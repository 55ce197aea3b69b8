"""Draw the picture of the README: whole default fits of swiftem and of other packages, from stored runs.

Run it: PYTHONPATH=. python docs/images/peers.py
"""

from __future__ import annotations

import json
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.marks import in_seconds
from benchmarks.page import PEERS

FOLDER = Path(__file__).parent
TITLES = {
    "mixture": "Gaussian mixture\n200,000 × 8, 8 components",
    "overlapping": "Gaussian mixture\n500,000 × 8, 16 components",
    "survey": "Latent classes\n20,000 × 15, with gaps",
    "topics": "Topics\n7,300 documents, 20 topics",
}
THEMES = {"light": ("#1f2328", "#0072B2", "#B8C0C8"), "dark": ("#e6edf3", "#56B4E9", "#5A6470")}
"""Colours of text, of swiftem's bars, and of the others'."""


def main() -> None:
    stored = json.loads(PEERS.read_text(encoding="utf-8"))
    for theme, (text, ours, theirs) in THEMES.items():
        figure = Figure(figsize=(10.5, 2.7), layout="constrained", facecolor="none")
        for axes, (task, title) in zip(figure.subplots(1, len(TITLES)), TITLES.items(), strict=True):
            fits = stored[task]["fits"]
            most = max(fit["seconds"] for fit in fits)
            for place, fit in enumerate(fits):
                colour = ours if fit["package"] == "swiftem" else theirs
                axes.barh(place, fit["seconds"], color=colour, height=0.55)
                value = f"{fit['value']:.{2 if stored[task]['digits'] else 0}f}".replace("-", "−")
                label = f" {fit['package']}  {in_seconds(fit['seconds'])}  ({value})"
                axes.text(0, place - 0.34, label, color=text, fontsize=9, va="bottom")
            axes.set(xlim=(0, most * 1.02), ylim=(len(fits) - 0.6, -0.75), xticks=[], yticks=[])
            axes.set_facecolor("none")
            axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
            axes.set_title(title, loc="left", color=text, fontsize=10, fontweight="bold")
        figure.supxlabel(
            "Seconds of a default fit; in brackets log-likelihood per row (higher is better) "
            "or held-out perplexity (lower is better).",
            color=text, fontsize=9, x=0.01, ha="left",
        )  # fmt: skip
        file = FOLDER / f"peers-{theme}.png"
        figure.savefig(file, dpi=110, metadata={"Software": None})
        print(f"Drawn: {file}")


if __name__ == "__main__":
    main()
