"""The command line: the demo's files and words, Ctrl-C, bad options, help."""

import csv
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

import swiftem
from swiftem.cli import demo as demo_module
from swiftem.cli import main
from swiftem.cli.app import app

COLUMNS = ["method", "epoch", "passes", "seconds", "squared_error"]
FIVE = ["em", "sem", "iem", "sem-vr", "fiem"]


def invoke(*arguments):
    """Return exit code and output, as one line: boxes and line breaks depend on the terminal's width."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
    return result.exit_code, re.sub(r"[\s│╭╮╰╯─]+", " ", plain)


def read_rows(folder):
    with open(folder / "gaussian.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == COLUMNS
    return rows


def test_demo_writes_a_table_and_a_figure(tmp_path):
    out = tmp_path / "new" / "folder"
    code, output = invoke("demo", "--n", 300, "--epochs", 7, "--seed", 4, "--out", out)
    assert code == 0
    rows = read_rows(out)
    assert [(method, int(epoch)) for method, epoch, *_ in rows] == [(m, e) for m in FIVE for e in range(8)]
    assert all(float(error) >= 0 for *_, error in rows)
    image = pytest.importorskip("PIL.Image")
    with image.open(out / "gaussian.png") as picture:
        picture.verify()
    for word in (
        "sEM-VR",
        "fiEM",
        "Squared error",
        "passes",
        "seconds",
        "After 7 epochs the squared error is",
    ):
        assert word in output
    assert "gaussian.csv" in output
    assert "gaussian.png" in output


def test_demo_is_the_experiment_with_the_same_seed(tmp_path):
    from swiftem.experiments.gaussian import gaussian_convergence

    invoke("demo", "--n", 50, "--epochs", 2, "--seed", 3, "--out", tmp_path)
    expected = gaussian_convergence(n=50, epochs=2, seed=3).errors["fiem"]
    assert [float(row[-1]) for row in read_rows(tmp_path) if row[0] == "fiem"] == expected


def test_ctrl_c_writes_what_is_done(tmp_path, monkeypatch):
    def press_ctrl_c(*, progress, **options):
        def show(stage, share):
            progress(stage, share)
            if stage == "sem-vr" and share >= 0.5:
                signal.raise_signal(signal.SIGINT)

        return real(progress=show, **options)

    real = demo_module.gaussian_convergence
    monkeypatch.setattr(demo_module, "gaussian_convergence", press_ctrl_c)
    code, output = invoke("demo", "--n", 60, "--epochs", 4, "--out", tmp_path)
    assert code == 130
    assert "Interrupted: shown and written are the epochs that were complete." in output
    assert [row[1] for row in read_rows(tmp_path) if row[0] == "sem-vr"] == ["0", "1", "2"]
    assert (tmp_path / "gaussian.png").exists()


def test_ctrl_c_before_the_first_result(tmp_path, monkeypatch):
    def press_ctrl_c(*, progress, **options):
        return real(progress=lambda stage, share: signal.raise_signal(signal.SIGINT), **options)

    real = demo_module.gaussian_convergence
    monkeypatch.setattr(demo_module, "gaussian_convergence", press_ctrl_c)
    code, output = invoke("demo", "--n", 60, "--epochs", 4, "--out", tmp_path)
    assert code == 130
    assert "nothing was written" in output
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="signals to a process are POSIX")
def test_ctrl_c_at_a_running_process(tmp_path):
    command = [
        sys.executable,
        "-m",
        "swiftem",
        "demo",
        "--n",
        "500",
        "--epochs",
        "100000",
        "--out",
        str(tmp_path),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        # Its first words: whatever was slow to import is there.
        assert "Five methods" in process.stdout.readline()
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in output
    assert "Interrupted" in output


def test_without_matplotlib_the_numbers_are_still_written(tmp_path, monkeypatch):
    def no_figure(*args, **kwargs):
        raise ImportError("Figures need matplotlib: install it with pip install 'swiftem[plot]'.")

    monkeypatch.setattr(demo_module, "plot_convergence", no_figure)
    code, output = invoke("demo", "--n", 40, "--epochs", 1, "--out", tmp_path)
    assert code == 0
    assert "pip install 'swiftem[plot]'" in output
    assert len(read_rows(tmp_path)) == 10


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    def no_space(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo_module, "plot_convergence", no_space)
    code, output = invoke("demo", "--n", 40, "--epochs", 1, "--out", tmp_path)
    assert code == 1
    assert "could not be written" in output
    assert "No space left on device" in output


def test_a_reference_that_still_moves_is_mentioned(tmp_path, monkeypatch):
    monkeypatch.setattr("swiftem.experiments.gaussian.MOST_PASSES", 3)
    _, output = invoke("demo", "--n", 40, "--epochs", 1, "--out", tmp_path)
    assert "EM still moved after 3 passes" in output


@pytest.mark.parametrize(
    ("option", "value"),
    [("--n", "1"), ("--n", "many"), ("--epochs", "0"), ("--seed", "-1"), ("--epochs", "")],
)
def test_bad_numbers_are_refused(option, value, tmp_path):
    code, output = invoke("demo", option, value, "--out", tmp_path)
    assert code == 2
    assert f"Invalid value for '{option}'" in output


def test_a_file_as_folder_is_refused(tmp_path):
    file = tmp_path / "taken"
    file.write_text("mine")
    for out in (file, file / "below"):
        code, output = invoke("demo", "--out", out)
        assert code == 2
        assert "Invalid value for '--out'" in output
    assert file.read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    # Not by permissions of the folder: those do not bind root, which tests may run as.
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    code, output = invoke("demo", "--out", tmp_path)
    assert code == 2
    assert "permission denied" in output


def test_typing_errors_are_answered_with_suggestions():
    code, output = invoke("dmo")
    assert code == 2
    assert "'demo'" in output
    code, output = invoke("demo", "--epoch", "3")
    assert code == 2
    assert "--epochs" in output


def test_help_and_version():
    code, output = invoke("--help")
    assert code == 0
    assert "demo" in output
    code, output = invoke("demo", "--help")
    assert code == 0
    for option in ("--epochs", "--n", "--seed", "--out", "the paper shows 100"):
        assert option in output
    assert invoke("--version") == (0, f"swiftem {swiftem.__version__} ")


def test_main_is_the_same_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["swiftem", "--version"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert capsys.readouterr().out == f"swiftem {swiftem.__version__}\n"


def test_help_loads_nothing_heavy():
    code = (
        "import sys, swiftem.cli.app; "
        "print(sorted({'matplotlib', 'sklearn', 'numba', 'rich.progress'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
