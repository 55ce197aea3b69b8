"""Topics of texts (pLSA).

The paper's figure 2: the evidence lower bound of pLSA with ten topics and 300 words against epochs, on a
small and a large corpus. The E-step is exact, so the bound is the log-likelihood; its mean over tokens is
shown. All methods of a run start from the same parameters.

The penalty is α' = β' = 10⁻⁶ on the mean loss. Topics start random and documents uniform; an iteration draws
one token. The paper's steps are 1/(k + 10) for sEM and n^(−2/3) for sEM-VR and fiEM; the recommended ones are
k^(−0.8) for sEM and 10/n for sEM-VR and fiEM.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from paper.docstrings import Corpus, docstring_corpus
from paper.experiments.experiment import Experiment, Progress, collect, no_progress, shares, trace
from paper.report.figures import Picture
from paper.report.runs import Runs, curve_panels
from paper.report.section import Finding, Section
from swiftem._run import objective
from swiftem.core.schedules import inverse, power, sample_size
from swiftem.data import CountSource, count_words, read_documents
from swiftem.methods import EM, FastIncrementalEM, IncrementalEM, Method, OnlineEM, VarianceReducedEM
from swiftem.models import PLSAModel, PLSATheta
from swiftem.show.numbers import counted, signed, style_of

N_WORDS, SMALL = 300, 1_000
MODEL = PLSAModel(n_topics=10)
ORDER = ("em", "sem", "iem", "sem-vr", "fiem")
REDUCED, WITHOUT_STEPS = ("sem-vr", "fiem"), ("em", "iem")
KINDS = {"paper": "the paper's steps", "recommended": "recommended steps"}
EARLY, LATE = 5, 50
"""The epochs that are compared."""
LEVEL = 0.025
"""Insignificant late differences of the mean log-likelihood: another start or seed inverts them."""

METHODS: dict[tuple[str, str], Method] = {
    ("", "em"): EM(),
    ("", "iem"): IncrementalEM(),
    ("paper", "sem"): OnlineEM(step_size=inverse(1, 10)),
    ("paper", "sem-vr"): VarianceReducedEM(step_size=sample_size()),
    ("paper", "fiem"): FastIncrementalEM(step_size=sample_size()),
    ("recommended", "sem"): OnlineEM(step_size=power(1, 0.8)),
    ("recommended", "sem-vr"): VarianceReducedEM(step_size=sample_size(10, exponent=1)),
    ("recommended", "fiem"): FastIncrementalEM(step_size=sample_size(10, exponent=1)),
}
"""By the origin of their steps, and name; em and iem have no steps."""


class LikelihoodRow(
    namedtuple("LikelihoodRow", "corpus steps method run epoch passes seconds mean_log_likelihood")
):
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


def docstring_corpora() -> dict[str, Corpus]:
    """Return the small and the large corpus available in every installation.

    >>> len(docstring_corpora()["small"].documents)
    1000
    """
    corpus = docstring_corpus()
    return {"small": corpus.sample(SMALL), "large": corpus}


def read_corpora(paths: Sequence[Path]) -> dict[str, Corpus]:
    """Return the documents of text files, one per line, by the files' names without extensions.

    If files have the same name, the second and later ones are named by their full paths.

    Raises
    ------
    OSError, ValueError
        If a file cannot be read or has too few words; the message names it.
    """
    corpora: dict[str, Corpus] = {}
    for path in paths:
        corpus = Corpus(tuple(read_documents(path)), (), {})
        count_tokens(str(path), corpus)  # now: the experiment may start only after minutes of others
        corpora[path.stem if path.stem not in corpora else str(path)] = corpus
    return corpora


def count_tokens(name: str, corpus: Corpus) -> CountSource:
    """Return the tokens of the 300 most frequent content words.

    Raises
    ------
    ValueError
        If there are too few; the message begins with ``name``.
    """
    try:
        source = CountSource(count_words(corpus.documents, N_WORDS).counts)
        MODEL.bind(source)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return source


def plsa(
    corpora: Mapping[str, Corpus] | None = None,
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
    corpora : mapping of str to Corpus, optional
        By name; the 300 most frequent content words are kept. By default :func:`docstring_corpora`.
    epochs : int
        Epochs of each method, n iterations each.
    runs : int
        Repetitions, each with its own start and draws.
    seed, progress
        As in :func:`paper.experiments.gmm_precision.gmm_precision`.

    Returns
    -------
    Experiment
        With rows :class:`LikelihoodRow`, by corpus and run. Ctrl-C keeps complete curves.

    Examples
    --------
    >>> from paper.experiments.plsa import plsa
    >>> fruit, tools = "apple pear plum apple fig", "hammer saw chisel saw plane"
    >>> rows = plsa({"toy": Corpus((fruit, tools) * 5, (), {})}, epochs=2, runs=1).rows
    >>> [(row.steps, row.method) for row in rows if row.epoch == 2][:3]
    [('', 'em'), ('', 'iem'), ('paper', 'sem')]
    """
    settings = {"runs": f"{runs}, each with its own start and draws; seed {seed}"}

    def curves() -> Iterator[list[LikelihoodRow]]:
        progress("reading texts", 0.0)
        texts = docstring_corpora() if corpora is None else corpora
        sources = {name: count_tokens(name, corpus) for name, corpus in texts.items()}
        settings.update((f"corpus {name}", _about(texts[name], sources[name])) for name in texts)
        plan = [(name, number, *key) for name in texts for number in range(runs) for key in METHODS]
        costs = [sources[name].n for name, *_ in plan]
        for (corpus, number, steps, name), share in zip(plan, shares(costs), strict=True):
            progress(f"{corpus}: {name}", share)
            source, randomness = sources[corpus], np.random.SeedSequence([seed, number])
            points = trace(
                MODEL,
                source,
                METHODS[steps, name],
                theta0=MODEL.bind(source).initial_theta(np.random.default_rng(randomness)),
                epochs=epochs,
                seed=randomness,
                measure=partial(mean_log_likelihood, source),
            )
            yield [LikelihoodRow(corpus, steps, name, number, *point) for point in points]

    return collect("plsa", settings, curves())


