"""In-place writes: they change the tensor's memory, raise its version, and are refused where they would be wrong."""

import math
import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import registry
from retrograd.core.tensor import count_of
from retrograd.foundation.lazy_imports import load_all

from ..case_groups import group_cases

WRITES = {
    "copy_": (lambda x: x.copy_(rg.tensor([7.0, 8.0])), [7.0, 8.0]),
    "copy_ of a number": (lambda x: x.copy_(3), [3.0, 3.0]),
    "zero_": (lambda x: x.zero_(), [0.0, 0.0]),
    "fill_": (lambda x: x.fill_(2.5), [2.5, 2.5]),
    "add_": (lambda x: x.add_(rg.tensor([1.0, 2.0]), alpha=10), [14.0, 29.0]),
    "sub_": (lambda x: x.sub_(1), [3.0, 8.0]),
    "mul_": (lambda x: x.mul_(rg.tensor(2.0)), [8.0, 18.0]),
    "div_": (lambda x: x.div_(2), [2.0, 4.5]),
    "clamp_": (lambda x: x.clamp_(min=5), [5.0, 9.0]),
    "a promoted operand": (lambda x: x.add_(rg.tensor([1.0, 1.0], dtype=rg.float64)), [5.0, 10.0]),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_changes_the_memory_of_the_tensor_returns_it_and_is_counted(name):
    write, expected = WRITES[name]
    x = rg.tensor([4.0, 9.0])
    memory = x.numpy()
    assert write(x) is x
    assert memory.tolist() == expected
    assert x.dtype == rg.float32
    assert count_of(x) == 1


INTEGERS = ["int8", "uint8", "int16", "int32", "int64"]
ON_INTEGERS = {
    "add_": 2, "sub_": 2, "mul_": 100, "floor_divide_": 3, "remainder_": 3, "bitwise_and_": 6, "bitwise_xor_": 6,
    "pow_": 2, "eq_": 5, "gt_": 4,
}  # fmt: skip


@pytest.mark.parametrize("shape", [(), (4,), (2, 2)])
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ON_INTEGERS)
def test_writes_to_integers_are_those_of_the_operator(name, dtype, shape):
    for other in (ON_INTEGERS[name], rg.full(shape, ON_INTEGERS[name], dtype=dtype)):
        x = rg.tensor(np.array([1, 5, 7, 100])[: math.prod(shape)].reshape(shape), dtype=dtype)
        memory, expected = x.numpy(), getattr(x, name[:-1])(other).to(dtype)
        assert getattr(x, name)(other) is x
        assert memory.tolist() == x.tolist() == expected.tolist()
        assert x.dtype == dtype
        assert count_of(x) == 1


def test_a_refused_write_to_integers_changes_nothing():
    x = rg.tensor([4, 9])
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        x.div_(2)
    with pytest.raises(ZeroDivisionError):
        x.remainder_(rg.tensor([3, 0]))
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.add_(rg.tensor([0.5, 0.5]))
    assert x.tolist() == [4, 9]
    assert count_of(x) == 0


def test_augmented_assignment_writes_in_place():
    x = alias = rg.tensor([1.0, 2.0])
    x += 1
    x *= 3
    x -= rg.ones(2)
    x /= 5
    assert x is alias
    assert x.tolist() == pytest.approx([1.0, 1.6])


def test_a_training_step_written_with_augmented_assignment_trains():
    w = rg.tensor([1.0], requires_grad=True)
    (w * w).sum().backward()
    with rg.no_grad():
        w -= 0.25 * w.grad
    assert w.tolist() == [0.5]
    assert w.is_leaf


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ((1, 0), [[1.0, 1.0], [9.0, 1.0], [1.0, 1.0]]),
        (2, [[1.0, 1.0], [1.0, 1.0], [9.0, 9.0]]),
        (slice(None, 2), [[9.0, 9.0], [9.0, 9.0], [1.0, 1.0]]),
        ((Ellipsis, -1), [[1.0, 9.0], [1.0, 9.0], [1.0, 9.0]]),
    ],
)
def test_item_assignment_writes_where_the_key_points(key, expected):
    x = rg.ones(3, 2)
    x[key] = 9.0
    assert x.tolist() == expected


