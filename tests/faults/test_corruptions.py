"""Damaged checkpoints, tables and models: refused with a sentence and nothing written, or not needed.

``SWIFTEM_CORRUPTIONS`` sets how many the slow form has.
"""

import os
import random
import shutil

import helpers
import numpy as np
import pytest
from helpers import assert_same_result, make_method
from typer.testing import CliRunner

from swiftem import GaussianMixture
from swiftem.cli.app import app

N_ITER = 60
METHODS = ("em", "iem", "sem-vr", "fiem")


class Death(Exception):
    """Stands for what ends a process."""


def fit(folder, name, until=None, **options):
    problem = helpers.mixture(300, d=2, M=3)
    method = make_method(name, step_size=0.1, batch_size=10)

    def callback(iterate):
        if until is not None and iterate.k >= until:
            raise Death

    if folder is not None:
        options |= {"checkpoint": folder, "checkpoint_every": 2, "resume": "auto"}
    return problem.run(method, n_iter=N_ITER, seed=1, record_every=5, callback=callback, **options)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Return, for each method, the folder of a run that died, and the result of one that did not."""
    found = {}
    for name in METHODS:
        folder = tmp_path_factory.mktemp("good") / name
        with pytest.raises(Death):
            fit(folder, name, until=40)
        found[name] = folder, fit(None, name)
    return found


def flip(content, rng):
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]


def cut(content, rng):
    return content[: rng.randrange(len(content))]


def zeros(content, rng):
    first = rng.randrange(len(content))
    length = min(len(content) - first, rng.randrange(1, 600))
    return content[:first] + bytes(length) + content[first + length :]


def noise(content, rng):
    return rng.randbytes(len(content))


def longer(content, rng):
    return content + rng.randbytes(rng.randrange(1, 50))


HARMS = (flip, cut, zeros, noise, longer)


def content_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}


def assert_sentence(sentence):
    assert sentence.strip().endswith("."), sentence
    assert "\n" not in sentence.strip()
    assert "Traceback" not in sentence


def damage_checkpoints(good, folder, count, seed):
    """Damage one file or several of one kind, go on, and return how many were refused."""
    rng = random.Random(seed)
    refused = 0
    for number in range(count):
        name = METHODS[number % len(METHODS)]
        source, whole = good[name]
        here = folder / str(number)
        shutil.copytree(source, here)
        files = sorted(path for path in here.iterdir() if path.name != "lock")
        first = rng.choice(files)
        kind = first.name.partition("-")[0]
        hit = [first] if rng.random() < 0.5 else [path for path in files if path.name.startswith(kind)]
        harm = rng.choice((*HARMS, None))
        for path in hit:
            if harm is None:
                path.unlink()
            else:
                path.write_bytes(harm(path.read_bytes(), rng))
        before = content_of(here)
        what = f"{name}, {harm and harm.__name__}, {[path.name for path in hit]}"
        try:
            result = fit(here, name)
        except (ValueError, OSError) as error:
            assert_sentence(str(error))
            assert content_of(here) == before, what
            refused += 1
        else:
            assert_same_result(result, whole)
            assert [iterate.k for iterate in result.path] == [iterate.k for iterate in whole.path], what
        shutil.rmtree(here)
    return refused


def bad_csv(rows, rng):
    lines = ["a,b", *(f"{x:.6f},{y:.6f}" for x, y in rows)]
    place = rng.randrange(1, len(lines))
    lines[place] = rng.choice(
        ["1.0,x", "nan,2.0", "1.0,2.0,3.0", "1.0", "inf,1.0", '"1.0,2.0', "1.0,2.0\x00"]
    )
    return ".csv", "\n".join(lines).encode()


def bad_npy(rows, rng):
    import io

    stream = io.BytesIO()
    np.save(stream, rows)
    whole = stream.getvalue()
    return ".npy", rng.choice(
        [
            whole[: rng.randrange(len(whole))],
            b"",
            rng.randbytes(200),
            whole[:-8] + np.float64(np.nan).tobytes(),
        ]
    )


def bad_parquet(rows, rng):
    return ".parquet", rng.choice([b"", b"PAR1" + rng.randbytes(300) + b"PAR1", rng.randbytes(100)])


def damage_inputs(folder, count, seed):
    """Fit damaged tables, and ask damaged models, by the command line."""
    rng = random.Random(seed)
    rows = np.random.default_rng(0).normal(size=(40, 2))
    np.save(folder / "good.npy", rows)
    GaussianMixture(2, random_state=0).fit(rows).save(folder / "good.model")
    model = (folder / "good.model").read_bytes()
    for number in range(count):
        out = folder / f"{number}-out"
        if number % 2:
            make = rng.choice((bad_csv, bad_npy, bad_parquet))
            ending, content = make(rows, rng)
            table = folder / f"{number}{ending}"
            table.write_bytes(content)
            arguments = ["fit", table, "-m", 2, "--out", out]
        else:
            damaged = folder / f"{number}.model"
            damaged.write_bytes(rng.choice((cut, zeros, noise))(model, rng))
            if damaged.read_bytes() == model:  # zeros where there were zeros
                continue
            arguments = ["predict", damaged, folder / "good.npy", "--out", out.with_suffix(".csv")]
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code == 1, f"{arguments}: {result.output}"
        assert_sentence(result.stderr)
        assert not out.exists()
        assert not out.with_suffix(".csv").exists()


def test_twenty_corruptions(good, tmp_path):
    assert 2 <= damage_checkpoints(good, tmp_path, 14, seed=1) < 14
    damage_inputs(tmp_path, 6, seed=0)


@pytest.mark.slow
def test_many_corruptions(good, tmp_path):
    count = int(os.environ.get("SWIFTEM_CORRUPTIONS", "200"))
    of_inputs = count // 4
    refused = damage_checkpoints(good, tmp_path, count - of_inputs, seed=1)
    damage_inputs(tmp_path, of_inputs, seed=1)
    print(f"{count} corruptions: {refused + of_inputs} refused, the others did no harm: results exact")
    assert refused > count / 10
