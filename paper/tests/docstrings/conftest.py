import itertools

import pytest


class Packages:
    """Packages made of the files that a test says, found by the import system but never imported."""

    numbers = itertools.count()

    def __init__(self, folder):
        self.folder = folder

    def add(self, files, version="1.0"):
        """Write the files (path below the package to content) of a package; return its name."""
        # A name that no other test has: the import system remembers where it found one.
        name = f"swiftem_toy_{next(self.numbers)}"
        for path, content in files.items():
            file = self.folder / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        if version is not None:
            info = self.folder / f"{name}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            (info / "top_level.txt").write_text(f"{name}\n")
        return name


@pytest.fixture
def packages(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return Packages(folder)
