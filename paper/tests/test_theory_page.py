"""docs/theory.md shows numbers that the library computes, and names that exist."""

import pkgutil
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import swiftem
from paper import theory
from swiftem import methods, models

PAGE = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")


def samples():
    """The 1,000 samples of the page's first block."""
    rng = np.random.default_rng(0)
    return np.where(rng.random(1000) < 0.5, 0.5, -0.5) + rng.normal(size=1000)


def model(strength):
    return models.GaussianMixtureModel(2, delta=strength, epsilon=strength)


def test_the_constants_that_are_shown():
    bound, seen = theory.constants(model(1.0), samples()), theory.estimate_constants(model(1.0), samples())
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)?) \| .* \| ([\d.e+, ]+) \| ([\d.e+, ]+) \|$", PAGE, flags=re.M)
    shown = set()
    for names, bounds, estimates in rows:
        for name, *values in zip(
            re.findall(r"`(\w+)`", names), bounds.split(", "), estimates.split(", "), strict=True
        ):
            shown.add(name)
            for value, constants in zip(values, (bound, seen), strict=True):
                assert float(value) == pytest.approx(constants.named()[name].value, rel=0.01), name
    assert shown == set(bound.named()) - {"C_S_sample", "C_S_residual"}


def test_the_steps_that_are_shown():
    rows = re.findall(r"^\| \$\\gamma\$ of `sem-vr`.* \|((?: [\de.-]+ \|){4})$", PAGE, flags=re.M)
    assert len(rows) == 2
    for row, strength in zip(rows, (1.0, 1e-3), strict=True):
        here = model(strength)
        bound, seen = theory.constants(here, samples()), theory.estimate_constants(here, samples())
        directly = replace(seen, **theory.estimate_smoothness(here, samples())._asdict())
        expected = [theory.VarianceReducedTheorem(found).gamma for found in (bound, seen, directly)]
        shown = [float(cell) for cell in row.strip(" |").split(" | ")]
        assert shown == pytest.approx([*expected, 1000 ** (-2 / 3)], rel=0.03)


def test_the_certificates_that_are_shown():
    row = r"^\| (\d+) \| (\S+e-\d+) \| (\S+e-\d+) \| (\d\.\d+) \| (\d\.\d+) \|$"
    rows = re.findall(row, PAGE, flags=re.M)
    assert len(rows) == 4
    here = models.GaussianMixtureModel(2)
    for passes, *shown in rows:
        result = swiftem.run(
            here, samples(), methods.EM(), theta0=here.theta(means=[[1.0], [-1.0]]), n_iter=int(passes)
        )
        _, gradient, certificate, objective = theory.stationarity(here, samples(), result.s)
        found = [certificate, gradient, objective, result.theta.means[0, 0]]
        assert [float(cell) for cell in shown] == pytest.approx(found, rel=0.03)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(?:paper\.)?(theory(?:\.\w+)+)", PAGE))))
def test_names_exist(name):
    pkgutil.resolve_name(f"paper.{name}")


def test_what_the_page_is_for():
    for heading in ("Which step size", "How to read the certificate", "What is proven"):
        assert f"## {heading}\n" in PAGE
