"""Text that lies or is damaged: one sentence with the file's name, no crash, memory that fits the file."""

import gzip
from functools import cache
from time import process_time

import pytest
import scipy.sparse as sp
from table_files import refused, traced_peak

from swiftem.data import (
    open_documents,
    read_bag_of_words,
    read_corpus,
    read_folder,
    read_lda_c,
    read_table,
)

UCI = b"2\n2\n2\n1 1 1\n2 2 1"
MARKET = b"%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 1\n2 2 1"
LONG = b"1" * 5000
FORMATS = {".txt": "text", ".mtx": "matrixmarket", "ldac": "lda-c", ".csv": "csv"}


def write(folder, content, name):
    if name.startswith("docword."):
        (folder / "vocab.toy.txt").write_text("fish\nrice\n")
    (folder / name).write_bytes(content)
    return folder / name


def all_blocks(path):
    return [block.toarray().tolist() for _, block in open_documents(path).blocks(100)]


class TestTheEndOfTheText:
    """SciPy's reader ends the process on these."""

    @pytest.mark.parametrize(
        "end", [b" ", b"\t", b"\r", b" \r", b"\n ", b"\n\t\r"],
        ids=["blank", "tab", "CR", "blank CR", "line of a blank", "line of a tab"],
    )  # fmt: skip
    @pytest.mark.parametrize(
        ("start", "name"), [(UCI, "docword.toy.txt"), (MARKET, "toy.mtx")], ids=["uci", "mtx"]
    )
    def test_white_space_without_a_newline(self, tmp_path, start, name, end):
        file = write(tmp_path, start + end, name)
        assert read_corpus(file).counts.toarray().tolist() == [[1, 0], [0, 1]]
        assert all_blocks(file) == [[[1, 0], [0, 1]]]

    @pytest.mark.parametrize("place", [1, 7, 12, -1], ids=["head", "entry", "between", "end"])
    @pytest.mark.parametrize(
        ("start", "name"), [(UCI, "docword.toy.txt"), (MARKET, "toy.mtx")], ids=["uci", "mtx"]
    )
    def test_a_nul(self, tmp_path, start, name, place):
        at = place % len(start) if start is UCI else len(MARKET) - len(UCI) + place % len(UCI)
        file = write(tmp_path, start[:at] + b"\0" + start[at:], name)
        refused(lambda: read_corpus(file), file, "line")
        refused(lambda: all_blocks(file), file, "line")

    def test_what_the_compiled_reader_would_overlook(self, tmp_path):
        for line in (b"2 2 1x", b"2 2 1 1", b"2 2 1e3", b"2 2 1.5"):
            file = write(tmp_path, MARKET.replace(b"2 2 1", line), "toy.mtx")
            refused(lambda file=file: read_corpus(file), file, f"got {line.decode()!r} in line 4")


class TestNumbersThatAreTooLong:
    @pytest.mark.parametrize("old", [b"2\n2\n2", b"1 1 1\n", b"2 2 1"], ids=["head", "entry", "last"])
    def test_uci(self, tmp_path, old):
        file = write(tmp_path, UCI.replace(old, old.replace(old[:1], LONG, 1), 1), "docword.toy.txt")
        refused(lambda: read_corpus(file), file)
        refused(lambda: all_blocks(file), file)

    def test_matrix_market(self, tmp_path):
        for content in (MARKET.replace(b"2 2 2", LONG + b" 2 2"), MARKET.replace(b"1 1 1", b"1 1 " + LONG)):
            file = write(tmp_path, content, "toy.mtx")
            refused(lambda file=file: read_corpus(file), file)

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b"1 " + LONG + b":1\n", "words from 0 to 2147483646, got 9223372036854775807 in line 1"),
            (b"1 0:" + LONG + b"\n", "counts from 0 to 9007199254740992, got 9223372036854775807 in line 1"),
            (LONG + b" 0:1\n", "in line 1"),
        ],
        ids=["word", "count", "pairs"],
    )
    def test_lda_c(self, tmp_path, content, expected):
        file = write(tmp_path, content, "toy.ldac")
        refused(lambda: read_lda_c(file), file, expected)
        refused(lambda: open_documents(file), file, expected)

    def test_csv(self, tmp_path):
        file = write(tmp_path, b"a,b\n1," + LONG + b"\n", "toy.csv")
        refused(lambda: read_table(file), file, "an infinity in column 'b', row 0")
        with pytest.raises(ValueError, match=r"The number of a column of .* must be from 0 to 1"):
            read_table(file, columns=["1" * 5000])

    def test_tokens_that_cannot_be_counted(self, tmp_path):
        """Sums of whole numbers would wrap around."""
        most = str(2**52)
        files = [
            write(tmp_path, f"1\n2\n3\n1 1 {most}\n1 1 {most}\n1 1 {most}\n".encode(), "docword.toy.txt"),
            write(tmp_path, f"3 0:{most} 0:{most} 0:{most}\n".encode(), "toy.ldac"),
        ]
        for file in files:
            refused(lambda file=file: read_corpus(file), file, "at most 2^53 tokens")
            refused(lambda file=file: all_blocks(file), file, "at most 2^53 tokens")


