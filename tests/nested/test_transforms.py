"""Transforms of functions of nested tensors, and nested tensors inside them, compared with a loop."""

import numpy as np
import pytest
import scipy.linalg

import retrograd as rg
from retrograd.core import NotBatchedError
from retrograd.func import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    sparse_hessian,
    sparse_jacobian,
    vjp,
    vmap,
)
from retrograd.nested import nested_tensor
from retrograd.ops.batch_loop import PerformanceWarning

LENGTHS = (2, 3, 4, 1)
LOOP = {"fallback": "loop"}


def rows(lengths=LENGTHS, seed=0, width=3):
    r = np.random.default_rng(seed)
    return [rg.tensor(r.uniform(-1, 1, (n, width))) for n in lengths]


def dense(*shape, seed=5):
    return rg.tensor(np.random.default_rng(seed).uniform(-1, 1, shape))


def close(a, b):
    assert a.shape == b.shape
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)


def assert_parts(found, expected):
    assert found.is_nested
    for a, b in zip(found.unbind(), expected, strict=True):
        close(a, b)


def f(c, w):
    return (c * w).sin() * c


# ------------------------------------------------------------------------------------------ derivatives


def test_grad_and_vjp_give_the_gradients_of_a_loop():
    x, w, gs = nested_tensor(rows()), dense(3), rows(seed=1)
    found, value = grad_and_value(lambda x: f(x, w).values().sum())(x)
    assert_parts(found, [grad(lambda c: f(c, w).sum())(c) for c in rows()])
    close(value, sum(f(c, w).sum() for c in rows()))
    out, pull = vjp(lambda x: f(x, w), x)
    assert_parts(out, [f(c, w) for c in rows()])
    (found,) = pull(nested_tensor(gs))
    assert_parts(found, [vjp(lambda c: f(c, w), c)[1](g)[0] for c, g in zip(rows(), gs, strict=True)])


def test_vjp_refuses_a_cotangent_of_another_structure():
    _, pull = vjp(lambda x: x.sin(), nested_tensor(rows()))
    with pytest.raises(RuntimeError, match=r"cotangent 0 has shape .*in component 1 the size j is 3 and 2"):
        pull(nested_tensor(rows((2, 2, 4, 1))))


def test_derivatives_nest():
    x = nested_tensor(rows())
    found = grad(lambda x: grad(lambda x: (x**3).values().sum())(x).values().sum())(x)
    assert_parts(found, [6 * c for c in rows()])
    _, t = jvp(grad(lambda x: (x**3).values().sum()), (x,), (x,))
    assert_parts(t, [6 * c * c for c in rows()])


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_the_jacobian_of_a_plain_output_by_a_nested_input_is_nested_after_the_dimensions_of_the_output(jacobian):
    w, x = dense(3), nested_tensor(rows())
    J = jacobian(lambda x: f(x, w).values().sum(0))(x)
    assert J.shape == (3, *x.shape)
    expected = [jacobian(lambda c: f(c, w).sum(0))(c) for c in rows()]
    for k in range(3):
        assert_parts(J[k], [e[k] for e in expected])


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_the_jacobian_of_a_nested_output_by_a_plain_input_is_nested_in_front_of_the_dimensions_of_the_input(jacobian):
    x = nested_tensor(rows())
    J = jacobian(lambda w: f(x, w))(dense(3))
    assert_parts(J, [jacobian(lambda w, c=c: f(c, w))(dense(3)) for c in rows()])


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobians_of_trees_with_nested_tensors_and_auxiliary_results(jacobian):
    x, w = nested_tensor(rows()), dense(3)

    def both(a):
        y = f(a["x"], a["w"])
        return {"total": y.values().sum(0)}, y

    J, aux = jacobian(both, has_aux=True)({"x": x, "w": w})
    assert_parts(aux, [f(c, w) for c in rows()])
    assert J["total"]["x"].shape == (3, *x.shape)
    close(J["total"]["w"], sum(jacrev(lambda w, c=c: f(c, w).sum(0))(w) for c in rows()))


@pytest.mark.parametrize("transform", [jacrev, jacfwd])
def test_the_jacobian_of_a_nested_output_by_a_nested_input_is_refused_with_the_way_out(transform):
    with pytest.raises(RuntimeError, match=r"is no tensor; ask for that of each example, by vmap\(.*fallback='loop'"):
        transform(lambda x: x.sin())(nested_tensor(rows()))
    with pytest.raises(RuntimeError, match="is no tensor"):
        hessian(lambda x: x.sin().values().sum())(nested_tensor(rows()))


