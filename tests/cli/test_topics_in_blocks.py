"""``swiftem topics --memory-limit``: counts that are read in blocks."""

import numpy as np
import pytest
import scipy.sparse as sp
from combinations.counts import uci as write_uci
from pyarrow import parquet

import swiftem
from swiftem.cli import topics_files as module
from swiftem.data.documents.counts import FileDocuments, SpooledDocuments

LIMIT = "300MB"


def counts(n_documents=900, n_words=60):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(n_words, 0.1), size=3)
    X = np.array([rng.multinomial(20, topics[d % 3]) for d in range(n_documents)])
    X[7] = 0
    return sp.csr_array(X)


@pytest.fixture
def uci(tmp_path):
    """Return a file of counts with its vocabulary."""
    return write_uci(counts().toarray(), None, tmp_path).X


@pytest.fixture
def large(monkeypatch):
    """Take every corpus for one that is larger than the limit; blocks and the sample are small."""
    monkeypatch.setattr(module, "LOADED", 10**9)
    monkeypatch.setattr(module, "BLOCK", 128)
    monkeypatch.setattr(module, "SAMPLE", 200)


@pytest.mark.usefixtures("large")
def test_every_document_has_its_topics(run, uci, tmp_path):
    out = tmp_path / "out"
    output = run(uci, "--topics", 3, "--memory-limit", LIMIT, "--out", out)
    assert "899 documents with 17,980 words, 60 of them different." in output
    assert "are those of 113 of the 899 documents." in output  # every eighth
    rows = parquet.read_table(out / "document_topics.parquet").to_pylist()
    assert [row["document"] for row in rows[6:8]] == ["document 7", "document 9"]  # 8 has no words
    assert len(rows) == 899
    shares = np.array([[float(row[f"topic_{k}"]) for k in range(3)] for row in rows])
    model = swiftem.PLSA.load(out / "model.swiftem")
    X = counts()[np.delete(np.arange(900), 7)]
    with pytest.warns(UserWarning, match="feature names"):
        expected = model.set_params(tol=0.0).transform(X)
    np.testing.assert_allclose(shares, expected, atol=5e-3)
    with swiftem.config_context(memory_limit=LIMIT):
        same = swiftem.PLSA(3, random_state=0).fit(uci)
    np.testing.assert_array_equal(model.components_, same.components_)
    assert list(model.feature_names_in_[:2]) == ["word0", "word1"]
    assert "are those of 113 of the 899 documents." in (out / "topics.html").read_text(encoding="utf-8")


def test_a_text_is_parsed_once(run, uci, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LOADED", 10**9)
    read, blocks = [], FileDocuments.blocks
    monkeypatch.setattr(FileDocuments, "blocks", lambda self, rows: read.append(rows) or blocks(self, rows))
    run(uci, "--topics", 3, "--memory-limit", LIMIT, "--out", tmp_path / "out")
    assert len(read) == 1
    with swiftem.config_context(memory_limit=LIMIT):
        same = swiftem.PLSA(3, random_state=0).fit(uci)
    np.testing.assert_array_equal(
        swiftem.PLSA.load(tmp_path / "out/model.swiftem").components_, same.components_
    )
    assert parquet.read_table(tmp_path / "out/document_topics.parquet").num_rows == 899

    def full(self, first, counts):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SpooledDocuments, "_store", full)
    run(uci, "--topics", 3, "--memory-limit", LIMIT, "--out", tmp_path / "again")
    assert parquet.read_table(tmp_path / "again/document_topics.parquet").num_rows == 899


def test_counts_that_fit_are_loaded(run, uci, tmp_path):
    output = run(uci, "--topics", 3, "--memory-limit", LIMIT, "--out", tmp_path / "out")
    assert "read in blocks" not in output


@pytest.mark.usefixtures("large")
def test_texts_that_do_not_fit_are_refused(run, folder, tmp_path):
    output = run(folder, "--topics", 2, "--memory-limit", LIMIT, "--out", tmp_path / "out", code=2)
    assert "memory_limit must be at least" in output
    assert "only counts in the formats uci and lda-c are read in blocks." in output
    assert not (tmp_path / "out").exists()
