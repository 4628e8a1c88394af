"""NumPy and tensors in one expression: Python's operators, ufuncs and their arguments, writes, and refused calls.

tests/mirrors checks the values and derivatives of each NumPy function.
"""

import numpy as np
import pytest

import retrograd as rg
import retrograd.interop.numpy_protocol
from retrograd.core import Tensor

ARRAY = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def t():
    return rg.tensor(np.array([0.5, 1.5, 2.5]), requires_grad=True)


def gradient(function, x):
    x.grad = None
    function(x).sum().backward()
    return x.grad.tolist()


# ------------------------------------------------------------------------------------------ Python's operators

OPERATORS = {
    "a + t": [1, 1, 1],
    "a - t": [-1, -1, -1],
    "a * t": [1, 2, 3],
    "a / t": [-1 / 0.25, -2 / 2.25, -3 / 6.25],
    "a ** t": (ARRAY ** [0.5, 1.5, 2.5] * np.log(ARRAY)).tolist(),
    "a @ t": [1, 2, 3],
    "np.float64(3) * t": [3, 3, 3],
    "np.array(3.0) - t": [-1, -1, -1],
    "t * a": [1, 2, 3],
}


@pytest.mark.parametrize("expression", OPERATORS)
def test_an_array_on_either_side_gives_a_tensor_with_its_gradient(expression, t):
    def function(t):
        out = eval(expression, {"a": ARRAY, "t": t, "np": np})
        assert isinstance(out, Tensor)
        return out

    assert gradient(function, t) == pytest.approx(OPERATORS[expression])


def test_comparisons_with_an_array_give_tensors_without_gradient(t):
    a = ARRAY
    for out in (a < t, a == t, a != t, np.float64(2) >= t):
        assert isinstance(out, Tensor)
        assert out.dtype == bool
        assert not out.requires_grad
    assert (a > t).tolist() == [True, True, True]


def test_products_with_an_array_promote_its_dtype():
    x = rg.ones(3, requires_grad=True)
    assert (np.arange(3) @ x).dtype == np.float32
    assert (ARRAY @ x).dtype == np.float64


def test_tensors_are_promoted_as_in_pytorch():
    x = rg.ones(2)
    assert np.add(x, np.arange(2)).dtype == np.float32
    assert np.multiply(x, 2.5).dtype == np.float32
    assert np.add(x, np.ones(2)).dtype == np.float64


# ------------------------------------------------------------------------------------------------ ufunc arguments


def test_a_list_is_an_operand(t):
    assert gradient(lambda t: np.multiply(t, [1, 2, 3]), t) == [1, 2, 3]


def test_dtype_is_that_in_which_the_ufunc_computes(t):
    assert np.add(t.detach(), 1, dtype=np.float32).dtype == np.float32
    assert np.sum(t, dtype=np.float32).dtype == np.float32


def test_where_masks_the_result_and_the_gradient(t):
    mask = np.array([True, False, True])
    assert gradient(lambda t: np.exp(t, where=mask), t) == pytest.approx([np.exp(0.5), 0, np.exp(2.5)])


def test_where_keeps_what_out_holds():
    out = rg.full((3,), 7.0)
    x = rg.tensor([1.0, 2.0, 3.0])
    assert np.negative(x, where=np.array([True, False, True]), out=out) is out
    assert out.tolist() == [-1, 7, -3]


@pytest.mark.parametrize(
    "write", [
        lambda x, out: np.exp(x, out=out), lambda x, out: np.cumsum(x, out=out),
        lambda x, out: np.cumsum(x, 0, None, out), lambda x, out: np.clip(x, 0, 1, out=out),
    ]
)  # fmt: skip
def test_out_is_written_into(write):
    x, out = rg.tensor([0.1, 0.2]), rg.zeros(2)
    expected = write(x.numpy(), np.zeros(2, np.float32))
    assert write(x, out) is out
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_out_takes_no_part_in_a_graph(t):
    with pytest.raises(RuntimeError, match=r"np\.exp: out= takes no part in automatic differentiation"):
        np.exp(t, out=rg.zeros(3, dtype=rg.float64))
    with rg.no_grad():
        assert np.exp(t, out=rg.zeros(3, dtype=rg.float64)).shape == (3,)


def test_out_must_fit():
    with pytest.raises(RuntimeError, match=r"np\.exp: out has shape \(3,\)"):
        np.exp(rg.ones(2), out=rg.zeros(3))
    with pytest.raises(RuntimeError, match=r"np\.exp: the result is float32"):
        np.exp(rg.ones(2), out=rg.zeros(2, dtype=rg.int64))


def test_an_array_does_not_take_up_a_tensor(t):
    array = np.zeros(3)
    with pytest.raises(TypeError, match=r"write `array = array \+ tensor`"):
        array += t
    with pytest.raises(TypeError, match=r"np\.sum: out= must be a tensor"):
        np.sum(t, out=array)
    with pytest.raises(TypeError, match=r"np\.copyto: ndarray can't take up a tensor"):
        np.copyto(array, t)
    assert array.tolist() == [0, 0, 0]