def test_writes_through_views_reach_the_base():
    x = rg.zeros(2, 3)
    x[0, 1].fill_(1.0)
    x.select(0, 1).add_(2.0)
    x.T[2].mul_(5.0)
    for number, part in enumerate(x.unbind()):
        part[0] = float(number + 7)
    assert x.tolist() == [[7.0, 1.0, 0.0], [8.0, 2.0, 10.0]]


@pytest.mark.parametrize(
    ("write", "error", "facts"),
    [
        (lambda x: x.copy_(rg.ones(3)), ValueError, r"\(2,\) and \(3,\) do not broadcast"),
        (lambda x: x.expand(4, 2).zero_(), RuntimeError, "read-only"),
        (lambda x: x.detach().long().add_(1.5), RuntimeError, "float32.*int64"),
        (lambda x: rg.func.grad(lambda y: x.add_(1).sum())(x), RuntimeError, "from outside a function transform"),
        (lambda x: x.add_(rg.ones(3, 2)), RuntimeError, r"\[2\] doesn't match the broadcast shape \[3, 2\]"),
    ],
)
def test_writes_that_can_not_be_done_are_refused_before_anything_changes(write, error, facts):
    x = rg.tensor([4.0, 9.0])
    with pytest.raises(error, match=facts):
        write(x)
    assert x.tolist() == [4.0, 9.0]


# --------------------------------------------------------------------------- every operator that writes in place


load_all()
WRITERS = {
    name: method.writes
    for name, method in vars(rg.Tensor).items()
    if hasattr(method, "writes")
    and method.writes.differentiable
    and all(method.writes.rules)  # by every input
    and len(method.writes.schema.inputs) <= 2
}
FLAT = ["eq_", "ne_", "lt_", "le_", "gt_", "ge_", "floor_divide_"]


def operands(operator):
    """Return an input, the other tensors that the operator takes, and its params."""
    low = 1.5 if operator.name == "acosh" else 0.2  # the domain of the operator
    x = (low + rg.arange(6) * 0.1).double().view(2, 3)
    others = [rg.full((2, 3), 0.7, dtype=rg.float64)] * (len(operator.schema.inputs) - 1)
    params = {"clamp": {"min": 0.35}, "cumsum": {"dim": 0}, "cumprod": {"dim": 0}}
    return x, others, params.get(operator.name, {})


@group_cases
@pytest.mark.parametrize("name", WRITERS)
def test_an_operator_in_place_has_the_value_and_gradients_of_the_operator(name):
    x, others, params = operands(WRITERS[name])
    leaves = [t.clone().requires_grad_() for t in (x, *others)]
    out = WRITERS[name](*leaves, **params)
    expected = rg.autograd.grad((out * out).sum(), leaves)
    y = leaves[0] * 1
    assert getattr(y, name)(*leaves[1:], **params) is y
    assert (y._version, y.dtype) == (1, rg.float64)
    assert y.tolist() == out.tolist()
    grads = rg.autograd.grad((y * y).sum(), leaves)
    assert [g.view(-1).tolist() for g in grads] == [pytest.approx(g.view(-1).tolist()) for g in expected]


@group_cases
@pytest.mark.parametrize("name", [n for n in WRITERS if n not in ("tril_", "triu_")])  # which want a matrix
def test_an_operator_in_place_on_a_view_changes_only_its_part_of_the_base_and_of_the_gradient(name):
    x, others, params = operands(WRITERS[name])
    others = [t[:, 1] for t in others]
    leaf = x.clone().requires_grad_()
    column = WRITERS[name](leaf[:, 1], *others, **params)
    (expected,) = rg.autograd.grad((column * 3).sum() + leaf[:, 0].sum() + leaf[:, 2].sum(), leaf)
    y = leaf * 1
    getattr(y[:, 1], name)(*others, **params)
    assert y[:, 1].tolist() == column.tolist()
    assert y[:, ::2].tolist() == leaf[:, ::2].tolist()
    (grad,) = rg.autograd.grad((y * rg.tensor([1.0, 3.0, 1.0], dtype=rg.float64)).sum(), leaf)
    assert grad.view(-1).tolist() == pytest.approx(expected.view(-1).tolist())


