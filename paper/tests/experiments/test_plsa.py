"""Figure 2: rows, the likelihood, corpora from files, seeds, Ctrl-C; both verdicts of each claim."""

from importlib.metadata import version
from pathlib import Path

import dense
import numpy as np
import pytest

import swiftem
from paper.docstrings import Corpus
from paper.experiments.experiment import Experiment
from paper.experiments.plsa import (
    METHODS,
    MODEL,
    LikelihoodRow,
    docstring_corpora,
    mean_log_likelihood,
    plsa,
    plsa_section,
    read_corpora,
)
from swiftem.core.schedules import inverse, sample_size
from swiftem.data import CountSource, count_words
from swiftem.schedules import power

PAIRS = list(METHODS)
COST = {"em": 1, "sem": 1, "iem": 1, "sem-vr": 3, "fiem": 2}
SHARED = Path(__file__).parents[2].parent / "shared" / "data"


def documents(n, seed=0):
    """Return documents of words from one of two lists, three out of four times."""
    rng = np.random.default_rng(seed)
    lists = [["apple", "pear", "plum", "fig", "cherry"], ["hammer", "saw", "chisel", "plane", "drill"]]
    return [" ".join(rng.choice(lists[(i + (rng.random() < 0.25)) % 2]) for _ in range(12)) for i in range(n)]


def corpus(n, seed=0):
    return Corpus(tuple(documents(n, seed)), (), {})


TOY = {"toy": corpus(30), "other": corpus(20, seed=1)}


def values(experiment, corpus, epoch):
    """Return the log-likelihoods by (steps, method), shape (runs,)."""
    rows = [row for row in experiment.rows if (row.corpus, row.epoch) == (corpus, epoch)]
    return {
        pair: np.array([row.mean_log_likelihood for row in rows if (row.steps, row.method) == pair])
        for pair in PAIRS
    }


EARLY = {
    ("", "em"): -5.2, ("", "iem"): -5.1,
    ("paper", "sem"): -5.0, ("paper", "sem-vr"): -4.8, ("paper", "fiem"): -4.85,
    ("recommended", "sem"): -4.78, ("recommended", "sem-vr"): -4.75, ("recommended", "fiem"): -4.8,
}  # fmt: skip
LATE = {
    ("", "em"): -4.75, ("", "iem"): -4.74,
    ("paper", "sem"): -4.9, ("paper", "sem-vr"): -4.72, ("paper", "fiem"): -4.8,
    ("recommended", "sem"): -4.72, ("recommended", "sem-vr"): -4.69, ("recommended", "fiem"): -4.7,
}  # fmt: skip
"""As measured: EM passes fiEM with the paper's steps, and neither with the recommended ones."""


def curve(corpus, pair, early, late, run=0, epochs=60):
    """Return rows that go from −6 to ``early`` in five epochs and to ``late`` in fifty."""
    steps, method = pair
    return [
        LikelihoodRow(
            corpus, steps, method, run, k, 1.0 + COST[method] * k, 0.01 * COST[method] * k,
            -6 + (early + 6) * k / 5 if k <= 5 else early + (late - early) * min(1, (k - 5) / 45),
        )
        for k in range(epochs + 1)
    ]  # fmt: skip


def experiment(corpora=("small",), pairs=PAIRS, early=EARLY, late=LATE, epochs=60, interrupted=False):
    rows = [
        row
        for corpus in corpora
        for pair in pairs
        for row in curve(corpus, pair, early[pair], late[pair], 0, epochs)
    ]
    return Experiment("plsa", {}, tuple(rows), interrupted)


@pytest.fixture(scope="module")
def toy():
    return plsa(TOY, epochs=4, runs=2, seed=3)


def test_there_is_a_row_for_each_corpus_run_pair_and_epoch(toy):
    assert [(row.corpus, row.run, row.steps, row.method, row.epoch) for row in toy.rows] == [
        (corpus, run, *pair, epoch)
        for corpus in TOY
        for run in (0, 1)
        for pair in PAIRS
        for epoch in range(5)
    ]
    assert (toy.name, toy.interrupted) == ("plsa", False)


