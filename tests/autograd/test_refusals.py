"""Refusals of autograd: `out=` with a tangent, a jvp that does not write, nodes made by hand, deleted data."""

import pytest

import retrograd as rg
from retrograd.autograd import forward_ad as fwd


def test_out_is_refused_for_operands_with_a_tangent():
    out = rg.zeros(2)
    with fwd.dual_level():
        x = fwd.make_dual(rg.ones(2), rg.ones(2))
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with mul_out"):
            rg.mul(x, x, out=out)
        rg.mul(rg.ones(2), 3, out=rg.zeros(2))
    assert out.tolist() == [0, 0]


def test_a_jvp_must_write_to_the_tangent_of_a_written_input():
    class Double(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, t):
            return t * 2

    with fwd.dual_level(), pytest.raises(RuntimeError, match="not modifying the forward mode gradients inplace"):
        Double.apply(fwd.make_dual(rg.ones(2), rg.ones(2)))


def test_nodes_are_made_by_operators_only():
    with pytest.raises(TypeError, match="Can't instantiate abstract class Node"):
        rg.autograd.graph.Node()


def test_the_base_class_of_functions_asks_for_forward():
    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        rg.autograd.Function.apply(rg.ones(2))


def test_data_is_not_deleted():
    x = rg.ones(2)
    with pytest.raises(RuntimeError, match="Deleting tensor data is not allowed"):
        del x.data
    assert x.tolist() == [1, 1]
