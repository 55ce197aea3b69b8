"""Values of options with a fixed set of choices, and the options of ``topics``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

__all__ = [
    "BUILT_IN", "Acceleration", "CorpusFormat", "Covariance", "Criterion", "Experiments", "Method",
    "TopicsRequest",
]  # fmt: skip

BUILT_IN = "the docstrings of Python packages"


class Covariance(StrEnum):
    """Kinds of covariances of a mixture."""

    full = "full"
    tied = "tied"
    diag = "diag"
    spherical = "spherical"


class Criterion(StrEnum):
    """Criteria of ``select``."""

    bic = "bic"
    aic = "aic"
    icl = "icl"


class Method(StrEnum):
    """Methods of ``topics``."""

    auto = "auto"
    em = "em"
    sem = "sem"
    iem = "iem"
    sem_vr = "sem-vr"
    fiem = "fiem"


class Acceleration(StrEnum):
    """Accelerations of em."""

    squarem = "squarem"
    anderson = "anderson"


class Experiments(StrEnum):
    """Experiments of ``reproduce``."""

    gmm_precision = "gmm-precision"
    gmm_scaling = "gmm-scaling"
    plsa = "plsa"
    theory = "theory"
    methods = "methods"
    all = "all"


class CorpusFormat(StrEnum):
    """Formats that ``topics`` reads."""

    auto = "auto"
    text = "text"
    folder = "folder"
    csv = "csv"
    parquet = "parquet"
    uci = "uci"
    lda_c = "lda-c"
    matrixmarket = "matrixmarket"
    npz = "npz"


@dataclass(frozen=True)
class TopicsRequest:
    """Arguments of the command; ``corpus`` is None for the built-in corpus."""

    corpus: Path | None
    topics: int
    out: Path
    words: int = 5000
    method: str = "auto"
    seed: int = 0
    max_passes: int = 200
    format: str = "auto"
    text_column: str | None = None
    vocabulary: Path | None = None
    as_text: bool = False
    acceleration: str | None = None
    by: str | None = None
    names: Path | None = None
    stop_words: str = "auto"
    phrases: bool = False
    drop_common: float | None = None
    drop_headers: bool = False

    @property
    def command(self) -> str:
        """The command line that repeats the request."""
        words = ["swiftem", "topics", *([str(self.corpus)] if self.corpus else [])]
        words += ["--topics", str(self.topics), "--words", str(self.words), "--method", self.method]
        words += ["--acceleration", self.acceleration] if self.acceleration else []
        words += ["--seed", str(self.seed), "--max-passes", str(self.max_passes)]
        words += ["--format", self.format] if self.format != "auto" else []
        words += ["--text-column", self.text_column] if self.text_column else []
        words += ["--vocabulary", str(self.vocabulary)] if self.vocabulary else []
        words += ["--as-text"] if self.as_text else []
        words += ["--by", self.by] if self.by else []
        words += ["--names", str(self.names)] if self.names else []
        words += ["--stop-words", self.stop_words] if self.stop_words != "auto" else []
        words += ["--phrases"] if self.phrases else []
        words += ["--drop-common", str(self.drop_common)] if self.drop_common is not None else []
        words += ["--drop-headers"] if self.drop_headers else []
        return shlex.join([*words, "--out", str(self.out)])

    @property
    def title(self) -> str:
        """Name of the corpus in the report."""
        return self.corpus.resolve().name or str(self.corpus) if self.corpus else BUILT_IN

    def word_options(self) -> dict[str, Any]:
        """Return the arguments of :func:`swiftem.data.read_corpus` that choose words of texts."""
        given: Any = None if self.stop_words == "none" else self.stop_words
        if given and Path(given).is_file():
            given = Path(given).read_text(encoding="utf-8").split()
        return {
            "stop_words": given, "phrases": self.phrases, "drop_common": self.drop_common,
            "drop_headers": self.drop_headers,
        }  # fmt: skip
