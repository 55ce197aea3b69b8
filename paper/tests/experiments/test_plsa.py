"""The pLSA figure: rows, the likelihood, corpora from files, seeds, Ctrl-C."""

import signal
from importlib.metadata import version
from pathlib import Path

import dense
import numpy as np
import pytest

import swiftem
from paper.docstrings import Corpus
from paper.experiments import plsa as module
from paper.experiments.plsa import (
    MODEL,
    STEPS,
    docstring_corpora,
    mean_log_likelihood,
    plsa,
    read_corpora,
)
from swiftem.core.schedules import inverse, sample_size
from swiftem.data import CountSource, count_words
from swiftem.schedules import power

PAIRS = [
    ("", "em"), ("", "iem"), ("paper", "sem"), ("paper", "sem-vr"), ("paper", "fiem"),
    ("recommended", "sem"), ("recommended", "sem-vr"), ("recommended", "fiem"),
]  # fmt: skip
SHARED = Path(__file__).parents[2].parent / "shared" / "data"


def documents(n, seed=0):
    """Return documents of words from one of two lists, three out of four times."""
    rng = np.random.default_rng(seed)
    lists = [["apple", "pear", "plum", "fig", "cherry"], ["hammer", "saw", "chisel", "plane", "drill"]]
    return [" ".join(rng.choice(lists[(i + (rng.random() < 0.25)) % 2]) for _ in range(12)) for i in range(n)]


TOY = {"toy": documents(30), "other": documents(20, seed=1)}


def values(experiment, corpus, epoch):
    """Return the log-likelihoods by (steps, method), shape (runs,)."""
    rows = [row for row in experiment.rows if (row.corpus, row.epoch) == (corpus, epoch)]
    return {
        pair: np.array([row.mean_log_likelihood for row in rows if (row.steps, row.method) == pair])
        for pair in PAIRS
    }


def without_seconds(experiment):
    return [row._replace(seconds=0.0) for row in experiment.rows]


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
    source = CountSource(count_words(TOY["toy"], 300).counts)
    theta = MODEL.bind(source).initial_theta(np.random.default_rng(np.random.SeedSequence([3, 1])))
    tokens = source.take(np.arange(source.n)).y
    expected = -dense.plsa_objective(
        tokens[:, 0], tokens[:, 1], theta.doc_topic, theta.topic_word, alpha=0, beta=0
    )
    assert values(toy, "toy", 0)["", "em"][1] == pytest.approx(expected, rel=1e-12)


def test_the_likelihood_is_of_the_reported_parameters():
    """Not of the working ones, whose topics do not sum to one after a stochastic step."""
    source = CountSource(count_words(TOY["toy"], 300).counts)
    method = STEPS["recommended"]["fiem"]
    theta = swiftem.run(MODEL, source, method, n_iter=500, seed=0).theta
    assert not np.allclose(theta.topic_scale, 1)
    tokens = source.take(np.arange(source.n)).y
    expected = -dense.plsa_objective(
        tokens[:, 0], tokens[:, 1], theta.doc_topic, theta.topic_word, alpha=0, beta=0
    )
    assert mean_log_likelihood(source, theta) == pytest.approx(expected, rel=1e-12)


def test_passes_are_what_each_method_costs(toy):
    cost = {"em": 1, "sem": 1, "iem": 1, "sem-vr": 3, "fiem": 2}
    for row in toy.rows:
        assert row.passes == pytest.approx(1 + cost[row.method] * row.epoch)


def test_steps_are_the_papers_and_the_recommended_ones():
    paper, recommended = STEPS["paper"], STEPS["recommended"]
    assert paper["sem"].step_size == inverse(1, 10)
    assert recommended["sem"].step_size == power(1, 0.8)
    for name in ("sem-vr", "fiem"):
        assert paper[name].step_size == sample_size()  # n^(−2/3)
        assert recommended[name].step_size == sample_size(10, exponent=1)  # 10/n


def test_likelihoods_grow(toy):
    for corpus in TOY:
        before, after = values(toy, corpus, 0), values(toy, corpus, 4)
        for pair in PAIRS:
            assert (after[pair] > before[pair]).all(), pair


def test_same_seed_same_rows():
    first, again, other = (plsa({"toy": TOY["toy"]}, epochs=2, runs=1, seed=seed) for seed in (4, 4, 5))
    assert without_seconds(first) == without_seconds(again)
    assert not {row.mean_log_likelihood for row in first.rows} & {
        row.mean_log_likelihood for row in other.rows
    }


def test_ctrl_c_keeps_complete_curves_only(ctrl_c):
    experiment = plsa(TOY, epochs=3, runs=2, progress=ctrl_c("other: fiem", times=2))
    assert experiment.interrupted
    done = [(row.corpus, row.run, row.steps, row.method) for row in experiment.rows if row.epoch == 3]
    assert done == [
        *(("toy", run, *pair) for run in (0, 1) for pair in PAIRS),
        *(("other", 0, *pair) for pair in PAIRS[:-1]),
    ]
    assert len(experiment.rows) == 4 * len(done)


def test_ctrl_c_while_compiling_leaves_no_rows(monkeypatch):
    monkeypatch.setattr(module, "warm_up", lambda *args: signal.raise_signal(signal.SIGINT))
    experiment = plsa(TOY, epochs=3, runs=2)
    assert (experiment.interrupted, experiment.rows) == (True, ())


def test_progress_names_corpus_and_method_and_ends_at_one():
    told = []
    plsa(TOY, epochs=1, runs=1, progress=lambda doing, share: told.append((doing, share)))
    assert {doing for doing, _ in told} == {
        "compiling",
        *(f"{corpus}: {name}" for corpus in TOY for _, name in PAIRS),
    }
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_settings_tell_what_the_corpora_are(toy):
    counts = count_words(TOY["other"], 300).counts
    assert toy.settings["corpus other"] == (
        f"20 documents with any of the 10 most frequent content words, n = {counts.sum()} tokens"
    )
    packages = {name: version(name) for name in ("numpy", "scipy")}
    corpus = Corpus(tuple(TOY["toy"]), tuple("x" * 30), packages)
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
    assert list(corpora.values()) == [documents(10, seed) for seed in (0, 1, 2)]
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
        plsa({"toy": TOY["toy"], "tiny": ["apple pear"]}, progress=lambda *told: pytest.fail("too late"))


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