@pytest.mark.parametrize("name", FLAT)
def test_an_operator_that_is_flat_everywhere_writes_its_values_in_place_and_passes_no_gradient(name):
    x = rg.tensor([0.0, 1.0, 2.0], requires_grad=True)
    expected = getattr(rg, name[:-1])(x.detach(), rg.ones(3)).float().tolist()
    plain = x.detach().clone()
    getattr(plain, name)(rg.ones(3))
    assert plain.tolist() == expected
    y = x * 1
    getattr(y, name)(rg.ones(3))
    assert y.tolist() == expected
    (y * 2).sum().backward()
    assert x.grad.tolist() == [0.0] * 3


def test_masked_fill_in_place_passes_gradients_where_nothing_was_filled():
    x = rg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y.masked_fill_(y > 1.5, 9.0)
    (y * rg.tensor([2.0, 3.0, 5.0])).sum().backward()
    assert y.tolist() == [1.0, 9.0, 9.0]
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_index_add_in_place_adds_at_the_indices_and_to_the_gradient():
    x, source = rg.ones(3, requires_grad=True), rg.tensor([10.0, 20.0], requires_grad=True)
    y = x * 1
    y.index_add_(0, rg.tensor([2, 2]), source)
    (y * rg.tensor([2.0, 3.0, 5.0])).sum().backward()
    assert y.tolist() == [1.0, 1.0, 31.0]
    assert (x.grad.tolist(), source.grad.tolist()) == ([2.0, 3.0, 5.0], [5.0, 5.0])


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_("text"),
        lambda x: x.pow_(rg.ones(2, dtype=rg.complex64)),
        lambda x: x.mul_(rg.ones(5)),
        lambda x: x.__setitem__(5, 1.0),
        lambda x: x.__setitem__(slice(0, 1), rg.ones(3)),
        lambda x: x.masked_fill_(rg.ones(7, dtype=rg.bool), 1.0),
        lambda x: x.bitwise_not_(),
        lambda x: x.tril_(),
    ],
)
@pytest.mark.parametrize("recorded", [False, True])
def test_a_write_that_fails_changes_neither_value_nor_version_nor_history(write, recorded):
    x = rg.tensor([1.0, 2.0], requires_grad=recorded)
    y = x * 1
    fn = y.grad_fn
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)):
        write(y)
    assert y.tolist() == [1.0, 2.0]
    assert (y._version, y.grad_fn) == (0, fn)


def test_writes_to_memory_that_two_tensors_share_are_visible_in_both_and_counted_once():
    x = rg.zeros(4)
    left, right = x[:3], x[1:]
    left.add_(1)
    right.mul_(5)
    assert x.tolist() == [1.0, 5.0, 5.0, 0.0]
    assert left.tolist() == [1.0, 5.0, 5.0]
    assert (x._version, left._version, right._version) == (2, 2, 2)


def test_a_write_of_overlapping_memory_uses_the_old_values():
    x = rg.arange(5).float()
    x[1:] = x[:-1]
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0]
    x = rg.arange(5).float()
    x[1:].add_(x[:-1])
    assert x.tolist() == [0.0, 1.0, 3.0, 5.0, 7.0]
    x = rg.arange(6).float().view(2, 3)
    x[:, :2].copy_(x[:, 1:])
    assert x.tolist() == [[1.0, 2.0, 2.0], [4.0, 5.0, 5.0]]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.fill_(0.1),
        lambda x: x.copy_(0.1),
        lambda x: x.__setitem__(0, 0.1),
        lambda x: x.__setitem__([0], 0.1),
        lambda x: x.__setitem__(x == 0, 0.1),
        lambda x: x.__setitem__(slice(None), [0.1, 0.1]),
    ],
)
@pytest.mark.parametrize("recorded", [False, True])
def test_pythons_numbers_are_written_in_the_precision_of_the_tensor(write, recorded):
    x = rg.zeros(2, dtype=rg.float64, requires_grad=recorded) * 1
    write(x)
    assert x[0].item() == 0.1
    z = rg.zeros(2, dtype=rg.complex128)
    z[0] = 0.1j
    assert z[0].item() == 0.1j


@pytest.mark.parametrize(
    ("dtype", "value", "error"),
    [
        (rg.float64, 1j, TypeError),
        (rg.int8, 300, RuntimeError),
        (rg.int64, 1e20, RuntimeError),
        (rg.int64, math.nan, RuntimeError),
        (rg.float32, None, TypeError),
        (rg.float32, "1", TypeError),
    ],
)
def test_numbers_that_the_dtype_can_not_hold_are_refused_before_anything_is_written(dtype, value, error):
    x = rg.ones(2, dtype=dtype)
    for write in (lambda: x.fill_(value), lambda: x.__setitem__(0, value), lambda: x.__setitem__([0], value)):
        with pytest.raises(error):
            write()
    assert x.tolist() == [1, 1]
    with pytest.raises(error):
        rg.tensor([value], dtype=dtype)