def _about(corpus: Corpus, source: CountSource) -> str:
    """Return the description of a corpus, in words."""
    names = ", ".join(f"{name} {version}" for name, version in corpus.versions.items())
    words = f"{source.n_documents:,} documents with any of the {source.n_words} most frequent content words"
    return f"docstrings of {names}: " * bool(names) + f"{words}, n = {source.n:,} tokens"


def mean_log_likelihood(source: Any, theta: PLSATheta) -> float:
    """Return the mean log-likelihood per token for the reported topics and documents."""
    n_topics = theta.topic_word.shape[0]
    proper = theta._replace(topic_scale=np.ones(n_topics))
    return -objective(PLSAModel(n_topics, alpha=0.0, beta=0.0), source, proper)


def plsa_section(experiment: Experiment) -> Section:
    """Return the section for the rows of :func:`plsa`.

    >>> fruit, tools = "apple pear plum apple fig", "hammer saw chisel saw plane"
    >>> section = plsa_section(plsa({"toy": Corpus((fruit, tools) * 5, (), {})}, epochs=2, runs=1))
    >>> [picture.name for picture in section.pictures], len(section.pictures[0].panels)
    (['plsa-1-toy'], 6)
    """
    findings: list[Finding] = []
    pictures: list[Picture] = []
    column, label = "mean_log_likelihood", "mean log-likelihood per token"
    for number, corpus in enumerate(dict.fromkeys(row.corpus for row in experiment.rows), start=1):
        panels = []
        for steps, words in KINDS.items():  # em and iem, which have no steps, are in both
            mine = [row for row in experiment.rows if row.corpus == corpus and row.steps in ("", steps)]
            curves = Runs(sorted(mine, key=lambda row: ORDER.index(row.method)), "epoch")
            panels += curve_panels(curves, column, label, log="", text=_likelihood, suffix=f", {words}")
            if set(ORDER) <= set(curves.methods):  # after Ctrl-C some may be missing
                findings += _is_faster(f"{corpus} corpus, {words}", steps, curves)
        plain = "".join(letter if letter.isalnum() else "-" for letter in corpus)
        title = f"Mean log-likelihood of pLSA on the {corpus} corpus"
        pictures.append(Picture(f"plsa-{number}-{plain}", title, panels))
    return Section(experiment.name, __doc__, experiment.settings, findings, pictures)


def _likelihood(value: float) -> str:
    return signed(value, 2)


def _list(curves: Runs, epoch: int, methods: Sequence[str]) -> str:
    values = (curves.medians(m, "mean_log_likelihood")[epoch] for m in methods)
    return ", ".join(
        f"{_likelihood(value)} ({style_of(m).label})" for m, value in zip(methods, values, strict=True)
    )


def _is_faster(which: str, steps: str, curves: Runs) -> Iterator[Finding]:
    """Yield the paper's claim early and, if there are more epochs, late, compared with the numbers.

    For the paper's steps all others compete, as in the paper.
    """
    early, late = min(EARLY, curves.places[-1]), min(LATE, curves.places[-1])
    others, names = (
        (("em", "sem", "iem"), "EM, sEM and iEM") if steps == "paper" else (WITHOUT_STEPS, "EM and iEM")
    )
    claims = [(f"sEM-VR and fiEM converge faster than {names} ({which}).", early, others, 0.0)]
    if late > early:
        claim = f"sEM-VR and fiEM do not fall behind EM and iEM later ({which})."
        claims.append((claim, late, WITHOUT_STEPS, -LEVEL))
    for claim, epoch, compared, least in claims:
        values = {m: curves.medians(m, "mean_log_likelihood")[epoch] for m in ORDER}
        ahead = min(values[m] for m in REDUCED) - max(values[m] for m in compared)
        measured = f"after {counted(epoch, 'epoch')} {_list(curves, epoch, (*REDUCED, *others))}"
        side = "ahead of" if ahead >= 0 else "behind"
        note = f"The slower of the two is {abs(ahead):.2f} {side} the best of the others."
        if least and steps == "paper" and ahead < 0:
            note += " A step of n^(−2/3) is too large for a long run: both stall at their noise."
        yield Finding(claim, bool(ahead > least), measured, note)
