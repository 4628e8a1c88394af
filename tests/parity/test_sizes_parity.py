"""Every function that takes sizes refuses those that PyTorch refuses, and gives the same shape for others."""

import warnings

import pytest
import torch

import retrograd as rg

REFUSALS = (RuntimeError, TypeError, ValueError, IndexError)
JAGGED = "L.nested.nested_tensor([L.zeros(2, 4), L.ones(3, 4)], layout=L.jagged)"

SIZES = [
    "(-2,)", "(-1, -1)", "(-2, -3)", "(-1, -2)", "(-2, -1)", "(-3, -2, 1)", "(-2, -1, -1)",
    "(4,)", "(7,)", "(2, 2)", "(5, -1)", "(4, -1)", "(3, -1)", "(-1,)", "(6,)", "(2, 3)", "(1, 6)", "(2, 6)", "()",
    "(2.0, 3)", "(1.5,)", "('2',)", "(None,)", "[-2]", "[6, [1]]", "(1, 2, 3, -1, -1)", "(1, 2, 3, 7)",
]  # fmt: skip
# With a 0 among the sizes, PyTorch lets others be negative in results of as_strided, resize_ and expand.
EMPTY = ["(0, -2)", "(0, -1)", "(0, 0, -1)"]

TAKES_SIZES = [
    "x.reshape({})", "x.reshape(*{})", "L.reshape(x, {})", "x.view({})", "x.view(*{})", "L.view_copy(x, {})",
    "x.t().reshape({})", "x[::2].reshape({})", "L.zeros(2, 3).reshape({})", "L.zeros(3, 2).t().reshape({})",
    "x.unflatten(0, {})", "L.unflatten(x, 0, {})", "L.nn.Unflatten(0, {})(x)", "L.nn.Parameter(x).view({})",
    "x.requires_grad_().reshape({})", "x.clone().reshape({}).requires_grad_()",
    "L.zeros({})", "L.zeros(1, *{})", "L.ones({})", "L.empty({})", "L.full({}, 1.0)", "L.full({}, True)", "L.rand({})",
    "L.randn({})", "L.randint(3, {})", "L.normal(0.0, 1.0, {})", "L.zeros({}, dtype=L.int64)",
    "L.empty_permuted({0}, tuple(range(len({0}))))", "L.empty_strided({0}, (1,) * len({0}))",
    "x.new_zeros({})", "x.new_ones({})", "x.new_empty({})", "x.new_full({}, 1.0)",
    "x.new_empty_strided({0}, (1,) * len({0}))", "x.repeat({})", "x.repeat(*{})", "L.tile(x, {})", "x.sum_to_size({})",
    "L.func.vmap(lambda r: r.reshape({}))(L.stack([x, x]))", "L.func.vmap(lambda r: r.view({}))(L.stack([x, x]))",
    "L.func.vmap(lambda r: r.unflatten(0, {}))(L.stack([x, x]))",
    "L.func.jvp(lambda r: r.reshape({}), (x,), (x,))[0]", "L.func.grad(lambda r: r.reshape({}).sum())(x)",
]  # fmt: skip
KEEPS_SIZES = [
    "x.expand({})", "x.expand(*{})", "L.broadcast_to(x, {})", "L.expand_copy(x, {})", "L.zeros(2, 1).expand({})",
    "L.scalar_tensor(1.0).expand({})", "x.resize_({})", "x.resize_(*{})", "x.as_strided({0}, (1,) * len({0}))",
    "L.as_strided_copy(x, {0}, (1,) * len({0}))", "L.as_strided_scatter(x, x, {0}, (1,) * len({0}))",
]  # fmt: skip
# Ours can join the components of a jagged tensor into one dimension, which PyTorch refuses; so (-1,) is not here.
RAGGED = [
    "(2, -1, -2)", "(2, -1, 4, -2)", "(2, -2, 4)", "(-2, -1, 4)", "(2, -1, -2, 2)", "(2, -1, 2, -1)", "(2, -1, 3, -1)",
    "(2, -1, 5)", "(3, -1, 4)", "(2, -1, 2.0, 2)", "(-2,)", "(2, 5, 4)", "(2, -1, 2, 2)",
]  # fmt: skip
CASES = [(call, sizes) for call in TAKES_SIZES for sizes in SIZES + EMPTY]
CASES += [(call, sizes) for call in KEEPS_SIZES for sizes in SIZES]
CASES += [(f"{JAGGED}.{name}({{}})", sizes) for name in ("view", "reshape") for sizes in RAGGED]


def outcome(library, call, sizes):
    """Return the shape of the result, the number of dimensions if it is nested, or "refused"; and the message."""
    x = library.arange(6.0)
    try:
        result = eval(call.format(sizes), {"L": library, "x": x})
    except REFUSALS as error:
        return "refused", str(error)
    return result.ndim if result.is_nested else tuple(result.shape), ""


@pytest.mark.parametrize("call", dict.fromkeys(call for call, _ in CASES))
def test_bad_sizes_are_refused_and_good_ones_give_the_same_shape(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of resizing, and of nested tensors
        for _, sizes in [case for case in CASES if case[0] == call]:
            theirs, ours = outcome(torch, call, sizes), outcome(rg, call, sizes)
            assert ours[0] == theirs[0], f"sizes {sizes}: ours {ours}, PyTorch's {theirs}"


@pytest.mark.parametrize("call", ["x.reshape({})", "x.view({})", "x.unflatten(0, {})", "L.reshape(x, {})"])
def test_a_size_below_minus_one_is_named(call):
    for sizes in ("(-2,)", "(3, -5)"):
        refused, message = outcome(rg, call, sizes)
        assert refused == "refused"
        assert "invalid shape dimension -" in message
        assert "invalid shape dimension -" in outcome(torch, call, sizes)[1]


def test_a_refused_resize_changes_nothing():
    x = rg.arange(6.0)
    for sizes in ((-2,), (3, -1), (2, "a")):
        with pytest.raises(REFUSALS):
            x.resize_(sizes)
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
