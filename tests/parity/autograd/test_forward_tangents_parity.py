"""Forward mode: a write to a dual updates the tangent that was given, and the tangents of other tensors stay."""

import importlib

import pytest

from .adapter import outcome, parity

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # PyTorch's forward mode loads it


def forward(m):
    return importlib.import_module(f"{m.__name__}.autograd.forward_ad")


def other(m, fw):
    return fw.make_dual(m.full((2,), 2.0), m.full((2,), 5.0))


WRITES = {
    "mul_": lambda m, fw, d: d.mul_(3),
    "add_ a dual": lambda m, fw, d: d.add_(other(m, fw)),
    "mul_ a dual": lambda m, fw, d: d.mul_(other(m, fw)),
    "zero_": lambda m, fw, d: d.zero_(),
    "fill_": lambda m, fw, d: d.fill_(2),
    "copy_": lambda m, fw, d: d.copy_(m.zeros(2)),
    "copy_ a dual": lambda m, fw, d: d.copy_(other(m, fw)),
    "a part": lambda m, fw, d: d[:1].mul_(3),
    "a part of a view": lambda m, fw, d: d.view(2, 1)[1].copy_(other(m, fw)[:1]),
    "item assignment": lambda m, fw, d: d.__setitem__(0, 4.0),
    "twice": lambda m, fw, d: d.mul_(3).add_(d),
    "exp_": lambda m, fw, d: d.exp_(),
}


@pytest.mark.parametrize("write", WRITES)
@parity
def test_a_write_to_a_dual_updates_the_given_tangent(m, write):
    fw, x, t = forward(m), m.ones(2), m.tensor([1.0, 2.0])
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        WRITES[write](m, fw, dual)
        return x, t, fw.unpack_dual(dual).tangent


def read(m, fw, d):
    y = m.zeros(2)
    y.copy_(d)
    return y


RESULTS = {
    "clone": lambda m, fw, d: d.clone(),
    "plus a number": lambda m, fw, d: d + 1,
    "a copy": read,
    "a sum with itself": lambda m, fw, d: d + d,
    "another dual": lambda m, fw, d: m.zeros(2).add_(d),
    "where": lambda m, fw, d: m.where(m.tensor([True, True]), d, m.zeros(2)),
    "cat": lambda m, fw, d: m.cat([d]),
}


@pytest.mark.parametrize("result", RESULTS)
@parity
def test_the_tangents_of_results_stay_when_the_dual_is_written_to(m, result):
    fw, t = forward(m), m.tensor([1.0, 2.0])
    with fw.dual_level():
        dual = fw.make_dual(m.ones(2), t)
        y = RESULTS[result](m, fw, dual)
        dual.mul_(3)
        return t, fw.unpack_dual(y).tangent


@parity
def test_a_write_to_a_result_leaves_the_given_tangent(m):
    fw, t = forward(m), m.tensor([1.0, 2.0])
    with fw.dual_level():
        y = fw.make_dual(m.ones(2), t) + 0.0
        y.mul_(3)
        return t, fw.unpack_dual(y).tangent


@parity
def test_an_expanded_tangent_is_not_written_to(m):
    fw, t = forward(m), m.ones(1).expand(2)
    with fw.dual_level():
        dual = fw.make_dual(m.ones(2), t)
        dual.mul_(3)
        return t, fw.unpack_dual(dual).tangent


@parity
def test_a_function_that_writes_to_its_argument_updates_the_given_tangent(m):
    class Double(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, t):
            return t.mul_(2)

    fw, t = forward(m), m.tensor([1.0, 2.0])
    with fw.dual_level():
        y = Double.apply(fw.make_dual(m.ones(2), t))
        return t, fw.unpack_dual(y).tangent


@parity
def test_the_tangent_is_the_given_object(m):
    fw, t = forward(m), m.tensor([1.0, 2.0])
    with fw.dual_level():
        dual = fw.make_dual(m.ones(2), t)
        dual.mul_(2)
        return fw.unpack_dual(dual).tangent.data_ptr() == t.data_ptr(), t._version


@parity
def test_tangents_are_printed(m):
    fw = forward(m)
    with fw.dual_level():
        dual = fw.make_dual(m.ones(2), m.zeros(2))
        return str(dual), str(m.ones(2)), str(dual.detach())


@parity
def test_duals_cannot_be_resized(m):
    fw = forward(m)
    with fw.dual_level():
        dual = fw.make_dual(m.ones(2), m.zeros(2))
        return outcome(lambda: dual.resize_(3), "cannot resize variables that has a forward grad")


@parity
def test_out_is_refused_with_tangents_only(m):
    fw = forward(m)
    with fw.dual_level():
        dual, out = fw.make_dual(m.ones(2), m.zeros(2)), m.zeros(2)
        words = "that does not support it because it is an out= function"
        return (
            outcome(lambda: m.sin(dual, out=out), "forward AD with sin_out", words),
            outcome(lambda: m.sin(m.ones(2), out=dual), words),
            outcome(lambda: m.cat([dual, dual], out=m.zeros(4)), words),
            m.sin(m.ones(2), out=out),
        )


@parity
def test_outputs_without_derivative_have_no_tangent(m):
    fw = forward(m)
    with fw.dual_level():
        dual = fw.make_dual(m.tensor([1.0, 3.0, 2.0]), m.ones(3))
        values, places = dual.sort()
        outs = values, places, dual > 1, dual.argmax(), dual.detach(), dual.data, dual.bool(), m.ones_like(dual)
        return [fw.unpack_dual(out).tangent for out in outs]