# ----------------------------------------------------------------------------------------------- ufunc methods


def test_reduce_goes_along_the_first_axis(t):
    x = rg.tensor(np.arange(6.0).reshape(2, 3))
    for ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logaddexp, np.logical_or):
        np.testing.assert_allclose(ufunc.reduce(x).numpy(), ufunc.reduce(x.numpy()))
        np.testing.assert_allclose(ufunc.reduce(x, axis=1, keepdims=True), ufunc.reduce(x.numpy(), 1, keepdims=True))


def test_outer_is_of_all_pairs(t):
    assert np.subtract.outer(t, ARRAY).shape == (3, 3)
    assert gradient(lambda t: np.multiply.outer(ARRAY, t), t) == [6, 6, 6]


def test_at_adds_to_an_index_as_often_as_it_occurs(t):
    def function(t):
        total = rg.zeros(4, dtype=rg.float64)
        np.add.at(total, [0, 2, 0], t)
        np.subtract.at(total, 3, t[0])
        return total * np.array([1.0, 10.0, 100.0, 1000.0])

    out = function(t)
    assert out.tolist() == [3.0, 0.0, 150.0, -500.0]
    assert gradient(function, t) == [1 - 1000, 100, 1]


@pytest.mark.parametrize(
    "call", [
        lambda t: np.add.reduceat(t, [0, 2]), lambda t: np.multiply.at(t.detach(), 0, t[0]),
        lambda t: np.subtract.reduce(t), lambda t: np.arctan2.accumulate(t), np.spacing,
        lambda t: np.polyfit(t, t, 1),
    ]
)  # fmt: skip
def test_functions_without_counterpart_are_refused_by_name(call, t):
    with pytest.raises(TypeError, match=r"np\.(add\.reduceat|multiply\.at|subtract\.reduce|arctan2|spacing|polyfit)"):
        call(t)


def test_unsupported_arguments_are_refused(t):
    with pytest.raises(TypeError, match=r"np\.quantile: method 'hazen' is not supported for tensors"):
        np.quantile(t, 0.5, method="hazen")
    with pytest.raises(TypeError, match=r"np\.pad: mode 'linear_ramp' is not supported"):
        np.pad(t, 1, "linear_ramp")
    with pytest.raises(TypeError, match=r"np\.pad: reflect_type='odd' is not supported"):
        np.pad(t, 1, "reflect", reflect_type="odd")
    with pytest.raises(TypeError, match=r"np\.pad: constant_values may be one tensor"):
        np.pad(t, 1, constant_values=[t[0], 1.0])
    with pytest.raises(TypeError, match=r"np\.quantile: weights=a tensor is not supported"):
        np.quantile(t, 0.5, weights=t, method="lower")


@pytest.mark.parametrize(
    ("call", "error"), [
        (lambda x: np.diag(x[None, None]), ValueError), (lambda x: np.diff(x, -1), ValueError),
        (lambda x: np.meshgrid(x, x, indexing="ji"), ValueError), (lambda x: np.convolve(x, x[:0]), ValueError),
        (lambda x: np.linalg.outer(np.stack([x, x]), x), ValueError), (lambda x: np.pad(x, -1), ValueError),
        (lambda x: np.take(x, np.array([0.5])), TypeError), (lambda x: np.take(x, 7), IndexError),
        (lambda x: np.add(x, 1, dtype=int), TypeError), (lambda x: np.concatenate([x, x], dtype=int), TypeError),
        (lambda x: np.stack([x, x], dtype=np.float32, casting="safe"), TypeError),
    ]
)  # fmt: skip
def test_calls_that_numpy_refuses_are_refused(call, error, t):
    for x in (ARRAY, t.detach()):
        with pytest.raises(error):
            call(x)


def test_a_dtype_may_be_passed_with_unsafe_casting(t):
    assert np.add(t.detach(), 1, dtype=int, casting="unsafe").tolist() == [1, 2, 3]
    assert np.concatenate([t.detach()], dtype=int, casting="unsafe").dtype == np.int64


PLACES = {
    "np.delete": lambda x, i: np.delete(x, i),
    "np.insert": lambda x, i: np.insert(x, i, 9.0),
    "np.take": lambda x, i: np.take(x, i),
    "np.repeat": lambda x, i: np.repeat(x, i),
    "np.roll": lambda x, i: np.roll(x, i[1], axis=0),
    "np.tile": lambda x, i: np.tile(x, i[1:]),
    "np.split": lambda x, i: np.split(x, i[1:])[1],
    "np.resize": lambda x, i: np.resize(x, i[1:]),
}


@pytest.mark.parametrize("name", PLACES)
def test_indices_and_counts_may_be_tensors(name, t):
    places = np.array([0, 1, 2])
    expected = PLACES[name](t.detach().numpy(), places)
    out = PLACES[name](t, rg.tensor(places))
    assert out.requires_grad
    np.testing.assert_array_equal(out.detach().numpy(), expected)


