"""Markup, source code, data and identifiers are not taken for texts, and texts for nothing else."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from table_files import csv_file, needs_pyarrow, sentence_of

import swiftem
from swiftem.data import read_corpus
from swiftem.data.documents.formats.no_text import looks_like

PROSE = (
    "Showers continued throughout the week in the Bahia cocoa zone, alleviating the drought since early "
    "January (see table 3) and improving prospects for the coming temporao, although normal humidity levels "
    "have not been restored; Comissaria Smith said in its weekly review, dated 26-FEB-1987.\n"
)
SGML = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n' + "".join(
    f'<REUTERS TOPICS="YES" NEWID="{number}">\n<DATE>26-FEB-1987</DATE>\n<TOPICS><D>cocoa</D></TOPICS>'
    f"\n<PLACES><D>brazil</D></PLACES>\n<TEXT>&#2;\n<TITLE>COCOA</TITLE>\n<BODY>{PROSE}</BODY></TEXT>\n</REUTERS>\n"
    for number in range(20)
)
HTML = (
    "<html><head><title>Rice</title></head><body>"
    + "<p>Rice, and <b>maize</b>.</p>\n" * 30
    + "</body></html>"
)
XML = '<?xml version="1.0"?>\n<items>\n' + "  <item id='1'><name>rice</name></item>\n" * 30 + "</items>"
NUMBERS = "\n".join(
    ",".join(f"{x:.4f}" for x in row) for row in np.random.default_rng(0).normal(size=(30, 4))
)
JSON = json.dumps([{"id": number, "kind": "rice", "price": 1.5} for number in range(30)])
PYTHON = Path(swiftem.__file__).with_name("e_step.py").read_text()
C = "#include <stdio.h>\nint main() {\n    int i;\n    for (i = 0; i < 3; i++) {\n        f(i);\n    }\n}\n"
IDS = [f"order-{number:04}-X" for number in range(40)]
MAIL = (
    "From: Anne <anne@example.org>\nTo: Bob <bob@example.org>\nSubject: Re: rice\n\n"
    "> I said <grin> that 2 < 3.\n\nYes; but what about the maize (and the 12 tons of it)?\nBest,\nAnne\n"
    + PROSE
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [(SGML, "markup"), (HTML, "markup"), (XML, "markup"), (PYTHON, "source code"), (C, "source code"),
     (NUMBERS, "data"), (JSON, "data"), (PROSE, ""), (MAIL, ""), ("rice", ""), ("1 2 3", ""), ("", ""),
     ("Rice<br /><br />and maize. " * 40, "markup"), (PROSE + "<br /><br />" + PROSE, ""),
     ("- rice\n- maize\n- fish\n" * 20, ""), ("# Rice\n\nSee [maize](maize.html).\n\n" + PROSE, "")],
)  # fmt: skip
def test_what_a_document_looks_like(text, kind):
    assert looks_like(text) == kind


def test_documentation_may_quote_code():
    assert looks_like(PYTHON, "guide.md") == ""
    assert looks_like(PROSE, "guide.py.gz") == "source code"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "reut2-000.sgm",
            SGML,
            "must have texts, got what looks like markup: extract the text from it first",
        ),
        ("reuters.txt", SGML, "what looks like markup"),
        ("page.html", HTML, "what looks like markup"),
        (
            "a.txt",
            "height,width,a,b\n" + NUMBERS,
            "what looks like data: swiftem fit is for tables of numbers",
        ),
        ("a.txt", PYTHON, "what looks like source code"),
        ("fit.py", "def fit():\n    pass\n", "what looks like source code"),
        ("a.txt", "\n".join(IDS), "what looks like identifiers or single words: name the column"),
        (
            "a.csv",
            "id,n\n" + "\n".join(f"{name},1" for name in IDS),
            "(column 'id') must have texts, got what",
        ),
        ("a.csv", "a,kind\n" + "1,rice\n2,maize\n" * 20, "(column 'kind') must have texts"),
    ],
)
def test_files_are_refused(tmp_path, name, content, words):
    file = csv_file(tmp_path, content, name)
    sentence = sentence_of(lambda: read_corpus(file))
    assert words in sentence
    assert sentence.endswith("or use as_text=True if these are texts.")
    assert len(read_corpus(file, as_text=True)) > 0


def test_a_compressed_file_is_refused(tmp_path):
    file = csv_file(tmp_path, gzip.compress(SGML.encode()), "a.txt.gz")
    assert "markup" in sentence_of(lambda: read_corpus(file))


@needs_pyarrow
def test_parquet(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"id": IDS}), tmp_path / "a.parquet")
    assert "(column 'id') must have texts" in sentence_of(lambda: read_corpus(tmp_path / "a.parquet"))


def test_a_folder_of_data(tmp_path):
    for number in range(4):
        (tmp_path / f"{number}.csv").write_text(NUMBERS)
    (tmp_path / "README.txt").write_text(PROSE)
    assert sentence_of(lambda: read_corpus(tmp_path)) == (
        f"{tmp_path} must have texts, got 4 of 5 files that look like data (0.csv, 1.csv, 2.csv, ...): "
        "swiftem fit is for tables of numbers, or use as_text=True if these are texts."
    )


def test_others_are_left_out_of_a_folder_of_texts(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text(PROSE)
    (tmp_path / "count.py").write_text("count = 1\n")
    (tmp_path / "counts.csv").write_text(NUMBERS)
    corpus = read_corpus(tmp_path)
    assert corpus.names == tuple(f"{number}.txt" for number in range(5))
    assert corpus.notes == (
        "2 files look like source code or data and were left out: count.py, counts.csv "
        "(as_text=True reads all files).",
    )
    assert "count.py" in read_corpus(tmp_path, as_text=True).names


def test_short_lists_of_words_are_texts(tmp_path):
    file = csv_file(tmp_path, "rice\nmaize\nfish\n", "a.txt")
    assert len(read_corpus(file)) == 3


def test_lines_may_end_in_cr(tmp_path):
    file = csv_file(tmp_path, "Rice and maize.\rFish, fish ponds.\r\rSaws.\r", "a.txt")
    assert read_corpus(file).names == ("line 1", "line 2", "line 4")
