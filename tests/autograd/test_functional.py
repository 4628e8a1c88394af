"""autograd.functional: products, Jacobians and Hessians with known results, and refused arguments."""

from typing import NamedTuple

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import functional
from retrograd.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

from ..functions import cube

A = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])
Q = np.array([[2.0, 1.0, 0.0], [-1.0, 3.0, 4.0], [0.5, 0.0, 1.0]])
X = np.array([0.5, -1.5, 2.0])

STRATEGIES = ({}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"})
OUTER = ({}, {"vectorize": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"})


def tensor(array, requires_grad=False):
    return rg.from_numpy(np.array(array)).requires_grad_(requires_grad)


def linear(x):
    return tensor(A) @ x


def quadratic(x):
    return x @ (tensor(Q) @ x)


def close(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12, atol=1e-12)
    return True


# ---------------------------------------------------------------------------------------------------------- results


def test_products_with_the_jacobian_of_a_linear_map_are_those_with_its_matrix():
    v, w = np.array([1.0, -2.0]), np.array([3.0, 0.5, 1.0])
    out, pulled = vjp(linear, tensor(X), tensor(v))
    assert close(out, A @ X)
    assert close(pulled, A.T @ v)
    out, pushed = jvp(linear, tensor(X), tensor(w))
    assert close(out, A @ X)
    assert close(pushed, A @ w)


@pytest.mark.parametrize("product", [vhp, hvp])
def test_products_with_the_hessian_of_a_quadratic_form_are_those_with_its_matrix(product):
    v = np.array([3.0, 0.5, 1.0])
    out, found = product(quadratic, tensor(X), tensor(v))
    assert close(out, X @ Q @ X)
    assert close(found, (Q + Q.T) @ v)


@pytest.mark.parametrize("options", STRATEGIES)
def test_the_jacobian_of_a_linear_map_is_its_matrix(options):
    assert close(jacobian(linear, tensor(X), **options), A)


@pytest.mark.parametrize("options", OUTER)
def test_the_hessian_of_a_quadratic_form_is_its_symmetric_matrix(options):
    assert close(hessian(quadratic, tensor(X), **options), Q + Q.T)


@pytest.mark.parametrize("options", STRATEGIES)
def test_a_jacobian_has_the_shapes_of_output_and_input(options):
    x = np.arange(6.0).reshape(2, 3)
    found = jacobian(lambda x: (x * x).T, tensor(x), **options)
    expected = np.zeros((3, 2, 2, 3))
    for i, j in np.ndindex(2, 3):
        expected[j, i, i, j] = 2 * x[i, j]
    assert close(found, expected)


class Point(NamedTuple):
    """A named tuple."""

    left: rg.Tensor
    right: tuple


@pytest.mark.parametrize("options", STRATEGIES)
def test_inputs_and_outputs_may_be_nested_tuples(options):
    x, y, z = tensor([2.0]), tensor([3.0, 5.0]), tensor(7.0)

    def func(p, z):
        return (p.left * z, (p.right[0] * p.left,)), z * z

    found = jacobian(func, (Point(x, (y,)), z), **options)
    ((xz, (yx,)), zz) = found
    assert isinstance(xz, tuple)
    assert isinstance(xz[0], Point)
    assert [g.tolist() for g in (xz[0].left, xz[0].right[0], xz[1])] == [[[7.0]], [[0.0, 0.0]], [2.0]]
    assert [g.tolist() for g in (yx[0].left, yx[0].right[0], yx[1])] == [
        [[3.0], [5.0]],
        [[2.0, 0.0], [0.0, 2.0]],
        [0.0, 0.0],
    ]
    assert [g.tolist() for g in (zz[0].left, zz[0].right[0], zz[1])] == [[0.0], [0.0, 0.0], 14.0]


def test_products_of_nested_tuples_have_their_structure():
    x, y = tensor([2.0]), tensor([3.0])
    outs, pulled = vjp(lambda p: (p[0] * p[1][0], (p[0],)), ((x, (y,)),), (tensor([10.0]), (tensor([1.0]),)))
    assert [outs[0].item(), outs[1][0].item()] == [6.0, 2.0]
    assert [pulled[0][0].item(), pulled[0][1][0].item()] == [31.0, 20.0]
    _, pushed = jvp(lambda p: (p[0] * p[1][0], (p[0],)), ((x, (y,)),), ((tensor([1.0]), (tensor([10.0]),)),))
    assert [pushed[0].item(), pushed[1][0].item()] == [23.0, 1.0]
    for product in (vhp, hvp):
        _, found = product(lambda p: (p[0] ** 2 * p[1][0]).sum(), ((x, (y,)),), ((tensor([1.0]), (tensor([10.0]),)),))
        assert [found[0][0].item(), found[0][1][0].item()] == [46.0, 4.0]  # [[2y, 2x], [2x, 0]] @ (1, 10)


@pytest.mark.parametrize("options", OUTER)
def test_hessians_of_nested_tuples_have_their_structure_twice(options):
    x, y = tensor([2.0]), tensor([3.0])
    found = hessian(lambda p, y: (p[0] ** 2 * y).sum(), ((x,), y), **options)
    assert [[found[0][0][0][0].tolist(), found[0][0][1].tolist()], [found[1][0][0].tolist(), found[1][1].tolist()]] == [
        [[[6.0]], [[4.0]]],
        [[[4.0]], [[0.0]]],
    ]


@pytest.mark.parametrize("options", STRATEGIES)
def test_results_independent_of_an_input_have_zeros(options):
    (a, b), (c, d) = jacobian(lambda x, y: (x * 2, x.detach()), (tensor([1.0]), tensor([2.0, 3.0])), **options)
    assert [g.tolist() for g in (a, b, c, d)] == [[[2.0]], [[0.0, 0.0]], [[0.0]], [[0.0, 0.0]]]


def test_a_jacobian_has_the_inputs_dtype_and_in_forward_mode_the_outputs():
    def func(x):
        return x.to(rg.float32) * 2

    assert jacobian(func, tensor(X)).dtype == rg.float64
    assert jacobian(func, tensor(X), vectorize=True).dtype == rg.float64
    assert jacobian(func, tensor(X), vectorize=True, strategy="forward-mode").dtype == rg.float32


@pytest.mark.parametrize("options", STRATEGIES)
def test_outputs_and_inputs_may_be_empty(options):
    assert jacobian(lambda x: x[:0], tensor(X), **options).shape == (0, 3)
    assert jacobian(lambda x: x.sum() + tensor(X)[:2], rg.zeros(0), **options).shape == (2, 0)
    assert jacobian(lambda: tensor(X), (), **options) == ()
    assert jacobian(lambda x: (), tensor(X), **options) == ()


def test_the_jacobian_of_a_complex_input_holds_the_gradients_of_a_real_output():
    z = tensor([1 + 2j, 3 - 1j])
    expected = np.diag([2 + 4j, 6 - 2j])  # of |z|^2: 2 z, the direction of steepest ascent
    for options in ({}, {"vectorize": True}):
        assert close(jacobian(lambda z: (z * z.conj()).real, z, **options), expected)


# ------------------------------------------------------------------------------------------------- how it is found


@pytest.mark.parametrize("options", STRATEGIES)
def test_the_function_runs_once(options):
    calls = []

    def func(x):
        calls.append(x.requires_grad)
        return x * x

    jacobian(func, tensor(X), **options)
    assert len(calls) == 1


@pytest.mark.parametrize("product", [vjp, jvp])
def test_functions_may_compute_gradients_with_respect_to_their_inputs(product):
    def slope(x):
        assert x.requires_grad
        return rg.autograd.grad((x**3).sum(), x, create_graph=True)[0]

    assert close(product(slope, tensor(X), tensor([1.0, 1.0, 1.0]))[1], 6 * X)


Cube = cube(rg)


def test_pushing_forward_takes_a_backward_only():
    v = np.array([3.0, 0.5, 1.0])
    assert close(jvp(Cube.apply, tensor(X), tensor(v))[1], 3 * X**2 * v)
    assert close(hvp(lambda x: Cube.apply(x).sum(), tensor(X), tensor(v))[1], 6 * X * v)


def test_columns_of_a_function_come_from_its_jvp():
    class Rounded(rg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def jvp(ctx, t):
            return t * 3

    columns = {"vectorize": True, "strategy": "forward-mode"}
    assert close(jacobian(Rounded.apply, tensor(X), **columns), 3 * np.eye(3))
    with pytest.raises(NotImplementedError, match="Cube: You must implement the jvp"):
        jacobian(Cube.apply, tensor(X), **columns)


@pytest.mark.parametrize("product", [vjp, jvp])
def test_functions_may_write_to_what_they_do_not_get_as_inputs(product):
    total = rg.zeros(3, dtype=rg.float64)

    def func(x):
        total.add_(x.detach())
        return x * x

    assert close(product(func, tensor(X), tensor([1.0, 1.0, 1.0]))[1], 2 * X)
    assert close(total, X)


@pytest.mark.parametrize("options", STRATEGIES)
def test_a_random_function_is_one_function_for_all_rows_and_columns(options):
    outs = []

    def func(x):
        out = x * rg.rand(3, dtype=rg.float64)
        outs.append(out.sum() * 1)
        return out

    rg.manual_seed(3)
    found = jacobian(func, tensor(X), **options)
    rg.manual_seed(3)
    assert close(found, np.diag(rg.rand(3, dtype=rg.float64).numpy()))


@pytest.mark.parametrize("options", STRATEGIES)
def test_functions_may_read_values(options):
    def func(x):
        return x * 2 if x.sum().item() > 0 else x * 3

    assert close(jacobian(func, tensor(X), **options), 2 * np.eye(3))


# ------------------------------------------------------------------------------------------------------------ graphs


@pytest.mark.parametrize("requires_grad", [False, True])
def test_without_create_graph_results_are_in_no_graph_and_inputs_stay_as_they_are(requires_grad):
    x, w = tensor(X, requires_grad), tensor(X, True)
    results = [f(lambda x: x * w, x, tensor(X)) for f in (vjp, jvp)]
    results += [f(lambda x: (x**3 * w).sum(), x, tensor(X)) for f in (vhp, hvp)]
    matrices = [jacobian(lambda x: x * w, x, **options) for options in STRATEGIES]
    matrices += [hessian(lambda x: (x**3 * w).sum(), x, **options) for options in OUTER]
    assert not any(r.requires_grad for pair in results for r in pair)
    assert not any(m.requires_grad for m in matrices)
    assert (x.requires_grad, x.grad, w.grad) == (requires_grad, None, None)


@pytest.mark.parametrize("product", [vjp, jvp])
def test_with_create_graph_products_are_differentiable_by_inputs_and_v(product):
    x, v = tensor(X, True), tensor([1.0, 2.0, 3.0], True)
    out, found = product(lambda x: x**3, x, v, create_graph=True)  # 3 x^2 v
    by_x, by_v = rg.autograd.grad(found.sum() + out.sum(), (x, v))
    assert close(by_x, 6 * X * [1.0, 2.0, 3.0] + 3 * X**2)
    assert close(by_v, 3 * X**2)


@pytest.mark.parametrize("product", [vhp, hvp])
def test_with_create_graph_third_derivatives_are_found(product):
    x, v = tensor(X, True), tensor([1.0, 2.0, 3.0], True)
    _, found = product(lambda x: (x**4).sum(), x, v, create_graph=True)  # 12 x^2 v
    by_x, by_v = rg.autograd.grad(found.sum(), (x, v))
    assert close(by_x, 24 * X * [1.0, 2.0, 3.0])
    assert close(by_v, 12 * X**2)


@pytest.mark.parametrize("options", STRATEGIES)
def test_with_create_graph_jacobians_are_differentiable(options):
    x = tensor(X, True)
    found = jacobian(lambda x: x**3, x, create_graph=True, **options)
    assert close(rg.autograd.grad(found.sum(), x)[0], 6 * X)


@pytest.mark.parametrize("options", OUTER)
def test_with_create_graph_hessians_are_differentiable(options):
    x = tensor(X, True)
    found = hessian(lambda x: (x**4).sum(), x, create_graph=True, **options)
    assert close(rg.autograd.grad(found.sum(), x)[0], 24 * X)


def test_where_nothing_is_recorded_derivatives_are_found_all_the_same():
    with rg.no_grad():
        assert close(jacobian(linear, tensor(X)), A)
        assert close(jacobian(linear, tensor(X), vectorize=True, strategy="forward-mode"), A)
        assert close(hvp(quadratic, tensor(X), tensor(X))[1], (Q + Q.T) @ X)
        assert jvp(lambda x: x * x, tensor(X, True), tensor(X), create_graph=True)[1].requires_grad
        for options in STRATEGIES:
            assert jacobian(lambda x: x * x, tensor(X, True), create_graph=True, **options).requires_grad


# ------------------------------------------------------------------------------------------------ inside transforms


@pytest.mark.parametrize("options", STRATEGIES)
def test_a_batch_of_jacobians_is_found_by_vmap(options):
    xs = np.array([X, 2 * X])
    found = rg.func.vmap(lambda x: jacobian(lambda x: x**3, x, **options))(tensor(xs))
    assert close(found, np.array([np.diag(3 * x**2) for x in xs]))


@pytest.mark.parametrize("options", STRATEGIES)
def test_with_create_graph_transforms_around_see_the_derivatives_of_jacobians(options):
    def total(x):
        return jacobian(lambda x: x**3, x, create_graph=True, **options).sum()

    assert close(rg.func.grad(total)(tensor(X)), 6 * X)
    v = tensor([1.0, 2.0, 3.0])
    assert close(rg.func.jvp(total, (tensor(X),), (v,))[1], (6 * X * v.numpy()).sum())


# ------------------------------------------------------------------------------------------------------------ strict


STRICT = {
    "vjp": (lambda: vjp(lambda x, y: x * 2, PAIR, ONES, strict=True), r"The output .*independent of input 1"),
    "jvp": (lambda: jvp(lambda x, y: y * 2, PAIR, PAIR, strict=True), r"The output .*independent of input 0"),
    "vhp": (lambda: vhp(lambda x, y: (x**2).sum(), PAIR, PAIR, strict=True), r"The output .*independent of input 1"),
    "hvp": (lambda: hvp(lambda x, y: (x**2).sum() + y.sum(), PAIR, PAIR, strict=True),
            "the jacobian of the user-provided function with respect to input 1 is independent of the input"),
    "jacobian": (lambda: jacobian(lambda x, y: (y * x, x), PAIR, strict=True), r"Output 1 .*independent of input 1"),
    "hessian": (lambda: hessian(lambda x, y: (x**2).sum() + (y**2).sum(), PAIR, strict=True),
                "The gradient by input 0 of the user-provided function is independent of input 1"),
    "a nested input": (lambda: vjp(lambda x, p: x * p[0], (ONES, (ONES, ONES)), ONES, strict=True), r"input 1\[1\]"),
    "a detached output": (lambda: jacobian(lambda x: (x, x.detach()), ONES, strict=True),
                          "Output 1 of the user-provided function does not require gradients"),
    "a constant product": (lambda: vjp(lambda x: x * 2, tensor(X, True), ONES, create_graph=True, strict=True),
                           "The jacobian of the user-provided function is independent of input 0"),
}  # fmt: skip
ONES = rg.ones(3, dtype=rg.float64)
PAIR = (ONES, ONES)


@pytest.mark.parametrize("name", STRICT)
def test_strict_names_what_is_independent_of_what(name):
    call, pattern = STRICT[name]
    with pytest.raises(RuntimeError, match=pattern):
        call()


def test_strict_lets_pass_what_depends_on_all():
    x = tensor(X)
    assert close(jacobian(lambda x: x * x, x, strict=True), np.diag(2 * X))
    assert close(hessian(lambda x: (x**3).sum(), x, strict=True), np.diag(6 * X))
    assert close(jvp(lambda x: x * x, x, ONES, strict=True)[1], 2 * X)
    assert close(hvp(lambda x: (x**3).sum(), x, ONES, strict=True)[1], 6 * X)


# --------------------------------------------------------------------------------------------------- refused calls


@pytest.mark.parametrize("function", [jacobian, hessian])
def test_strict_and_vectorize_are_not_supported_together(function):
    calls = []
    with pytest.raises(RuntimeError, match=f"{function.__name__}: `strict=True` .*not supported together"):
        function(calls.append, ONES, strict=True, vectorize=True)
    assert calls == []


def test_forward_mode_needs_vectorize():
    with pytest.raises(NotImplementedError, match=r"jacobian: .*set vectorize=True"):
        jacobian(linear, ONES, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match=r"hessian: .*set vectorize=True"):
        hessian(quadratic, ONES, outer_jacobian_strategy="forward-mode")


def test_an_unknown_strategy_is_refused_by_name():
    with pytest.raises(ValueError, match='"forward-mode" or "reverse-mode", got \'sideways\''):
        jacobian(linear, ONES, strategy="sideways")


def test_objects_that_are_no_tensors_are_refused_with_their_index():
    with pytest.raises(TypeError, match=r"inputs given to vjp must be either a Tensor.*input 1\[0\], has type .*float"):
        vjp(lambda x, p: x, (ONES, (2.0,)))
    with pytest.raises(TypeError, match=r"given to jacobian must be.*output.* has type .*list"):
        jacobian(lambda x: [x], ONES)
    with pytest.raises(TypeError, match=r"v given to jvp must be.*the given v has type .*float"):
        jvp(lambda x: x, ONES, 2.0)


def test_inputs_must_be_floating():
    for options in STRATEGIES:
        with pytest.raises(RuntimeError, match="jacobian: input 0 is int64"):
            jacobian(lambda x: x, rg.ones(3, dtype=rg.int64), **options)


def test_a_v_that_does_not_fit_is_refused():
    with pytest.raises(RuntimeError, match=r"vjp: v has invalid size: should be \(3,\) but got \(2,\) for output 0"):
        vjp(lambda x: x, ONES, rg.ones(2))
    with pytest.raises(RuntimeError, match=r"jvp: .*v must be one Tensor for each input, in the same tuples"):
        jvp(lambda x: x, ONES, PAIR)
    with pytest.raises(RuntimeError, match="hvp: v is complex128 for input 0, which is float64"):
        hvp(quadratic, ONES, ONES * 1j)
    with pytest.raises(
        RuntimeError,
        match=r"vhp: The vector v can only be None if the input to the user-provided function is a single .*\(3,\)",
    ):
        vhp(quadratic, ONES)


@pytest.mark.parametrize("function", [vhp, hvp, hessian])
def test_second_derivatives_are_those_of_one_number(function):
    v = () if function is hessian else (ONES,)
    with pytest.raises(RuntimeError, match=r"should contain a single element, but has shape \(3,\)"):
        function(lambda x: x, ONES, *v)
    with pytest.raises(RuntimeError, match="should return a single Tensor, not a tuple"):
        function(lambda x: (x.sum(),), ONES, *v)


def test_rows_of_complex_outputs_are_refused_one_by_one():
    with pytest.raises(RuntimeError, match=r"output 0 is complex128, and its rows are ambiguous.*vectorize=True"):
        jacobian(lambda z: z * z, tensor([1 + 2j]))


def test_the_six_functions_are_there():
    assert sorted(functional.__all__) == ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
    assert rg.autograd.functional is functional
