"""What reports and checkpoints say of the computer."""

import platform

import numpy as np

import swiftem
from swiftem.core.describe import environment


def test_versions_are_those_that_are_installed():
    found = environment()
    assert found["swiftem"] == swiftem.__version__
    assert found["python"] == platform.python_version()
    assert found["numpy"] == np.__version__
    assert "cores" in found["machine"]


def test_what_is_missing_is_said_so():
    assert environment("no-such-package")["no-such-package"] == "not installed"
