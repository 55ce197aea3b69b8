"""The corpus of the experiments, available in every installation: docstrings of installed packages."""

from paper.docstrings.corpus import Corpus, CorpusPackage
from paper.docstrings.loader import docstring_corpus

__all__ = ["Corpus", "CorpusPackage", "docstring_corpus"]
