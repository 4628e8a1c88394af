"""Tensors: their fields, gradient and recording, and calls that operators refuse."""

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd.node_views import AccumulateGrad
from retrograd.core import registry
from retrograd.testing import assert_close

from ..case_groups import group_cases


def leaf(*values: float) -> rg.Tensor:
    return rg.tensor(list(values), dtype=rg.float64, requires_grad=True)


def test_shape_dtype_and_dimensions_are_those_of_the_array():
    x = rg.from_numpy(np.zeros((2, 3), np.float32))
    assert (x.shape, x.ndim, x.dtype) == ((2, 3), 2, np.dtype("float32"))
    assert repr(x.aval) == "float32[2, 3]"


def test_results_of_recorded_operators_know_how_they_were_made():
    x = leaf(1.0)
    y = x * 2.0
    assert (x.is_leaf, x.requires_grad, x.grad_fn) == (True, True, None)
    assert (y.is_leaf, y.requires_grad, y.grad_fn.name()) == (False, True, "MulBackward0")


def test_next_functions_lead_to_the_makers_and_to_leaves():
    x = leaf(1.0)
    y = (x.exp() * x + 1.0).grad_fn
    (times, number), constant = y.next_functions
    assert (times.name(), number, constant) == ("MulBackward0", 0, (None, 0))
    (exp, _), (at_leaf, _) = times.next_functions
    assert exp.name() == "ExpBackward0"
    assert isinstance(at_leaf, AccumulateGrad)
    assert at_leaf.variable is x


def test_nothing_is_recorded_for_what_requires_no_gradient():
    y = rg.ones(2) * 2.0
    assert (y.requires_grad, y.grad_fn) == (False, None)


@pytest.mark.parametrize(
    "compare", [lambda x: x > 0, lambda x: x.argmax(), lambda x: x.detach(), lambda x: x.to(rg.int64)]
)
def test_operators_without_derivative_give_results_that_require_none(compare):
    assert not compare(leaf(1.0, 2.0)).requires_grad


def test_grad_modes_nest_and_end_with_their_block():
    x = leaf(1.0)
    with rg.no_grad():
        assert not (x * 2.0).requires_grad
        with rg.enable_grad():
            assert (x * 2.0).requires_grad
        assert not (x * 2.0).requires_grad
    assert (x * 2.0).requires_grad


def test_a_grad_mode_ends_when_its_block_fails():
    with pytest.raises(ValueError, match="do not broadcast"), rg.no_grad():
        rg.ones(2) + rg.ones(3)
    assert rg.is_grad_enabled()


def test_grad_modes_belong_to_their_thread():
    seen = []
    with rg.no_grad():
        thread = threading.Thread(target=lambda: seen.append((leaf(1.0) * 2.0).requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]


@pytest.mark.parametrize("dtype", [rg.int64, rg.bool, rg.uint8])
def test_only_floats_can_require_gradients(dtype):
    x = rg.zeros(2, dtype=dtype)
    with pytest.raises(RuntimeError, match="floating point and complex"):
        x.requires_grad = True


def test_only_leaves_can_change_whether_they_require_gradients():
    y = leaf(1.0) * 2.0
    with pytest.raises(RuntimeError, match=r"result of mul.*detach"):
        y.requires_grad = False


def test_gradients_accumulate_until_they_are_reset():
    x = leaf(1.0, 2.0)
    for expected in (2.0, 4.0):
        (x * 2.0).sum().backward()
        assert_close(x.grad, [expected, expected])
    x.grad = None
    (x * 2.0).sum().backward()
    assert_close(x.grad, [2.0, 2.0])
    del x.grad
    assert x.grad is None


@pytest.mark.parametrize(
    ("value", "error", "pattern"),
    [
        (np.zeros(2), TypeError, "ndarray"),
        (rg.zeros(3, dtype=rg.float64), RuntimeError, r"size '\[3\]' to a tensor of size '\[2\]'"),
        (rg.zeros(2, dtype=rg.float32), RuntimeError, r"dtype 'float32' to a tensor with grad_dtype 'float64'"),
    ],
)
def test_a_gradient_that_does_not_fit_is_refused(value, error, pattern):
    x = leaf(1.0, 2.0)
    with pytest.raises(error, match=pattern):
        x.grad = value
    assert x.grad is None


def test_a_tensor_is_not_its_own_gradient():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="its own grad"):
        x.grad = x


@group_cases
@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "pow", "mod", "floordiv", "lt", "le", "gt", "ge", "eq", "ne"]
)
@pytest.mark.parametrize("other", [2.0, 3, np.array([2.0, 0.5]), rg.tensor([0.5, 2.0], dtype=rg.float64)])
def test_python_operators_are_numpys_with_operands_on_either_side(name, other):
    x = rg.tensor([1.5, 2.0], dtype=rg.float64)
    b = other.value if isinstance(other, rg.Tensor) else other
    assert_close(getattr(x, f"__{name}__")(other), getattr(x.value, f"__{name}__")(b))
    if hasattr(np.ndarray, f"__r{name}__"):
        assert_close(getattr(x, f"__r{name}__")(other), getattr(x.value, f"__r{name}__")(b))


