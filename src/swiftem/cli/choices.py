"""Values of options with a fixed set of choices."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Acceleration", "CorpusFormat", "Covariance", "Criterion", "Experiments", "Method"]


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
