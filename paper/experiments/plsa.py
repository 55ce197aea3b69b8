"""The paper's pLSA figure: mean log-likelihood by epoch, on a small and a large corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paper.docstrings import Corpus, docstring_corpus
from paper.experiments.experiment import Experiment, Job, Progress, collect, no_progress
from paper.experiments.gmm import trace, warm_up
from swiftem._run import objective
from swiftem.core.schedules import inverse, power, sample_size
from swiftem.data import CountSource, count_words, read_documents
from swiftem.methods import EM, FastIncrementalEM, IncrementalEM, Method, OnlineEM, VarianceReducedEM
from swiftem.models import PLSAModel, PLSATheta

N_WORDS, SMALL = 300, 1_000
MODEL = PLSAModel(n_topics=10)
COST = {"em": 0.3, "sem": 1.0, "iem": 1.0, "sem-vr": 1.5, "fiem": 1.7}
"""Time of an epoch, in units of sem's: only for the estimate of the remaining time."""

STEPS: dict[str, dict[str, Method]] = {
    "": {"em": EM(), "iem": IncrementalEM()},
    "paper": {
        "sem": OnlineEM(step_size=inverse(1, 10)),
        "sem-vr": VarianceReducedEM(step_size=sample_size()),
        "fiem": FastIncrementalEM(step_size=sample_size()),
    },
    "recommended": {
        "sem": OnlineEM(step_size=power(1, 0.8)),
        "sem-vr": VarianceReducedEM(step_size=sample_size(10, exponent=1)),
        "fiem": FastIncrementalEM(step_size=sample_size(10, exponent=1)),
    },
}
"""The methods by the origin of their steps; em and iem have none."""


class LikelihoodRow(NamedTuple):
    """One method after one epoch of one run.

    Attributes
    ----------
    corpus, steps, method : str
        Name of the corpus; ``"paper"``, ``"recommended"`` or empty for methods without a step; the method.
    run, epoch : int
        Index of the start and draws, and the epochs done: n iterations (tokens) each, one for ``"em"``.
    passes, seconds : float
        E-step evaluations divided by n, the first pass included; time of the run.
    mean_log_likelihood : float
        Per token.
    """

    corpus: str
    steps: str
    method: str
    run: int
    epoch: int
    passes: float
    seconds: float
    mean_log_likelihood: float


def docstring_corpora() -> dict[str, Corpus]:
    """Return the small and the large corpus available in every installation.

    >>> len(docstring_corpora()["small"].documents)
    1000
    """
    corpus = docstring_corpus()
    return {"small": corpus.sample(SMALL), "large": corpus}


def read_corpora(paths: Sequence[Path]) -> dict[str, Sequence[str]]:
    """Return the documents of text files, one per line, by the files' names without extensions.

    If files have the same name, the second and later ones are named by their full paths.

    Raises
    ------
    OSError, ValueError
        If a file cannot be read or has too few words; the message names it.
    """
    corpora: dict[str, Sequence[str]] = {}
    for path in paths:
        documents = read_documents(path)
        count_tokens(str(path), documents)  # now: the experiment may start only after minutes of others
        corpora[path.stem if path.stem not in corpora else str(path)] = documents
    return corpora


def count_tokens(name: str, corpus: Corpus | Sequence[str]) -> CountSource:
    """Return the tokens of the 300 most frequent content words.

    Raises
    ------
    ValueError
        If there are too few; the message begins with ``name``.
    """
    try:
        documents = corpus.documents if isinstance(corpus, Corpus) else corpus
        source = CountSource(count_words(documents, N_WORDS).counts)
        MODEL.bind(source)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return source


def plsa(
    corpora: Mapping[str, Corpus | Sequence[str]],
    *,
    epochs: int = 60,
    runs: int = 3,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Experiment:
    """Run five methods from the same start and measure the mean log-likelihood per token after each epoch.

    The evidence lower bound of the paper's figure is the log-likelihood here: the E-step is exact.

    Parameters
    ----------
    corpora : mapping of str to Corpus or sequence of str
        Documents by the corpus' name; the 300 most frequent content words are kept.
    epochs : int
        Epochs of each method, n iterations each.
    runs : int
        Repetitions, each with its own start and draws.
    seed : int
        For starts and draws.
    progress : callable, optional
        Called with the current task and the completed share of the whole.

    Returns
    -------
    Experiment
        With rows :class:`LikelihoodRow`, by corpus and run. Ctrl-C keeps complete curves.

    Examples
    --------
    >>> from paper.experiments.plsa import plsa
    >>> fruit, tools = "apple pear plum apple fig", "hammer saw chisel saw plane"
    >>> rows = plsa({"toy": [fruit, tools] * 5}, epochs=2, runs=1).rows
    >>> [(row.steps, row.method) for row in rows if row.epoch == 2][:3]
    [('', 'em'), ('', 'iem'), ('paper', 'sem')]
    """
    sources = {name: count_tokens(name, corpus) for name, corpus in corpora.items()}
    settings = {f"corpus {name}": _about(corpus, sources[name]) for name, corpus in corpora.items()}
    settings |= {
        "topics": f"K = {MODEL.n_topics}; penalty α' = β' = {MODEL.alpha:g} on the mean loss",
        "start": "random topics, uniform documents; the same for all methods of a run",
        "paper's steps": "sEM 1/(k + 10); sEM-VR and fiEM γ = n^(−2/3)",
        "recommended steps": "sEM k^(−0.8); sEM-VR and fiEM γ = 10/n",
        "runs": f"{runs}, each with its own start and draws; one token per iteration; seed {seed}",
    }
    methods = [(steps, name, method) for steps, group in STEPS.items() for name, method in group.items()]

    def compiling() -> list[LikelihoodRow]:
        tiny = count_tokens("tiny", ["apple pear plum", "saw plane chisel"] * 2)
        start = MODEL.bind(tiny).initial_theta(np.random.default_rng(0))
        seconds = warm_up(MODEL, tiny, [method for *_, method in methods], start)
        settings["compiling"] = f"{seconds:.1f} s, not counted"
        return []

    def curve(corpus: str, number: int, steps: str, name: str, method: Method) -> list[LikelihoodRow]:
        source, randomness = sources[corpus], np.random.SeedSequence([seed, number])
        points = trace(
            MODEL,
            source,
            method,
            theta0=MODEL.bind(source).initial_theta(np.random.default_rng(randomness)),
            epochs=epochs,
            seed=randomness,
            measure=partial(mean_log_likelihood, source),
        )
        return [LikelihoodRow(corpus, steps, name, number, *point) for point in points]

    jobs = [Job("compiling", 1_000.0, compiling)]
    jobs += [
        Job(f"{corpus}: {made[1]}", source.n * COST[made[1]], partial(curve, corpus, number, *made))
        for corpus, source in sources.items()
        for number in range(runs)
        for made in methods
    ]
    return collect("plsa", settings, jobs, progress)


def _about(corpus: Corpus | Sequence[str], source: CountSource) -> str:
    """Return the description of a corpus, in words."""
    versions = corpus.versions if isinstance(corpus, Corpus) else {}
    names = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        (f"docstrings of {names}: " if names else "")
        + f"{source.n_documents:,} documents with any of the {source.n_words} most frequent content words, "
        f"n = {source.n:,} tokens"
    )


def mean_log_likelihood(source: Any, theta: PLSATheta) -> float:
    """Return the mean log-likelihood per token for the reported topics and documents."""
    n_topics = theta.topic_word.shape[0]
    proper = theta._replace(topic_scale=np.ones(n_topics))
    return -objective(PLSAModel(n_topics, alpha=0.0, beta=0.0), source, proper)
