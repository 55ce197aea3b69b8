"""Model files that were made up: whatever they say, the result is a valid model or one sentence."""

import io
import tracemalloc
import zipfile

import model_mutations as made
import numpy as np
import pytest
from typer.testing import CliRunner

import swiftem
from swiftem.cli.app import app
from swiftem.fit.model_file import save_arrays
from swiftem.models import NormalInverseWishart

NEITHER = np.nan, np.inf, -np.inf, 1e308


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    made.make_models(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def load(content, base, path):
    path.write_bytes(content)
    return getattr(swiftem, base.partition("-")[0]).load(path)


def array(name, change):
    return lambda content: made.with_array(content, name, change)


def header(change):
    return lambda content: made.with_header(content, lambda full: change(full["header"]))


def entry(name, value):
    return header(lambda found: found.update({name: value}))


def parameter(name, value):
    return header(lambda found: found["parameters"].update({name: value}))


def dataclass(name, **fields):
    return {"type": name, "fields": fields}


def online(name, value):
    return header(lambda found: found["online"].update({name: value}))


def one(value):
    """Return a change of the first number of an array."""

    def change(found):
        found = np.array(found, dtype=float)
        found.flat[0] = value
        return found

    return change


def fewer(found):
    return found[..., :-1]


def more(found):
    return np.concatenate([found, found[..., :1]], axis=-1)


MIXTURES = {
    "weights that do not sum to one": array("weights_", lambda found: found * 0.5),
    "a negative weight": array("weights_", lambda found: np.array([-0.5, 1.5])),
    "fewer weights": array("weights_", fewer),
    "integers": array("means_", lambda found: found.astype(int)),
    "half precision": array("means_", lambda found: found.astype(np.float16)),
    "columns of means": array("means_", fewer),
    "fewer covariances": array("covariances_", lambda found: found[:1]),
    "a negative covariance": array("covariances_", lambda found: -found),
    "covariances that are not symmetric": array("covariances_", lambda found: found + np.eye(2, k=1)),
    "not positive definite": array("covariances_", lambda found: found * [[1, 9.0], [9.0, 1]]),
    "factors of others": array("precisions_cholesky_", lambda found: 3 * found),
    "lower triangular factors": array("precisions_cholesky_", lambda found: found.transpose(0, 2, 1)),
    "more columns": entry("n_features_in_", 3),
    "no columns": entry("n_features_in_", 0),
    "very many columns": entry("n_features_in_", 2**40),
    "columns that are no number": entry("n_features_in_", "2"),
    "fewer names": entry("feature_names_in_", ["a"]),
    "names that are no texts": entry("feature_names_in_", ["a", 1]),
    "texts that cannot be written": entry("feature_names_in_", ["a", "\ud800"]),
    "no history": header(lambda found: found.pop("history")),
    "another history": entry("history", [[1, 2, 3]]),
    "a history of texts": entry("history", [["1", 2, 3, 4, 5, "em"]]),
    "more components": parameter("n_components", 3),
    "components that are no number": parameter("n_components", True),
    "another kind of covariance": parameter("covariance_type", "diag"),
    "no kind of covariance": parameter("covariance_type", "round"),
    "a parameter that there is not": parameter("colour", 1),
    "a parameter of another form": parameter("init_params", {"set": [0, 1]}),
    "a negative tolerance": parameter("tol", -1.0),
    "no tolerance": parameter("tol", float("nan")),
    "a number of too many digits": parameter("max_iter", 10**300),
    "another prior": parameter(
        "prior", dataclass("NormalInverseWishart", degrees_of_freedom=4.0, scale=[1.0] * 3)
    ),
    "a prior of texts": parameter("prior", dataclass("NormalInverseWishart", scale="x")),
    "a method that there is not": parameter("method", dataclass("Sideways")),
    "a step beyond one": parameter("method", dataclass("OnlineEM", step_size=2.0)),
    "fewer statistics": array("past_s", fewer),
    "more statistics": array("past_s", more),
    "a longer centre": array("past_centre", more),
    "no weight": entry("past_weight", 0.0),
    "a weight of text": entry("past_weight", "1"),
    **{f"a mean of {value}": array("means_", one(value)) for value in NEITHER},
    **{f"statistics of {value}": array("past_s", one(value)) for value in NEITHER},
}
STREAMS = {
    "fewer statistics": array("online_s", fewer),
    "more statistics": array("online_s", more),
    "no statistics": array("online_s", lambda found: found[:0]),
    "a longer centre": array("online_centre", more),
    "rows of more columns": array("online_rows", more),
    "fewer weights": array("online_weight", fewer),
    "more ranks": array("online_rank", more),
    "a weight of zero": array("online_weight", one(0.0)),
    "a weight of nothing": array("online_weight", one(np.nan)),
    "a row of nothing": array("online_rows", one(np.nan)),
    "a threshold of zero": online("threshold", 0.0),
    "a tiny threshold": online("threshold", 1e-320),
    "no threshold": online("threshold", float("nan")),
    "a smaller sample": online("size", 3),
    "no generator": online("rng", {}),
    "another generator": online("rng", {"bit_generator": "MT19937", "state": 3}),
    "a generator of a long number": header(
        lambda found: found["online"]["rng"]["state"].update(state=2**200)
    ),
    "less than nothing seen": online("seen", -1.0),
    "infinitely much seen": online("seen", float("inf")),
    "batches of text": online("n_batches", "3"),
    "no state": entry("online", [1, 2]),
}
TOPICS = {
    "more columns": entry("n_features_in_", 10_000),
    "very many columns": entry("n_features_in_", 2**40),
    "fewer columns": entry("n_features_in_", 3),
    "fewer words": array("components_", fewer),
    "fewer topics": array("components_", lambda found: found[:2]),
    "more topics": array("components_", lambda found: np.concatenate([found, found[:1]])),
    "single precision": array("components_", lambda found: found.astype(np.float32)),
    "a vector": array("components_", np.ravel),
    "a negative probability": array("components_", lambda found: found - 0.1),
    "rows that do not sum to one": array("components_", lambda found: 2 * found),
    "more topics to ask for": parameter("n_components", 5),
    "a shorter alpha": array("alpha_", lambda found: np.full(2, 0.1)),
    "a longer alpha": array("alpha_", lambda found: np.full(4, 0.1)),
    "a negative alpha": array("alpha_", lambda found: -found),
    "an alpha for other topics": parameter("alpha", [0.1, 0.1]),
    "an infinite beta": parameter("beta", float("inf")),
    "fewer counts": array("word_counts", fewer),
    "more counts": array("word_counts", more),
    "fewer rows of counts": array("word_counts", lambda found: found[:1]),
    "counts of zero": array("word_counts", np.zeros_like),
    "counts below zero": array("word_counts", lambda found: -found),
    "fewer totals": array("topic_counts_", fewer),
    "totals of zero": array("topic_counts_", np.zeros_like),
    "fewer names": entry("feature_names_in_", ["a"]),
    "no result": header(lambda found: found.pop("n_iter_")),
    "a result of nothing": entry("converged_", None),
    "a method that is a number": entry("method_", 3),
    "a likelihood of text": entry("log_likelihood_", "x"),
    "no method": parameter("method", "guess"),
    "a negative seed": parameter("random_state", -1),
    "a step beyond one": parameter("step_size", 2.0),
    "a start of another form": parameter("init", {"start": 1}),
    **{f"a probability of {value}": array("components_", one(value)) for value in NEITHER},
    **{f"a count of {value}": array("word_counts", one(value)) for value in NEITHER},
}
STRENGTHS = {
    "a shorter beta": parameter("beta", np.full(11, 0.1)),
    "another beta": parameter("beta", np.full((12, 3), 0.1)),
    "a beta of texts": parameter("beta", np.full(12, "x")),
    "a beta of dates": parameter("beta", np.zeros(12, "M8[s]")),
}
CASES = {
    f"{base}: {name}": (base, case)
    for base, cases in (
        ("GaussianMixture-full", MIXTURES), ("GaussianMixture-tied-stream", STREAMS), ("PLSA-fit", TOPICS),
        ("PLSA-strengths", STRENGTHS),
    )
    for name, case in cases.items()
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_model_that_is_none_is_refused(models, tmp_path, case):
    base, change = case
    with pytest.raises(ValueError, match="file is not a valid") as error:
        load(change(models[base]), base, tmp_path / "model.file")
    message = str(error.value)
    assert message.startswith(str(tmp_path / "model.file"))
    assert message.endswith(".")
    assert "\n" not in message


def test_models_that_were_not_changed_answer_as_before(models, tmp_path):
    for base, content in models.items():
        model = load(made.pack(made.unpack(content)), base, tmp_path / "model")
        assert made.ask(model) == "", base


@pytest.mark.parametrize("base", ["GaussianMixture-full-stream", "PLSA-fit"])
def test_other_layouts_of_the_same_numbers(models, tmp_path, base):
    """Arrays of another machine's byte order, and in Fortran's order."""
    content = models[base]
    expected = load(content, base, tmp_path / "model")
    for name in made.unpack(content)["arrays"]:
        content = made.with_array(content, name, lambda found: np.array(found, dtype=">f8", order="F"))
    found = load(content, base, tmp_path / "model")
    X = made.ROWS if base.startswith("Gauss") else made.COUNTS
    assert found.score(X) == expected.score(X)
    assert found.partial_fit(X).score(X) == expected.partial_fit(X).score(X)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_everything_comes_back(tmp_path, kind):
    prior = NormalInverseWishart(degrees_of_freedom=4.0, scale=1.0)
    mixture = swiftem.GaussianMixture(2, covariance_type=kind, prior=prior, random_state=3).fit(made.ROWS)
    mixture.save(tmp_path / "model")
    found = swiftem.load(tmp_path / "model")
    assert type(found) is swiftem.GaussianMixture
    np.testing.assert_array_equal(found.predict_proba(made.ROWS), mixture.predict_proba(made.ROWS))
    assert found.get_params() == mixture.get_params()
    for name in ("n_iter_", "converged_", "lower_bound_", "history_"):
        assert getattr(found, name) == getattr(mixture, name)


def test_damaged_files_are_refused(models, tmp_path):
    whole = models["GaussianMixture-full"]
    in_last_array = whole[:-33] + bytes([whole[-33] ^ 0xFF]) + whole[-32:]
    for content in (whole[: len(whole) // 2], b"", b"no model at all", in_last_array):
        with pytest.raises(ValueError, match="bad"):
            load(content, "GaussianMixture", tmp_path / "bad")
    with pytest.raises(ValueError, match="PLSA"):
        load(models["PLSA-fit"], "GaussianMixture", tmp_path / "topics")
    with pytest.raises(FileNotFoundError):
        swiftem.GaussianMixture.load(tmp_path / "none")


def claims(content):
    """Claim that an array has a gigabyte."""
    return made.with_line(content, lambda line: line.replace(b"[3, 12]", b"[3, %d]" % (1 << 27), 1))


def long_line(content):
    return made.with_line(
        content, lambda line: line.replace(b"[3, 12]", b"[3, 12" + b" " * (1 << 24) + b"]", 1)
    )


def long_header(content):
    return made.with_line(content, lambda line: b"[" + b"{}," * (6 << 20) + b"{}]")


LARGE = {"claims": claims, "long line": long_line, "long header": long_header}


@pytest.mark.parametrize("make", LARGE.values(), ids=list(LARGE))
def test_a_small_file_takes_little_memory(models, tmp_path, make):
    content = make(models["PLSA-fit"])
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="model is damaged, or not a model file of this version of"):
            load(content, "PLSA-fit", tmp_path / "model")
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()
    result = CliRunner().invoke(app, ["info", str(tmp_path / "model")])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{tmp_path / 'model'} is damaged, or not a model file")
    assert result.stderr.count("\n") == 1


def test_a_file_of_another_version_is_refused(models, tmp_path):
    zipped = io.BytesIO()  # as model files were
    with zipfile.ZipFile(zipped, "w") as file:
        file.writestr("header.json", "{}")
    for content in (zipped.getvalue(), models["PLSA-fit"].replace(b"format 4", b"format 5")):
        sentence = r"this version of swiftem \(its first line is not 'swiftem model, format 4'\)\.$"
        with pytest.raises(ValueError, match=sentence):
            load(content, "PLSA-fit", tmp_path / "model")


def test_what_a_file_says_of_itself_is_shown_with_care(models, tmp_path):
    """Versions and kinds may be anything: no list, no text of many lines, nothing a terminal would obey."""
    for name in ("swiftem", "numpy"):
        for value in ("a\nb", "\x1b[2J", ["x"] * 999, "x" * 9999, None):
            changed = made.with_header(models["PLSA-fit"], lambda full: full.update({name: value}))  # noqa: B023
            (tmp_path / "model").write_bytes(changed)
            result = CliRunner().invoke(app, ["info", str(tmp_path / "model")])
            assert result.exit_code == 0
            assert f"{dict(swiftem='swiftem', numpy='NumPy')[name]} (unknown)" in result.stdout
    for value in ("Forest\nfire", ["x"], "x" * 9999):
        changed = made.with_header(models["PLSA-fit"], lambda full: full.update(kind=value))  # noqa: B023
        with pytest.raises(ValueError, match=r"model holds a \(unknown\), not a PLSA\.$"):
            load(changed, "PLSA-fit", tmp_path / "model")


def test_a_file_that_could_not_be_read_again_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="cannot hold the names of so many columns"):
        save_arrays(tmp_path / "model", "Toy", {"feature_names_in_": ["x" * 1000] * 17_000}, {})
    assert not (tmp_path / "model").exists()


def test_a_sample_that_cannot_be_fitted_does_not_end_a_stream(models, tmp_path):
    """Rows of the sample that are all alike, far away: the running mixture goes on without them."""
    far = made.with_array(
        models["GaussianMixture-full-stream"], "online_rows", lambda found: 0 * found + 1e30
    )
    model = load(far, "GaussianMixture-full-stream", tmp_path / "model")
    for _ in range(3):
        model.partial_fit(made.ROWS)
    assert np.isfinite(model.means_).all()
