"""The fuzzer itself: it finds seeded bugs, shrinks them to a few lines, and reports nothing without them."""

import os
import re
from itertools import islice
from math import inf
from pathlib import Path

import pytest
import torch

import retrograd as rg

from .fuzz import explore, expressions, views, workers, writes
from .fuzz.differential import Difference, Run, quietly, run
from .fuzz.exempt import EXEMPT, exempted_program
from .fuzz.substitutes import FORMULAS

# Kinds of lines that do not depend on which operators are registered, so that a seed stays the same program.
BASIC = [(1.0, kind) for kind in (expressions.unary, expressions.binary, views.view, writes.write)]


def faults(seeds):
    """Yield the differences without an exemption in the programs of these seeds."""
    for seed in seeds:
        yield from (found for found, reason in explore.differences(seed, kinds=BASIC) if reason is None)


def test_a_wrong_value_is_found_and_shrunk(monkeypatch):
    monkeypatch.setattr(rg, "square", lambda x, right=rg.square, **out: right(x, **out) + (x > 1))
    found = next(faults(range(100)))
    assert "square" in found.lines[-1]
    assert "value at" in found.message
    assert len(found.lines) <= 5


def test_a_wrong_gradient_is_found_and_shrunk(monkeypatch):
    tanh = rg.tanh
    monkeypatch.setattr(rg, "tanh", lambda x, **out: tanh(x, **out) * 2 - tanh(x).detach())
    found = next(faults(range(100)))
    assert "gradient of" in found.message
    assert any("tanh" in line for line in found.lines)
    assert len(found.lines) <= 6


def test_nothing_is_found_where_nothing_is_wrong():
    assert not list(faults(range(100)))


def test_exemptions_quote_the_messages_of_today():
    """An exemption for a message that nobody raises any more lets the new message through as a difference."""
    files = Path(rg.__file__).parent.rglob("*.py")
    sources = re.sub(r'"\s*f?"', "", "\n".join(file.read_text() for file in files))
    patterns = [re.sub(r"\\[\w.]\+?|backward of \w*", "|", pattern) for _, pattern in EXEMPT]
    ours = [text for pattern in patterns for text in re.findall(r"ours (?:\(refuses backward\|)?raises.*", pattern)]
    quoted = {words.strip() for text in ours for words in re.findall(r"[A-Za-z'][A-Za-z' -]{12,}", text)}
    quoted -= {"ours raises NotBatchedError", "ours raises OverflowError", "refuses backward"}
    assert len(quoted) > 15
    assert not [words for words in quoted if words.removeprefix("ours raises").strip() not in sources]


def test_a_program_that_writes_to_a_leaf_is_refused_by_both():
    assert run(["v[0] = L.ones(2, requires_grad=True)", "v[1] = v[0].add_(1)"]) is None


