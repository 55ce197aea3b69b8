"""Archives of sparse matrices that lie or are damaged: one sentence with the file's name, and no crash."""

import io
import struct
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from table_files import refused, traced_peak

from swiftem.data import open_documents, read_count_matrix


def refused_by_all(file, *expected):
    refused(lambda: read_count_matrix(file), file, *expected)
    refused(lambda: list(open_documents(file).blocks(100)), file, *expected)


def archive(folder, **members):
    """Write arrays, or bytes as they are, to an archive; leave out those that are None."""
    with zipfile.ZipFile(folder / "toy.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name, member in members.items():
            stream = io.BytesIO()
            if isinstance(member, bytes) and name != "format":
                stream.write(member)
            else:
                np.save(stream, np.asarray(member))
            if member is not None:
                file.writestr(f"{name}.npy", stream.getvalue())
    return folder / "toy.npz"


GOOD = {
    "format": b"csr", "shape": [2, 3], "indptr": np.array([0, 1, 2], np.int32),
    "indices": np.array([0, 2], np.int32), "data": [1, 2],
}  # fmt: skip
COO = {"format": b"coo", "row": [0, 1], "col": [0, 2], "indptr": None, "indices": None}
DIA = {"format": b"dia", "offsets": [0], "data": [[1, 2, 3]], "indptr": None, "indices": None}
BSR = {"format": b"bsr", "data": [[[1]], [[2]]]}
CASES = {
    "indptr that decreases": {"indptr": [0, -100_000_000, 2]},
    "indptr of no axis": {"indptr": 3},
    "indptr of text": {"indptr": ["a", "b", "c"]},
    "no indptr": {"indptr": None},
    "indices out of range": {"indices": [0, 3]},
    "indices beyond int64": {"indices": np.array([0, 2**64 - 1], np.uint64)},
    "data of two axes": {"data": [[1, 2]]},
    "data of text": {"data": ["a", "b"]},
    "data of times": {"data": np.array([1, 2], "M8[s]")},
    "data of NaN": {"data": [1.0, np.nan]},
    "complex data": {"data": [1j, 2.0]},
    "shape too small": {"shape": [1, 3]},
    "shape of one number": {"shape": 3},
    "shape of three": {"shape": [2, 3, 1]},
    "shape below 0": {"shape": [2, -3]},
    "shape of floats": {"shape": [2.0, 3.0]},
    "shape of zeros": {"shape": [0, 0], "indptr": [0], "indices": [], "data": []},
    "another form": {"format": b"lil"},
    "no name of a form": {"format": 3},
    "several forms": {"format": [b"csr", b"csr"]},
    "a form with 3,000 letters": {"format": b"c" * 3000},
    "row out of range": COO | {"row": [0, 2]},
    "no col": COO | {"col": None},
    "diagonals": DIA,
    "blocks that do not fit": BSR | {"data": np.ones((2, 3, 2), int)},
    "a damaged member": {"data": b"\x93NUMPY\x01\x00"},
    "a header that is evaluated": {"data": b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000},
    "sizes that are only said": {
        "data": b"\x93NUMPY\x01\x00" + struct.pack("<H", 70)
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }".ljust(69) + b"\n"
    },
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_structure(tmp_path, case):
    refused_by_all(archive(tmp_path, **GOOD | CASES[case]))


def test_objects(tmp_path):
    np.savez(tmp_path / "toy.npz", **GOOD | {"data": np.array([{}, {}], dtype=object)})
    refused_by_all(tmp_path / "toy.npz")


@pytest.mark.parametrize("extra", [{}, COO, BSR], ids=["csr", "coo", "bsr"])
def test_what_is_whole(tmp_path, extra):
    counts = read_count_matrix(archive(tmp_path, **GOOD | extra)).counts
    assert counts.toarray().tolist() == [[1, 0, 0], [0, 0, 2]]


@pytest.mark.parametrize("extra", [COO, {"format": b"csc", "indptr": [0, 1, 1, 2], "indices": [0, 1]}])
def test_rows_that_are_only_said(tmp_path, extra):
    file = archive(tmp_path, **GOOD | extra | {"shape": [3 * 10**9, 3]})
    used, corpus = traced_peak(lambda: read_count_matrix(file))
    assert used < 50e6
    assert len(corpus) >= 2


def test_every_byte_that_is_wrong(tmp_path):
    """zlib.error, EOFError, OverflowError, NotImplementedError: all of them in a sentence."""
    file = archive(tmp_path, **GOOD)
    content, said = file.read_bytes(), []
    for place in np.random.default_rng(0).permutation(len(content))[:150].tolist():
        for value in (0xFF, content[place] ^ 8):
            file.write_bytes(content[:place] + bytes([value]) + content[place + 1 :])
            try:
                read_count_matrix(file)
            except ValueError as error:
                said.append(str(error))
    assert all(sentence.startswith(str(file)) and sentence.endswith(".") for sentence in said)
    assert len(said) > 50


def test_one_part_listed_often(tmp_path):
    file = archive(tmp_path, data=np.zeros(10, int))
    content = file.read_bytes()
    where, end = content.index(b"PK\1\2"), content.index(b"PK\5\6")
    entries = 2000 * content[where:end]
    sizes = struct.pack("<HHII", 2000, 2000, len(entries), where)
    file.write_bytes(content[:where] + entries + content[end : end + 8] + sizes + content[end + 20 :])
    refused_by_all(file)


def test_what_is_packed_well(tmp_path):
    file = tmp_path / "toy.npz"
    sp.save_npz(file, sp.csr_array(np.ones((1000, 100), dtype=np.int64)))
    assert file.stat().st_size < 20_000
    assert read_count_matrix(file).n_tokens == 100_000
    file = archive(tmp_path, **GOOD | {"data": np.zeros(5_000_000)})
    refused_by_all(file, "at most 100 times as large", "without compression")
