"""`grad` and related functions on plain functions of arrays: HIPS autograd's names, nested to any depth."""

import inspect

import numpy as np
import pytest

import retrograd as rg
import retrograd.interop.numpy_protocol
import retrograd.numpy as rnp
from retrograd.core import Tensor
from retrograd.func import autograd_api
from retrograd.func.autograd_api import (
    deriv,
    elementwise_grad,
    grad,
    hessian,
    jacobian,
    make_jvp,
    make_vjp,
    value_and_grad,
)

X = np.array([0.3, 0.5, 0.9])
M = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

# ------------------------------------------------------------------------------------------------------- results


def test_arrays_in_arrays_out():
    g = grad(lambda x: np.sum(np.sin(x)))(X)
    assert type(g) is np.ndarray
    np.testing.assert_allclose(g, np.cos(X))


def test_numbers_in_numpy_scalars_out():
    value, g = value_and_grad(lambda x: x**2)(3.0)
    assert (type(value), type(g)) == (np.float64, np.float64)
    assert (value, g) == (9.0, 6.0)


def test_python_floats_are_float64_and_arrays_keep_their_dtype():
    assert grad(lambda x: x * 1.0)(0.1).dtype == np.float64
    assert grad(lambda x: (x * x).sum())(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    "x", [np.arange(3), np.arange(3, dtype=np.uint8)[::-1], np.array([True, False]), 3, True, np.int64(3), np.array(4)]
)
def test_integers_and_booleans_count_as_float64(x):
    value, g = value_and_grad(lambda x: np.sum(np.sin(x) * (x - 2)))(x)
    as_floats = np.asarray(x, float)
    assert value == np.sum(np.sin(as_floats) * (as_floats - 2))
    assert g.dtype == np.float64
    np.testing.assert_allclose(g, np.cos(as_floats) * (as_floats - 2) + np.sin(as_floats))


def test_arrays_of_integers_have_gradient_zero():
    assert elementwise_grad(lambda x: x > 0.4)(X).tolist() == [0, 0, 0]
    assert jacobian(lambda x: np.argsort(x))(X).tolist() == np.zeros((3, 3)).tolist()


def test_tensors_in_tensors_out():
    x = rg.tensor(X, requires_grad=True)
    g = grad(lambda x: (x**3).sum())(x)
    assert isinstance(g, Tensor)
    g.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * X)


def test_a_tensor_that_the_function_closes_over_stays_in_its_graph():
    w = rg.tensor(X, requires_grad=True)
    g = grad(lambda x: (x**2 * w).sum())(X)
    assert isinstance(g, Tensor)
    g.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 2 * X)


def test_sizes_may_be_tensors_where_arrays_are_made():
    n = rg.tensor(3)
    assert rnp.zeros(n).shape == rnp.ones((n,)).shape == rnp.full(n, rg.tensor(1.0)).shape == (3,)


def test_gradients_are_memory_of_their_own():
    first, second = grad(lambda x, y: (x + y).sum(), (0, 1))(X, X)
    first += 1
    assert second.tolist() == [1, 1, 1]
    assert grad(np.sum)(X).flags.writeable


def test_the_argument_is_not_written_to():
    def doubling(x):
        y = x.copy()
        y[0] = y[0] * 2
        return y.sum()

    x = X.copy()
    assert grad(doubling)(x).tolist() == [2, 1, 1]
    assert x.tolist() == X.tolist()


# ------------------------------------------------------------------------------------------------------ arguments


def test_argnum_chooses_the_argument():
    def f(x, y, power=2):
        return np.sum(x * y**power)

    np.testing.assert_allclose(grad(f, 1)(X, X), 2 * X**2)
    np.testing.assert_allclose(grad(f, argnum=1)(X, X, power=3), 3 * X**3)
    first, second = grad(f, (1, 0))(X, 2 * X)
    np.testing.assert_allclose(first, 4 * X**2)
    np.testing.assert_allclose(second, 4 * X**2)
    np.testing.assert_allclose(grad(f, -1)(X, X), 2 * X**2)


def test_trees_of_arrays_have_trees_of_gradients():
    def f(params):
        (w, b), scale = params["layers"], params["scale"]
        return scale * np.sum(np.dot(w, X) + b)

    g = grad(f)({"layers": [(M), np.zeros(2)], "scale": 2.0})
    np.testing.assert_allclose(g["layers"][0], np.stack([2 * X, 2 * X]))
    assert g["layers"][1].tolist() == [2, 2]
    assert g["scale"] == pytest.approx((M @ X).sum())


def test_control_flow_and_array_methods_work_inside():
    def f(x):
        if x[0] < x.max() and x.size == 3 and len(x) == x.shape[0] and x.ndim == 1:
            return (x.reshape(3, 1).T.astype(float).ravel() * x.mean()).sum(axis=0, keepdims=True)[0]
        return x[0]

    np.testing.assert_allclose(grad(f)(X), np.full(3, 2 * X.sum() / 3))