MADE = "v[0] = L.ones(2, 2, requires_grad=True)"
PROGRAMS = {
    "older view": [MADE, "v[1] = v[0] * 1", "v[2] = v[1][0]", "v[3] = v[1].t_()", "v[3] *= 2"],
    "leading one": [MADE, "v[1] = v[0] * 1", "v[1][L.tensor([0, 1])] = v[0][None]"],
    "other input": [MADE, "v[1] = L.ones(1, requires_grad=True)", "v[0].backward(W(v[0]), inputs=[v[1]])"],
    "root": [
        MADE,
        "v[1] = v[0].mean()",
        "v[2] = v[0].view_as(v[0])",
        "v[1].retain_grad()",
        "v[1].backward(W(v[1]), inputs=[v[2]])",
    ],
    "retained": [MADE, "v[1] = v[0] + 2", "v[1].backward(W(v[1]), inputs=[v[1]])", "v[1].backward(W(v[1]))"],
    "gradient of a number": [
        MADE,
        "v[1] = L.tensor(0.5, requires_grad=True)",
        "v[2] = L.autograd.grad(total(v[0] + v[1]), [v[1]])[0]",
        "v[2][...] = v[1]",
    ],
    "number": [
        "v[0] = L.ones(1, 2, 3, 4)",
        "v[1] = L.func.vjp(lambda x: x[L.tensor(0), 0, :, L.tensor([0])], v[0])[0]",
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_once_differed(name):
    assert run(PROGRAMS[name]) is None


HALVED = ".register_hook(lambda g: g.clone().mul_(0.5))"
ALLOWED = {
    "new history": [
        MADE,
        "v[1] = v[0].tanh() * 2",
        "v[2] = v[1][0]",
        f"v[2]{HALVED}",
        "with L.no_grad(): v[3] = v[2].zero_()",
    ],
    "nobody has": [
        MADE,
        "v[1] = v[0].tanh().repeat_interleave(2, -1)",
        f"v[1]{HALVED}",
        "v[2] = v[1].scatter_add_(-1, L.zeros_like(v[1], dtype=L.int64), v[1].detach().clone())",
    ],
    "becomes a view": [MADE, "v[1] = v[0].tanh() * 2", "v[2] = v[1].flatten()", "v[3] = v[1].t_()", f"v[1]{HALVED}"],
}


@pytest.mark.parametrize("reason", ALLOWED)
def test_a_difference_is_allowed_if_pytorch_agrees_without_what_only_it_does(reason):
    assert reason in exempted_program(run(ALLOWED[reason]))


@pytest.mark.parametrize("reason", ALLOWED)
def test_a_wrong_gradient_next_to_an_allowed_difference_is_reported(monkeypatch, reason):
    tanh = rg.Tensor.tanh
    monkeypatch.setattr(rg.Tensor, "tanh", lambda x: tanh(x) * 4 - 3 * tanh(x).detach())
    assert exempted_program(run(ALLOWED[reason])) is None


def test_a_refused_write_to_memory_of_its_own_is_reported(monkeypatch):
    monkeypatch.setattr(rg.Tensor, "zero_", lambda x: x.detach().expand(2, *x.shape).fill_(0))
    overlapping = [MADE, "v[1] = v[0].detach().expand(2, 2, 2)", "v[2] = v[1].zero_()"]
    assert "share memory" in exempted_program(run(overlapping))
    assert exempted_program(run([MADE, "v[1] = v[0].detach().clone()", "v[2] = v[1].zero_()"])) is None


def reasons(lines):
    """Return the reasons for which each difference of a program is allowed."""
    both = Run()
    with quietly():
        messages = [message for line in lines if (message := both.line(line))] or list(both.gradients())
        return [reason for message in messages for _, reason in explore.judged(both.done, message)]


SPECTRUM = ["v[0] = L.tensor([[inf, 1.0], [4.0, 1.0]], dtype=L.float64)", "v[1] = L.fft.hfft(v[0])"]


@pytest.mark.parametrize("wrong", [False, True])
def test_a_wrong_number_next_to_infinities_that_are_allowed_to_differ_is_reported(monkeypatch, wrong):
    right, added = rg.fft.hfft, rg.tensor([[-inf], [float(wrong)]])
    monkeypatch.setattr(rg.fft, "hfft", lambda x: right(x).nan_to_num(nan=0.0) + added)
    found = reasons(SPECTRUM)
    assert "infinities that are added in another order" in found
    assert (None in found) == wrong


@pytest.mark.parametrize("wrong", [False, True])
def test_a_wrong_gradient_of_a_leaf_next_to_one_that_is_allowed_to_differ_is_reported(monkeypatch, wrong):
    right = rg.abs
    monkeypatch.setattr(rg, "abs", lambda x: right(x) * (1 + wrong) - wrong * right(x).detach())
    nan, number = (
        f"v[{i}] = L.tensor([{value}], dtype=L.float64).requires_grad_()" for i, value in ((0, "nan"), (1, 2.0))
    )
    found = reasons([nan, number, "v[2] = L.abs(v[0])", "v[3] = L.abs(v[1])"])
    assert "the derivative at NaN is NaN; PyTorch's is 0" in found
    assert (None in found) == wrong


def test_a_difference_prints_as_a_program():
    assert str(Difference(["v[0] = L.ones(2)"], "shape")) == "v[0] = L.ones(2)\n# shape"


POISSON = [
    "v[0] = L.tensor([0.3, 0.5, 0.2], dtype=L.float64)",
    "v[1] = L.tensor([-2.0, 0.5, 3.0], dtype=L.float64).requires_grad_()",
    "v[2] = L.nn.functional.poisson_nll_loss(v[0], v[1], full=True)",
]


def test_only_the_unused_logarithm_of_a_poisson_loss_is_exempt(monkeypatch):
    assert "0 times the logarithm" in exempted_program(run(POISSON))
    loss = rg.nn.functional.poisson_nll_loss

    def wrong(input, target, **given):
        return loss(input, target * 1.5 - target.detach() / 2, **given)

    monkeypatch.setattr(rg.nn.functional, "poisson_nll_loss", wrong)
    assert exempted_program(run(POISSON)) is None


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, which other tests of the process import
def test_the_death_of_a_program_is_a_difference_and_the_next_one_runs(monkeypatch):
    monkeypatch.setattr(workers, "differences", lambda seed, ran, kinds: os._exit(3) if seed == 8 else [])
    found = list(islice(workers.outcomes(7, core=True), 3))
    assert [(outcome.seed, outcome.judged) for outcome in found] == [
        (7, []), (8, [("# the process died with exit code 3", None)]), (9, []),
    ]  # fmt: skip


OPERANDS = {"copysign": 2, "logaddexp": 2, "atan2": 2, "polar": 2}
OPTIONS = {"logcumsumexp": {"dim": 1}, "cumprod": {"dim": 1}, "amax": {"dim": (1,)}, "prod": {"dim": 1}}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_substituted_formula_has_the_values_and_gradients_of_the_operator(name):
    operands = torch.rand(OPERANDS.get(name, 1), *(3,) * (1 if name == "vander" else 2), dtype=torch.float64)
    operands = operands.add_(0.1).requires_grad_()
    found = [function(*operands, **OPTIONS.get(name, {})) for function in (FORMULAS[name][0], operator_of(name))]
    gradients = [torch.autograd.grad(out.abs().sum(), operands)[0] for out in found]
    torch.testing.assert_close(*found)
    torch.testing.assert_close(*gradients)


def operator_of(name):
    """Return PyTorch's operator; of the functions named vander the one with rising powers."""
    return getattr(torch.linalg, name) if name in ("vander", "vector_norm") else getattr(torch, name)


def test_a_difference_of_rules_at_nan_is_proven_by_another_formula():
    found = run(["v[0] = L.tensor([nan, 1.0], dtype=L.float64).requires_grad_()", "v[1] = v[0].amax()"])
    assert exempted_program(found) == FORMULAS["amax"][1]


def test_a_wrong_gradient_of_an_operator_with_a_formula_is_not_exempt(monkeypatch):
    right = rg.Tensor.logcumsumexp
    monkeypatch.setattr(rg.Tensor, "logcumsumexp", lambda x, dim: right(x * 1, dim).detach() + x)
    found = run(["v[0] = L.tensor([2.0, 1.0]).requires_grad_()", "v[1] = v[0].logcumsumexp(0) - v[0]"])
    assert found is not None
    assert exempted_program(found) is None
