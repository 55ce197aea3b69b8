"""docs/paper.md lists everything that the paper numbers, and names nothing that does not exist."""

import pkgutil
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAPER = ROOT.parent / "shared" / "paper.tex"
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")

Item = tuple[str, str | None]
"""Number as printed, and label."""

NAMES = {
    "algorithm": "Algorithm ",
    "figure": "Figure ",
    "assumption": "H",
    "assumptionB": "B",
    "Lemma": "Lemma ",
    "Prop": "Proposition ",
    "Theorem": "Theorem ",
}
NUMBERED = re.compile(
    rf"\\begin\{{(?P<kind>{'|'.join(NAMES)})\}}"
    r"|(?P<equation>\\beq\b.*?\\eeq\b|\\begin\{equation\}.*?\\end\{equation\})"
    r"|(?P<align>\\begin\{align\}.*?\\end\{align\})",
    flags=re.S,
)
LABEL = re.compile(r"\\label\{(.+?)\}")

SPANS = sorted(set(re.findall(r"`([^`\n]+)`", PAGE)))
PATHS = [span for span in SPANS if re.match(r"(src|tests|paper|docs|examples|benchmarks)/", span)]
DOTTED = sorted({name for span in SPANS for name in re.findall(r"\b(?:swiftem|paper)(?:\.\w+)+", span)})


def numbered(tex: str) -> list[Item]:
    """Return what LaTeX numbers, in order, as it counts: one counter for equations and one for each kind."""
    tex = re.sub(r"(?<!\\)%.*", "", tex)
    counts: Counter[str] = Counter()
    items: list[Item] = []
    for match in NUMBERED.finditer(tex):
        kind = match["kind"]
        if kind:
            inside = tex[match.end() : tex.index(rf"\end{{{kind}}}", match.end())]
            labels = [label for label in LABEL.findall(inside) if not label.startswith("eq:")]
            counts[kind] += 1
            items.append((f"{NAMES[kind]}{counts[kind]}", labels[0] if labels else None))
            continue
        for equation in [match["equation"]] if match["equation"] else match["align"].split(r"\\"):
            if r"\notag" not in equation:
                label = LABEL.search(equation)
                counts["equation"] += 1
                items.append((f"({counts['equation']})", label[1] if label else None))
    return items


def listed(page: str) -> list[Item]:
    """Return what the page's tables list, in order; (3)–(5) are three equations without a label."""
    items: list[Item] = []
    for number, label in re.findall(r"^\| ([^|\n]+?) \| (`[\w:-]+`|–) \|", page, flags=re.M):
        ends = re.fullmatch(r"\((\d+)\)–\((\d+)\)", number)
        if ends and label == "–":
            items += [(f"({n})", None) for n in range(int(ends[1]), int(ends[2]) + 1)]
        else:
            items.append((number, None if label == "–" else label.strip("`")))
    return items


@pytest.mark.skipif(not PAPER.exists(), reason=f"the paper's source is not there: {PAPER}")
def test_everything_the_paper_numbers_is_listed_in_its_order() -> None:
    items = numbered(PAPER.read_text(encoding="utf-8"))
    assert len(items) > 100
    assert listed(PAGE) == items


@pytest.mark.skipif(not PAPER.exists(), reason=f"the paper's source is not there: {PAPER}")
def test_every_label_is_mentioned() -> None:
    """Found without counting: also one that stands where the count above would not look."""
    tex = PAPER.read_text(encoding="utf-8")
    labels = {label for label in LABEL.findall(tex) if not label.startswith(("sec:", "app:"))}
    assert {label.split(":")[0] for label in labels} == {"eq", "alg", "fig", "ass", "assb", "lem", "thm"}
    assert labels - set(SPANS) == set()


def test_numbers_are_counted_as_latex_does() -> None:
    tex = r"""
    \beq \label{eq:a} x \eeq \beq \notag y \eeq % \beq z \eeq
    \begin{align} x \label{eq:b} \\ y \notag \\ z \end{align} \begin{alignat*}{2} x \end{alignat*}
    \begin{Lemma} \label{lem:a} \begin{equation} x \label{eq:c} \end{equation} \end{Lemma}
    \begin{Lemma*} \end{Lemma*} \begin{assumption} \end{assumption}
    """
    assert numbered(tex) == [
        ("(1)", "eq:a"), ("(2)", "eq:b"), ("(3)", None), ("Lemma 1", "lem:a"), ("(4)", "eq:c"), ("H1", None),
    ]  # fmt: skip


def test_commands_exist() -> None:
    """Every `python -m paper NAME` that is named can be given, and every NAME is named."""
    from paper.reproduce import EXPERIMENTS

    named = {span.split()[3] for span in SPANS if span.startswith("python -m paper ")}
    assert named == {*EXPERIMENTS, "all"}


@pytest.mark.parametrize("option", sorted({span.split()[0] for span in SPANS if span.startswith("--")}))
def test_options_exist(option: str) -> None:
    """Of options such as `--corpus FILE`."""
    assert f'"{option}",' in (ROOT / "paper" / "__main__.py").read_text(encoding="utf-8")


def test_the_page_names_files_and_functions() -> None:
    assert len(PATHS) > 20
    assert len(DOTTED) > 20


@pytest.mark.parametrize("path", PATHS)
def test_paths_exist(path: str) -> None:
    """A function or class after :: is in the file."""
    file, _, name = path.partition("::")
    assert (ROOT / file).exists()
    if name:
        assert re.search(rf"^(def|class) {name}\b", (ROOT / file).read_text(encoding="utf-8"), flags=re.M)


@pytest.mark.parametrize("name", DOTTED)
def test_names_can_be_imported(name: str) -> None:
    pkgutil.resolve_name(name)
