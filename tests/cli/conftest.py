"""What the tests of the command line share."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from swiftem.cli.app import app


@pytest.fixture
def call():
    """Return a function that checks the exit code and gives standard output and standard error."""

    def run(*arguments, code=0):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == code, result.output
        return result.stdout, result.stderr

    return run


@pytest.fixture
def invoke(call):
    """Return a function that checks the exit code and gives all that is shown, in one line."""

    def run(*arguments, code=0):
        plain = re.sub(r"\x1b\[[0-9;]*m", "", " ".join(call(*arguments, code=code)))
        return re.sub(r"[\s│╭╮╰╯─]+", " ", plain)

    return run


@pytest.fixture
def run(invoke):
    """Return ``invoke`` for ``swiftem topics``."""
    return lambda *arguments, code=0: invoke("topics", *arguments, code=code)


@pytest.fixture
def folder(tmp_path):
    """Return a folder of text files about two things."""
    folder = tmp_path / "my texts"
    folder.mkdir()
    for number in range(12):
        about = "apple pear plum apple fig" if number % 3 else "hammer saw chisel saw plane"
        (folder / f"{number:02}.txt").write_text(about)
    return folder


@pytest.fixture(scope="session")
def clusters():
    """Three clusters: heights and widths (120, 2), and weights (120,)."""
    rng = np.random.default_rng(0)
    centres = np.repeat([[20.0, 3.0], [45.0, 8.0], [35.0, 2.0]], 40, axis=0)
    return rng.normal(centres, [2.0, 0.5]).round(3), rng.integers(0, 4, size=120).astype(float)


@pytest.fixture
def flowers(tmp_path, clusters):
    """A CSV file with the columns kind, height, width and w."""
    file = tmp_path / "flowers.csv"
    rows = [f"red,{height},{width},{weight}" for (height, width), weight in zip(*clusters, strict=True)]
    file.write_text("\n".join(["kind,height,width,w", *rows]))
    return file


@pytest.fixture
def model(tmp_path, clusters):
    """A model with the columns height and width, and the same as an estimator without names."""
    from swiftem import GaussianMixture

    mixture = GaussianMixture(3, random_state=0).fit(clusters[0])
    mixture.feature_names_in_ = np.array(["height", "width"], dtype=object)
    mixture.save(tmp_path / "flowers.model")
    del mixture.feature_names_in_
    return tmp_path / "flowers.model", mixture
