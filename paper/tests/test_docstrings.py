"""Docstrings of installed packages: what goes in, and in which order."""

import sys

import pytest

from paper import docstrings
from paper.docstrings import Corpus, docstring_corpus

LONG = "A sentence that is repeated until it is long enough to be a document. " * 3


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a function that writes the files of a package, which is never imported."""

    def write(name, files):
        for path, text in files.items():
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        return name

    yield write
    docstring_corpus.cache_clear()


def test_what_goes_in(package):
    code = f'''"""One. {LONG}"""
class A:
    """Two. {LONG}"""
    async def f(self):
        """Three. {LONG}"""
        def inner():
            """Four. {LONG}"""
if True:
    def g():
        """Five. {LONG}"""
    def h():
        """Short."""
'''
    files = {
        "__init__.py": code,
        "b/c.py": f'"""Six. {LONG}"""',
        "a.py": f'"""Seven. {LONG}"""\nraise SystemExit("imported")',
        "copy.py": f'"""Six. {LONG}"""',
        "broken.py": "def (",
        "tests/t.py": f'"""Eight. {LONG}"""',
        "2.0/x.py": f'"""Nine. {LONG}"""',
    }
    corpus = docstring_corpus((package("swiftem_toy", files),))
    assert corpus.names == tuple(f"swiftem_toy{end}" for end in ("", ".A", ".A.f", ".g", ".a", ".b.c"))
    assert [text.split(".")[0] for text in corpus.documents] == [
        "One",
        "Two",
        "Three",
        "Five",
        "Seven",
        "Six",
    ]
    assert "swiftem_toy" not in sys.modules


def test_samples_are_evenly_spaced_and_in_order():
    corpus = Corpus(tuple("abcdefghij"), tuple(map(str, range(10))), {})
    for n, documents in ((1, "a"), (3, "adg"), (4, "acfh"), (10, "abcdefghij")):
        assert "".join(corpus.sample(n).documents) == documents


def test_the_standard_library_without_its_programs():
    names = {module.partition(".")[0] for module, _ in docstrings._modules("stdlib")}
    assert {"json", "ast", "asyncio"} <= names
    assert not names & {"idlelib", "numpy", "test"}


def test_packages_that_are_not_there():
    with pytest.raises(ValueError, match=r"^packages must be names of installed packages, got 'no_such'"):
        docstring_corpus(("no_such",))
