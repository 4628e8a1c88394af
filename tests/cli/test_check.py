"""`retrograd check` finds an operator and its arguments, prints the failed checks, and sets the exit code."""

import pytest

from retrograd.cli import main

MODULE = """
import retrograd as rg


@rg.library.custom_op("cli_{name}::scale", mutates_args=())
def scale(x: rg.Tensor, n: float = 2.0) -> rg.Tensor:
    return rg.as_tensor(n * x.numpy())


scale.register_autograd(
    lambda ctx, g: (g * {formula}, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "n", inputs[1])
)
"""


@pytest.fixture
def module(tmp_path):
    """Write a module with an operator and more lines, and return its path."""

    def write(more="", formula="ctx.n"):
        path = tmp_path / "operators.py"
        name = "".join(c for c in tmp_path.name if c.isalnum())
        path.write_text(MODULE.format(name=name, formula=formula) + more)
        return path

    return write


def lines(text):
    return [line for line in text.splitlines() if line.startswith("│ test_")]


def test_an_honest_operator_passes_with_the_arguments_of_the_command(module, capsys):
    assert main(["check", f"{module()}:scale", "--args", "rg.ones(3), n=3.0"]) == 0
    told = capsys.readouterr().out
    assert "scale(Tensor x, float n=2.0) -> Tensor, defined at " in told
    assert "operators.py:5" in told
    assert len(lines(told)) == 7
    assert all("ok" in line for line in lines(told))


def test_a_wrong_formula_is_reported_and_the_code_is_1(module, capsys):
    assert main(["check", f"{module(formula='3')}:scale", "--args", "rg.ones(3)"]) == 1
    told = lines(capsys.readouterr().out)
    assert {line.split()[1] for line in told if "fails" in line} == {"test_gradients", "test_forward"}


@pytest.mark.parametrize(
    "samples",
    [
        "samples = (rg.ones(3), 1.5)",
        "samples = [(rg.ones(3),), ((rg.ones(2, 3),), {'n': 1.5})]",
        "def samples():\n    yield (rg.ones(3),)\n",
        "def scale_samples():\n    return [(rg.ones(3), 2.0)]\n\nsamples = [(1, 2, 3)]",
        "samples = {'scale': [(rg.ones(3),)]}",
    ],
    ids=["one", "several", "a function", "its own", "by name"],
)
def test_samples_next_to_the_operator_are_taken(module, capsys, samples):
    assert main(["check", f"{module(samples)}:scale"]) == 0
    assert main(["check", f"{module(samples, formula='3')}:scale"]) == 1


def test_an_operator_is_found_by_its_full_name(module, capsys, tmp_path):
    path = module("samples = (rg.ones(3),)")
    name = "cli_" + "".join(c for c in tmp_path.name if c.isalnum()) + "::scale"
    assert main(["check", f"{path}:{name}"]) == 0


def test_only_the_named_checks_run(module, capsys):
    assert main(["check", f"{module(formula='3')}:scale", "--args", "rg.ones(3)", "--test", "test_fake"]) == 0
    assert len(lines(capsys.readouterr().out)) == 1


@pytest.mark.parametrize(
    ("target", "options", "told"),
    [
        ("{path}", [], "there is scale"),
        ("{path}:shift", [], "no operator 'shift'"),
        ("{path}:scale", [], "--args"),
        ("{path}:scale", ["--args", "nothing"], "NameError"),
        ("{path}:scale", ["--args", ""], "missing"),
        ("{path}:scale", ["--args", "rg.ones(2)", "--test", "test_speed"], "test_speed"),
        ("{path}.missing.py:scale", [], "no file"),
        ("operators", [], "module.py:op"),
    ],
)
def test_a_mistake_is_one_line_and_the_code_is_2(module, capsys, target, options, told):
    assert main(["check", target.format(path=module()), *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


def test_a_file_that_fails_is_named_with_its_error(module, capsys):
    assert main(["check", f"{module('raise LookupError(7)')}:scale"]) == 2
    assert "operators.py can't be imported: LookupError: 7" in capsys.readouterr().err


def test_the_help_says_how_to_give_arguments_and_what_the_codes_mean(capsys):
    assert main(["check", "--help"]) == 0
    told = capsys.readouterr().out
    assert all(word in told for word in ("--args", "samples", "exit code"))