def test_all_methods_of_a_run_start_from_the_same_parameters(toy):
    for corpus in TOY:
        starts = np.array(list(values(toy, corpus, 0).values()))
        assert (starts == starts[0]).all()
        assert starts[0, 0] != starts[0, 1]  # another run, another start


def test_the_likelihood_is_that_of_a_dense_computation(toy):
    source = CountSource(count_words(TOY["toy"].documents, 300).counts)
    theta = MODEL.bind(source).initial_theta(np.random.default_rng(np.random.SeedSequence([3, 1])))
    tokens = source.take(np.arange(source.n)).y
    expected = -dense.plsa_objective(
        tokens[:, 0], tokens[:, 1], theta.doc_topic, theta.topic_word, alpha=0, beta=0
    )
    assert values(toy, "toy", 0)["", "em"][1] == pytest.approx(expected, rel=1e-12)


def test_the_likelihood_is_of_the_reported_parameters():
    """Not of the working ones, whose topics do not sum to one after a stochastic step."""
    source = CountSource(count_words(TOY["toy"].documents, 300).counts)
    method = METHODS["recommended", "fiem"]
    theta = swiftem.run(MODEL, source, method, n_iter=500, seed=0).theta
    assert not np.allclose(theta.topic_scale, 1)
    tokens = source.take(np.arange(source.n)).y
    expected = -dense.plsa_objective(
        tokens[:, 0], tokens[:, 1], theta.doc_topic, theta.topic_word, alpha=0, beta=0
    )
    assert mean_log_likelihood(source, theta) == pytest.approx(expected, rel=1e-12)


def test_passes_are_what_each_method_costs(toy):
    for row in toy.rows:
        assert row.passes == pytest.approx(1 + COST[row.method] * row.epoch)


def test_steps_are_the_papers_and_the_recommended_ones():
    assert METHODS["paper", "sem"].step_size == inverse(1, 10)
    assert METHODS["recommended", "sem"].step_size == power(1, 0.8)
    for name in ("sem-vr", "fiem"):
        assert METHODS["paper", name].step_size == sample_size()  # n^(−2/3)
        assert METHODS["recommended", name].step_size == sample_size(10, exponent=1)  # 10/n


def test_likelihoods_grow(toy):
    for corpus in TOY:
        before, after = values(toy, corpus, 0), values(toy, corpus, 4)
        for pair in PAIRS:
            assert (after[pair] > before[pair]).all(), pair


def test_settings_tell_what_the_corpora_are(toy):
    counts = count_words(TOY["other"].documents, 300).counts
    assert toy.settings["corpus other"] == (
        f"20 documents with any of the 10 most frequent content words, n = {counts.sum()} tokens"
    )
    packages = {name: version(name) for name in ("numpy", "scipy")}
    corpus = TOY["toy"]._replace(versions=packages)
    about = plsa({"mine": corpus}, epochs=1, runs=1).settings["corpus mine"]
    assert about.startswith(f"docstrings of numpy {np.__version__}, scipy ")
    assert "30 documents" in about


@pytest.mark.slow
def test_the_docstring_corpora():
    corpora = docstring_corpora()
    assert list(corpora) == ["small", "large"]
    assert len(corpora["small"].documents) == 1000
    assert len(corpora["large"].documents) > 5000