def test_an_array_on_the_left_leaves_the_operation_to_the_tensor():
    y = np.array([1.0, 2.0]) * leaf(3.0, 4.0)
    assert isinstance(y, rg.Tensor)
    assert y.requires_grad


def test_tensors_are_hashed_by_identity():
    x, y = rg.ones(2), rg.ones(2)
    assert len({x, y, x}) == 2


def test_operators_are_methods_and_functions():
    x = leaf(0.5)
    assert_close(x.sin(), rg.sin(x))
    assert_close(x.sum(dim=0, keepdim=True), rg.sum(x, dim=0, keepdim=True))


def test_numpy_names_of_arguments_are_accepted():
    x = rg.ones(2, 3)
    assert x.sum(axis=1, keepdims=True).shape == (2, 1)
    assert rg.add(input=x, other=x).shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "error", "pattern"),
    [
        (lambda x: x + rg.ones(4), ValueError, r"add: shapes \(2, 3\) and \(4,\) do not broadcast.*3 and 4"),
        (lambda x: rg.sin("x"), TypeError, "sin: expected a Tensor, an array or a number, got str"),
        (lambda x: rg.sin(), TypeError, "missing argument 'x'"),
        (lambda x: rg.sin(x, x), TypeError, "takes 1 positional argument"),
        (lambda x: x.sum(dims=1, size=2), TypeError, "unexpected keyword argument 'size'"),
        (lambda x: x.sum(dim="a"), TypeError, r"dim must be int\[\] or None, got 'a' \(str\)"),
        (lambda x: x.sum(dim=2), IndexError, "dim 2 is out of range for a tensor of 2 dimensions"),
    ],
)
def test_a_call_that_does_not_fit_says_what_does_not(call, error, pattern):
    with pytest.raises(error, match=pattern):
        call(rg.ones(2, 3))


def test_operators_pickle_as_their_names():
    assert pickle.loads(pickle.dumps(rg.sin)) is registry["sin"]


def test_a_view_shares_memory_and_version_with_its_base():
    x = rg.zeros(2, 3)
    y = x.reshape(3, 2)
    y.add_(1.0)
    assert_close(x, np.ones((2, 3), np.float32))
    w = leaf(*range(6)).reshape(2, 3)
    z = w * x
    y.add_(1.0)
    with pytest.raises(RuntimeError, match="inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: rg.atleast_1d(x, 3), "atleast_1d: expected a Tensor for 'tensors', got int"),
        (lambda x: x.take("a"), "take: expected a Tensor for 'index', got str"),
        (lambda x: rg.add(x, (1.0, 2.0)), "add: expected a Tensor, an array or a number, got tuple"),
        (lambda x: rg.maximum(x, None), "maximum: expected a Tensor for 'b', got NoneType"),
        (lambda x: x.reshape_as(2), "reshape_as: expected a Tensor, got int"),
        (lambda x: rg.poisson(x, 3), "generator: expected a rg.Generator, got int"),
    ],
)
def test_operands_that_are_no_tensors_are_named(call, said):
    with pytest.raises(TypeError, match=said):
        call(rg.ones(2))


class Marked(rg.Tensor):
    """A subclass, whose instances have attributes as those of Tensor do."""


@pytest.mark.parametrize(
    "make", [lambda: rg.ones(2), lambda: rg.ones(2).as_subclass(Marked), lambda: rg.ones(2, requires_grad=True) * 2]
)
def test_tensors_take_attributes(make):
    x = make()
    x.label = ["a"]
    x.add_(1.0)
    assert (x.label, vars(x), hasattr(x.detach(), "label"), hasattr(x * 2, "label")) == (
        ["a"],
        {"label": ["a"]},
        False,
        False,
    )
    del x.label
    with pytest.raises(AttributeError, match="object has no attribute 'label'"):
        _ = x.label


def test_attributes_are_copied_with_a_tensor():
    x = rg.ones(2)
    x.label = ["a"]
    assert copy.copy(x).label is x.label
    deep = copy.deepcopy(x)
    assert deep.label == ["a"]
    assert deep.label is not x.label
    assert pickle.loads(pickle.dumps(x)).label == ["a"]


def test_a_tensor_that_is_its_own_attribute_is_freed():
    x = rg.ones(2)
    x.label = [x]
    reference = weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None


def test_attributes_do_not_pass_to_the_next_tensor_in_the_same_memory():
    for n in range(600):  # more than the memory that is kept for the next tensors
        x = rg.ones(1)
        assert vars(x) == {}
        x.label = n
