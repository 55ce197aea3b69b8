import logging
import sys
import textwrap

import pytest

from paper.docstrings.reader import docstrings_in, read_docstrings, source_files

SOURCE = textwrap.dedent('''
    """The module.

    With a second line.
    """
    import os

    class Outer:
        """The class."""

        x = 1
        """No docstring."""

        class Inner:
            "Inner class."

        def method(self):
            """The method.

            Of x:
                Indented.
            """
            def inside():
                """Left out."""

        async def wait(self):
            """Asynchronous."""

    if os.name == "nt":
        def f():
            """On Windows."""
    else:
        try:
            def f():
                """Elsewhere."""
        except OSError:
            def f():
                """In between."""

    def silent():
        return """No docstring."""

    def blank():
        """   """

    def formatted():
        f"""No docstring {os.name}."""
''')


def test_what_is_found_in_the_order_of_the_file():
    assert docstrings_in(SOURCE.encode(), "toy.part") == [
        ("toy.part", "The module.\n\nWith a second line."),
        ("toy.part.Outer", "The class."),
        ("toy.part.Outer.Inner", "Inner class."),
        ("toy.part.Outer.method", "The method.\n\nOf x:\n    Indented."),
        ("toy.part.Outer.wait", "Asynchronous."),
        ("toy.part.f", "On Windows."),
        ("toy.part.f", "Elsewhere."),
        ("toy.part.f", "In between."),
    ]


def test_modules_are_sorted_and_tests_left_out(tmp_path):
    files = [
        "z.py", "__init__.py", "a/__init__.py", "a/b.py", "bare/c.py",
        "tests/test_a.py", "a/test/__init__.py", "a/tests/b.py", "not-a-name.py",
        "2.0/data.py", "z.pyi", "notes.txt",
    ]  # fmt: skip
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = source_files("toy", tmp_path)
    assert [module for module, _ in found] == ["toy", "toy.a", "toy.a.b", "toy.bare.c", "toy.z"]
    assert [str(path.relative_to(tmp_path).as_posix()) for _, path in found] == [
        "__init__.py", "a/__init__.py", "a/b.py", "bare/c.py", "z.py",
    ]  # fmt: skip
    assert source_files("toy", tmp_path / "z.py") == [("toy", tmp_path / "z.py")]


@pytest.mark.parametrize(
    "content",
    [
        b"print 'Python 2'",
        b'"""caf\xe9"""',
        b"# coding: nonsense\n",
        b'"""A NUL byte"""\n\0',
        b"(" * 10_000,
        b"-" * 20_000 + b"1",
    ],
    ids=["syntax", "bytes", "encoding", "NUL", "parentheses", "nesting"],
)
def test_files_that_do_not_parse_are_skipped(tmp_path, caplog, content):
    (tmp_path / "a.py").write_text('"""First."""')
    (tmp_path / "b.py").write_bytes(content)
    (tmp_path / "c.py").write_text('"""Last."""')
    with caplog.at_level(logging.INFO, logger="swiftem"):
        assert read_docstrings("toy", tmp_path) == [("toy.a", "First."), ("toy.c", "Last.")]
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("swiftem", logging.INFO)
    assert record.getMessage().startswith(f"Docstrings: {tmp_path / 'b.py'} is skipped: ")


def test_files_that_cannot_be_read_are_skipped(tmp_path, caplog):
    (tmp_path / "a.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "b.py").write_text('"""There."""')
    with caplog.at_level(logging.INFO, logger="swiftem"):
        assert read_docstrings("toy", tmp_path) == [("toy.b", "There.")]
    assert len(caplog.records) == 1


def test_declared_encodings():
    source = '# coding: latin-1\n"""café"""'.encode("latin-1")
    assert docstrings_in(source, "toy") == [("toy", "café")]
    assert docstrings_in(b"\xef\xbb\xbf'''BOM'''\r\n", "toy") == [("toy", "BOM")]


def test_no_warnings_about_other_people_s_code():
    """Warnings are errors here: this one would be raised."""
    source = b'"""An invalid \\escape."""\nx = 1 is 1\nassert (x, "y")\n'
    assert docstrings_in(source, "toy") == [("toy", "An invalid \\escape.")]


def test_nothing_is_imported(tmp_path, packages):
    name = packages.add({"__init__.py": '"""Imported."""\nraise SystemExit("imported")'})
    assert read_docstrings(name, packages.folder / name) == [(name, "Imported.")]
    assert name not in sys.modules
