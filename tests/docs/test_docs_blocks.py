"""What README, CONTRIBUTING and the pages of the documentation show is run: Python and commands.

The blocks of a page run in order, in one namespace and a temporary folder, and warnings are errors. A block
that cannot run has ``<!-- not run: reason -->`` before it. docs/gpu.md is run by the tests of devices.

A ``text`` block directly after a Python block is what that prints: words are compared, and numbers to the
digits that are shown or to 1 %. ``WRITE_OUTPUT=1 python -m pytest tests/docs/test_docs_blocks.py`` writes
them.
"""

import json
import os
import re
import runpy
import shlex
import sys
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import swiftem
from swiftem import methods, models
from swiftem.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
]
OF_DEVICES = "docs/gpu.md"
RUN = {"python", "console", "bash"}
"""Languages of blocks that are run."""
OUTPUT = "text"
"""Language of what a Python block prints."""
NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
BLOCK = re.compile(
    r"^(?:<!-- not run: ([^\n]+) -->\n)?(?:<!-- file: [^\n]+ -->\n)?```([^\n]*)\n(.*?)^```$",
    flags=re.S | re.M,
)


class Block(NamedTuple):
    """A block of a page: why it is not run, its language, its text, and its line."""

    reason: str | None
    language: str
    text: str
    line: int


def blocks_of(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    return [Block(*match.groups(), text[: match.start(3)].count("\n")) for match in BLOCK.finditer(text)]


def languages(page):
    return {block.language for block in blocks_of(page) if not block.reason}


# What a page takes for granted, by its names and files.


def rows_for_methods(folder, monkeypatch):
    y = np.random.default_rng(0).normal(size=(500, 2))
    return {"swiftem": swiftem, "methods": methods, "model": models.GaussianMixtureModel(2), "y": y,
            "method": methods.FastIncrementalEM(batch_size=5)}  # fmt: skip


def own_parts(folder, monkeypatch):
    """What a reader of the pages on extending swiftem has written: here, what they show."""
    shown = runpy.run_path(str(ROOT / "examples" / "exponential_mixture.py"))
    rng = np.random.default_rng(0)

    class OfColumn(shown["ExponentialMixture"]):
        """The model shown, of rows with one column, as the family has them."""

        def expected_statistics(self, y, theta):
            return super().expected_statistics(y[:, 0], theta)

    return {
        "MyMethod": methods.VarianceReducedEM, "MyFamily": swiftem.families.Exponential,
        "MyModel": OfColumn, "y": rng.exponential(size=(200, 1)),
    }  # fmt: skip


def texts(folder, monkeypatch):
    words = [[f"{kind}{letter}word" for letter in "abcdefgh"] for kind in ("farm", "ship", "song")]
    rng = np.random.default_rng(0)
    made = [" ".join(rng.choice(words[i % 3], size=60)) for i in range(120)]
    return {"texts": made, "new_texts": made[:20]}


def files(folder, monkeypatch):
    """The files that the page on data larger than memory speaks of."""
    import gzip

    import pyarrow as pa
    from pyarrow import parquet
    from stored_sources import write

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 2)) + 5.0 * rng.integers(32, size=(2000, 1))
    for name in ("measurements.parquet", "more.parquet"):
        write(folder, name, rows)
    write(folder, "part-0.parquet", rows)
    for name in ("a.parquet", "b.parquet"):
        columns = {"height": rows[:, 0], "width": rows[:, 1], "count": np.ones(2000), "name": ["x"] * 2000}
        parquet.write_table(pa.table(columns), folder / name)
    for number in range(3):
        np.save(folder / f"{number}.h5.npy", rows[500 * number :][:500])
        (folder / f"{number}.h5").touch()
    with gzip.open(folder / "docword.pubmed.txt.gz", "wt") as file:
        counts = rng.poisson(0.5, (300, 60))
        lines = [f"{d + 1} {v + 1} {counts[d, v]}" for d, v in np.argwhere(counts)]
        file.write("\n".join(["300", "60", str(len(lines)), *lines]) + "\n")
    (folder / "vocab.pubmed.txt").write_text("\n".join(f"word{v}" for v in range(60)) + "\n")
    return {"swiftem": swiftem, "folder": folder, "read": lambda file: np.load(f"{file}.npy")}


def cluster(folder, monkeypatch):
    """Workers in threads of this process."""
    distributed = pytest.importorskip("distributed")
    here = partial(distributed.LocalCluster, processes=False, dashboard_address=None)
    monkeypatch.setattr(distributed, "LocalCluster", here)
    return {"__name__": "__main__"}


