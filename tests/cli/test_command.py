"""The `retrograd` command prints errors in one line, and the installed versions."""

import os
import subprocess
import sys

import pytest

import retrograd as rg
from retrograd.cli import health, main
from retrograd.cli.app import app
from retrograd.cli.doctor import extras


def test_the_version_is_the_package_s(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"retrograd {rg.__version__}\n"


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("--stages", "0", "from 1 to 8"),
        ("--stages", "9", "from 1 to 8"),
        ("--stages", "many", "integer from 1 to 8"),
        ("--stages", "2.5", "integer from 1 to 8"),
        ("--micro-batches", "0", "from 1 to 180"),
        ("--micro-batches", "181", "from 1 to 180"),
        ("--schedule", "zigzag", "1f1b, chimera, dualpipe, dualpipev"),
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


def test_an_odd_number_of_stages_is_refused_in_two_directions(tmp_path, capsys):
    assert main(["demo", "--output", str(tmp_path / "out"), "--schedule", "chimera", "--stages", "3"]) == 2
    assert "--stages is 3; Chimera runs in two directions over an even number" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_unknown_option_is_named(capsys):
    assert main(["demo", "--stagez", "3"]) == 2
    assert "--stagez" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["sweep", "bench"])
def test_a_picture_in_another_format_is_refused_before_the_work(command, capsys):
    assert main([command, "--plot", "figure.doc"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "--plot is 'figure.doc'; its name must end in" in err


@pytest.mark.parametrize("arguments", [["train"], ["view"], ["view", "-x"], ["doctor", "x"]])
def test_what_the_command_does_not_know_leads_to_its_help(arguments, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err.endswith(" --help\n")


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


def test_the_doctor_lists_the_build_and_every_extra(capsys):
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


def test_the_doctor_tests_itself_and_finds_no_problem_here(capsys):
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert "self-test: 7 of 7 work" in told
    assert "BLAS: " in told


def test_the_doctor_says_what_does_not_work_and_what_to_do(monkeypatch, capsys):
    def fail():
        raise OSError("no such disk")

    monkeypatch.setitem(health.CHECKS, "files", fail)
    monkeypatch.setitem(health.CHECKS, "kernels", lambda: False)
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert "5 of 7 work" in told
    assert "files: OSError: no such disk" in told
    assert "kernels: the result is wrong" in told
    assert "report this output" in told


@pytest.mark.parametrize(
    ("core", "kernels", "pure", "told"),
    [
        ("compiled", "compiled", "", []),
        ("pure", "compiled", "", ["the core is not compiled"]),
        ("mixed", "compiled", "", ["(op are not)"]),
        ("compiled", "pure", "", ["the kernels are not compiled"]),
        ("compiled", "outdated", "", ["the kernels were compiled from older sources"]),
        ("pure", "pure", "1", ["RETROGRAD_PURE is set"]),
    ],
)
def test_a_build_that_is_slower_than_it_could_be_is_a_problem(core, kernels, pure, told, monkeypatch):
    monkeypatch.setenv("RETROGRAD_PURE", pure)
    modules = {"op": "pure", "tensor": "compiled"}
    found = list(health.problems({"core": core, "kernels": kernels, "modules": modules}))
    assert len(found) == len(told)
    assert all(text in problem for text, problem in zip(told, found, strict=True))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_the_command(shell):
    environment = {**os.environ, "_RETROGRAD_COMPLETE": f"source_{shell}"}
    shown = subprocess.run(
        [sys.executable, "-m", "retrograd"], env=environment, capture_output=True, text=True, check=False
    )
    assert "_RETROGRAD_COMPLETE=complete_" in shown.stdout


def test_help_is_wrapped_by_the_terminal_alone():
    for command in app.registered_commands:
        assert all("\n" not in paragraph for paragraph in command.help.split("\n\n")), command.callback


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a file that is always full")
def test_output_that_cannot_be_written_is_one_line():
    run = [sys.executable, "-c", "import sys; from retrograd.cli import main; sys.exit(main(['doctor']))"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(run, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr.splitlines()[0] == "retrograd: the output can't be written: No space left on device"
    assert "Traceback" not in done.stderr
