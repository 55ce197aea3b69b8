"""A source of your own in one file: rows in a folder of .npz files, read file by file.

Run it: python examples/npz_source.py
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import numpy as np

import swiftem
from swiftem.data import Chunk, StoredSource
from swiftem.testing import check_source


class NpzFolder(StoredSource):
    """Rows (n, d) in the arrays ``y`` of the .npz files of a folder, in the order of their names.

    A file is a block: draws are shuffled within a window of several files, in random order.
    """

    access = "random"  # any block can be read, so that every method works

    def __init__(self, folder, window=None):
        super().__init__(window)
        self.files = sorted(Path(folder).glob("*.npz"))
        if not self.files:
            raise ValueError(f"{folder} must have .npz files, got none.")
        shapes = [self.read(number).shape for number in range(len(self.files))]
        self.n = sum(shape[0] for shape in shapes)
        self.total_weight, self.is_weighted = float(self.n), False
        self.dtype, self.tail = np.dtype(np.float64), shapes[0][1:]
        self.lay_out([shape[0] for shape in shapes])

    def read(self, number):
        """Return the rows of a file, in a new array."""
        with np.load(self.files[number]) as arrays:
            return arrays["y"].astype(np.float64)

    def block(self, number):
        """Return the rows of a block; the second value would be their weights (b,)."""
        return Chunk(self.read(number), None)

    def chunks(self, rows):
        """Yield all rows in order; they may come in other portions than ``rows``."""
        for number in range(len(self.files)):
            yield self.block(number)

    def fingerprint(self):
        """Return a hash of the files and of the window, on which draws depend."""
        found = hashlib.sha256(str(self.layout.per_window).encode())
        for file in self.files:
            found.update(file.read_bytes())
        return found.hexdigest()


def main() -> None:
    """Fit a mixture to twenty files, by a method that draws rows and remembers them."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(4000, 2)) + 4.0 * (rng.random((4000, 1)) < 0.4)
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(np.split(y, 20)):
            np.savez(Path(folder, f"{number:02d}.npz"), y=part)
        source = NpzFolder(folder)
        check_source(source, y)
        mixture = swiftem.GaussianMixture(2, method="fiem", random_state=0).fit(source)
        print(f"weights {np.sort(mixture.weights_).round(2)}, log-likelihood {mixture.score(source):.3f}")


if __name__ == "__main__":
    main()
