"""The corpus of the experiments, available in every installation: docstrings of installed packages."""

from swiftem.theory.docstrings.corpus import Corpus, CorpusPackage
from swiftem.theory.docstrings.loader import docstring_corpus

__all__ = ["Corpus", "CorpusPackage", "docstring_corpus"]