def test_corpora_are_called_by_their_files(tmp_path):
    (tmp_path / "a").mkdir()
    files = [tmp_path / "fruit.txt", tmp_path / "a" / "fruit.csv", tmp_path / "tools.txt"]
    for file, seed in zip(files, (0, 1, 2), strict=True):
        file.write_text("\n".join(documents(10, seed)), encoding="utf-8")
    corpora = read_corpora(files)
    assert list(corpora) == ["fruit", str(files[1]), "tools"]
    assert list(corpora.values()) == [corpus(10, seed) for seed in (0, 1, 2)]
    assert {row.corpus for row in plsa(corpora, epochs=1, runs=1).rows} == set(corpora)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "but does not exist"),
        (b"", "must have at least one document, got an empty file"),
        (b"apple\n\xff\n", "the byte 0xff in line 2"),
        (b"the and of\n1998\n", "at least one word of three letters that is not a stop word"),
        (b"apple pear\n", "must have at least n_topics=10 tokens, got 2"),
    ],
    ids=["missing", "empty", "not UTF-8", "no words", "too few"],
)
def test_bad_corpus_files_are_named(tmp_path, content, sentence):
    file = tmp_path / "bad.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises((OSError, ValueError), match=sentence) as error:
        read_corpora([file])
    assert str(file) in str(error.value)


def test_a_folder_is_no_corpus(tmp_path):
    with pytest.raises(IsADirectoryError, match="got a folder"):
        read_corpora([tmp_path])


def test_a_corpus_that_is_too_small_is_named_before_anything_is_computed():
    with pytest.raises(ValueError, match=r"^tiny: data must have at least n_topics=10 tokens, got 2"):
        plsa({"toy": TOY["toy"], "tiny": Corpus(("apple pear",), (), {})})


