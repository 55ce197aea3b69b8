"""Every process collects the same tests: pytest-xdist refuses to begin otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(not (HERE.parent / "pyproject.toml").exists(), reason="needs the repository")
def test_another_process_at_another_time_collects_the_same(request):
    path = os.pathsep.join([str(HERE / "_support"), str(HERE), *sys.path])
    environment = os.environ | {"PYTHONHASHSEED": "12345", "TZ": "Asia/Tokyo", "PYTHONPATH": path}
    # A doctest's id is its object's name.
    here = {item.nodeid for item in request.session.items if isinstance(item, pytest.Function)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "later_clock", "-p", "no:cacheprovider", "--collect-only",
         "-q", "-o", "addopts=", "--import-mode=importlib", "--assert=plain",
         *sorted({name.partition("::")[0] for name in here})],
        cwd=HERE.parent, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    there = {line for line in done.stdout.splitlines() if "::" in line}
    assert here <= there, sorted(here - there)[:5]
