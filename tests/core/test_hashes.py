"""What two data that are not the same must differ in."""

import numpy as np

from swiftem.core.describe import digest
from swiftem.core.files import file_hash, fingerprint


def test_types_and_shapes_are_hashed():
    values = np.arange(6.0)
    forms = [values, values.reshape(2, 3), values.reshape(3, 2), values.view(np.int64), values.view(">f8")]
    assert len({fingerprint("array", form) for form in forms}) == len(forms)
    nested = [(1, 2, 3), ((1, 2), 3), (1, (2, 3)), [1, 2, 3]]
    assert len({digest(part) for part in nested}) == len(nested)


def test_where_a_file_ends_is_hashed(tmp_path):
    files = [tmp_path / "a", tmp_path / "b"]
    found = set()
    for parts in ((b"12", b"3"), (b"1", b"23"), (b"123", b"")):
        for file, part in zip(files, parts, strict=True):
            file.write_bytes(part)
        found.add(file_hash("text", files))
    assert len(found) == 3