def test_fractions_are_cut_off_and_unsigned_dtypes_wrap_negative_numbers():
    assert rg.tensor([2.7, -2.7], dtype=rg.int64).tolist() == [2, -2]
    assert rg.tensor([-1], dtype=rg.uint8).tolist() == [255]


def test_a_leaf_that_is_a_view_is_not_written_to_through_views_of_it():
    x = rg.arange(4.0).reshape(2, 2).requires_grad_()
    for write in (lambda: x.__setitem__(0, 1.0), lambda: x[0].zero_(), lambda: x.zero_()):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            write()
    assert x.is_leaf
    assert x.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    with rg.no_grad():
        x[0] = 5.0
    assert x.tolist() == [[5.0, 5.0], [2.0, 3.0]]


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_an_expanded_tensor_without_elements_can_be_written_to(shape):
    x = rg.ones((), requires_grad=True) * 1
    y = x.expand(shape)
    y.add_(1)
    assert y._base is x
    (y.sum() + x).backward()


def test_errors_of_writes_name_what_was_called():
    x = rg.zeros(2).expand(3, 2)
    for write, name in (
        (lambda: x.fill_(1), "fill_"),
        (lambda: x.zero_(), "zero_"),
        (lambda: x.__setitem__(slice(2), 1), r"x\[\.\.\.\] = value"),
        (lambda: x.masked_fill_(x > 0, 1), "masked_fill_"),
        (lambda: x.index_put_((rg.tensor([0]),), rg.ones(2)), "index_put_"),
    ):
        with pytest.raises(RuntimeError, match=f"^{name}: this tensor's memory is read-only"):
            write()


# ------------------------------------------------------------------------------- writes by the kernel, without a copy


def plain_operands(operator, n):
    """Return plain float32 operands in the operator's domain, of n elements each."""
    low = 1.5 if operator.name == "acosh" else 0.2
    return [rg.linspace(low + i / 8, low + 0.7, n) for i in range(len(operator.schema.inputs))]


NO_PARAMS = [name for name, operator in WRITERS.items() if operator.simple and name not in ("tril_", "triu_")]


@group_cases
@pytest.mark.parametrize("name", NO_PARAMS)
def test_operators_in_place_and_with_out_have_the_same_bits_as_the_result(name):
    operator = WRITERS[name]
    for n in (1, 4, 33, 3000):
        x, *others = plain_operands(operator, n)
        expected = operator(x, *others).numpy().tobytes()
        for out in (rg.empty(n), x.clone()):
            version = out._version
            given = x if out is not x else out
            assert operator(given, *others, out=out) is out
            assert (out.numpy().tobytes(), out._version) == (expected, version + 1)
        assert operator(x, *others).numpy().tobytes() == expected
        y = x.clone()
        assert getattr(y, name)(*others) is y
        assert (y.numpy().tobytes(), y._version) == (expected, 1)


