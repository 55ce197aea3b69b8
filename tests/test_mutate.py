"""The list of mutants is up to date, and its runner tells what was noticed from what was not."""

import shlex
import subprocess
from collections import Counter
from pathlib import Path

import mutate
import pytest

MUTANTS = mutate.read_mutants()


def test_every_mutant_changes_one_place_of_the_source():
    assert len(MUTANTS) > 60
    for mutant in MUTANTS:
        text = (mutate.ROOT / "src" / "swiftem" / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, f"{mutant.name}: the text is gone, or not alone"
        assert mutant.new != mutant.old


def test_every_mutant_has_a_name_and_tests_or_a_reason():
    assert [name for name, count in Counter(mutant.name for mutant in MUTANTS).items() if count > 1] == []
    for mutant in MUTANTS:
        assert bool(mutant.tests) != bool(mutant.why)
        for test in shlex.split(mutant.tests):
            path, *names = test.partition("[")[0].split("::")  # a test may be in a class
            text = (mutate.ROOT / path).read_text(encoding="utf-8")
            assert not names or f"def {names[-1]}(" in text, mutant.name


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of one function, a test of it, and four mutants."""
    package, tests = tmp_path / "src" / "swiftem", tmp_path / "tests"
    package.mkdir(parents=True)
    tests.mkdir()
    (package / "__init__.py").write_text("def twice(x):\n    y = x + x\n    return y\n")
    (tests / "test_twice.py").write_text(
        "import swiftem\n\n\ndef test():\n    assert swiftem.twice(2) == 4\n"
    )
    (tests / "mutants_all.py").write_text(
        "MUTANTS = [('sum', '__init__.py', 'x + x', 'x - x', 'tests/test_twice.py'),\n"
        "           ('power', '__init__.py', 'x + x', 'x ** x', 'tests/test_twice.py'),\n"
        "           ('old', '__init__.py', 'x / x', 'x', 'tests/test_twice.py'),\n"
        "           ('crash', '__init__.py', 'y = x + x', 'import os; os.abort()', 'tests/test_twice.py')]\n"
        "EQUIVALENT = [('product', '__init__.py', 'x + x', '2 * x', 'numbers do not tell')]\n"
    )
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    monkeypatch.setattr(mutate, "read_mutants", lambda read=mutate.read_mutants: read(tests))
    return package / "__init__.py"


def test_what_was_noticed_and_what_was_not(project, capsys):
    before = project.read_text()
    assert mutate.main(["-j", "2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    found = {line.split("  (")[0][13:]: line[:13].strip() for line in lines[:-1]}
    assert found == {"sum": "killed", "power": "survived", "old": "text is gone", "crash": "killed"}
    assert lines[-1] == "2 killed, 1 survived, 1 text is gone"
    assert project.read_text() == before


def test_tests_that_fail_by_themselves_tell_nothing(project, capsys):
    project.write_text("def twice(x):\n    return x + x + 1\n")
    assert mutate.main(["--only", "sum"]) == 2
    assert "do not pass without a mutant" in capsys.readouterr().out


def test_a_list(project, capsys):
    assert mutate.main(["--list", "--only", "product", "--only", "sum"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "sum: __init__.py: tests/test_twice.py", "product: __init__.py: equivalent: numbers do not tell"
    ]  # fmt: skip
    with pytest.raises(SystemExit):
        mutate.main(["--only", "nothing"])


def test_a_run_that_was_stopped_continues(project, capsys, tmp_path):
    """What is known is not run again, unless the mutant, its file or its tests change."""
    kept = ["--folder", str(tmp_path / "kept"), "--only", "sum", "--only", "power"]
    assert mutate.main([*kept, "--only", "old"]) == 1
    assert "killed       sum" in capsys.readouterr().out
    with mutate.place(tmp_path / "kept"), pytest.raises(SystemExit, match="kept is in use"):
        mutate.main(kept)
    assert mutate.main(kept) == 1
    assert capsys.readouterr().out == "1 killed, 1 survived\n"
    tests = tmp_path / "tests" / "test_twice.py"
    tests.write_text(tests.read_text() + "    assert swiftem.twice(3) == 6\n")
    assert mutate.main(kept) == 0
    assert "killed       power" in capsys.readouterr().out
    project.write_text(project.read_text() + "\n")
    assert mutate.main(kept) == 0
    assert "killed       sum" in capsys.readouterr().out


def test_what_ends_pytest_from_outside_kills_no_mutant():
    found = [mutate.verdict(status) for status in (0, 1, 2, 4, 5, -6, -11, -9, -15, -2)]
    assert found == ["survived", "killed", *3 * ["no tests ran"], *2 * ["killed"], *3 * ["no tests ran"]]


@pytest.mark.parametrize("slow", [False, True], ids=["an endless loop", "a slow machine"])
def test_an_endless_loop_is_noticed_and_a_slow_machine_is_none(project, capsys, monkeypatch, tmp_path, slow):
    run = subprocess.run

    def run_for_long(command, **options):
        source = Path(options["env"]["PYTHONPATH"], "swiftem", "__init__.py").read_text()
        if slow or "x - x" in source:
            raise subprocess.TimeoutExpired(command, options["timeout"])
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", run_for_long)
    assert mutate.main(["--only", "sum", "--skip-unchanged"]) == int(slow)
    assert capsys.readouterr().out.startswith("no tests ran sum" if slow else "killed       sum")
