"""Combinations of parameters, kinds of counts and calls: PLSA, ``select_topics`` and ``swiftem topics``."""

import re
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from combinations import topics as net
from combinations.pairs import all_pairs, in_folders, installed
from surroundings import fit_within
from typer.testing import CliRunner

import swiftem
from swiftem.cli.app import app

QUICK = 36
SIZES = (24, 40, 130, 505)
"""Numbers of documents on both sides of those that choose a batch of a stream (128) and a plan (500)."""
USUAL = {name: values[0] for name, values in (net.OPTIONS | net.DATA).items()}


def check(case, n, folder, seed, **options):
    findings = net.run_case(case, n, folder, seed, **options)
    assert not findings, f"{findings} of {net.shown(case)}"


def is_quick(case):
    """Leave what takes long to the slow tests: devices, tokens, many passes."""
    is_short = case["max_iter"] <= 12 and case["method"].partition(",")[0] in ("auto", "em", "sem", "fiem")
    return is_short and case["device"] != "torch:cpu" and not case["checkpoint"]


SOME = net.some_cases(net.OPTIONS | net.DATA, QUICK, lambda case: net.compatible(case) and is_quick(case))


@pytest.mark.parametrize("number", range(QUICK))
def test_some_combinations(number, tmp_path):
    check(SOME[number], 505 if number % 9 == 8 else SIZES[number % 3], tmp_path, number)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [20, 21])