def test_a_function_that_does_not_depend_on_its_argument_has_gradient_zero():
    assert grad(lambda x: 3.0)(X).tolist() == [0, 0, 0]
    assert grad(lambda x: np.sum(M))(2.0) == 0
    assert make_jvp(lambda x: M)(X)(X)[1].tolist() == np.zeros((2, 3)).tolist()


def test_names_and_docs_are_the_functions():
    def energy(x):
        """For a spring."""
        return x**2

    assert grad(energy).__name__ == "grad_of_energy"
    assert grad(energy).__doc__ == "For a spring."


# -------------------------------------------------------------------------------------------------------- nesting


@pytest.mark.parametrize("inner", [grad, elementwise_grad, deriv])
@pytest.mark.parametrize("outer", [grad, elementwise_grad, deriv])
def test_derivatives_nest_in_any_order(outer, inner):
    third = grad(outer(inner(lambda x: np.sin(x) * np.exp(x))))(0.4)
    assert third == pytest.approx(2 * np.exp(0.4) * (np.cos(0.4) - np.sin(0.4)))


def test_perturbations_are_not_confused():
    assert grad(lambda x: x * grad(lambda y: x + y)(2.0))(1.0) == 1.0
    assert deriv(lambda x: x * deriv(lambda y: x * y)(2.0))(3.0) == 6.0


