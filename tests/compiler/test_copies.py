"""Copies of gradients: left out where the array is the program's own, and kept where anything else has its memory."""

import pytest

import retrograd as rg
from retrograd.backend import array_programs
from retrograd.core.engine import copy_in_layout

from .comparison import assert_same_runs, numbers


def functions_of(compiled):
    """Return the functions of the plan that copy arrays, or pass them on instead."""
    found = [getattr(i, "function", None) for i in compiled.programs[-1].plan]
    return [f for f in found if f in (copy_in_layout, array_programs.pass_on)]


def test_the_gradient_of_a_product_is_not_copied():
    w = numbers(6, 4).requires_grad_()

    @rg.compile(fullgraph=True)
    def step(x):
        w.grad = None
        (x @ w).square().sum().backward()

    for _ in range(3):
        step(numbers(3, 6))
    assert functions_of(step) == [array_programs.pass_on]


def shared_by_two_leaves(v, w, x):
    (x @ v + x @ w).sum().backward()


def returned_too(v, w, x):
    g = rg.autograd.grad((x @ w).square().sum(), w)[0]
    w.backward(g)
    return g


def added_to_itself(v, w, x):
    for _ in range(2):
        (x @ w).square().sum().backward()


def a_view_is_returned(v, w, x):
    g = rg.autograd.grad((x @ w).square().sum(), w)[0]
    w.backward(g)
    return g[1:]


def read_later(v, w, x):
    g = rg.autograd.grad((x @ w).square().sum(), w)[0]
    w.backward(g)
    w.grad.mul_(2)
    return g.sum()


@pytest.mark.parametrize("body", [shared_by_two_leaves, returned_too, added_to_itself, a_view_is_returned, read_later])
def test_gradients_whose_memory_others_have_are_as_in_eager_code(body):
    def make():
        v, w = numbers(6, 4, seed=1).requires_grad_(), numbers(6, 4, seed=2).requires_grad_()

        def f(x):
            v.grad = w.grad = None
            out = body(v, w, x)
            for leaf in (v, w):
                if leaf.grad is not None:
                    leaf.grad.add_(1)  # reaches only this gradient
            return out

        return f, [v, w]

    assert_same_runs(make, lambda i: (numbers(3, 6, seed=i),))
