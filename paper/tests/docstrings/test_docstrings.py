import os
import platform

import numpy as np
import pytest
import scipy
import sklearn
from helpers import assert_refused

from paper.docstrings import docstring_corpus
from paper.docstrings import loader as docstrings
from swiftem.data import count_words
from swiftem.kernels.cache import user_cache

FILES = {
    "__init__.py": '"""The whole package."""',
    "b.py": '"""Short."""\ndef f():\n    """Said twice, and kept once."""',
    "a.py": 'class A:\n    """Of class A, at length."""\n    def f(self): """Said twice, and kept once."""',
    "broken.py": "def",
    "tests/test_a.py": '"""Left out, as it is a test."""',
}


@pytest.fixture
def reads(monkeypatch):
    """Return the list of modules that were read from source, as it grows."""
    read = []

    def count(module, path):
        read.append(module)
        return read_docstrings(module, path)

    read_docstrings = docstrings.read_docstrings
    monkeypatch.setattr(docstrings, "read_docstrings", count)
    return read


def test_what_goes_in(packages):
    name = packages.add(FILES)
    corpus = docstring_corpus([name], min_length=10, cache=False)
    assert corpus.names == (name, f"{name}.a.A", f"{name}.a.A.f")
    assert corpus.documents == (
        "The whole package.", "Of class A, at length.", "Said twice, and kept once.",
    )  # fmt: skip
    assert corpus.packages == {name: ("1.0", 3)}


@pytest.mark.parametrize(("min_length", "n_documents"), [(1, 4), (6, 4), (7, 3), (22, 2), (23, 1), (26, 1)])
def test_min_length(packages, min_length, n_documents):
    corpus = docstring_corpus([packages.add(FILES)], min_length=min_length, cache=False)
    assert len(corpus) == n_documents
    assert min(map(len, corpus.documents)) >= min_length


def test_order_and_repetition_of_packages_do_not_matter(packages):
    first = packages.add(FILES)
    second = packages.add(FILES | {"c.py": '"""Only in the second."""'}, version="2.0")
    corpus = docstring_corpus([first, second], min_length=1, cache=False)
    assert corpus.packages == {first: ("1.0", 4), second: ("2.0", 1)}
    assert corpus.names[-1] == f"{second}.c"
    again = docstring_corpus((name for name in [second, first, second]), min_length=1, cache=False)
    assert again == corpus
    assert list(again.packages) == list(corpus.packages)


def test_the_second_time_nothing_is_read(packages, tmp_path, reads):
    name = packages.add(FILES)
    corpus = docstring_corpus([name], min_length=10, cache=tmp_path / "cache")
    assert reads == [name]
    assert docstring_corpus([name], min_length=10, cache=str(tmp_path / "cache")) == corpus
    assert len(docstring_corpus([name], min_length=1, cache=tmp_path / "cache")) == 4
    assert reads == [name]
    docstring_corpus([name], min_length=10, cache=tmp_path / "other")
    for cache in (False, None):
        assert docstring_corpus([name], min_length=10, cache=cache) == corpus
    assert reads == [name] * 4
    assert sorted(os.listdir(tmp_path)) == ["cache", "other", "site"]


def test_a_new_version_is_read(packages, tmp_path, reads):
    name = packages.add(FILES)
    docstring_corpus([name], min_length=1, cache=tmp_path)
    (packages.folder / f"{name}-1.0.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 1.1\n")
    (packages.folder / name / "b.py").write_text("")
    corpus = docstring_corpus([name], min_length=1, cache=tmp_path)
    assert reads == [name] * 2
    assert corpus.packages == {name: ("1.1", 3)}


def test_a_package_without_version_is_not_kept(packages, tmp_path, reads):
    name = packages.add(FILES, version=None)
    for _ in range(2):
        corpus = docstring_corpus([name], min_length=10, cache=tmp_path / "cache")
        assert corpus.packages == {name: ("unknown", 3)}
    assert reads == [name] * 2
    assert not (tmp_path / "cache").exists()


def test_a_damaged_cache_is_made_anew(packages, tmp_path, reads):
    name = packages.add(FILES)
    corpus = docstring_corpus([name], min_length=10, cache=tmp_path / "cache")
    (file,) = (tmp_path / "cache").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    for _ in range(2):
        assert docstring_corpus([name], min_length=10, cache=tmp_path / "cache") == corpus
    assert reads == [name] * 2
    assert file.read_bytes() == whole


def test_a_cache_that_cannot_be_written(packages, tmp_path, reads):
    name = packages.add(FILES)
    (tmp_path / "file").touch()
    for cache in (tmp_path / "file", tmp_path / "file" / "below"):
        assert len(docstring_corpus([name], min_length=10, cache=cache)) == 3
    assert reads == [name] * 2


def test_the_user_s_cache(packages, tmp_path, reads, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    name = packages.add(FILES)
    for _ in range(2):
        docstring_corpus([name], min_length=10)
    assert reads == [name]
    (file,) = (user_cache() / "docstrings").iterdir()
    assert file.is_relative_to(tmp_path)
    assert file.name.startswith(f"{name}-1.0-")
    tmp_path.chmod(0o777)  # from now on it could be another user's
    docstring_corpus([name], min_length=10)
    assert reads == [name] * 2


@pytest.mark.parametrize(
    ("packages", "options", "argument", "right"),
    [
        ("numpy", {}, "packages", r"list of names, such as \['numpy', 'stdlib'\], got 'numpy'"),
        (None, {}, "packages", "list of names"),
        ([np], {}, "packages", "list of names"),
        ([], {}, "packages", "at least one name, got none"),
        (["swiftem_no_such_package"], {}, "packages", "installed packages, got 'swiftem_no_such_package'"),
        (
            ["json"],
            {"min_length": 10**6},
            "packages",
            "at least min_length=1000000 characters, got none in json",
        ),
        (["json"], {"min_length": 0}, "min_length", "at least 1"),
        (["json"], {"min_length": 200.0}, "min_length", "an integer"),
        (["json"], {"cache": 3}, "cache", "True, False, None or a folder, got 3"),
    ],
)
def test_bad_input(packages, options, argument, right):
    assert_refused(lambda: docstring_corpus(packages, **{"cache": False, **options}), argument, right)


def test_the_real_one(reads):
    """As users get it, with their cache: the first time takes a few seconds."""
    corpus = docstring_corpus()
    assert 6_000 <= len(corpus) <= 15_000
    assert len(set(corpus.documents)) == len(corpus)
    assert {name: package.version for name, package in corpus.packages.items()} == {
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "sklearn": sklearn.__version__,
        "stdlib": platform.python_version(),
    }
    assert all(package.n_documents > 800 for package in corpus.packages.values())
    assert sum(package.n_documents for package in corpus.packages.values()) == len(corpus)
    assert {"numpy.linalg._linalg.norm", "sklearn.mixture._gaussian_mixture.GaussianMixture"} <= set(
        corpus.names
    )
    assert not any(".tests." in name for name in corpus.names)
    reads.clear()
    assert docstring_corpus() == corpus
    assert reads == []
    small = corpus.sample(1000)
    counts, _, kept = count_words(small.documents)
    assert counts.shape == (len(kept), 300)
    assert len(kept) > 990
