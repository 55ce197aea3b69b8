"""What the documents show is what the repository holds."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import swiftem
from benchmarks import marks
from swiftem.families import FAMILIES
from swiftem.methods import METHODS

ROOT = Path(__file__).parents[2]
GUIDES = "".join(path.read_text() for path in sorted((ROOT / "docs").glob("add_a_*.md")))


def test_the_guides_show_a_method_a_family_a_model_and_a_source():
    shown = re.findall(r"literalinclude} \.\./(\S+)", GUIDES)
    assert [path.split("/")[-2] for path in shown] == ["families", "methods", "examples", "examples"]
    assert all((ROOT / path).is_file() for path in shown)


def test_contributing_is_short():
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 120


FILES = {
    kind: (names.split(), re.findall(r"^- `(\S+)`", listed, flags=re.M))
    for kind, names, listed in re.findall(r"<!-- files: (\w+) (.*?) -->\n((?:- .*\n)+)", GUIDES)
}


def places_of(names):
    """Return the files in src that name a class, or have one of the names as a whole text."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            said = {
                ast.Name: lambda n: n.id, ast.Constant: lambda n: n.value, ast.alias: lambda n: n.name,
                ast.ClassDef: lambda n: n.name, ast.Attribute: lambda n: n.attr,
            }.get(type(node), lambda n: None)(node)  # fmt: skip
            if isinstance(said, str) and said in names:
                found.add(str(path.relative_to(ROOT)))
    return found


@pytest.mark.parametrize("kind", ["method", "family", "source"])
def test_the_files_that_the_guides_name_are_all_there_are(kind):
    """What it takes to add one more is known from one that is there: nothing else in src knows of it."""
    names, listed = FILES[kind]
    assert len(listed) == {"method": 2, "family": 2, "source": 3}[kind]
    assert all((ROOT / path).is_file() for path in listed)
    assert places_of(names) - EXCEPTIONS.get(kind, set()) == set(listed)


EXCEPTIONS = {
    "method": {"src/swiftem/show/numbers.py"},  # colours of those that the paper compares
    "family": {
        "src/swiftem/mixture/families/binomial.py",  # it derives from the example
        "src/swiftem/mixture/tables/columns.py",  # it chooses among some of them
    },
    "source": {  # memory maps that a limit keeps where they are
        "src/swiftem/mixture/estimator.py",
        "src/swiftem/fit/validated.py",
    },
}  # fmt: skip


@pytest.mark.parametrize(("registry", "home"), [(METHODS, "methods"), (FAMILIES, "mixture/families")])
def test_no_docstring_lists_all_names(registry, home):
    """Such a list is one more file to touch, and old after the next method or family."""
    for path in (ROOT / "src" / "swiftem").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            text = (ast.get_docstring(node) or "") if is_documented else ""
            named = {name for name in registry if f'"{name}"' in text or f"'{name}'" in text}
            assert len(named) < 6 or f"swiftem/{home}/" in path.as_posix(), f"{path}: {named}"


@pytest.mark.parametrize(("registry", "page"), [(METHODS, "docs/methods.md"), (FAMILIES, "docs/families.md")])
def test_the_table_of_a_page_has_every_name(registry, page):
    named = re.findall(r'^\| `"?([\w-]+)"?` \|', (ROOT / page).read_text(), flags=re.M)
    assert set(registry) <= set(named)


@pytest.mark.parametrize("page", marks.pages(), ids=lambda page: page.name)
def test_figures_of_a_page_are_those_of_the_stored_runs(page):
    """``python -m benchmarks --write`` would change nothing."""
    text = page.read_text(encoding="utf-8")
    assert marks.filled(text, marks.figures()) == text


def test_a_mark_without_a_stored_run_is_an_error():
    assert marks.filled("in <!-- figure: a.b -->old<!-- end -->.", {"a.b": "2 s"}) == (
        "in <!-- figure: a.b -->2 s<!-- end -->."
    )
    with pytest.raises(KeyError, match=r"a\.c"):
        marks.filled("<!-- figure: a.c --><!-- end -->", {"a.b": "2 s"})


def test_the_thresholds_of_the_rule_are_the_rule():
    from swiftem.mixture.resolve import Facts, resolve
    from swiftem.models import GaussianMixtureModel

    page = (ROOT / "docs/which_method.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\w+) \| ([\d.]+) \| ([\d,]+) \|$", page, flags=re.M)
    assert len(rows) >= 5
    for components, columns, kind, p, n in rows:
        size = GaussianMixtureModel(int(components), covariance=kind).size(int(columns))
        parameters = swiftem.GaussianMixture(int(components)).get_params()
        assert size / int(components) == pytest.approx(float(p), abs=0.05)
        first = int(n.replace(",", ""))
        names = [resolve(parameters, Facts(n, n, size, "named")).name for n in (first, first - 1)]
        assert names == ["sem-vr", "em"]


@pytest.mark.slow
def test_the_certificates_that_are_shown(monkeypatch):
    """To a third in passes and a factor of two: other computers round differently."""
    import importlib

    import swiftem

    monkeypatch.syspath_prepend(ROOT / "docs" / "images")
    X = importlib.import_module("overview").overlapping()
    page = (ROOT / "docs/which_method.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \| (1e-\d) \| (\d+) \| (\de-\d) \| (\de-\d) \|$", page, flags=re.M)
    assert len(rows) >= 4
    options = {"random_state": 0, "max_iter": 2000}
    best = swiftem.GaussianMixture(5, method="em", tol=1e-10, **options).fit(X).score(X)
    for method, tol, passes, stationarity, lacking in rows:
        mixture = swiftem.GaussianMixture(5, method=method, tol=float(tol), **options).fit(X)
        assert mixture.n_iter_ == pytest.approx(int(passes), rel=0.34)
        assert 0.5 < mixture.stationarity_ / float(stationarity) < 2.0
        assert 0.4 < (best - mixture.score(X)) / float(lacking) < 2.5