def bare_install(folder, monkeypatch):
    """A folder of texts, and no matplotlib."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write_texts(folder / "my-texts")
    return {}


def flowers(folder, monkeypatch):
    """Tables of two columns, and a folder of texts."""
    rng = np.random.default_rng(0)
    for name in ("flowers", "monday", "tuesday"):
        rows = rng.normal(size=(300, 2)) + 6 * rng.integers(3, size=(300, 1))
        np.savetxt(folder / f"{name}.csv", rows, delimiter=",", header="height,width", comments="")
    write_texts(folder / "my-texts")
    return {}


def write_texts(folder):
    folder.mkdir()
    for number, text in enumerate(texts(None, None)["texts"]):
        (folder / f"{number:03}.txt").write_text(text)


def steps(folder, monkeypatch):
    """Tables of the steps of animals."""
    rng = np.random.default_rng(0)
    for name in ("steps", "new"):
        rows = rng.normal(size=(300, 2)) + 6 * rng.integers(3, size=(30, 1)).repeat(10, axis=0)
        rows = np.column_stack([np.arange(300) // 100, rows])
        np.savetxt(folder / f"{name}.csv", rows, delimiter=",", header="animal,x,y", comments="")
    return {}


def corpora(folder, monkeypatch):
    """Texts in folders, in a table with dates, and as counts; and a file of names of topics."""
    for name in ("my-texts", "new-texts"):
        write_texts(folder / name)
    made = texts(None, None)["texts"]
    lines = [f"2024-{1 + i % 12:02}-03,{text}" for i, text in enumerate(made)]
    (folder / "reviews.csv").write_text("\n".join(["date,text", *lines]) + "\n")
    topics = [{"name": f"name {k}", "merge": [k]} for k in range(30)]
    names = {"swiftem": "topic names", "topics": topics, "words": [["farmaword", "shipaword"]] * 30}
    (folder / "topic-names.json").write_text(json.dumps(names))
    files(folder, monkeypatch)
    return {}


PREPARE = {
    "README.md": bare_install,
    "docs/checkpoints.md": flowers,
    "docs/hidden_markov_models.md": steps,
    "docs/index.md": flowers,
    "docs/topics.md": corpora,
    **dict.fromkeys(["docs/add_a_method.md", "docs/add_a_family.md", "docs/add_a_model.md"], own_parts),
    "docs/coming_from_gensim.md": texts,
    "docs/larger_than_memory.md": files,
    "docs/many_machines.md": cluster,
    "docs/methods.md": rows_for_methods,
}
SHOWS_ALL = {
    "README.md",
    *(f"docs/{name}.md" for name in ("index", "mixtures", "families", "which_method")),
    *(f"docs/coming_from_{name}.md" for name in ("sklearn", "stepmix")),
}
"""Pages that show all that their blocks print."""
SMALLER = {
    "docs/many_machines.md": {
        "1_000_000": "1_200",
        "125_000": "400",
        "random_state=0": "random_state=0, max_iter=3",
    }
}
"""Sizes and passes that a test need not have."""


# What must come of a page.


def check_readme(names, output, folder):
    assert len([block for block in blocks_of("README.md") if block.language == "python"]) == 2
    theirs, ours = (float(value) for value in re.findall(r"row (-[\d.]+)", output))
    assert ours > theirs
    assert len(list(folder.rglob("topics.html"))) == 1


def check_files(names, output, folder):
    assert names["mixture"].predict("more.parquet").shape == (2000,)
    assert names["source"].n == 4000
    assert names["topics"].doc_topic_.shape == (300, 50)
    assert names["source"].names == ("height", "width")


def check_topics(names, output, folder):
    assert "7 topics; topic 0 is most of sklearn." in output
    assert "(300, 5) 1.0" in output
    assert "CorpusCounts of 2 documents, 4 words and 5 tokens ('a.txt', 'b.txt')" in output
    assert names["topics"].components_.shape == (8, 2000)


def check_methods(names, output, folder):
    at_once = swiftem.run(names["model"], names["y"], names["method"], n_iter=100_000, seed=0)
    np.testing.assert_array_equal(names["rest"].s, at_once.s)


def check_index(names, output, folder):
    assert sorted(names["mixture"].means_.round()[:, 0]) == [0, 4]


def check_cluster(names, output, folder):
    assert names["labels"].shape == (1200,)
    assert (folder / "fit.ckpt").is_dir()


CHECK = {
    "README.md": check_readme,
    "docs/index.md": check_index,
    "docs/larger_than_memory.md": check_files,
    "docs/many_machines.md": check_cluster,
    "docs/methods.md": check_methods,
    "docs/topics.md": check_topics,
}


def run_command(line, shown):
    """Run a command in this process; compare what it prints, numbers and layout aside, with what is shown."""
    line, _, head = line.partition(" | head -")
    name, *words = shlex.split(line)
    assert name == "swiftem"
    found = [str(path) for word in words for path in (sorted(Path().glob(word)) if "*" in word else [word])]
    result = CliRunner().invoke(app, found)
    assert result.exit_code == 0 or shown, f"{line}: {result.output}"  # an error is shown as well
    if shown:
        printed = result.output.splitlines()[: int(head) + 1] if head else [result.output]
        assert said("\n".join(printed)) == said(shown), line


def shown_after(block, blocks):
    """Return the output that a page shows of a Python block, or None."""
    after = blocks[blocks.index(block) + 1 :][:1]
    follows = after and after[0].line == block.line + block.text.count("\n") + 3
    return after[0].text if follows and after[0].language == OUTPUT else None


def is_same_output(printed, shown):
    """Return whether words are equal, and numbers to the digits that are shown or to 1 %."""
    words = [re.sub(r"\s+", " ", NUMBER.sub("#", text)).strip() for text in (printed, shown)]
    numbers = [[part.replace("−", "-") for part in NUMBER.findall(text)] for text in (printed, shown)]
    return words[0] == words[1] and all(
        abs(float(ours) - float(theirs))
        <= max(0.01 * abs(float(theirs)), 0.51 * 10.0 ** -len(theirs.partition("e")[0].partition(".")[2]))
        for ours, theirs in zip(*numbers, strict=True)
    )


def write_output(page, code, printed):
    """Put what a block prints below it, in the page."""
    path = ROOT / page
    before = f"```python\n{code}```\n"
    text = path.read_text(encoding="utf-8")
    old = re.compile(re.escape(before) + rf"(?:\n```{OUTPUT}\n.*?^```\n)?", flags=re.S | re.M)
    new = before + (f"\n```{OUTPUT}\n{printed.rstrip()}\n```\n" if printed.strip() else "")
    path.write_text(old.sub(lambda match: new, text, count=1), encoding="utf-8")


def run_python(page, block, text, names, shown):
    """Run a block of Python, and compare what it prints with what the page shows."""
    output = StringIO()
    with redirect_stdout(output):
        exec(compile("\n" * block.line + text, page, "exec"), names)
    printed = output.getvalue()
    print(printed)  # for the checks of a page
    if os.environ.get("WRITE_OUTPUT"):
        write_output(page, block.text, printed)
    elif shown is not None or page in SHOWS_ALL:
        assert is_same_output(printed, shown or ""), f"{page}:{block.line} prints:\n{printed}"


def test_outputs_are_compared_by_words_and_digits():
    assert is_same_output("a  1.234\n", "a 1.23")
    assert is_same_output("1000 rows", "1005 rows")
    assert not is_same_output("a 1.26", "a 1.23")
    assert not is_same_output("b 1.23", "a 1.23")
    assert not is_same_output("1 2", "1")


def said(text):
    """Return the words of an output: numbers, bars and frames depend on the machine and the terminal."""
    return re.sub(r"[\s│╭╮╰╯─█#]+", " ", re.sub(r"\x1b\[[0-9;]*m|\d[\w,.+-]*", "#", text)).strip()


def run_commands(block):
    """Run the commands of a block: lines after $, with what they print, or all lines."""
    if block.language == "bash":
        for line in block.text.splitlines():
            run_command(line, "")
        return
    for command in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        line, _, shown = command.partition("\n")
        run_command(line, shown)


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")  # the rows are few
@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("page", [page for page in PAGES if languages(page) & RUN and page != OF_DEVICES])
def test_what_a_page_shows_runs(page, tmp_path, monkeypatch, capsys):
    """In order, and in one namespace: later blocks use what earlier ones made."""
    monkeypatch.chdir(tmp_path)
    names = PREPARE[page](tmp_path, monkeypatch) if page in PREPARE else {}
    blocks = blocks_of(page)
    for block in blocks:
        if block.reason or block.language not in RUN:
            continue
        text = block.text
        for large, small in SMALLER.get(page, {}).items():
            text = text.replace(large, small)
        if block.language == "python":
            run_python(page, block, text, names, shown_after(block, blocks))
        else:
            run_commands(block._replace(text=text))
    if page in CHECK:
        CHECK[page](names, capsys.readouterr().out, tmp_path)


def test_every_block_is_run_or_has_a_reason():
    """Text without a language, such as output, has no line of Python or of the command in it."""
    run = [(page, block) for page in PAGES for block in blocks_of(page)]
    assert sum(block.language == "python" and not block.reason for _, block in run) > 55
    for page, block in run:
        assert block.reason or block.language in {*RUN, OUTPUT, ""} or block.language[0] == "{", (
            f"{page}:{block.line}"
        )
        if not (block.reason or block.language):
            assert not re.search(r"^(\$ )?swiftem |^import |^from ", block.text, flags=re.M), (
                f"{page}:{block.line}"
            )
    shown = sum((ROOT / page).read_text(encoding="utf-8").count("\n```python") for page in PAGES)
    assert shown == sum(block.language == "python" for _, block in run)
