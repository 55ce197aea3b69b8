"""The command line: help, version, bad options and typing errors."""

import subprocess
import sys

import pytest
import typer.core

import swiftem
from swiftem.cli import main
from swiftem.cli.app import run_command


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--components", "two"], "'two' is not an integer."),
        (["-m", "0"], "0 is less than 1."),
        (["-m", "2", "--seed", "9999999999"], "9999999999 is more than 4294967295."),
        (["-m", "2", "--tol", "small"], "'small' is not a number."),
        (["-m", "2", "--covariance", "fulll"], "did you mean 'full'?"),
        (["-m", "2", "--method", "semvr"], "did you mean 'sem-vr'?"),
        (["-m", "2", "--family", "poison"], "did you mean 'poisson'?"),
        (["-m", "2", "--memory-limit", "5XB"], "'5XB' is not a size such as 500MB or 2GiB."),
        (["-m", "2", "--device", "gpu"], "'gpu' is not cpu, cuda or cuda:0."),
    ],
)
def test_typing_errors_are_answered_by_what_is_meant(arguments, sentence, tmp_path, invoke):
    code, output = invoke("fit", tmp_path / "t.csv", *arguments)
    assert code == 2
    assert sentence in " ".join(output.replace("│", " ").split())


def test_flags_have_no_type_in_the_help(invoke):
    for command in ([], ["fit"], ["topics"], ["warmup"]):
        code, output = invoke(*command, "--help")
        assert code == 0
        assert "bool" not in output.lower()


def test_a_file_as_folder_is_refused(folder, tmp_path, invoke):
    file = tmp_path / "taken"
    file.write_text("mine")
    for out in (file, file / "below"):
        code, output = invoke("topics", folder, "--out", out)
        assert code == 2
        assert "Invalid value for '--out'" in output
    assert file.read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_refused(folder, tmp_path, monkeypatch, invoke):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    # Not by permissions of the folder: those do not bind root, which tests may run as.
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    code, output = invoke("topics", folder, "--out", tmp_path / "new")
    assert code == 2
    assert "permission denied" in output


def test_typing_errors_are_answered_with_what_is_right(folder, invoke):
    code, output = invoke("tpics", folder)
    assert code == 2
    assert "'topics'" in output
    code, output = invoke("topics", folder, "--topiks", "3")
    assert code == 2
    assert "--topics" in output
    code, output = invoke("topics")
    assert code == 2
    assert "Missing argument" in output


def test_help_and_version(invoke):
    code, output = invoke("--help")
    assert code == 0
    assert "topics" in output
    assert invoke("--version") == (0, f"swiftem {swiftem.__version__} ")
    assert invoke()[1] == invoke("--help")[1]


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


@pytest.mark.parametrize("where", ["invoke", "main"])
def test_ctrl_c_outside_of_a_command(monkeypatch, capsys, where):
    """While commands are made or arguments are read: typer alone would end without a word, or with many."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(typer.core.TyperGroup, where, interrupt)
    monkeypatch.setattr(sys, "argv", ["swiftem", "info", "model"])
    with pytest.raises(SystemExit) as ended:
        run_command()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Interrupted.\n"
