"""``swiftem info``: what models are, of any kind, and a sentence for what is none."""

import numpy as np
import pytest
from model_mutations import pack

import swiftem
from swiftem import GaussianMixture
from swiftem.fit.model_file import save_arrays


def test_a_mixture(flowers, tmp_path, call):
    options = ["--columns", "height,width", "--covariance-type", "diag", "-o", tmp_path / "a.model"]
    call("fit", flowers, "-k", 3, *options)
    stdout, stderr = call("info", tmp_path / "a.model")
    assert stderr == ""
    mixture = GaussianMixture.load(tmp_path / "a.model")
    lines = [" ".join(line.split()) for line in stdout.splitlines()]
    for line in (
        "kind GaussianMixture",
        "components 3",
        "covariance diag",
        "columns 2: height, width",
        "method em",
        f"passes {mixture.n_iter_}",
        "converged yes",
        f"stationarity {mixture.stationarity_:.1e}",
        f"written by swiftem {swiftem.__version__}, NumPy {np.__version__}",
    ):
        assert line in lines
    assert stdout.endswith(f"{mixture.summary()}\n")


def test_a_mixture_that_was_not_fitted(tmp_path, call):
    GaussianMixture.from_parameters([1.0], [[0.0]], [[[1.0]]]).save(tmp_path / "a.model")
    stdout, _ = call("info", tmp_path / "a.model")
    assert "given" in stdout
    assert "1, without names" in stdout
    assert "converged" not in stdout
    assert "stationarity" not in stdout


def test_topics(tmp_path, call):
    counts = np.array([[5, 4, 0, 0], [6, 2, 0, 1], [0, 0, 3, 4]])
    topics = swiftem.PLSA(2, random_state=0).fit(counts)
    topics.feature_names_in_ = np.array(["ape", "bee", "cod", "dog"], dtype=object)
    topics.save(tmp_path / "a.model")
    stdout, stderr = call("info", tmp_path / "a.model")
    assert stderr == ""
    lines = [" ".join(line.split()) for line in stdout.splitlines()]
    for line in ("kind PLSA", "topics 2", "words 4", f"passes {topics.n_iter_}", "topic share words"):
        assert line in lines
    first = topics.sorted_topics()[0]
    assert f"{first} {topics.topic_prevalence()[first]:.1%} {', '.join(topics.top_words()[first])}" in lines
    _, stderr = call("predict", tmp_path / "a.model", tmp_path / "a.csv", code=1)
    assert "got topics: use swiftem topics --apply" in stderr
    assert stderr.count("\n") == 1


def test_another_kind_says_what_it_is(tmp_path, call):
    save_arrays(tmp_path / "a.model", "Forest", {}, {"trees": np.zeros((3, 5))})
    stdout, stderr = call("info", tmp_path / "a.model")
    assert stderr == ""
    assert stdout.split("\n")[0].split() == ["kind", "Forest"]
    assert "Unknown kind of model: upgrade swiftem to see details." in stdout


NO_MODEL = "is damaged, or not a model file of this version of swiftem"


def test_what_is_no_model(tmp_path, model, call):
    good = model[0].read_bytes()
    text = tmp_path / "text.model"
    text.write_text("no model")
    cut = tmp_path / "cut.model"
    cut.write_bytes(good[: len(good) // 2])
    for path, words in (
        (tmp_path / "missing.model", "must be a model file, but does not exist."),
        (tmp_path, "must be a model file, got a folder."),
        (text, f"{NO_MODEL} (its first line is not 'swiftem model, format 4')."),
        (cut, f"{NO_MODEL} (it ends too early)."),
    ):
        stdout, stderr = call("info", path, code=1)
        assert stdout == ""
        assert stderr == f"{path} {words}\n"


@pytest.mark.parametrize("command", ["info", "predict"])
def test_headers_with_anything_in_them(command, tmp_path, flowers, call):
    """A file may have any header: the answer is a sentence, never a traceback."""
    for kind in ("GaussianMixture", "PLSA", 7, None, []):
        for header in ({}, [], "x", {"parameters": {"n_components": "three"}}):
            path = tmp_path / "a.model"
            path.write_bytes(pack({"kind": kind, "header": header, "arrays": {}}))
            is_read = command == "info" and isinstance(header, dict) and not isinstance(kind, str)
            _, stderr = call(
                command, path, *([flowers] if command == "predict" else []), code=int(not is_read)
            )
            if not is_read:
                assert str(path) in stderr
                assert stderr.count("\n") == 1
