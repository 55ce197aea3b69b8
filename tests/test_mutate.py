"""Mutants are made from the syntax tree, run in a copy of the source, and reported if they survive."""

import ast

import mutate
import pytest

SOURCE = '''"""Two functions. 1 + 1."""

__all__ = ["clipped"]


def clipped(x: "int | None", low: int = 0, bold=True) -> "1 + 1":
    """Return x, at least low."""
    if x is None or not bold:
        raise TypeError(f"μ must be given, got {1 + 1}")  # 1 < 2
    values = [low, -x]
    values[0] += 0
    values[1] = x
    return max(values)


def unused(x):
    return x * 3
'''

SMALL = "def clipped(x):\n    return x if x > 0 else 0\n"

TEST = """import swiftem.clip


def test_clipped():
    assert [swiftem.clip.clipped(x) for x in (-2, 0, 3)] == [0, 0, 3]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of one module, with a test of it and a gate that passes."""
    package, tests = tmp_path / "src" / "swiftem", tmp_path / "tests"
    package.mkdir(parents=True)
    tests.mkdir()
    (package / "__init__.py").write_text("")
    (package / "clip.py").write_text(SOURCE)
    (tests / "test_other.py").write_text(TEST)
    (tests / "test_gate.py").write_text("def test_nothing():\n    pass\n")
    (tests / "mutants_explained.txt").write_text("clip.py | return x if x >= 0 else 0 | both are 0 at 0\n")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '--doctest-modules'\n")
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    return package / "clip.py"


def test_what_is_mutated(project):
    mutants = mutate.mutants_of(project)
    assert [(mutant.number, mutant.line) for mutant in mutants] == [
        (6, 'def clipped(x: "int | None", low: int = 1, bold=True) -> "1 + 1":'),
        (6, 'def clipped(x: "int | None", low: int = 0, bold=False) -> "1 + 1":'),
        (8, "if x is None and (not bold):"),
        (8, "if x is not None or not bold:"),
        (8, "if x is None or (bold):"),
        (9, "pass  # raise TypeError(f'μ must be given, got {1 + 1}')  # 1 < 2"),
        (10, "values = [low, (x)]"),
        (11, "pass  # values[0] += 0"),
        (11, "values[1] += 0"),
        (11, "values[0] += 1"),
        (12, "pass  # values[1] = x"),
        (12, "values[2] = x"),
        (13, "return None  # return max(values)"),
        (17, "return None  # return x * 3"),
        (17, "return x / 3"),
    ]
    for mutant in mutants:
        ast.parse(mutant.text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = (a  # < b\n    < c)", "x = (a <= c)"),
        ("x = a not  in b", "x = a in b"),
        ("x = a == b  # é = b", "x = a != b  # é = b"),
        ("x = not (a or\n c) and b", "x = (a or c) and b"),
        ("é = é @ b", "é = é * b"),
        ("x[a] = f(\n    b\n)", "pass  # x[a] = f(b)"),
    ],
)
def test_an_edit_keeps_the_rest_of_the_text(tmp_path, monkeypatch, before, after):
    path = tmp_path / "src" / "swiftem" / "one.py"
    path.parent.mkdir(parents=True)
    path.write_text(before, encoding="utf-8")
    assert after in [mutant.text for mutant in mutate.mutants_of(path)]


def test_killed_survived_explained(project, capsys):
    project.write_text(SMALL)
    assert mutate.main(["clip.py"]) == 1
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if "clip.py:" in line] == [
        "killed    clip.py:2: return None  # return x if x > 0 else 0",
        "explained clip.py:2: return x if x >= 0 else 0",
        "survived  clip.py:2: return x if x > 1 else 0",
        "killed    clip.py:2: return x if x > 0 else 1",
    ]
    assert "-    return x if x > 0 else 0\n+    return x if x > 1 else 0" in printed
    assert printed.endswith("2 killed, 1 survived, 1 explained\n")
    assert project.read_text() == SMALL


def test_a_sample_is_the_same_for_the_same_seed(project, capsys):
    lists = []
    for seed in ("1", "1", "2"):
        assert mutate.main([str(project), "--list", "--sample", "5", "--seed", seed]) == 0
        lists.append(capsys.readouterr().out.splitlines())
    assert len(lists[0]) == 5
    assert lists[0] == lists[1] != lists[2]


def test_the_gate_kills_what_other_tests_do_not_notice(project, capsys):
    project.write_text(SMALL)
    (mutate.ROOT / mutate.GATE).write_text(TEST.replace("3", "1"))
    assert mutate.main(["clip.py"]) == 0
    assert capsys.readouterr().out.endswith("3 killed, 0 survived, 1 explained\n")


def test_an_endless_loop_is_killed(project, capsys):
    project.write_text("def clipped(x):\n    while x < 0:\n        x += 2\n    return x\n")
    assert mutate.main(["clip.py", "--timeout", "3", "--tests", "tests/test_other.py"]) == 0
    assert "killed    clip.py:3: pass  # x += 2" in capsys.readouterr().out


def test_tests_that_fail_without_a_mutant_end_the_run(project, capsys):
    project.write_text(SOURCE.replace("max", "min"))
    with pytest.raises(SystemExit) as error:
        mutate.main(["clip.py"])
    assert error.value.code == 2
    assert "fail without a mutant" in capsys.readouterr().out


def test_tests_that_belong_to_a_file(project):
    tests = mutate.ROOT / "tests"
    (tests / "test_other.py").write_text("from helpers import clipped")
    (tests / "test_facade.py").write_text("from swiftem.facade import clipped")
    assert mutate.tests_of(project) == ["tests/test_facade.py"]
    (tests / "test_module.py").write_text("from swiftem import clip")
    (tests / "test_name.py").write_text("from swiftem.clip import unused")
    assert mutate.tests_of(project) == ["tests/test_module.py", "tests/test_name.py"]
    (tests / "test_clip.py").write_text("")
    assert mutate.tests_of(project) == [f"tests/test_{name}.py" for name in ("clip", "module", "name")]
