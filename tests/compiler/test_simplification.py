"""Equal calls run once, and constants are computed once, with the eager results and effects."""

import importlib
import warnings
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn

from .comparison import assert_same_runs, numbers, observe

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def counts(f, *args):
    """Return how many calls of a function are merged with equal ones, and how many are constants."""
    report = rg.compiler.explain(f)(*args)
    assert report.graph_count, report
    return report.merged, report.folded


def check(f, *args, merged, folded=0):
    """Check that compiled calls equal eager ones, and how many calls are left out."""
    assert_same_runs(lambda: (f, []), lambda i: args)
    assert counts(f, *args) == (merged, folded)


def test_equal_calls_run_once_also_those_of_equal_results():
    check(lambda x: (x.sin().exp() + x.sin().exp()) * x.sin().exp(), numbers(5), merged=4)


def test_calls_with_other_operands_or_params_are_not_equal():
    check(lambda x, y: x.sin() + y.sin() + x.sum(0) * x.sum(1) * (x * 0.0) * (x * -0.0), numbers(3, 3), numbers(3, 3),
          merged=0)  # fmt: skip


def test_a_write_between_equal_calls_keeps_both():
    def f(x):
        y = x * 2
        first = y.sin()
        y[1] = x[0]
        second = y.sin()
        y.mT.mul_(2)
        return first + second + y.sin() + y.sin()

    check(f, numbers(4, 4), merged=1)


def test_a_write_to_an_argument_keeps_the_calls_that_read_other_arguments():
    def f(part, whole):
        first = part.sin()
        whole.mul_(3)
        return first - part.sin()

    def outcome(function):
        array = np.arange(6.0)
        return observe(function(rg.from_numpy(array[:4]), rg.from_numpy(array)))

    compiled = rg.compile(f)
    assert [outcome(compiled) for _ in range(3)] == [outcome(f)] * 3


def test_results_that_are_written_to_or_returned_have_their_own_memory():
    def f(x):
        a, b, c, d = x * 2, x * 2, x.sin(), x.sin()
        a.add_(1)
        return a.sum(), b.sum(), c, d

    check(f, numbers(5), merged=0)
    c, d = rg.compile(f)(numbers(5))[2:]
    c.zero_()
    assert d.abs().sum() > 0


def test_equal_views_are_one_view_also_where_they_are_written_to():
    def f(x):
        y = x.exp()
        y.mT[0].add_(1)
        y.mT[0].mul_(2)
        return y.mT.sum(0) + y.mT.cos().sum(0)

    check(f, numbers(3, 3), merged=4)


def test_a_gradient_has_other_memory_than_a_view_of_an_equal_result():
    def make():
        w = numbers(3, 3).requires_grad_()

        def f(x):
            w.grad = None
            a, b = x * 2, x * 2
            view = b.mT
            w.backward(a)
            w.grad.mul_(2)
            return view.sum(0)

        return f, [w]

    assert_same_runs(make, lambda i: (numbers(3, 3),))


def test_random_numbers_are_drawn_as_often():
    check(lambda x: rg.rand(4) + rg.rand(4) + rg.dropout(x, 0.5, True) - rg.dropout(x, 0.5, True), numbers(4), merged=0)


def test_a_user_s_kernel_runs_as_often(own_operators):
    calls = []

    @rg.library.custom_op("simplification::count", mutates_args=())
    def count(x: rg.Tensor) -> rg.Tensor:
        calls.append(1)
        return x * 2

    count.register_fake(lambda x: rg.empty_like(x))
    f = rg.compile(lambda x: count(x) + count(x), fullgraph=True)
    for _ in range(3):
        f(numbers(3))
    assert len(calls) == 6


def test_values_that_checkpoints_recompute_are_not_kept():
    def f(x):
        large = (x * 2).sin().sum()
        return large * (x * 2).exp().sum()

    assert counts(f, numbers(100_000))[0] == 0
    assert counts(f, numbers(10))[0] == 1


def test_a_call_of_a_backward_pass_does_not_replace_one_that_warns():
    def f(x):
        y = x.detach().requires_grad_()
        (g,) = rg.autograd.grad(y.sinh(), y, rg.ones(3))
        return g + x.detach().cosh()

    compiled = rg.compile(f)
    for run in (f, compiled, compiled):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            run(rg.full((3,), 1000.0))
        assert [str(w.message) for w in found] == [f"overflow encountered in {name}" for name in ("sinh", "cosh")]


def test_constants_are_computed_once():
    check(lambda x: x * rg.arange(4).float().sin() + rg.eye(4), numbers(4, 4), merged=0, folded=4)


def test_constants_that_are_written_to_or_returned_are_made_in_each_run():
    def f(x):
        total, empty, same = rg.zeros(3), rg.zeros(3), rg.ones(3)
        total += x
        return total, empty, same[1:]

    check(f, numbers(3), merged=0)
    compiled = rg.compile(f)
    for _ in range(3):
        for out in compiled(numbers(3)):
            out.fill_(7)
    assert compiled(numbers(3))[1].tolist() == [0.0, 0.0, 0.0]


def test_a_constant_about_which_numpy_warns_warns_in_each_run():
    compiled = rg.compile(lambda x: x * rg.zeros(3).log())
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            compiled(numbers(3))


def test_large_constants_are_not_kept():
    assert counts(lambda x: x + rg.zeros(100_000), numbers(1)) == (0, 0)


def test_constants_are_part_of_backward_programs_outside():
    layer = nn.Linear(4, 4)

    def make():
        compiled = rg.compile(lambda x: (layer(x) * rg.arange(4.0)).sum() + (layer(x) * rg.arange(4.0)).sum())

        def step(x):
            layer.zero_grad()
            compiled(x).backward()

        return step, [*layer.parameters()]

    expected = None
    for calls in (1, 3):  # the third backward pass runs by its program
        step, parameters = make()
        for _ in range(calls):
            step(numbers(2, 4))
        found = [p.grad.tolist() for p in parameters]
        expected = expected or found
        assert found == expected


def test_the_leapfrog_program_has_45_calls_that_equal_others(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    suite = importlib.import_module("compile_cases")
    compiled = []
    case = suite.tensors_case(rg, suite.LEAPFROG, lambda f: compiled.append(rg.compile(f)) or compiled[0])
    case.call()
    (program,) = compiled[0].programs
    assert (len(program.instructions), program.merged) == (324, 45)


def test_the_report_counts_the_calls_left_out():
    report = rg.compiler.explain(lambda x: x.sin() * x.sin() + rg.eye(3))(numbers(3))
    assert (report.merged, report.folded) == (1, 1)
    assert "Left out: 1 equal to others, 1 constant\n" in str(report)
