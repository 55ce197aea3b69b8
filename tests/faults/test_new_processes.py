"""Runs and fits resume to the bit in a process that has imported only ``swiftem``."""

import re

import pytest
from dying_fits import Death
from forks import Server
from resume_cases import CASES, QUICK

from swiftem.core.checkpoint import Store
from swiftem.core.state_file import REGISTERED

SAVES = 3
"""Checkpoints after which a process ends."""
NAMED = re.compile(rb'"type": "([^"]+)"')
IN_RECORDS = {"GaussianStatistics", "MixtureStatistics", "PLSAStatistics"}
"""Types that only ``record`` may return, as in the case of records."""


@pytest.fixture(scope="module")
def server():
    server = Server("fresh_server.py")
    yield server
    server.close()


def die(case, folder, monkeypatch):
    """Run a case up to its third checkpoint, and return the names of types in the folder."""
    save, saved = Store.save, []

    def save_and_die(self, tree, **parts):
        save(self, tree, **parts)
        saved.extend(["state"] if "state" in tree else [])
        if len(saved) == SAVES:
            raise Death

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", save_and_die)
        with pytest.raises(Death):
            CASES[case](str(folder), False)
    files = [path for pattern in ("state", "records") for path in folder.rglob(pattern)]
    types = {name.decode() for path in files for name in NAMED.findall(path.read_bytes())}
    assert not [name for name in types if name.startswith("swiftem.")], "a type is not registered"
    return types


def resume(server, case, folder, out):
    server.tell(case=case, folder=str(folder), out=str(out))
    server.hear()
    ended = server.hear()["ended"]
    error = out.with_name(f"{out.name}.error")
    assert not error.exists(), f"{case}: {error.read_text()}"
    assert ended == 0
    return out.read_bytes()


@pytest.mark.parametrize("case", QUICK)
def test_a_new_process_resumes(server, tmp_path, monkeypatch, case):
    types = die(case, tmp_path / "kept", monkeypatch)
    assert types >= QUICK[case], f"the case is not of {QUICK[case] - types}"
    assert resume(server, case, tmp_path / "kept", tmp_path / "out") == CASES[case](None, False)


def test_each_type_has_a_case():
    assert set().union(*QUICK.values()) >= set(REGISTERED) - IN_RECORDS


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case not in QUICK])
def test_a_new_process_resumes_every_pair(server, tmp_path, monkeypatch, case):
    die(case, tmp_path / "kept", monkeypatch)
    assert resume(server, case, tmp_path / "kept", tmp_path / "out") == CASES[case](None, False)
