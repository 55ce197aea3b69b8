"""What the documents show is what the repository holds."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
SHOWN = re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```\n", CONTRIBUTING, flags=re.S)


def test_contributing_shows_a_method_and_a_model():
    assert len(SHOWN) == 2
    assert [path.split("/")[-2] for path, _ in SHOWN] == ["methods", "examples"]


@pytest.mark.parametrize(("path", "text"), SHOWN, ids=[path for path, _ in SHOWN])
def test_contributing_shows_the_real_file(path, text):
    assert text == (ROOT / path).read_text()


def test_readme_example_runs(capsys):
    readme = (ROOT / "README.md").read_text()
    example = re.search(r"```python\n(.*?)```", readme, flags=re.S).group(1)
    assert len(example.strip().splitlines()) <= 10
    exec(compile(example, "README.md", "exec"), {})
    first, second, passes = (float(number) for number in re.findall(r"-?\d+\.\d+", capsys.readouterr().out))
    assert first == pytest.approx(0.5, abs=0.1)
    assert second == pytest.approx(-0.5, abs=0.1)
    assert passes == 21


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "docs/architecture.md",
        "docs/command_line.md",
        "docs/methods.md",
        "docs/paper.md",
        "docs/topics.md",
    ],
)
def test_links_and_named_files_exist(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), target
    for named in re.findall(r"`((?:src|tests|examples|docs)/[\w/.]+)`", text):
        assert (ROOT / named).exists(), named


def test_the_pictures_of_the_readme_are_small_and_have_words_for_those_who_cannot_see_them():
    pictures = re.findall(r"!\[(.*?)\]\((.+?)\)", (ROOT / "README.md").read_text(), flags=re.S)
    assert pictures
    for words, file in pictures:
        assert len(words) > 50
        assert (ROOT / file).stat().st_size < 200_000


def test_architecture_names_real_files():
    text = (ROOT / "docs/architecture.md").read_text()
    table = text.split("## Where to find what")[1].split("## ")[0]
    for named in re.findall(r"`([\w/]+\.py)`", table):
        assert (
            any(path.name == Path(named).name for path in (ROOT / "src").rglob("*.py"))
            or (ROOT / named).exists()
        ), named


def words_of(text):
    """Return what is not numbers, boxes or breaks, which depend on the computer and the terminal."""
    return re.sub(r"[\W\d_]+", " ", re.sub(r"\d[\d.,]*(e[+-]\d+)?", "", text)).split()


def test_the_command_line_page_shows_a_real_session(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from swiftem.cli.app import app

    page = (ROOT / "docs/command_line.md").read_text()
    monkeypatch.chdir(tmp_path)
    exec(compile(re.search(r"```python\n(.*?)```", page, flags=re.S).group(1), "command_line.md", "exec"), {})
    session = "".join(re.findall(r"```console\n(.*?)```", page, flags=re.S))
    shown = re.findall(r"^\$ swiftem (.*)\n((?:(?!\$ ).*\n)*)", session, flags=re.M)
    assert len(shown) >= 8
    for command, output in shown:
        arguments, _, lines = command.partition(" | head -")
        done = CliRunner().invoke(app, arguments.split())
        assert done.exit_code in (0, 1, 2)
        printed = done.output.splitlines(keepends=True)[: int(lines) if lines else None]
        # Versions may have words, and the page is not written anew with each of them.
        expected = [line for line in output.splitlines() if not line.startswith("written by")]
        found = [line for line in printed if not line.startswith("written by")]
        assert words_of("".join(found)) == words_of("\n".join(expected)), command