@pytest.mark.parametrize("size", [2, 12])
def test_jacobians_are_the_same_by_rows_and_by_columns(size):
    def f(x):
        return np.stack([np.sin(x * k) for k in range(size // 2)], axis=1)

    j = jacobian(f)(X[:2])
    assert j.shape == (2, size // 2, 2)
    for k in range(size // 2):
        np.testing.assert_allclose(j[:, k], np.diag(k * np.cos(X[:2] * k)))
    second = jacobian(jacobian(f))(X[:2])
    np.testing.assert_allclose(second[0, :, 0, 0], [-(k**2) * np.sin(X[0] * k) for k in range(size // 2)])


def test_the_function_runs_once_for_a_jacobian():
    calls = []

    def f(x):
        calls.append(1)
        return np.outer(x, x)

    assert jacobian(f)(X).shape == (3, 3, 3)
    assert len(calls) == 1


def test_jacobians_of_real_functions_with_complex_values_are_complex():
    for f in (lambda x: np.exp(1j * x), lambda x: np.exp(1j * x[:1])):
        expected = np.diag(1j * np.exp(1j * X))
        np.testing.assert_allclose(jacobian(f)(X), expected[: len(f(X))])


def test_hessians():
    h = hessian(lambda x: x[0] ** 2 * x[1] * x[2])(X)
    np.testing.assert_allclose(h, h.T)
    np.testing.assert_allclose(h[0], [2 * X[1] * X[2], 2 * X[0] * X[2], 2 * X[0] * X[1]])
    assert hessian(lambda x, y: np.sum(x * y**2), 1)(X, X).shape == (3, 3)


# ------------------------------------------------------------------------------------------------------- products


def test_vjp_and_jvp_are_transposes():
    def f(x, y):
        return np.dot(M, x) * y

    pull, value = make_vjp(f, (0, 1))(X, 2.0)
    np.testing.assert_allclose(value, 2 * M @ X)
    g, t = np.array([1.0, -2.0]), (np.array([0.1, 0.2, 0.3]), 0.5)
    pulled = pull(g)
    _, pushed = make_jvp(f, (0, 1))(X, 2.0)(t)
    assert np.sum(pushed * g) == pytest.approx(np.sum(pulled[0] * t[0]) + pulled[1] * t[1])


def test_vjp_of_several_outputs_takes_a_tree():
    pull, value = make_vjp(lambda x: {"a": x * 2, "b": (np.sum(x), 5.0)})(X)
    assert value["b"][1] == 5.0
    assert pull({"a": np.ones(3), "b": (np.array(1.0), 0.0)}).tolist() == [3, 3, 3]


def test_hessian_products_need_no_hessian():
    f, v = lambda x: np.sum(np.sin(x) ** 2) * x[0], np.array([1.0, 2.0, 3.0])
    expected = hessian(f)(X) @ v
    np.testing.assert_allclose(autograd_api.hessian_vector_product(f)(X, v), expected)
    product, gradient = autograd_api.make_hvp(f)(X)
    np.testing.assert_allclose(product(v), expected)
    np.testing.assert_allclose(gradient, grad(f)(X))


def test_vector_jacobian_products_sum_over_the_axes_of_the_vector():
    f, v = lambda x: np.outer(x, x), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(autograd_api.vector_jacobian_product(f)(X, v), np.tensordot(v, jacobian(f)(X), 1))
    np.testing.assert_allclose(
        autograd_api.tensor_jacobian_product(f)(X, M.T @ M), np.tensordot(M.T @ M, jacobian(f)(X), 2)
    )


def test_gauss_newton_products():
    f, v = lambda x: np.dot(M, np.sin(x)), np.array([1.0, 2.0, 3.0])
    j = jacobian(f)(X)
    np.testing.assert_allclose(autograd_api.make_ggnvp(f)(X)(v), j.T @ j @ v)


# ------------------------------------------------------------------------------------- complex numbers, aux, names


def test_gradients_of_complex_arguments_are_plain_transposes():
    z = 0.3 + 0.4j
    assert grad(lambda z: np.real(z * np.conj(z)))(z) == pytest.approx(2 * np.conj(z))
    assert autograd_api.holomorphic_grad(np.exp)(z) == pytest.approx(np.exp(z))
    with pytest.warns(UserWarning, match="an input is not complex"):
        autograd_api.holomorphic_grad(np.exp)(0.5)


def test_grad_and_aux_passes_the_second_output_on():
    g, aux = autograd_api.grad_and_aux(lambda x: (np.sum(x**2), {"twice": 2 * x, "text": "as it is"}))(X)
    np.testing.assert_allclose(g, 2 * X)
    assert aux["text"] == "as it is"
    np.testing.assert_allclose(aux["twice"], 2 * X)


def test_gradients_by_name():
    def f(x, y=3.0):
        return x * y**2

    assert autograd_api.grad_named(f, "y")(2.0, 3.0) == 12.0
    assert autograd_api.multigrad_dict(f)(2.0) == {"x": 9.0, "y": 12.0}
    assert autograd_api.multigrad_dict(f)(2.0, y=1.0) == {"x": 1.0, "y": 4.0}


# --------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("call", "message"), [
        (lambda: grad(np.sin)(X), r"scalar-output functions, and this one returned shape \(3,\); use jacobian"),
        (lambda: grad(lambda x: 1j * x)(1.0), "use holomorphic_grad"),
        (lambda: elementwise_grad(lambda x: 1j * x)(X), "use holomorphic_grad or jacobian"),
        (lambda: grad(np.sum)(np.array(["a"])), "dtype <U1 is not supported"),
        (lambda: grad(lambda x: x)("3"), "with respect to '3', which is no number or array; leave the argument out"),
        (lambda: grad(lambda x: None)(X), "must return one floating number or one array, got None"),
        (lambda: grad(lambda x: (x, x))(1.0), "must return one floating number or one array"),
        (lambda: grad(lambda x: np.allclose(x, x))(X), "must return one floating number or one array, got True"),
        (lambda: grad(lambda x: np.sum(x > 0.4))(X), "must return one floating number or one array"),
        (lambda: grad(np.sum, "x"), "argnum must be an int or a tuple"),
    ]
)  # fmt: skip
def test_mistakes_are_type_errors_with_a_way_out(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"), [
        (lambda: make_vjp(np.sin)(X)[0](np.ones(2)), r"a cotangent has shape \(2,\), its output \(3,\)"),
        (lambda: make_vjp(np.sin)(X)[0]((X, X)), "the cotangent has 2 leaves, the output 1"),
        (lambda: make_jvp(np.sin)(X)(np.ones(2)), r"a tangent has shape \(2,\), its primal \(3,\)"),
        (lambda: make_jvp(np.sin)(X)((X, X)), "the tangent has 2 leaves, the argument 1"),
    ]
)  # fmt: skip
def test_shapes_that_do_not_fit_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --------------------------------------------------------------------------------------------------- the mirror


def test_the_mirror_writes_into_what_it_makes_inside_of_a_transform():
    def recurrence(x):  # a product saves what it reads, so that is copied out of what is written to later
        path = rnp.zeros(4)
        path[0] = x
        for i in range(1, 4):
            path[i] = path[i - 1].copy() * x
        return path.sum()

    assert grad(recurrence)(2.0) == 1 + 4 + 12 + 32
    assert recurrence(np.float64(2.0)) == 30
    assert type(rnp.zeros(3)) is np.ndarray


def test_the_mirror_joins_numbers_with_brackets():
    assert grad(lambda x: (rnp.r_[x, 1.0, x[:2]] ** 2).sum())(X).tolist() == pytest.approx([1.2, 2.0, 1.8])
    assert grad(lambda x: rnp.c_[x, X].sum())(X).tolist() == [1, 1, 1]
    assert rnp.r_[0:3, 5].tolist() == [0, 1, 2, 5]


def test_the_mirror_has_numpys_other_names():
    assert rnp.pi == np.pi
    assert rnp.float64 is np.float64
    assert rnp.sin is np.sin
    assert rnp.random.RandomState is np.random.RandomState
    assert set(np.__all__) <= set(dir(rnp))
    with pytest.raises(AttributeError):
        rnp.no_such_name  # noqa: B018


@pytest.mark.parametrize("name", ["grad", "deriv", "elementwise_grad", "jacobian"])
def test_help_shows_the_arguments_that_a_transform_takes(name):
    assert list(inspect.signature(getattr(rg, name)).parameters) == ["fun", "argnum"]
