"""The words of the glossary in CONTRIBUTING: its right column appears nowhere that a reader looks."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNITS = (
    r"([nµum]?s|seconds|[MG]i?B|bytes|numbers|evaluations|passes|iterations|rows|samples|words|tokens|drawn)"
)
OF = (
    r"(iteration|pass|sample|row|document|thread|component|column|batch|epoch|method|file|topic|word|token|line"
    r"|format|figure)"
)
BANNED = {
    "converged": r"\b(came|comes?|coming) to rest\b|\bat rest\b",
    "resume": r"\b(go|goes|going|gone|went) on (with|from|where|fitting)\b",
    "checkpoints": r"\bruns that survive\b",
    "ignored": r"\bas if absent\b",
    "per": rf"\b{UNITS} an? {OF}\b|\b{UNITS} a second\b|\bone [a-z]+ an? {OF}\b",
    "if": r"\bWhere (there|it|this|that|they|all|no|nothing|none) |\bonly where (there|it|they|all)\b"
    r"|\b(None|NaN|empty) where\b|\bwhere (there (is|are)|no|nothing|none)\b",
    "not positive definite": r"\bthat (is|are) none\b",
    "is not a": r"\bis no (valid|swiftem|count|zip|probability|file of)\b",
    "required unless": r"\bwhich all but\b",
    "re-initialised": r"\banew\b|\bafresh\b",
    "raises MemoryLimitError if": r"\bcannot do with (it|that|them)\b",
    "compares ... with": r"\b(hold|holds|held|holding) (?!out\b)[^.,;:]{1,40} against\b",
    "in addition": r"\bbesides\b",
    "the caller is notified": r"\b(is|are|was|were) told\b",
    "means, is about": r"\bspeaks? of\b",
    "what": r"\bthat which\b",
}
"""Phrases by the word to write instead. White space is any white space: phrases go over ends of lines."""


def prose(path):
    """Return a file's text in one line, without the glossary and without quotes inside a text."""
    text = path.read_text(encoding="utf-8")
    if path.name == "CONTRIBUTING.md":
        text = re.sub(r"\n## Words\n.*?(?=\n## |\Z)", "", text, flags=re.S)
    return re.sub(r"\s+(# )?", " ", re.sub(r'(?<!")"\n\s+[rf]?"(?!")', "", text))


def files(place):
    """Return the files of a folder with text for readers, or the file itself."""
    at = ROOT / place
    found = [at] if at.is_file() else [p for p in sorted(at.rglob("*")) if p.suffix in {".py", ".md", ".rst"}]
    return [p for p in found if "_build" not in p.parts]


PLACES = ["README.md", "CONTRIBUTING.md", "benchmarks", "docs", "examples", "src"]


@pytest.mark.parametrize("place", PLACES)
def test_phrases_that_the_glossary_replaces_are_gone(place):
    found = [
        f"{path.relative_to(ROOT)}: ...{text[max(0, m.start() - 30) : m.end() + 30]}...: write {word!r}"
        for path in files(place)
        for text in [prose(path)]
        for word, phrase in BANNED.items()
        for m in re.finditer(phrase, text)
    ]
    assert not found, "\n".join(found)


RECOGNISED = """The fit came to rest. The run goes on from there. Rows count as if absent.
None where there is no prior. a vocabulary, one word a line. It takes 4 ms an iteration.
It reads 3 MB a second. Where there is no prior, it fails. a covariance that is none.
FILE, which all but --update needs. Components are set\n    anew. What cannot do with it is refused.
They hold the result against the paper's."""
LET_PASS = """Per sample and iteration. It takes a second iteration. x, where x is a row. a sample of rows.
compares rows with a sample."""


@pytest.mark.parametrize(("text", "is_banned"), [(RECOGNISED, True), (LET_PASS, False)])
def test_what_is_recognised(text, is_banned):
    for sentence in re.sub(r"\s+(# )?", " ", text).split(". "):
        assert any(re.search(phrase, sentence) for phrase in BANNED.values()) == is_banned, sentence
