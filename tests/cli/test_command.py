"""The command says what is wrong in one line, and what is installed."""

import subprocess
import sys

import pytest

import retrograd as rg
from retrograd.cli import main
from retrograd.cli.doctor import extras


def test_the_version_is_the_package_s(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"retrograd {rg.__version__}\n"


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("--stages", "0", "from 1 to 8"),
        ("--stages", "9", "from 1 to 8"),
        ("--stages", "many", "whole number from 1 to 8"),
        ("--stages", "2.5", "whole number from 1 to 8"),
        ("--micro-batches", "0", "from 1 to 360"),
        ("--micro-batches", "361", "from 1 to 360"),
        ("--schedule", "zigzag", "1f1b, dualpipev, gpipe"),
        ("--epochs", "0", "at least 1"),
        ("--seed", "-1", "at least 0"),
    ],
)
def test_a_bad_option_is_named_with_its_value_and_what_is_allowed(option, value, allowed, tmp_path, capsys):
    folder = tmp_path / "out"
    assert main(["demo", "--output", str(folder), option, value]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in (option, value, allowed))
    assert not folder.exists()


def test_an_unknown_option_is_named(capsys):
    assert main(["demo", "--stagez", "3"]) == 2
    assert "--stagez" in capsys.readouterr().err


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_its_extra_the_command_says_what_to_install(package):
    program = f"import sys; sys.modules[{package!r}] = None; from retrograd.cli import main; sys.exit(main(['demo']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f'retrograd: the command needs {package}: pip install "retrograd[cli]"\n'


def test_a_failure_of_ours_is_not_hidden(monkeypatch):
    def fail():
        raise LookupError("a mistake of ours")

    monkeypatch.setattr("retrograd.cli.app.report", fail)
    with pytest.raises(LookupError, match="a mistake of ours"):
        main(["doctor"])


def test_the_doctor_tells_the_build_and_every_extra(capsys):
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert "retrograd core: " in told
    assert all(extra in told for extra in extras())


def test_the_doctor_says_how_to_add_what_is_missing(monkeypatch, capsys):
    monkeypatch.setattr("retrograd.cli.doctor.version", lambda package: None)
    assert main(["doctor"]) == 0
    assert 'pip install "retrograd[viz]"' in capsys.readouterr().out


def test_an_extra_within_an_extra_is_opened():
    assert set(extras()["demo"]) == {"typer", "rich", "matplotlib", "scikit-learn"}
