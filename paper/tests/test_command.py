"""``python -m paper``: its help, and options that are refused."""

import pytest

from paper import reproduce as module
from paper.reproduce import NAMES


@pytest.fixture(autouse=True)
def _nothing_is_computed(monkeypatch):
    monkeypatch.setattr("paper.tests.conftest.reproduce", lambda request: pytest.fail(f"computes: {request}"))


def test_all_experiments_have_a_section():
    assert set(module.SECTIONS) == set(NAMES)


def test_help(invoke):
    code, output = invoke("--help")
    assert code == 0
    for words in ("--quick", "--runs", "--seed", "--corpus", "--out", "for plsa 3", "results/paper", *NAMES):
        assert words in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: name"),
        (["gmm-precison"], "choose from"),
        (["all", "--quik"], "--quik"),
        (["plsa", "--runs", "0"], "argument --runs: 0 is less than 1"),
        (["plsa", "--runs", "many"], "argument --runs: invalid integer value: 'many'"),
        (["plsa", "--seed", "-1"], "argument --seed"),
        (["gmm-scaling", "--corpus", "texts.txt"], "only plsa and all read a corpus"),
    ],
)
def test_wrong_options_are_refused(arguments, words, invoke):
    code, output = invoke(*arguments)
    assert code == 2
    assert words in output


def test_a_file_as_folder_is_refused(tmp_path, invoke):
    file = tmp_path / "taken"
    file.write_text("mine")
    for out in (file, file / "below"):
        code, output = invoke("plsa", "--out", out)
        assert code == 2
        assert "--out" in output
    assert file.read_text() == "mine"