def test_jacobians_and_hessians_of_each_component_come_from_the_loop():
    x = nested_tensor(rows())
    with pytest.warns(PerformanceWarning, match="example by example"):
        J = vmap(jacrev(lambda c: c.sin()), **LOOP)(x)
    assert_parts(J, [jacrev(lambda c: c.sin())(c) for c in rows()])
    with pytest.warns(PerformanceWarning):
        H = vmap(hessian(lambda c: c.sin().sum()), **LOOP)(x)
    assert_parts(H, [hessian(lambda c: c.sin().sum())(c) for c in rows()])


def test_sparse_jacobians_and_hessians_have_a_block_for_each_component():
    x = nested_tensor(rows())

    def blocks(transform, g):
        return scipy.linalg.block_diag(*[transform(g)(c).toarray() for c in rows()])

    J = sparse_jacobian(lambda x: x.sin() * x)(x)
    np.testing.assert_allclose(J.toarray(), blocks(sparse_jacobian, lambda c: c.sin() * c))
    assert J.nnz == x.numel()
    H = sparse_hessian(lambda x: (x.sin() * x).values().sum())(x)
    np.testing.assert_allclose(H.toarray(), blocks(sparse_hessian, lambda c: (c.sin() * c).sum()))


# ------------------------------------------------------------------------------------- vmap over the components


OF_ONE = {
    "pointwise": lambda c: c.sin() * 2 + c,
    "sum of all": lambda c: c.sum(),
    "mean of all": lambda c: c.mean(),
    "sum of rows": lambda c: c.sum(0),
    "mean of rows": lambda c: c.mean(0),
    "largest of columns": lambda c: c.amax(-1),
    "product with a matrix": lambda c: c @ dense(3, 2),
    "a dense layer": lambda c: rg.nn.functional.linear(c, dense(2, 3), dense(2)),
    "attention": lambda c: (c @ c.T).softmax(-1) @ c,
    "softmax": lambda c: c.softmax(-1),
    "softmax of rows": lambda c: c.softmax(0),
    "transposed": lambda c: c.T,
    "a column": lambda c: c[:, 0],
    "running sums": lambda c: c.cumsum(0),
    "deviation": lambda c: c.std(),
    "zeros": lambda c: rg.zeros(c.shape, dtype=c.dtype) + c,
    "expanded": lambda c: dense(3).expand(c.shape) * c,
    "where": lambda c: rg.where(c > 0, c, 0.0 * c),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ONE)
def test_a_function_of_a_component_runs_on_all_of_them(name):
    g = OF_ONE[name]
    found, expected = vmap(g)(nested_tensor(rows())), [g(c) for c in rows()]
    if len({e.shape for e in expected}) > 1:
        assert_parts(found, expected)
    else:
        close(found, rg.stack(expected))


OF_LOSSES = {
    "sum": lambda c, w: (c * w).sin().sum(),
    "mean": lambda c, w: (c * w).sin().mean(),
    "product": lambda c, w: ((c @ w.reshape(3, 1)).tanh() ** 2).sum(),
    "rows": lambda c, w: ((c * w).sin().sum(0) ** 2).sum(),
    "softmax": lambda c, w: ((c * w).softmax(0) * c).sum(),
    "largest": lambda c, w: (c * w).amax(),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_LOSSES)
def test_gradients_for_each_component_are_those_of_a_loop(name):
    loss, w = OF_LOSSES[name], dense(3)
    assert_parts(vmap(grad(loss), (0, None))(nested_tensor(rows()), w), [grad(loss)(c, w) for c in rows()])
    found = vmap(grad(loss, argnums=1), (0, None))(nested_tensor(rows()), w)
    close(found, rg.stack([grad(loss, argnums=1)(c, w) for c in rows()]))


def test_jvps_for_each_component_are_those_of_a_loop():
    def along(c):
        return jvp(lambda c: (c.sin() * c).sum(), (c,), (c,))[1]

    close(vmap(along)(nested_tensor(rows())), rg.stack([along(c) for c in rows()]))


def test_a_plain_batch_next_to_the_components():
    x, ws = nested_tensor(rows()), dense(4, 3)
    assert_parts(vmap(f)(x, ws), [f(c, w) for c, w in zip(rows(), ws, strict=True)])
    with pytest.raises(ValueError, match="as many examples"):
        vmap(f)(x, dense(5, 3))


