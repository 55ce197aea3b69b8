"""What reports and checkpoints say of the computer."""

import builtins
import platform

import numpy as np
import pytest

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


@pytest.mark.parametrize("name", ["AMD64 Family 25", ""])
def test_a_system_that_does_not_tell_its_processor(name, monkeypatch):
    def refuse(*args, **kwargs):
        raise FileNotFoundError

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(platform, "processor", lambda: name)
    assert environment()["processor"] == (name or "unknown processor")
