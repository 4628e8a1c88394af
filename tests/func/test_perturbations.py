"""Nested derivatives do not confuse their perturbations.

J. M. Siskind, B. A. Pearlmutter, Perturbation confusion and referential transparency, IFL 2005; O. Manzyuk et al.,
Perturbation confusion in forward automatic differentiation of higher-order functions, JFP 29 (2019).
"""

import itertools

import pytest

import retrograd as rg
from retrograd.func import grad, jacfwd, jacrev, jvp, linearize, vjp, vmap

from ..case_groups import group_cases


def number(value):
    return rg.tensor(value, dtype=rg.float64)


def by_jvp(f):
    return lambda x: jvp(f, (x,), (rg.ones_like(x),))[1]


def by_vjp(f):
    return lambda x: vjp(f, x)[1](rg.ones_like(x))[0]


def by_linearize(f):
    return lambda x: linearize(f, x)[1](rg.ones_like(x))


def by_backward(f):
    def derivative(x):
        leaf = x.detach().requires_grad_()
        (g,) = rg.autograd.grad(f(leaf), leaf, create_graph=True, materialize_grads=True)
        return g

    return derivative


def in_a_batch(f):
    return lambda x: vmap(grad(f))(x[None])[0]


WAYS = [by_jvp, by_vjp, by_linearize, grad, jacfwd, jacrev, in_a_batch]
pairs = pytest.mark.parametrize(
    ("outer", "inner"), list(itertools.product(WAYS, repeat=2)), ids=lambda way: way.__name__
)


@pairs
def test_an_inner_derivative_does_not_see_the_outer_variable_move(outer, inner):
    assert outer(lambda x: x * inner(lambda y: x + y)(number(1.0)))(number(1.0)).item() == 1.0


@pairs
def test_a_constant_of_the_inner_function_has_no_slope_there(outer, inner):
    assert outer(lambda x: x * inner(lambda y: x * x)(x))(number(3.0)).item() == 0.0


@pairs
def test_both_variables_may_meet_in_a_product(outer, inner):
    # d/dx of x * d/dy (x y^2) at y = x is d/dx of 2 x^3
    found = outer(lambda x: x * inner(lambda y: x * y * y)(x))(number(2.0))
    assert found.item() == 24.0


@pairs
def test_an_inner_derivative_at_a_point_that_depends_on_the_outer_variable(outer, inner):
    # d/dx of cos(x^2) is the outer derivative of the inner one, of sin, at x^2
    x = number(0.7)
    found = outer(lambda x: inner(rg.sin)(x * x))(x)
    assert found.item() == pytest.approx((-2 * x * rg.sin(x * x)).item(), rel=1e-12)


@pairs
def test_the_derivative_of_a_shift_twice_is_the_second_derivative(outer, inner):
    def derivative_at_shift(way, f):
        return lambda x: way(lambda u: f(x + u))(number(0.0))

    x = number(0.3)
    assert derivative_at_shift(outer, derivative_at_shift(inner, rg.exp))(x).item() == pytest.approx(
        rg.exp(x).item(), rel=1e-12
    )


@pytest.mark.parametrize("way", WAYS)
def test_autograd_inside_a_transform_separates_perturbations_too(way):
    # its result is a constant of the graph around, as it is without create_graph
    assert way(lambda x: x * by_backward(lambda y: x.detach() * y)(number(1.0)))(number(5.0)).item() == 5.0


@group_cases
@pytest.mark.parametrize("ways", list(itertools.product([by_jvp, by_vjp, in_a_batch], repeat=3)))
def test_three_deep(ways):
    f = rg.sin
    for way in ways:
        f = way(f)
    x = number(0.4)
    assert f(x).item() == pytest.approx(-rg.cos(x).item(), rel=1e-12)