def test_chunks_of_components():
    x = nested_tensor(rows())
    assert_parts(vmap(lambda c: c.sin(), chunk_size=3)(x), [c.sin() for c in rows()])


def test_results_of_components_that_are_nested_and_plain():
    out = vmap(lambda c: {"a": c * 2, "b": c.sum()})(nested_tensor(rows()))
    assert_parts(out["a"], [c * 2 for c in rows()])
    close(out["b"], rg.stack([c.sum() for c in rows()]))


def test_gradients_pass_through_a_vmap_over_components():
    x = nested_tensor(rows(), requires_grad=True)
    vmap(lambda c: (c.sin() * c).sum())(x).sum().backward()
    assert_parts(x.grad, [grad(lambda c: (c.sin() * c).sum())(c) for c in rows()])


def test_a_batch_inside_a_component():
    x, ws = nested_tensor(rows()), dense(5, 3)

    def inside(c):
        return vmap(lambda w: (c * w).sum())(ws)

    close(vmap(inside)(x), rg.stack([inside(c) for c in rows()]))


def test_the_number_of_rows_is_requested_in_vain():
    with pytest.raises(NotBatchedError, match="fallback='loop'"):
        vmap(lambda c: c * c.shape[0])(nested_tensor(rows()))
    with pytest.warns(PerformanceWarning):
        found = vmap(lambda c: c * c.shape[0], **LOOP)(nested_tensor(rows()))
    assert_parts(found, [c * len(c) for c in rows()])


# -------------------------------------------------------------------------------------- vmap around nested tensors


def test_a_batch_around_a_nested_tensor():
    x, ws = nested_tensor(rows()), dense(5, 3)
    for found in (vmap(lambda w: f(x, w))(ws), vmap(f, (None, 0))(x, ws)):
        assert found.shape == (5, *x.shape)
        for k in range(5):
            assert_parts(found[k], [f(c, ws[k]) for c in rows()])


def test_a_batch_of_batches_around_a_nested_tensor():
    x, ws, vs = nested_tensor(rows()), dense(2, 3), dense(5, 3, seed=6)
    found = vmap(lambda w: vmap(lambda v: (x * w * v).values().sum(0))(vs))(ws)
    total = sum(c.sum(0) for c in rows())
    close(found, ws[:, None] * vs * total)


def test_gradients_inside_a_batch_around_a_nested_tensor():
    x, ws = nested_tensor(rows()), dense(5, 3)
    found = vmap(grad(lambda w: f(x, w).values().sum()))(ws)
    close(found, rg.stack([grad(lambda w: sum(f(c, w).sum() for c in rows()))(w) for w in ws]))
    found = vmap(lambda w: grad(lambda x: f(x, w).values().sum())(x))(ws)
    for k in range(5):
        assert_parts(found[k], [grad(lambda c, k=k: f(c, ws[k]).sum())(c) for c in rows()])


def test_a_batch_of_nested_tensors_goes_in_and_out():
    x, ws = nested_tensor(rows()), dense(5, 3)
    batch = vmap(lambda w: x * w)(ws)
    again = vmap(lambda y, w: y + w)(batch, ws)
    for k in range(5):
        assert_parts(again[k], [c * ws[k] + ws[k] for c in rows()])


# ------------------------------------------------------------------------------------------------- the loop


def test_the_loop_gives_a_nested_tensor_of_results_of_different_shapes():
    counts = rg.tensor([1, 3, 0])
    with pytest.warns(PerformanceWarning):
        found = vmap(lambda n: rg.arange(int(n)) * 2.0, **LOOP)(counts)
    assert found.is_nested
    assert found.tolist() == [[0.0], [0.0, 2.0, 4.0], []]


def test_the_loop_gives_gradients_through_results_of_different_shapes():
    v = dense(3, 4).requires_grad_()
    with pytest.warns(PerformanceWarning):
        found = vmap(lambda r: r[r > 0] * 3, **LOOP)(v)
    found.values().sum().backward()
    close(v.grad, (v.detach() > 0).to("float64") * 3)


def test_the_loop_refuses_results_of_different_numbers_of_dimensions():
    with pytest.warns(PerformanceWarning), pytest.raises(ValueError, match="component 1 has shape"):
        vmap(lambda n: rg.zeros((2,) * int(n)), **LOOP)(rg.tensor([1, 2]))