OVERLAPS = {
    "itself": (lambda x: x.mul_(x), lambda x: x * x),
    "its transpose": (lambda x: x.mul_(x.t()), lambda x: x * x.t()),
    "its reverse": (lambda x: x.sub_(x.numpy()[::-1]), lambda x: x - x.flip(0)),
    "a column, with out=": (lambda x: rg.add(x[:, :1].expand(3, 3), x.t(), out=x), lambda x: x[:, :1] + x.t()),
    "its transpose, with out=": (lambda x: rg.mul(x.t(), x, out=x), lambda x: x.t() * x),
    "a product of matrices": (lambda x: rg.matmul(x, x.t(), out=x), lambda x: x @ x.t()),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_operands_that_overlap_the_written_memory_are_read_before_it_is_written(name):
    write, expected = OVERLAPS[name]
    x = rg.from_numpy(np.arange(9.0).reshape(3, 3))
    y = x.clone()
    write(y)
    assert y.tolist() == expected(x).tolist()


def test_errors_of_elements_leave_values_and_versions_or_count_the_write():
    x = rg.tensor([1.0, 2.0])
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        x.div_(rg.tensor([0.0, 1.0]))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        rg.div(rg.ones(2), rg.tensor([0.0, 1.0]), out=x)
    assert (x.tolist(), x._version) == ([1.0, 2.0], 0)
    with pytest.raises(RuntimeWarning):  # an error by pytest's filter, which NumPy learns when all is written
        x.div_(rg.tensor([0.0, 1.0]))
    assert x._version == 1


def test_a_write_without_a_copy_is_counted_for_saved_tensors():
    x, w = rg.ones(3), rg.ones(3, requires_grad=True)
    for write in (lambda: x.mul_(2), lambda: rg.exp(x, out=x), lambda: x.tanh_()):
        y = (w * x).sum()
        write()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_the_note_of_a_detached_operand_is_inherited():
    detached = (rg.ones(3, requires_grad=True) * 2).detach().clone()
    assert detached.tag is not None
    x, out = rg.ones(3), rg.ones(3)
    x.add_(detached)
    rg.add(x, rg.ones(3), out=out)
    assert x.tag is out.tag is detached.tag


def test_out_refuses_operands_that_require_grad_and_takes_them_in_no_grad():
    w, out = rg.ones(3, requires_grad=True), rg.zeros(3)
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        rg.exp(w, out=out)
    assert (out.tolist(), out._version) == ([0.0] * 3, 0)
    with rg.no_grad():
        rg.mul(w, 2, out=out)
        w.add_(out)
    assert (out.tolist(), w.tolist(), w.requires_grad, w.is_leaf) == ([2.0] * 3, [3.0] * 3, True, True)


def test_no_operator_with_float_results_writes_to_integers():
    tried = []
    for name, op in registry.items():
        if not op.to_float or not op.simple or not hasattr(rg.Tensor, f"{name}_"):
            continue
        for x in (rg.tensor([1, 2, 3]), rg.tensor([1, 2, 3])):  # the first call finds the kernel
            with pytest.raises(RuntimeError, match="can't be cast"), warnings.catch_warnings(action="ignore"):
                getattr(x, f"{name}_")(*[rg.tensor([1, 2, 3])] * (op.simple - 1))
            assert x.tolist() == [1, 2, 3]
        tried.append(name)
    assert len(tried) > 20


DTYPES_OF_FILLS = (rg.float32, rg.float64, rg.float16, rg.bfloat16, rg.complex64, rg.int8, rg.uint8, rg.int64, rg.bool)


@pytest.mark.parametrize("dtype", DTYPES_OF_FILLS, ids=str)
@pytest.mark.parametrize("number", [0, 1, 2.5, -1, 127, True, -0.0])
def test_a_number_fills_all_elements_or_those_of_a_mask(dtype, number):
    x = rg.arange(6).reshape(2, 3).to(dtype)
    expected = np.full((2, 3), rg.full((1,), number, dtype=dtype).numpy()[0])  # truncated or wrapped as by `full`
    mask = rg.tensor([[True, False, True], [False, False, True]])
    part, view, column = x.clone(), x.clone(), x.clone()
    for filled in (x.clone().fill_(number), view[:].fill_(number)):
        assert filled.dtype == dtype
        np.testing.assert_array_equal(filled.numpy(), expected)
    part[mask] = number
    np.testing.assert_array_equal(part.numpy(), np.where(mask.numpy(), expected, x.numpy()))
    column[rg.tensor([False, True])] = number
    np.testing.assert_array_equal(column.numpy(), np.stack([x.numpy()[0], expected[1]]))
    np.testing.assert_array_equal(x.clone().zero_().numpy(), np.zeros((2, 3), expected.dtype))


FILLS = {
    "fill_": lambda x: x.fill_(2.0),
    "zero_": lambda x: x.zero_(),
    "mask": lambda x: x.__setitem__(x.detach() > 0, 2.0),
}


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
def test_a_fill_is_a_write_for_graphs_versions_and_snapshots(fill):
    w, x = rg.ones(3, requires_grad=True), rg.ones(3)
    out = w * x
    before = x._version
    fill(x)
    assert x._version == before + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    with pytest.raises(RuntimeError, match="leaf"):
        fill(w)
    with rg.no_grad():
        fill(w)
    y = rg.ones(3, requires_grad=True) * 1
    fill(y)
    assert y.grad_fn is not None
    with pytest.raises(RuntimeError, match="read-only"):
        fill(rg.ones(1).expand(3))
