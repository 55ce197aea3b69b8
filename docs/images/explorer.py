"""Take the picture of docs/topics.md: the page of ``swiftem topics`` in Chromium.

Run it: PYTHONPATH=. python docs/images/explorer.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from paper.docstrings import docstring_corpus

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "_support"))

from browser import Browser, find_chromium

FILE = Path(__file__).with_name("explorer.png")


def main() -> None:
    command = find_chromium()
    if command is None:
        sys.exit("The picture needs Chromium: make browser-test-parts")
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "docstrings of Python packages"
        texts.mkdir()
        corpus = docstring_corpus()
        for name, document in zip(corpus.names, corpus.documents, strict=True):
            (texts / name).write_text(document, encoding="utf-8")
        command_line = [sys.executable, "-m", "swiftem", "topics", str(texts), "-k", "40", "-o", folder]
        subprocess.run(command_line, check=True)
        browser = Browser(command, Path(folder) / "profile")
        browser.open((Path(folder) / "topics.html").as_uri(), 1280, 860)
        browser.evaluate("go({topic: topics[1].id}); new Promise(done => setTimeout(done, 300))")
        browser.picture(FILE)
        browser.close()
    print(f"Taken: {FILE}")


if __name__ == "__main__":
    main()
