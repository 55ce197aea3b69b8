"""What the tests of tables share."""

import importlib.util

import pytest

needs_pyarrow = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed: pip install 'swiftem[io]'"
)


def csv_file(tmp_path, content, name="table.csv"):
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def sentence_of(call, kind=ValueError):
    with pytest.raises(kind) as raised:
        call()
    sentence = str(raised.value)
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence
    return sentence
