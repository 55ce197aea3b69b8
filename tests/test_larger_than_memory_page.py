"""What the page on data larger than memory shows runs, and its table of options is the command's."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from stored_sources import write

import swiftem

pytest.importorskip("pyarrow")
PAGE = (Path(__file__).parents[1] / "docs" / "larger_than_memory.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files that the page speaks of."""
    import pyarrow as pa
    from pyarrow import parquet

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 2)) + 5.0 * rng.integers(32, size=(2000, 1))
    for name in ("measurements.parquet", "more.parquet"):
        write(tmp_path, name, rows)
    for name in ("a.parquet", "b.parquet"):
        columns = {"height": rows[:, 0], "width": rows[:, 1], "count": np.ones(2000), "name": ["x"] * 2000}
        parquet.write_table(pa.table(columns), tmp_path / name)
    for number in range(3):
        np.save(tmp_path / f"{number}.h5.npy", rows[500 * number :][:500])
        (tmp_path / f"{number}.h5").touch()
    with gzip.open(tmp_path / "docword.pubmed.txt.gz", "wt") as file:
        counts = rng.poisson(0.5, (300, 60))
        lines = [f"{d + 1} {v + 1} {counts[d, v]}" for d, v in np.argwhere(counts)]
        file.write("\n".join(["300", "60", str(len(lines)), *lines]) + "\n")
    (tmp_path / "vocab.pubmed.txt").write_text("\n".join(f"word{v}" for v in range(60)) + "\n")
    return tmp_path


@pytest.mark.filterwarnings("ignore")  # of convergence: the rows are few
def test_what_the_page_shows_runs(folder):
    names = {"swiftem": swiftem, "folder": folder, "read": lambda file: np.load(f"{file}.npy")}
    assert len(BLOCKS) == 4
    for block in BLOCKS:
        exec(compile(block, "larger_than_memory.md", "exec"), names)
    assert names["mixture"].predict("more.parquet").shape == (2000,)
    assert names["source"].n == 4000
    assert names["topics"].doc_topic_.shape == (300, 50)
    assert names["source"].names == ("height", "width")


def test_the_page_has_its_figures():
    assert "RATIOS" not in PAGE
    assert "SORTED" not in PAGE
    assert len(re.findall(r"\| (?:any row|blocks, window|in order)", PAGE)) == 8