GENERATED = ("api.md", "benchmarks.md")
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md") if path.name not in GENERATED),
]


@pytest.mark.parametrize("page", PAGES)
def test_links_and_named_files_exist(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        example = re.fullmatch(r"gallery/(\w+)\.rst", target)  # made when the site is built
        if example:
            assert example[1] == "index" or (ROOT / "examples" / "gallery" / f"{example[1]}.py").exists(), (
                target
            )
        elif not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), target
    for named in re.findall(r"`((?:src|tests|paper|examples|docs)/[\w/.]+)`", text):
        assert (ROOT / named).exists(), named


@pytest.mark.parametrize(
    "page", ["README.md", "docs/coming_from_sklearn.md", "docs/which_method.md", "docs/theory.md"]
)
def test_pictures_are_small_and_have_words_for_those_who_cannot_see_them(page):
    pictures = re.findall(r"!\[(.*?)\]\((.+?)\)", (ROOT / page).read_text(), flags=re.S)
    assert pictures
    for words, file in pictures:
        assert len(words) > 50
        assert ((ROOT / page).parent / file).stat().st_size < 150_000


def test_architecture_is_a_map_of_all_rooms():
    """Each room has a row, and where to begin is a file in it; the page fits on two screens."""
    text = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| `([\w/]+)/` \| .* \| (.*) \|$", text, flags=re.M)
    source = ROOT / "src" / "swiftem"
    rooms = {path.name for path in source.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert {room for room, _ in rows} == rooms | {"swiftem"}
    for room, first in rows:
        folder = source if room == "swiftem" else source / room
        for named in re.findall(r"`([\w/]+\.py)`", first):
            assert (folder / named).is_file(), f"{room}/{named}"
    for named in re.findall(r"`((?:\w+/)+\w+\.py)`", text):
        there = any(path.as_posix().endswith(f"/{named}") for path in source.rglob("*.py"))
        assert there or (ROOT / named).exists(), named
    assert len(text.splitlines()) <= 100


def test_no_room_has_more_files_than_a_reader_can_hold():
    for folder in [ROOT / "src" / "swiftem", *(ROOT / "src" / "swiftem").rglob("*/")]:
        assert len(list(folder.glob("*.py"))) <= 22, folder


def test_the_api_has_every_public_object():
    """What a module lists in ``__all__`` has a page, except dictionaries, aliases and modules."""
    import inspect
    from importlib import import_module

    page = (ROOT / "docs" / "api.md").read_text()
    listed = {name.rpartition(".")[2] for name in re.findall(r"^   (swiftem[\w.]+)$", page, flags=re.M)}
    for module in (
        "",
        ".methods",
        ".models",
        ".families",
        ".data",
        ".schedules",
        ".testing",
    ):
        found = import_module(f"swiftem{module}")
        for name in found.__all__:
            value = getattr(found, name)
            if (inspect.isclass(value) or inspect.isfunction(value)) and name not in ALIASES:
                assert name in listed, f"swiftem{module}.{name}"


ALIASES = {"Batch", "Chunk", "Params"}
"""Names of types: they have no docstring of their own."""


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (\S+)$", text, flags=re.M)[1] == PROJECT["project"]["version"]
    assert re.search(r"^license: (\S+)$", text, flags=re.M)[1] == PROJECT["project"]["license"]
    assert re.search(r"^  url: (\S+)$", text, flags=re.M)[1] == PROJECT["project"]["urls"]["Paper"]


def test_the_source_distribution_has_all_that_docs_and_tests_need():
    """Every tracked file; hatchling adds those of metadata."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout: which files are tracked is unknown")
    tracked = {name.split("/")[0] for name in done.stdout.splitlines() if not name.startswith(".")}
    listed = {path.strip("/") for path in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
    assert tracked - {"pyproject.toml", "README.md", "LICENSE"} == listed


def test_the_docs_extra_has_every_extension():
    extensions = re.search(
        r"^extensions = \[(.*?)\]", (ROOT / "docs/conf.py").read_text(), flags=re.M | re.S
    )[1]
    packages = {name.split(".")[0] for name in re.findall(r'"([\w.]+)"', extensions)} - {"sphinx"}
    extra = {
        re.match(r"[\w-]+", line)[0].replace("-", "_")
        for line in PROJECT["project"]["optional-dependencies"]["docs"]
    }
    assert packages <= extra


def test_the_page_of_topics_names_what_there_is():
    """Every format is in its table, and every option exists."""
    from typer.main import get_command

    from swiftem.cli.app import app
    from swiftem.data.documents.corpus import FORMATS

    page = (ROOT / "docs" / "topics.md").read_text()
    table = " ".join(re.findall(r"\| ([^|]*) \|$", page, flags=re.M))
    assert set(re.findall(r"`([\w-]+)`", table)) >= set(FORMATS)
    options = get_command(app).commands["topics"].params
    known = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    assert set(re.findall(r"--[a-z][a-z-]+", page)) <= known


def test_the_page_of_larger_data_has_its_figures():
    page = (ROOT / "docs" / "larger_than_memory.md").read_text()
    assert not {"RATIOS", "SORTED"} & set(re.findall("[A-Z]+", page))
    assert len(re.findall(r"\| (?:any row|blocks, window|in order)", page)) == 8
