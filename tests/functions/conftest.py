import pytest

from swiftem.functions.compute import FunctionsCompute


@pytest.fixture
def taken(monkeypatch):
    """The classes of the loops that runs took, but for those of the reference."""
    seen, loop = [], FunctionsCompute.loop

    def recorded(self, task):
        made = loop(self, task)
        if self.placement.form != "reference":
            seen.append(type(made).__name__)
        return made

    monkeypatch.setattr(FunctionsCompute, "loop", recorded)
    return seen