class TestSizesThatAreOnlySaid:
    """No more memory than the file's size is a reason for."""

    def test_documents_without_words(self, tmp_path):
        file = write(tmp_path, UCI.replace(b"2\n2\n2", b"3000000000\n2\n2"), "docword.toy.txt")
        used, corpus = traced_peak(lambda: read_bag_of_words(file))
        assert used < 50e6
        assert corpus.names == ("document 1", "document 2")
        assert corpus.notes == ("2,999,999,998 of 3,000,000,000 documents have no words and were left out.",)
        refused(lambda: all_blocks(file), file, "got 3,000,000,000")

    def test_a_million_documents_without_words_are_read_in_blocks(self, tmp_path):
        file = write(tmp_path, UCI.replace(b"2\n2\n2", b"1000000\n2\n2"), "docword.toy.txt")
        blocks = list(open_documents(file).blocks(100_000))
        assert len(blocks) == 10
        assert sum(block.sum() for _, block in blocks) == 2

    def test_rows_of_a_matrix(self, tmp_path):
        file = write(tmp_path, MARKET.replace(b"2 2 2", b"3000000000 2 2"), "toy.mtx")
        used, corpus = traced_peak(lambda: read_corpus(file))
        assert used < 50e6
        assert corpus.names == ("row 0", "row 1")

    @pytest.mark.parametrize("entries", [b"3", b"3000000000", b"999999999999999"], ids=["3", "3e9", "1e15"])
    def test_entries(self, tmp_path, entries):
        for content, name, line in ((UCI, "docword.toy.txt", 3), (MARKET, "toy.mtx", 2)):
            old = b"\n2\n1 1" if name != "toy.mtx" else b" 2\n1 1"
            file = write(tmp_path, content.replace(old, old[:1] + entries + b"\n1 1"), name)
            expected = f"{int(entries):,} entries, as its line {line} says, got 2"
            refused(lambda file=file: read_corpus(file), file, expected)

    def test_a_dense_matrix(self, tmp_path):
        head = b"%%MatrixMarket matrix array integer general\n3000000 3000000\n"
        file = write(tmp_path, head + b"1\n2\n3\n", "toy.mtx")
        refused(lambda: read_corpus(file), file, "entries, as its line 2 says, got 3")

    @pytest.mark.parametrize("size", ["0 8", "8 0", "0 0"])
    @pytest.mark.parametrize("layout", ["array", "coordinate"])
    def test_no_rows_or_columns(self, tmp_path, layout, size):
        size += " 3" if layout == "coordinate" else ""
        content = f"%%MatrixMarket matrix {layout} integer general\n{size}\n" + "1\n2\n3\n"
        file = write(tmp_path, content.encode(), "toy.mtx")
        refused(lambda: read_corpus(file), file, "line")

    def test_symmetric(self, tmp_path):
        head = b"%%MatrixMarket matrix coordinate integer symmetric\n3 3 1\n"
        file = write(tmp_path, head + b"1 1 1\n", "toy.mtx")
        refused(lambda: read_corpus(file), file, "got something else in line 1")

    def test_a_pattern_of_all(self, tmp_path):
        file = write(tmp_path, b"%%MatrixMarket matrix array pattern general\n2 1\n\n\n\n", "toy.mtx")
        refused(lambda: read_corpus(file), file, "got something else in line 1")

    def test_words_that_nobody_names(self, tmp_path):
        sp.save_npz(tmp_path / "toy.npz", sp.coo_array(([1], ([0], [2 * 10**9])), shape=(1, 2 * 10**9 + 1)))
        files = [
            tmp_path / "toy.npz",
            write(tmp_path, MARKET.replace(b"2 2 2", b"2 2000000001 2"), "toy.mtx"),
            write(tmp_path, b"1 2000000000:1\n", "toy.ldac"),
        ]
        for file in files:
            refused(
                lambda file=file: read_corpus(file),
                file,
                "must have a vocabulary if it has over 16,777,216 words, got 2,000,000,001",
            )
            refused(
                lambda file=file: all_blocks(file),
                file,
                "must have a vocabulary if it has over 16,777,216 words, got 2,000,000,001",
            )


@cache
def bomb(unit):
    """Return 100 kB that unpack to 80 MB."""
    return 5 * gzip.compress(unit * ((16 << 20) // len(unit)), mtime=0)


class TestSmallFilesThatBecomeLarge:
    @pytest.mark.parametrize("name", ["docword.toy.txt", "toy.mtx", "toy.ldac", "toy.txt", "toy.csv"])
    def test_blanks(self, tmp_path, name):
        file = write(tmp_path, bomb(b" "), name)
        used, _ = traced_peak(
            lambda: refused(
                lambda: read_corpus(file, format=FORMATS[name[-4:]]), file, "at most 100 times as large"
            )
        )
        assert used < 100e6

    @pytest.mark.parametrize("unit", [b"\n", b"1 1 1\n"], ids=["newlines", "entries"])
    def test_lines(self, tmp_path, unit):
        file = write(tmp_path, gzip.compress(UCI + b"\n", mtime=0) + bomb(unit), "docword.toy.txt")
        used, _ = traced_peak(lambda: refused(lambda: read_corpus(file), file))
        assert used < 100e6
        used, _ = traced_peak(lambda: refused(lambda: all_blocks(file), file))
        assert used < 100e6

    def test_a_text_in_a_folder(self, tmp_path):
        write(tmp_path, bomb(b"fish "), "bomb.gz")
        write(tmp_path, b"rice", "a.txt")
        used, found = traced_peak(lambda: read_folder(tmp_path))
        assert used < 100e6
        assert found.notes == ["1 file is unreadable and left out: bomb.gz."]

    def test_repeated_lines_that_are_not_many(self, tmp_path):
        file = write(tmp_path, gzip.compress(b"fish rice\n" * 10**4, mtime=0), "toy.txt.gz")
        assert file.stat().st_size < 1000
        assert len(read_corpus(file)) == 10**4


def test_blanks_in_a_cell_take_no_time(tmp_path):
    """Expressions that can divide blanks in two ways try all of them."""
    file = write(tmp_path, b"id,text\n1," + b" " * 50_000 + b"x\n", "toy.csv")
    began = process_time()
    with pytest.raises(ValueError, match="at least one word"):
        read_corpus(file, stop_words=None)
    assert process_time() - began < 5