def test_no_axes_at_all_leave_every_element_to_itself(t):
    x = np.stack([ARRAY, 2 * ARRAY])
    for function in (np.mean, np.var, np.std, np.count_nonzero, np.nanmax, np.any, np.sum):
        expected = function(x, axis=())
        out = function(rg.tensor(x), axis=())
        assert (out.shape, out.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(out.numpy(), expected)


def test_integers_stay_integers_where_numbers_are_only_chosen():
    x = rg.tensor([[3, 1], [2, 5]])
    assert np.nanmax(x, axis=0).dtype == np.int64
    assert np.nanmin(x).item() == 1


def test_take_returns_a_copy():
    x = rg.tensor(ARRAY)
    np.take(x, 0).fill_(7)
    assert x.tolist() == ARRAY.tolist()


def test_histograms_and_files_of_tensors_that_require_no_gradient(t, tmp_path):
    x = t.detach()
    density, _ = np.histogram(x, 2, density=True)
    np.testing.assert_array_equal(density.numpy(), np.histogram(x.numpy(), 2, density=True)[0])
    with pytest.raises(TypeError, match=r"np\.histogram: edges and weights would lose their gradient"):
        np.histogram(ARRAY, [0.0, 5.0], weights=t)
    np.savez(tmp_path / "x.npz", x=x)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npz")["x"], x.numpy())


def test_long_convolutions_need_no_table_of_all_pairs():
    x, y = np.ones(30_000), np.ones(20_000)  # all pairs would be 5 GB
    out = np.convolve(rg.tensor(x), y, "same")
    assert out[15_000].item() == np.convolve(x, y, "same")[15_000]


def test_many_parts_have_their_gradient_at_once(t):
    x = rg.ones(2000, requires_grad=True)
    sum(np.array_split(x, 500)[::2]).sum().backward()
    assert x.grad.tolist() == [1, 1, 1, 1, 0, 0, 0, 0] * 250


# ------------------------------------------------------------------------------------- no gradient is lost silently


@pytest.mark.parametrize(
    "call", [np.asarray, lambda t: np.array([t, t]), lambda t: np.random.normal(t), ARRAY.dot, np.histogram]
)  # fmt: skip
def test_a_gradient_is_never_lost_silently(call, t):
    with pytest.raises((RuntimeError, TypeError), match=r"requires grad|gradient"):
        call(t)


def test_unique_has_the_gradient_of_the_first_of_equal_elements():
    x = rg.tensor([3.0, 1.0, 3.0], requires_grad=True)
    assert gradient(np.unique, x) == [1.0, 1.0, 0.0]


# ------------------------------------------------------------------------------------------------------- writes

WRITES = {
    "np.put(x, [0, 5], v)": lambda x, v: np.put(x, [0, 5], v),
    "np.place(x, x > 2, v)": lambda x, v: np.place(x, np.asarray(x.detach() if isinstance(x, Tensor) else x) > 2, v),
    "np.putmask": lambda x, v: np.putmask(x, np.arange(6).reshape(2, 3) % 2 == 0, v),
    "np.put_along_axis": lambda x, v: np.put_along_axis(x, np.array([[0], [2]]), v[:1], 1),
    "np.fill_diagonal": lambda x, v: np.fill_diagonal(x, v[:2]),
    "np.copyto": lambda x, v: np.copyto(x, v, where=np.array([True, False, True])),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_are_numpys_and_part_of_the_graph(name, t):
    expected = np.arange(6.0).reshape(2, 3)
    WRITES[name](expected, t.detach().numpy())
    x = rg.tensor(np.arange(6.0).reshape(2, 3))
    WRITES[name](x, t)
    np.testing.assert_array_equal(x.detach().numpy(), expected)
    x.sum().backward()
    assert t.grad.sum() > 0


# ------------------------------------------------------------------------------------- other classes, and `like=`


class Wrapped:
    """An array of another library, which implements NumPy's protocols itself."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return "mine"

    def __array_function__(self, function, types, args, kwargs):
        return "mine"


def test_another_librarys_class_may_answer(t):
    assert np.add(t, Wrapped()) == "mine"
    assert np.concatenate([t, Wrapped()]) == "mine"


def test_like_makes_tensors(t):
    assert isinstance(np.zeros(3, like=t), Tensor)
    assert isinstance(np.arange(3, like=t), Tensor)
    assert np.array([t, 2 * t], like=t).requires_grad


# -------------------------------------------------------------------------------------------- methods of arrays


def test_astype_copies_unless_copy_is_false(t):
    assert t.astype(np.float32).dtype == np.float32
    assert t.astype(float) is not t
    assert t.astype(float, copy=False) is t
    assert gradient(lambda t: t.astype(np.float32).astype(float), t) == [1, 1, 1]


def test_copy_conjugate_and_fill(t):
    assert gradient(lambda t: t.copy() * 2, t) == [2, 2, 2]
    assert rg.tensor(1j).conjugate().item() == -1j
    x = rg.zeros(2)
    assert x.fill(3) is None
    assert x.tolist() == [3, 3]
