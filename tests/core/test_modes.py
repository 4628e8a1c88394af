"""Modes: function modes see the calls of a program, dispatch modes the operators below the graph."""

import math

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.core import current
from retrograd.overrides import (
    DisableTorchFunction,
    TensorFunctionMode,
    TorchFunctionMode,
    get_overridable_functions,
    handle_torch_function,
    has_torch_function,
    is_tensor_method_or_property,
    resolve_name,
    wrap_torch_function,
)
from retrograd.utils._mode_utils import no_dispatch
from retrograd.utils._python_dispatch import (
    TensorDispatchMode,
    TorchDispatchMode,
    _get_current_dispatch_mode,
    _pop_mode_temporarily,
    is_in_torch_dispatch_mode,
)


class Calls(TorchFunctionMode):
    def __init__(self):
        self.log = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Operators(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.log = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.log.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Flops(TensorDispatchMode):
    """Count the multiplications of matrix products."""

    count = 0

    def __tensor_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        contracted = {"matmul": -1, "rows_dot": -2}.get(func.__name__)  # rows_dot(x, g) is x.T @ g
        if contracted is not None:
            self.count += math.prod(out.shape) * args[0].shape[contracted]
        return out


def test_a_function_mode_sees_calls_and_not_what_they_are_made_of():
    x = rg.ones(2, 2, requires_grad=True)
    with Calls() as mode:
        loss = x.var() + (x * 2).softmax(0).sum()
        loss.backward()
        rg.zeros(2).mul_(2)
    assert mode.log == ["var", "mul", "softmax", "sum", "add", "zeros", "mul"]
    x * 2
    assert len(mode.log) == 7


def test_a_dispatch_mode_sees_operators_and_those_of_the_backward_pass_and_changes_no_number():
    x, w = rg.randn(3, 4), rg.randn(2, 4, requires_grad=True)
    (x @ w.T).square().sum().backward()
    expected, w.grad = w.grad, None
    with Operators() as mode:
        y = (x @ w.T).square().sum()
        forward = [*mode.log]
        y.backward()
    assert forward == ["permute", "matmul", "square", "sum"]
    assert "rows_dot" in mode.log[len(forward) :]  # the gradient of w
    assert w.grad.tolist() == expected.tolist()
    assert y.grad_fn is not None


def test_flops_are_counted_forward_and_backward():
    x, w = rg.randn(3, 4, requires_grad=True), rg.randn(4, 5, requires_grad=True)
    with Flops() as mode:
        y = x @ w
        assert mode.count == 3 * 4 * 5
        y.square().sum().backward()
    assert mode.count == 3 * 3 * 4 * 5


def test_results_of_a_dispatch_mode_are_the_results_in_the_graph():
    class Clip(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            assert not rg.is_grad_enabled()
            return func(*args, **(kwargs or {})).clamp(max=5)

    x = rg.tensor([2.0, 4.0], requires_grad=True)
    with Clip():
        y = x * 3
    assert y.tolist() == [5, 5]
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_views_under_a_dispatch_mode_are_views_and_writes_are_recorded():
    a = rg.ones(2, 3, requires_grad=True)
    with Operators() as mode:
        b = a * 2
        v = b[0]
        assert v._base is b
        v.mul_(3)
        b.sum().backward()
    assert a.grad.tolist() == [[6, 6, 6], [2, 2, 2]]
    assert mode.log.count("mul") >= 2


def test_modes_nest_and_each_sees_what_the_inner_one_calls():
    with Calls() as a, Calls() as b, Operators() as c, Operators() as d:
        rg.ones(2) * 3
    assert [m.log for m in (a, b, c, d)] == [["ones", "mul"]] * 4

    class Replace(TensorFunctionMode):
        def __tensor_function__(self, func, types, args, kwargs):
            return rg.add(*args)

    with Calls() as outer, Replace() as inner, inner:
        assert (X * 3).item() == 4
    assert outer.log == ["add"]


def test_a_mode_inside_and_around_transforms():
    def f(x):
        with Operators() as mode:
            y = (x.sin() * x).sum()
        assert mode.log == ["sin", "mul", "sum"]
        return y

    x = rg.tensor([0.5, 2.0])
    expected = (x.cos() * x + x.sin()).tolist()
    assert rg.func.grad(f)(x).tolist() == pytest.approx(expected)
    assert rg.func.vmap(f)(rg.stack([x, x])).shape == (2,)
    with Operators() as mode:
        assert rg.func.grad(lambda x: (x.sin() * x).sum())(x).tolist() == pytest.approx(expected)
        assert rg.func.vmap(rg.sin)(x).tolist() == x.sin().tolist()
    assert "cos" in mode.log


def test_several_results_custom_operators_and_their_rules_for_modes():
    @rg.library.custom_op("test_modes::two", mutates_args=())
    def two(x: rg.Tensor, n: int) -> tuple[list[rg.Tensor], int]:
        return [x * 2, x * n], n

    two.register_autograd(lambda ctx, gs, _: (2 * gs[0] + 3 * gs[1], None))
    x = rg.ones(2, requires_grad=True)
    for mode in (Calls(), Operators()):
        x.grad = None
        with mode:
            (a, b), n = two(x, 3)
        (a + b).sum().backward()
        assert (n, x.grad.tolist(), mode.log) == (3, [5, 5], ["test_modes::two"])
    with Operators() as mode:
        values, indices = rg.linalg.qr(rg.eye(2))
    assert values.shape == indices.shape == (2, 2)
    two.register_torch_dispatch(Calls, lambda mode, func, types, args, kwargs: ("rule", args[1]))
    with Calls():
        assert two(x, 7) == ("rule", 7)


def test_modes_are_left_on_errors_and_a_wrong_result_is_refused():
    class Broken(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return 3

    class Unwilling(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with (
        pytest.raises(TypeError, match="mul: Unable to cast 3 to Tensor; a dispatch mode must return tensors like"),
        Broken(),
    ):
        rg.mul(X, X)
    with pytest.raises(TypeError, match=r"failed for 'mul'; all .*: the mode Unwilling"), Unwilling():
        rg.mul(X, X)
    with pytest.raises(NotImplementedError, match="a mode defines __tensor_dispatch__"), TorchDispatchMode():
        rg.mul(X, X)
    assert current().level is None
    assert not is_in_torch_dispatch_mode()


X = rg.ones(1)


def test_the_current_modes_are_known():
    assert _get_current_dispatch_mode() is None
    with Operators() as mode:
        assert _get_current_dispatch_mode() is mode
        assert is_in_torch_dispatch_mode()
    with Calls() as calls, DisableTorchFunction():
        rg.ones(1)
    assert calls.log == []


def test_own_functions_take_part():
    @wrap_torch_function(lambda x, y: (x, y))
    def product(x, y):
        return x * y

    class RecordingMode(TorchFunctionMode):
        def __init__(self):
            self.found = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.found.append(func)
            return func(*args, **(kwargs or {}))

    assert product(X, X).item() == 1
    with RecordingMode() as mode:
        assert has_torch_function(())
        assert product(X, X).item() == 1
        assert handle_torch_function(math.prod, (), (2, 3)) == 6
    assert mode.found == [product, math.prod]
    assert not has_torch_function((X,))


def test_the_overridable_functions_of_tensors_are_their_methods():
    for operator in get_overridable_functions()["Tensor"]:
        assert operator.method_names
        assert all(hasattr(rg.Tensor, name) for name in operator.method_names)


def test_names_of_functions():
    assert resolve_name(rg.Tensor.add) == resolve_name(rg.add) == "retrograd.add"
    assert resolve_name(math.sin) is None
    assert is_tensor_method_or_property(rg.Tensor.add)
    assert not is_tensor_method_or_property(nn.functional.linear)
    found = get_overridable_functions()
    assert rg.add in found[""]
    assert rg.linalg.det in found["linalg"]
    assert rg.add in found["Tensor"]


def test_a_mode_that_declines_leaves_the_call_to_the_classes():
    seen = []

    class Declines(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(types)
            return NotImplemented if types else func(*args, **(kwargs or {}))

    class Own(rg.Tensor):
        pass

    x = X.as_subclass(Own)
    with Declines():
        result = rg.neg(x)
    assert (type(result), seen) == (Own, [(Own,), ()])


@pytest.mark.parametrize("kind", [TorchFunctionMode, TorchDispatchMode])
def test_modes_with_a_class_method_are_refused(kind):
    class Wrong(kind):
        @classmethod
        def __torch_function__(cls, *args):
            return 1

        __torch_dispatch__ = __torch_function__

    with pytest.raises(RuntimeError, match="as a classmethod is not supported, please make it a plain method"), Wrong():
        rg.neg(X)
    assert current().level is None


def test_dispatch_modes_can_be_off_for_a_while():
    with Operators() as outer, Operators() as inner:
        with _pop_mode_temporarily() as popped:
            assert (popped, _get_current_dispatch_mode()) == (inner, outer)
        with no_dispatch() as modes:
            assert (modes, _get_current_dispatch_mode()) == ([outer, inner], None)
        assert _get_current_dispatch_mode() is inner
    with pytest.raises(RuntimeError, match="empty mode stack"), _pop_mode_temporarily():
        pass
    with outer, pytest.raises(RuntimeError, match="a transform is active"):
        rg.func.vmap(lambda x: no_dispatch().__enter__())(rg.ones(1))


def test_users_functions_run_in_a_dispatch_mode():
    class Square(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    x = rg.tensor([3.0], requires_grad=True)
    with Operators():
        Square.apply(x).sum().backward()
    assert x.grad.tolist() == [6.0]