def files():
    return [
        pytest.param(
            SHARED / f"{name}.txt",
            marks=pytest.mark.skipif(not SHARED.exists(), reason=f"the FAO texts are not there: {SHARED}"),
            id=name,
        )
        for name in ("fao-1k", "fao-10k")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("corpus", ["small", "large", *files()])
def test_recommended_steps_are_ahead_early_and_never_fall_behind(corpus, seed):
    """After 5 epochs sEM-VR and fiEM are ahead of EM and iEM by 0.2; after 50 they are not below EM."""
    corpora = read_corpora([corpus]) if isinstance(corpus, Path) else {corpus: docstring_corpora()[corpus]}
    experiment = plsa(corpora, epochs=50, runs=2, seed=seed)
    (name,) = corpora
    early, late = values(experiment, name, 5), values(experiment, name, 50)
    for method in ("sem-vr", "fiem"):
        pair = "recommended", method
        for other in (("", "em"), ("", "iem")):
            assert (early[pair] - early[other] >= 0.2).all()
        assert (late[pair] >= late["", "em"]).all()


def test_what_was_measured_with_both_kinds_of_steps(check, verdicts):
    section = check(plsa_section(experiment()))
    assert verdicts(section) == ["agrees", "disagrees", "agrees", "agrees"]
    first, second, third, _ = section.findings
    assert first.claim.endswith("converge faster than EM, sEM and iEM (small corpus, the paper's steps).")
    assert third.claim.endswith("converge faster than EM and iEM (small corpus, recommended steps).")
    assert first.note == "The slower of the two is 0.15 ahead of the best of the others."
    assert third.note == "The slower of the two is 0.30 ahead of the best of the others."
    assert second.note.startswith(
        "The slower of the two is 0.06 behind the best of the others. A step of n^(−2/3)"
    )


@pytest.mark.parametrize(
    ("pair", "value", "where"),
    [
        (("paper", "sem-vr"), -5.01, 0),
        (("paper", "fiem"), -5.3, 0),
        (("paper", "sem"), -4.7, 0),
        (("recommended", "fiem"), -5.15, 2),
        (("recommended", "sem-vr"), -5.15, 2),
    ],
)
def test_a_method_that_is_slower_disagrees(pair, value, where, check, verdicts):
    section = check(plsa_section(experiment(early={**EARLY, pair: value})))
    expected = ["agrees", "disagrees", "agrees", "agrees"]
    expected[where] = "disagrees"
    assert verdicts(section) == expected
    assert "behind the best of the others" in section.findings[where].note


@pytest.mark.parametrize(("steps", "where"), [("paper", 1), ("recommended", 3)])
@pytest.mark.parametrize(
    ("value", "verdict", "note"),
    [
        (-4.5, "agrees", "0.24 ahead of the best of the others."),
        (-4.76, "agrees", "0.02 behind the best of the others."),
        (-4.9, "disagrees", "0.16 behind the best of the others."),
    ],
)
@pytest.mark.parametrize("slower", ["sem-vr", "fiem"])
def test_who_is_ahead_at_the_end(steps, where, value, verdict, note, slower, check):
    late = {**LATE, (steps, "sem-vr"): -4.4, (steps, "fiem"): -4.4, (steps, slower): value}
    finding = check(plsa_section(experiment(late=late))).findings[where]
    assert finding.claim.startswith("sEM-VR and fiEM do not fall behind EM and iEM later")
    assert finding.verdict == verdict
    assert note in finding.note
    # What is said of the paper's step must not be said of the recommended one.
    assert ("n^(−2/3)" in finding.note) == (value < -4.74 and steps == "paper")


def test_few_epochs_are_compared_once(check, verdicts):
    section = check(plsa_section(experiment(epochs=4)))
    assert verdicts(section) == ["agrees", "agrees"]
    assert section.findings[0].measured.startswith("after 4 epochs")
    assert plsa_section(experiment(epochs=15)).findings[1].measured.startswith("after 15 epochs")


def test_medians_over_the_runs(check, verdicts):
    rows = [
        row
        for run, shift in enumerate((0.0, 0.1, 5.0))
        for pair in PAIRS
        for row in curve("small", pair, EARLY[pair] - shift, LATE[pair], run)
    ]
    section = check(plsa_section(Experiment("plsa", {}, tuple(rows), False)))
    assert "−5.30 (EM)" in section.findings[0].measured
    assert next(section.all_tables()).known()[4][:2] == ("5", "−5.30")


def test_tables_say_whose_steps(check):
    paper, recommended = check(plsa_section(experiment())).all_tables()
    assert paper.title.endswith("on the small corpus: against epochs, the paper's steps")
    assert recommended.title.endswith("against epochs, recommended steps")
    for table in (paper, recommended):
        assert list(table.columns) == ["epochs", "EM", "sEM", "iEM", "sEM-VR", "fiEM"]
        assert table.known()[-1][0] == "60"


def test_each_corpus_has_its_figure(check, verdicts):
    corpora = ["a b", "a-b", "../A b", "x/y.txt", "…"]
    section = check(plsa_section(experiment(corpora=corpora, epochs=6)))
    names = [picture.name for picture in section.pictures]
    assert names == ["plsa-1-a-b", "plsa-2-a-b", "plsa-3----A-b", "plsa-4-x-y-txt", "plsa-5--"]
    assert [len(picture.panels) for picture in section.pictures] == [6] * 5


@pytest.mark.parametrize("count", range(1, 9))
def test_what_ctrl_c_leaves_of_the_first_run(count, check, verdicts):
    section = check(plsa_section(experiment(pairs=PAIRS[:count], interrupted=True)), draw=count in (1, 3, 6))
    (picture,), tables = section.pictures, [*section.all_tables()]
    assert verdicts(section) == (["agrees", "disagrees"] if count >= 5 else []) + (
        ["agrees", "agrees"] if count == 8 else []
    )
    assert len(picture.panels) == 6
    assert len(tables[0].columns) == 1 + min(count, 5)


def test_an_incomplete_last_run_is_left_out(check, verdicts):
    rows = [*experiment().rows, *(row for row in curve("small", ("", "em"), 9.0, 9.0, run=1))]
    section = check(plsa_section(Experiment("plsa", {}, tuple(rows), True)))
    assert "−5.20 (EM)" in section.findings[0].measured


def test_a_real_experiment(check, verdicts):
    result = plsa({"toy": TOY["toy"]}, epochs=1, runs=2)
    section = check(plsa_section(result), draw=True)
    assert len(section.findings) == 2
