import pytest

import swiftem.algorithm
from swiftem.engine.functions import functions_lane


@pytest.fixture
def taken(monkeypatch):
    """The lanes that runs took: each test says whether the fused one was among them."""
    seen = []

    def choose(kernels, task):
        found = None if kernels == "reference" else functions_lane(task)
        if kernels != "reference":
            seen.append(type(found).__name__)
        return found

    monkeypatch.setattr(swiftem.algorithm, "choose_lane", choose)
    return seen