@pytest.mark.parametrize("part", range(20))
def test_all_pairs(seed, part, tmp_path):
    for number, case, folder in in_folders(net.cases(seed), tmp_path, part, 20):
        check(case, SIZES[number % len(SIZES)], folder, number)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_what_cannot_be_combined_is_refused_by_name(part, tmp_path):
    for number, case, folder in in_folders(net.cases(22, refusable=True), tmp_path, part, 10):
        check(case, (1, 3, 40)[number % 3], folder, number, may_refuse=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", installed(["csr_array", "tensor coo", "npz csr", "uci", "delayed"]))
@pytest.mark.parametrize("method", ["auto", "em", "sem"])
def test_more_documents_than_a_block(kind, method, tmp_path):
    """5,200 documents: more than in a block, in a fit without compiled code, and for learning alpha."""
    options = {"kind": kind, "method": method, "empty": "some", "weight": "whole", "tol": 0.0}
    if method != "sem" and kind != "delayed":
        options["alpha"] = "learn"
    check(USUAL | options, 5200, tmp_path, 0)


# What an option does

CHANGES = [
    {"n_components": 9},
    {"alpha": 0.0},
    {"alpha": "array"},
    {"alpha": "learn"},
    {"beta": 0.0},
    {"beta": "words"},
    {"beta": "seeds"},
    {"background": True},
    {"decorrelation": 5.0},
    {"method": "em"},
    {"init": "given"},
    {"init": "k-means"},
    {"n_init": 3},
    {"tol": 0.0, "compiled": True},
    {"max_iter": 3},
    {"tol": 0.1},
    {"random_state": 1},
    {"weight": "whole"},
    *({"method": name} for name in swiftem.methods.METHODS if name != "em"),
    *({"method": name, "n_init": 3} for name in ("sem", "sem-vr", "fiem", "iem")),
    *({"method": f"{name}, b=7"} for name in ("sem", "sem-vr", "fiem")),
    *({"method": f"{name}, step 0.3"} for name in ("sem", "sem-vr", "fiem")),
]
NO_CHANGES = [
    {"memory_limit": "400MB", "scratch": "folder"},
    {"device": "cpu"},
    {"checkpoint": "every 2"},
    {"verbose": 1},
    {"weight": "ones"},
    {"method": "sem", "checkpoint": "folder"},
]


def fitted(case, folder, n=60):
    rng = np.random.default_rng(0)
    counts, weight = net.make_counts(case, n, rng), net.make_weight(case, n, rng)
    with net.always_compiled(case["compiled"]):
        options = net.options_of(case, folder)
        return fit_within(swiftem.PLSA, sp.csr_array(counts), sample_weight=weight, **options).components_


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("change", [*CHANGES, *NO_CHANGES], ids=str)
def test_an_option_does_something_or_nothing(change, tmp_path):
    before = USUAL | {
        name: change[name] for name in ("method", "compiled") if name in change and len(change) > 1
    }
    one, two = fitted(before | {"max_iter": 8}, tmp_path), fitted(before | {"max_iter": 8} | change, tmp_path)
    same = one.shape == two.shape and np.array_equal(one, two)
    assert same == (change in NO_CHANGES)


# Streams


STREAMED = installed(
    ["csr_array", "lists", "pandas", "tensor coo", "npz csr", "uci", "CsrDocuments", "delayed"]
)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(name, marks=() if name in STREAMED else pytest.mark.slow)
        for name in net.KINDS
        if "bool" not in name
    ],
)
def test_a_stream_of_any_kind(kind, tmp_path):
    case = USUAL | {"kind": kind, "empty": "some", "weight": "whole"}
    rng = np.random.default_rng(1)
    counts, weight = net.make_counts(case, 300, rng), net.make_weight(case, 300, rng)
    models = [swiftem.PLSA(3, random_state=0) for _ in range(2)]
    for part in (slice(0, 140), slice(140, 141), slice(141, 300)):
        given = net.KINDS[kind].make(counts[part], weight[part], tmp_path)
        found = net.attempt(lambda given=given: models[0].partial_fit(given.X, sample_weight=given.weight))
        assert not found.finding + found.refusal
        models[1].partial_fit(sp.csr_array(counts[part]), sample_weight=weight[part])
    np.testing.assert_allclose(models[0].components_, models[1].components_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(models[0].doc_topic_, models[1].doc_topic_, rtol=0, atol=1e-9)


# Numbers of topics

SELECT = {
    "kind": [name for name in net.KINDS if name not in net.UNITS] + ["delayed"],
    "numbers": [[2], [2, 3], np.array([1, 4]), range(2, 4)],
    "held_out": [0.2, 0.0, 0.5],
    "method": ["auto", "em", "sem", "sem-vr"],
    "alpha": [0.1, "learn", 0.0],
    "beta": ["auto", 0.0, "words"],
    "background": ["auto", True, False],
    "init": ["auto", "random", "k-means"],
    "empty": ["none", "some", "most"],
    "fractions": [False, True],
    "n": [130, 600],
}


def can_select(case):
    is_em = case["method"] in ("auto", "em")
    return is_em or (case["alpha"] != "learn" and case["background"] is not True)


def check_selection(case, folder):
    counts = net.make_counts(case, case["n"], np.random.default_rng(0))
    names = ("method", "alpha", "beta", "background", "init")
    options = {name: case[name] for name in names} | {"max_iter": 10, "held_out": case["held_out"]}
    if case["beta"] == "words":
        options["beta"] = np.linspace(0.1, 1.0, net.WORDS)
    given = net.KINDS[case["kind"]].make(counts, None, folder)
    found = net.attempt(lambda: swiftem.select_topics(given.X, case["numbers"], **options))
    plain = net.attempt(lambda: swiftem.select_topics(sp.csr_array(counts), case["numbers"], **options))
    assert not found.finding + plain.finding + found.refusal + plain.refusal, case
    for one, two in zip(found.value.table, plain.value.table, strict=True):
        assert one[:6] == pytest.approx(two[:6], rel=1e-9), case
        assert np.isfinite(one[:5]).all(), case
    assert found.value.best.doc_topic_.shape[0] == len(counts)
    np.testing.assert_allclose(found.value.best.components_, plain.value.best.components_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("number", range(4))
def test_some_selections(number, tmp_path):
    check_selection(net.some_cases(SELECT, 4, can_select)[number] | {"n": 130}, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_all_selections(part, tmp_path):
    cases = all_pairs(SELECT, np.random.default_rng(1), allowed=can_select)
    for _, case, folder in in_folders(cases, tmp_path, part, 10):
        check_selection(case, folder)


# The command

TEXTS = [
    "The apple and the pear",
    "A hammer, a saw, new york",
    "plum apple fig in new york",
    "saw chisel plane",
]


def write_corpus(kind, folder):
    """Write 60 documents, the first of them empty, in a format; return its place."""
    texts = ["", *(TEXTS[number % 4] + (" ripe" if number % 3 else "") for number in range(59))]
    if kind == "folder":
        for number, text in enumerate(texts):
            place = folder / "texts" / f"part{number % 2}"
            place.mkdir(parents=True, exist_ok=True)
            head = "" if number % 5 else "From: me\nDate: Mon, 20 Nov 1995\n\n"
            (place / f"{number}.txt").write_text(head + text)
        return folder / "texts"
    if kind == "text":
        (folder / "lines.txt").write_text("\n".join(texts))
        return folder / "lines.txt"
    if kind == "csv":
        lines = [f'"{text}",{number % 3}' for number, text in enumerate(texts)]
        (folder / "table.csv").write_text("\n".join(["words,group", *lines]))
        return folder / "table.csv"
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        groups = [number % 3 for number in range(60)]
        pq.write_table(pa.table({"words": texts, "group": groups}), folder / "table.parquet")
        return folder / "table.parquet"
    counts = net.make_counts(USUAL | {"empty": "some"}, 80, np.random.default_rng(0))
    return net.KINDS[kind].make(counts, None, folder).X


COMMAND = {
    "corpus": ["folder", "text", "csv", "parquet", "npz csr", "mtx", "uci", "lda-c"],
    "--topics": [None, "2", "9", "2:3", "1,3"],
    "--words": [None, "5", "file"],
    "--method": [None, "em", "sem", "sem-vr", "fiem"],
    "--seed": [None, "3"],
    "--text-column": [None, "words", "nothing"],
    "--stop-words": [None, "none", "en", "file"],
    "--phrases": [None, True],
    "--by": [None, "group", "folder", "date"],
    "--names": [None, "file"],
    "--memory-limit": [None, "2GB", "1KB"],
    "--device": [None, "cpu", "cuda"],
}


def can_run(case):
    """Return whether the command must succeed."""
    corpus, texts = case["corpus"], case["corpus"] in ("folder", "text", "csv", "parquet")
    if case["--text-column"] and (case["--text-column"] == "nothing" or corpus not in ("csv", "parquet")):
        return False
    if texts and case["--words"] is not None:
        return False
    if not texts and any(case[name] not in (None, "none") for name in ("--stop-words", "--phrases")):
        return False
    by = {"group": ("csv", "parquet"), "folder": ("folder",), "date": (), None: COMMAND["corpus"]}
    if corpus not in by[case["--by"]] or case["--names"] or case["--device"] == "cuda":
        return False
    return case["--memory-limit"] != "1KB"


def arguments_of(case, folder):
    given = ["topics", str(write_corpus(case["corpus"], folder)), "--out", str(folder / "out")]
    for option, value in case.items():
        if option == "corpus" or value is None:
            continue
        if value is True:
            given.append(option)
        elif value in ("file", "folder") and option != "--by":
            place = folder / option.strip("-")
            if option == "--names":
                place.write_text('{"names": []}')
            elif value == "file":
                place.write_text("\n".join(f"word{v}" for v in range(net.WORDS)))
            else:
                place.mkdir()
            given += [option, str(place)]
        else:
            given += [option, value]
    return given


def check_command(case, folder, *, may_refuse=False):
    given = arguments_of(case, folder)
    result = CliRunner().invoke(app, given)
    said = re.sub(r"[\s│╭╮╰╯─]+", " ", re.sub(r"\x1b\[[0-9;]*m", "", result.output))
    assert result.exception is None or isinstance(result.exception, SystemExit), (given, result.exception)
    assert "Traceback" not in said, (given, said)
    if result.exit_code == 0:
        model = swiftem.PLSA.load(folder / "out" / "model.swiftem")
        assert np.isfinite(model.components_).all()
        assert (folder / "out" / "topics.html").exists()
        return
    assert may_refuse, (given, said)
    assert result.exit_code in (1, 2), (given, said)
    names = [
        *(name for name in case if name.startswith("--") and case[name] is not None),
        "CORPUS",
        str(folder),
    ]
    assert any(name in said for name in names), (given, said)
    assert said.strip().endswith("."), (given, said)


@pytest.mark.parametrize("number", range(6))
def test_some_commands(number, tmp_path):
    check_command(net.some_cases(COMMAND, 6, can_run)[number], tmp_path)


@cache
def commands(allowed):
    return all_pairs(COMMAND, np.random.default_rng(1), allowed=allowed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_all_commands(part, tmp_path):
    for allowed in (can_run, None):
        for _, case, folder in in_folders(commands(allowed), tmp_path / str(allowed is None), part, 10):
            check_command(case, folder, may_refuse=allowed is None)
