"""The command line: help, version, bad options and typing errors."""

import re

import pytest
import typer.core

import swiftem
from swiftem.cli.app import app, run_command


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--components", "two"], "'two' is not an integer."),
        (["-k", "0"], "'--components': n_components must be an integer of at least 1, got 0."),
        (
            ["-k", "2", "--seed", "4294967296"],
            "'--seed' / '-s': it must be from 0 to 4294967295, got 4294967296.",
        ),
        (["-k", "2", "--reg-covar", "small"], "'small' is not a number."),
        (["-k", "2", "--reg-covar", "-1"], "'--reg-covar': reg_covar must be"),
        (["-k", "2", "--covariance-type", "fulll"], "did you mean 'full'?"),
        (["-k", "2", "--method", "semvr"], "did you mean 'sem-vr'?"),
        (["-k", "2", "--memory-limit", "5XB"], "'--memory-limit': memory_limit must be a number of bytes"),
        (["-k", "2", "--memory-limit", "9MB"], "memory_limit must be at least"),
        (["-k", "2", "--device", "gpu"], "'--device': device must be 'auto', 'cpu', 'cuda' or 'cuda:0', got"),
        (["-k", "2", "--missing", "drop"], "'--missing': missing must be 'error', 'skip' or 'ignore'"),
        (["-k", "2", "--columns", "a,-b"], "'--columns': columns must be all to use, or all not to use"),
        (["-k", "2", "--family", "poisson", "--reg-covar", "1"], "'--reg-covar': reg_covar must be left out"),
    ],
)
def test_typing_errors_are_answered_by_what_is_meant(arguments, sentence, flowers, invoke):
    assert sentence in invoke("fit", flowers, *arguments, code=2)


COMMANDS = ("fit", "select", "predict", "score", "impute", "info", "topics", "warmup")


def test_commands_are_few_and_their_help_is_short(call, monkeypatch):
    """Flags have no type, every option has a text, and no word is cut."""
    monkeypatch.setenv("COLUMNS", "80")
    group = typer.main.get_command(app)
    assert tuple(group.commands) == COMMANDS
    assert sum(len(command.params) for command in group.commands.values()) <= 61
    for name in COMMANDS:
        output, _ = call(name, "--help")
        lines = output.splitlines()
        assert name == "warmup" or f"Example: swiftem {name} " in output
        assert len(lines) <= 60
        assert "bool" not in output.lower()
        assert "…" not in output
        assert not [line for line in lines if re.fullmatch(r"│ +(--[a-z-]+|-[a-z]|[A-Z|:]+|\s)+│", line)]


def test_help_is_that_of_the_library(invoke):
    """Names, defaults and texts are those of the parameters."""
    parameters = swiftem.GaussianMixture().get_params()
    command = typer.main.get_command(app).commands["fit"]
    known = {part.name for part in command.params} & set(parameters)
    assert known >= {"n_components", "covariance_type", "reg_covar", "method", "max_iter", "tol", "device"}
    output = invoke("fit", "--help")
    assert "Kind of the covariances: full, tied, diag, spherical. [default: full]" in output
    assert f"[default: {parameters['reg_covar']}]" in output


def test_a_folder_that_cannot_be_written_is_refused(folder, tmp_path, invoke):
    file = tmp_path / "taken"
    file.write_text("mine")
    for out in (file, file / "below", "/proc/new"):
        assert "Invalid value for '--out'" in invoke("topics", folder, "--out", out, code=2)
    assert file.read_text() == "mine"


def test_typing_errors_are_answered_with_what_is_right(folder, invoke):
    assert "'topics'" in invoke("tpics", folder, code=2)
    assert "--topics" in invoke("topics", folder, "--topiks", "3", code=2)
    assert "Missing argument" in invoke("topics", code=2)


def test_help_and_version(invoke):
    assert "topics" in invoke("--help")
    assert invoke("--version") == f"swiftem {swiftem.__version__} "
    assert invoke(code=2) == invoke("--help")


@pytest.mark.parametrize("where", ["invoke", "main"])
def test_ctrl_c_outside_of_a_command(monkeypatch, capsys, where):
    """While commands are made or arguments are read: typer alone would end without a word, or with many."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(typer.core.TyperGroup, where, interrupt)
    monkeypatch.setattr("sys.argv", ["swiftem", "info", "model"])
    with pytest.raises(SystemExit) as ended:
        run_command()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Interrupted.\n"
