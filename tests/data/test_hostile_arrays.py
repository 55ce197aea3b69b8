"""Archives and arrays that lie or are damaged: one sentence with the file's name, and no crash."""

import io
import struct
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from faults.forged_arrays import one_content, zeros
from table_files import refused, sentence_of, traced_peak

from swiftem.data import open_documents, open_source, read_count_matrix, read_table


def all_blocks(path):
    return list(open_documents(path).blocks(100))


def archive(path, members):
    """Write arrays, or bytes as they are, to an archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, member in members.items():
            stream = io.BytesIO()
            if isinstance(member, bytes):
                stream.write(member)
            else:
                np.save(stream, np.asarray(member))
            file.writestr(f"{name}.npy", stream.getvalue())
    return path


GOOD = {
    "format": b"csr", "shape": [2, 3], "indptr": np.array([0, 1, 2], np.int32),
    "indices": np.array([0, 2], np.int32), "data": [1, 2],
}  # fmt: skip
COO = {"format": b"coo", "row": [0, 1], "col": [0, 2], "indptr": None, "indices": None}
DIA = {"format": b"dia", "offsets": [0], "data": [[1, 2, 3]], "indptr": None, "indices": None}
BSR = {"format": b"bsr", "data": [[[1]], [[2]]]}
CASES = {
    "indptr that decreases": {"indptr": [0, -100_000_000, 2]},
    "indptr too large": {"indptr": [0, 1, 10**9]},
    "indptr too long": {"indptr": [0, 1, 2, 2]},
    "indptr of no axis": {"indptr": 3},
    "indptr of text": {"indptr": ["a", "b", "c"]},
    "no indptr": {"indptr": None},
    "indices out of range": {"indices": [0, 3]},
    "indices below 0": {"indices": [0, -1]},
    "indices beyond int64": {"indices": np.array([0, 2**64 - 1], np.uint64)},
    "indices too few": {"indices": [0]},
    "data too few": {"data": [1]},
    "data of two axes": {"data": [[1, 2]]},
    "data of text": {"data": ["a", "b"]},
    "data of times": {"data": np.array([1, 2], "M8[s]")},
    "data below 0": {"data": [1, -2]},
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
    "col below 0": COO | {"col": [0, -1]},
    "row too short": COO | {"row": [0]},
    "no col": COO | {"col": None},
    "diagonals": DIA,
    "blocks that do not fit": BSR | {"data": np.ones((2, 3, 2), int)},
    "blocks of no size": BSR | {"data": np.ones((2, 0, 1), int)},
    "a damaged member": {"data": b"\x93NUMPY\x01\x00"},
    "a header that is evaluated": {"data": b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000},
    "sizes that are only said": {
        "data": b"\x93NUMPY\x01\x00" + struct.pack("<H", 70)
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }".ljust(69) + b"\n"
    },
    "objects": {"data": np.array([{}, {}], dtype=object)},
}  # fmt: skip


class TestNpz:
    @pytest.mark.parametrize("case", CASES)
    def test_structure(self, tmp_path, case):
        members = {name: part for name, part in (GOOD | CASES[case]).items() if part is not None}
        if case == "objects":
            np.savez(tmp_path / "toy.npz", **members)
        else:
            members["format"] = np.array(members["format"])
            archive(tmp_path / "toy.npz", members)
        file = tmp_path / "toy.npz"
        refused(lambda: read_count_matrix(file), file)
        refused(lambda: all_blocks(file), file)

    @pytest.mark.parametrize("extra", [{}, COO, BSR], ids=["csr", "coo", "bsr"])
    def test_what_is_whole(self, tmp_path, extra):
        members = {name: part for name, part in (GOOD | extra).items() if part is not None}
        members["format"] = np.array(members["format"])
        counts = read_count_matrix(archive(tmp_path / "toy.npz", members)).counts
        assert counts.toarray().tolist() == [[1, 0, 0], [0, 0, 2]]

    def test_rows_that_are_only_said(self, tmp_path):
        for extra in (COO, {"format": b"csc", "indptr": [0, 1, 1, 2], "indices": [0, 1]}):
            members = {name: part for name, part in (GOOD | extra).items() if part is not None}
            members |= {"shape": [3 * 10**9, 3], "format": np.array(members["format"])}
            file = archive(tmp_path / "toy.npz", members)
            used, corpus = traced_peak(lambda file=file: read_count_matrix(file))
            assert used < 50e6
            assert len(corpus) >= 2

    def test_every_byte_that_is_wrong(self, tmp_path):
        """zlib.error, EOFError, OverflowError, NotImplementedError: all of them in a sentence."""
        content = archive(tmp_path / "good.npz", GOOD | {"format": np.array(b"csr")}).read_bytes()
        file, ended = tmp_path / "toy.npz", set()
        rng = np.random.default_rng(0)
        for place in rng.permutation(len(content))[:150].tolist():
            for value in (0xFF, content[place] ^ 8):
                file.write_bytes(content[:place] + bytes([value]) + content[place + 1 :])
                try:
                    read_count_matrix(file)
                except ValueError as error:
                    ended.add(
                        sentence_of(lambda error=error: (_ for _ in ()).throw(error)).startswith(str(file))
                    )
        assert ended == {True}

    def test_one_part_listed_often(self, tmp_path):
        file = archive(tmp_path / "toy.npz", {"data": np.zeros(10, int)})
        content = file.read_bytes()
        where = content.index(b"PK\1\2")
        entry, end = content[where : content.index(b"PK\5\6")], content[content.index(b"PK\5\6") :]
        end = end[:8] + struct.pack("<HHII", 2000, 2000, 2000 * len(entry), where) + end[20:]
        file.write_bytes(content[:where] + 2000 * entry + end)
        refused(lambda: read_count_matrix(file), file)

    def test_parts_that_overlap(self, tmp_path):
        names = [f"{name}.npy".encode() for name in ("data", "indices", "indptr", "shape", "format")]
        (tmp_path / "toy.npz").write_bytes(one_content(names, zeros(256)))
        file = tmp_path / "toy.npz"
        used, _ = traced_peak(lambda: refused(lambda: read_count_matrix(file), file))
        assert used < 50e6

    def test_ones_that_are_packed_well(self, tmp_path):
        sp.save_npz(tmp_path / "toy.npz", sp.csr_array(np.ones((1000, 100), dtype=np.int64)))
        assert (tmp_path / "toy.npz").stat().st_size < 20_000
        assert read_count_matrix(tmp_path / "toy.npz").n_tokens == 100_000

    def test_zeros_that_become_large(self, tmp_path):
        file = archive(tmp_path / "toy.npz", GOOD | {"data": np.zeros(5_000_000), "format": np.array(b"csr")})
        refused(lambda: read_count_matrix(file), file, "at most 100 times as large", "without compression")


HEADERS = {
    "brackets": "(" * 9000,
    "a string that does not end": "'''",
    "a line that goes on": "\\",
    "deep lists": "[" * 4000 + "]" * 4000,
    "a function": "__import__('os')",
    "numbers of 5,000 digits": "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1" * 5000 + ",), }",
    "a size beyond int64": "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }",
    "sizes whose product is": "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
    "a size below 0": "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    "more than there is": "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }",
    "no tuple": "{'descr': '<f8', 'fortran_order': False, 'shape': (2), }",
    "no type": "{'descr': 'x', 'fortran_order': False, 'shape': (2,), }",
    "types in a type": "{'descr': '(3,)f8', 'fortran_order': False, 'shape': (2,), }",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
    "fields": "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,), }",
    "70 axes": "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 70 + "), }",
    "one item more": "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'more': 1}",
    "one item less": "{'descr': '<f8', 'shape': (2,), }",
    "nothing": "",
}


class TestNpy:
    @pytest.mark.parametrize("case", HEADERS)
    def test_headers(self, tmp_path, case):
        text = HEADERS[case].encode() + b"\n"
        content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + np.zeros(2).tobytes()
        file = tmp_path / "toy.npy"
        file.write_bytes(content)
        refused(lambda: read_table(file), file)
        refused(lambda: open_source(file), file)

    @pytest.mark.parametrize(
        "header",
        [
            "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }",
            '{"shape": (2,1) , "descr":"<f8","fortran_order": False}',
            "{'fortran_order':True,'descr':'<f8','shape':( 2,1 )}",
        ],
        ids=["NumPy's", "another order", "without blanks"],
    )
    @pytest.mark.parametrize("version", [1, 2, 3])
    def test_what_others_write(self, tmp_path, header, version):
        length = struct.pack("<H" if version == 1 else "<I", len(header))
        content = (
            b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + np.array([3.0, 4.0]).tobytes()
        )
        (tmp_path / "toy.npy").write_bytes(content)
        assert read_table(tmp_path / "toy.npy").values.tolist() == [[3.0], [4.0]]

    def test_long_doubles_that_are_too_large(self, tmp_path):
        file = tmp_path / "toy.npy"
        np.save(file, np.array([[1.0, 2.0], [1.0, np.longdouble("1e4000")]], dtype=np.longdouble))
        expected = "an infinity in row 1, column 1"
        for weight in (None, 0):
            refused(lambda weight=weight: read_table(file, weights=weight), file, expected)
            refused(lambda weight=weight: list(open_source(file, weight=weight).blocks(9)), file, expected)
        refused(lambda: read_table(file, weights=1), file, expected)
        refused(lambda: open_source(file, weight=1), file, "got inf in row 1")

    @pytest.mark.parametrize("kind", ["f2", "f4", ">f8", "i1", "u2", "?"])
    def test_what_numpy_writes(self, tmp_path, kind):
        for array in (np.arange(6).reshape(3, 2), np.arange(6).reshape(3, 2).T, np.arange(3)):
            np.save(tmp_path / "toy.npy", array.astype(kind))
            expected = array.astype(kind).reshape(len(array), -1)
            np.testing.assert_array_equal(read_table(tmp_path / "toy.npy").values, expected)
