"""`grad`, `grad_and_value`, `vjp`, `jvp` and `linearize`, compared with derivatives by hand."""

import tracemalloc

import pytest

import retrograd as rg
from retrograd.core import current
from retrograd.func import grad, grad_and_value, jacfwd, jacrev, jvp, linearize, vjp, vmap

OF_SCALARS = [grad, grad_and_value]


def t(*values):
    return rg.tensor([float(v) for v in values], dtype=rg.float64)


def product(a, b):
    return (a * b * b).sum()


def lists(tree):
    """Return tensors as lists."""
    if isinstance(tree, rg.Tensor):
        return tree.tolist()
    if isinstance(tree, dict):
        return {k: lists(v) for k, v in tree.items()}
    return type(tree)(map(lists, tree)) if isinstance(tree, (tuple, list)) else tree


A, B = t(1, 2), t(3, 5)
BY_A, BY_B = [9.0, 25.0], [6.0, 20.0]


# --------------------------------------------------------------------------------------------------------- grad


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [
        (0, BY_A), (1, BY_B), (-1, BY_B), (-2, BY_A), ((0,), (BY_A,)), ((0, 1), (BY_A, BY_B)), ((1, 0), (BY_B, BY_A)),
        ((-1, 0), (BY_B, BY_A)),
    ],
    ids=str,
)  # fmt: skip
def test_argnums_say_of_what(argnums, expected):
    assert lists(grad(product, argnums)(A, B)) == expected
    assert lists(grad_and_value(product, argnums)(A, B)) == (expected, 59.0)


@pytest.mark.parametrize(
    ("argnums", "text"),
    [
        (2, "argnums has 2, but there are only 2 positional arguments"),
        (-3, "argnums has -3"),
        ((0, 2), "argnums has 2"),
        ((), "argnums must not be empty"),
        ((0, 0), r"must be unique, got \(0, 0\)"),
        ((0, -2), r"must be unique, got \(0, -2\)"),
        (0.0, "must be an int or a tuple of ints, got 0.0"),
        ((0, 1.0), "must be an int or a tuple of ints"),
        ([0], r"must be an int or a tuple of ints, got \[0\]"),
        (True, "got True"),
        (None, "got None"),
    ],
    ids=str,
)
@pytest.mark.parametrize("transform", OF_SCALARS)
def test_argnums_that_fit_no_argument_are_refused(transform, argnums, text):
    with pytest.raises(RuntimeError, match=f"{transform.__name__}: .*{text}"):
        transform(product, argnums)(A, B)


def test_keywords_are_constants():
    assert lists(grad(product)(A, b=B)) == BY_A
    with pytest.raises(RuntimeError, match="there are only 1 positional"):
        grad(product, 1)(A, b=B)


def test_arguments_and_gradients_are_trees():
    def f(d, s):
        return (d["a"] * d["b"][0]).sum() + d["b"][1] * s

    tree = {"b": [t(1, 2), rg.tensor(3.0)], "a": t(5, 7)}
    found = grad(f)(tree, 2.0)
    assert lists(found) == {"b": [[5.0, 7.0], 2.0], "a": [1.0, 2.0]}
    assert list(found) == ["b", "a"]


def test_auxiliary_results_are_passed_on():
    def f(v):
        return (v**2).sum(), {"twice": v * 2, "name": "f"}

    found, aux = grad(f, has_aux=True)(A)
    assert (lists(found), lists(aux)) == ([2.0, 4.0], {"twice": [2.0, 4.0], "name": "f"})
    assert lists(grad_and_value(f, has_aux=True)(A)) == ([2.0, 4.0], (5.0, {"twice": [2.0, 4.0], "name": "f"}))
    assert aux["twice"].level is None


@pytest.mark.parametrize("result", [lambda v: v.sum(), lambda v: (v.sum(),), lambda v: [v.sum(), v]])
@pytest.mark.parametrize(
    "call",
    [
        lambda f: grad(f, has_aux=True)(A),
        lambda f: grad_and_value(f, has_aux=True)(A),
        lambda f: vjp(f, A, has_aux=True),
        lambda f: jvp(f, (A,), (A,), has_aux=True),
    ],
    ids=["grad", "grad_and_value", "vjp", "jvp"],
)
def test_with_has_aux_the_function_must_return_a_pair(call, result):
    with pytest.raises(RuntimeError, match=r"must return a tuple \(output, aux\)"):
        call(result)


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (rg.sin, r"real scalar, got float64\[2\]"),
        (lambda v: v.sum().reshape(1), r"got float64\[1\]"),
        (lambda v: v.sum() * 1j, r"got complex128\[\]"),
        (lambda v: rg.tensor(1), r"got int64\[\]"),
        (lambda v: 3.0, "must return a tensor without dimensions, got float"),
        (lambda v: None, "got NoneType"),
        (lambda v: (v.sum(), v), "got tuple"),
    ],
)
@pytest.mark.parametrize("transform", OF_SCALARS)
def test_the_output_must_be_a_real_scalar(transform, f, text):
    with pytest.raises(RuntimeError, match=text):
        transform(f)(A)


def test_arguments_must_be_floating():
    with pytest.raises(RuntimeError, match="float"):
        grad(lambda v: (v * 2).sum())(rg.arange(3))
    assert lists(grad(lambda v, n: (v * n).sum())(A, rg.arange(2))) == [0.0, 1.0]


def test_a_gradient_keeps_dtype_and_shape():
    for dtype in (rg.float32, rg.float64, rg.complex64):
        found = grad(lambda v: (v * v.conj()).real.sum())(rg.ones((2, 1, 3), dtype=dtype))
        assert (found.dtype, found.shape) == (dtype, (2, 1, 3))
    assert grad(rg.sum)(rg.ones(0)).shape == (0,)


def test_inputs_that_the_output_does_not_depend_on_have_gradient_zero():
    c = t(7)
    assert lists(grad(lambda v: c.sum())(A)) == [0.0, 0.0]
    assert lists(grad(lambda a, b: a.sum(), (0, 1))(A, B)) == ([1.0, 1.0], [0.0, 0.0])


def test_an_outer_no_grad_does_not_block():
    with rg.no_grad():
        found = grad(lambda v: (v**3).sum())(A)
        assert not rg.is_grad_enabled()
    assert (lists(found), found.requires_grad) == ([3.0, 12.0], False)


def test_an_inner_no_grad_blocks():
    def quiet(v):
        with rg.no_grad():
            return v**2 + 0 * v

    assert lists(grad(lambda v: (quiet(v) * v).sum())(A)) == [1.0, 4.0]


def test_an_inner_transform_in_no_grad_is_a_constant_of_the_outer():
    def f(v):
        with rg.no_grad():
            inner = grad(lambda w: (w**3).sum())(v)
        return (inner * v).sum()

    assert lists(grad(f)(A)) == [3.0, 12.0]


def test_captured_tensors_are_constants_inside_and_leaves_outside():
    w = t(2, 3).requires_grad_()
    found = grad(lambda v: (v**2 * w).sum())(A)
    found.sum().backward()
    assert (lists(found), lists(w.grad)) == ([4.0, 12.0], [2.0, 4.0])


def test_arguments_get_no_grad_attribute():
    v = t(1, 2).requires_grad_()
    grad(lambda v: (v**2).sum())(v)
    assert v.grad is None


def test_fresh_tensors_and_their_views_may_be_written_to():
    def f(v):
        out = rg.zeros(3, dtype=v.dtype)
        view = out[1:]
        out[0] = v[0] * v[1]
        view += v
        view.mul_(v)
        return out.sum() + view.sum()

    assert lists(grad(f)(t(3, 5))) == [4 * 3 + 5.0, 4 * 5 + 3.0]


def test_a_view_taken_before_a_write_is_returned_as_it_is_after():
    def f(v):
        out = rg.zeros(2, dtype=v.dtype)
        first = out[0]
        out += v**2
        return first

    assert lists(grad_and_value(f)(A)) == ([2.0, 0.0], 1.0)
    assert lists(jvp(f, (A,), (t(1, 0),))) == (1.0, 2.0)
    assert lists(linearize(f, A)[1](t(1, 0))) == 2.0
    assert lists(grad_and_value(lambda v: (v.sum(), f(v)), has_aux=True)(A)[1][1]) == 1.0


@pytest.mark.parametrize("f", [lambda v, w: v.mul_(2).sum(), lambda v, w: (w.mul_(2) * v).sum()])
def test_arguments_and_captured_tensors_may_not(f):
    w = t(1, 1)
    with pytest.raises(RuntimeError, match="clone"):
        grad(lambda v: f(v, w))(A)
    assert (A.tolist(), w.tolist()) == ([1.0, 2.0], [1.0, 1.0])


def test_an_escaped_tensor_is_an_error_that_names_the_function():
    kept = []

    def leaking(v):
        kept.append(v * 2)
        return v.sum()

    for transform in (grad(leaking), lambda v: jvp(leaking, (v,), (v,)), lambda v: linearize(leaking, v)):
        transform(A)
        with pytest.raises(RuntimeError, match=r"escaped the function .*leaking \(.*test_grad\.py:\d+\)"):
            kept.pop() + 1


@pytest.mark.parametrize(
    "transform",
    [grad, lambda f: lambda v: vjp(f, v), lambda f: lambda v: jvp(f, (v,), (v,)), lambda f: lambda v: linearize(f, v)],
    ids=["grad", "vjp", "jvp", "linearize"],
)
def test_a_failing_function_leaves_no_level_active(transform):
    def fails(v):
        with rg.no_grad():
            raise KeyError

    with pytest.raises(KeyError):
        transform(lambda v: grad(fails)(v).sum())(A)
    assert current().level is None
    assert rg.is_grad_enabled()


def test_names_and_documentation_are_preserved():
    def f(v):
        """Documented."""

    assert (grad(f).__name__, grad_and_value(f).__doc__) == ("f", "Documented.")


# ---------------------------------------------------------------------------------------------------------- vjp


def test_vjp_gives_the_output_and_its_pullback():
    out, pull = vjp(lambda a, b: {"p": a * b, "s": [a.sum()]}, A, B)
    assert lists(out) == {"p": [3.0, 10.0], "s": [3.0]}
    for _ in range(2):
        assert lists(pull({"p": t(1, 10), "s": [rg.tensor(2.0, dtype=rg.float64)]})) == ([5.0, 52.0], [1.0, 20.0])


def test_vjp_has_aux():
    out, pull, aux = vjp(lambda v: (v * 2, v * 3), A, has_aux=True)
    assert (lists(out), lists(pull(t(1, 1))), lists(aux)) == ([2.0, 4.0], ([2.0, 2.0],), [3.0, 6.0])


def test_cotangents_that_do_not_fit_are_refused():
    _, pull = vjp(lambda v: (v, v.sum()), A)
    one = rg.tensor(1.0, dtype=rg.float64)
    for wrong, text in [
        ([A, one], "the cotangent is a tree"),
        (A, "the cotangent is a tree"),
        ((t(1), one), r"cotangent 0 has shape \(1,\), but \(2,\) is expected"),
        ((A, rg.tensor(1.0)), "cotangent 1 is float32, but float64 is expected"),
        ((A, 1.0), "cotangent 1 must be a Tensor, got float"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            pull(wrong)


@pytest.mark.parametrize("result", [3.0, None, (), (A, 3.0)], ids=["float", "None", "empty", "mixed"])
@pytest.mark.parametrize(
    "call",
    [lambda f: vjp(f, A), lambda f: jvp(f, (A,), (A,)), lambda f: linearize(f, A)],
    ids=["vjp", "jvp", "linearize"],
)
def test_outputs_must_be_tensors(call, result):
    with pytest.raises(RuntimeError, match=r"must return (tensors only|at least one tensor), got"):
        call(lambda v: result)


def test_a_pullback_may_be_batched_and_differentiated():
    _, pull = vjp(lambda v: v**2, A)
    assert lists(vmap(pull)(rg.eye(2, dtype=rg.float64))) == ([[2.0, 0.0], [0.0, 4.0]],)
    assert lists(grad(lambda g: pull(g)[0].sum())(t(1, 1))) == [2.0, 4.0]


# ------------------------------------------------------------------------------------------- jvp and linearize


def both_forward(f, primals, tangents):
    """Return the results of jvp and of linearize."""
    out, push = linearize(f, *primals)
    return [jvp(f, primals, tangents), (out, push(*tangents))]


def test_forward_mode_of_trees():
    def f(d, b):
        return {"p": d["a"] * b, "c": rg.ones(1)}

    for out, along in both_forward(f, ({"a": A}, B), ({"a": t(1, 0)}, t(0, 1))):
        assert lists(out) == {"p": [3.0, 10.0], "c": [1.0]}
        assert lists(along) == {"p": [3.0, 2.0], "c": [0.0]}


def test_a_push_lets_go_of_the_tangents_that_nothing_reads_any_more():
    def f(x):
        for _ in range(30):
            x = rg.sin(x)
        return x

    x = rg.ones(50_000)
    _, push = linearize(f, x)
    tracemalloc.start()
    try:
        push(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * x.value.nbytes


def test_linearize_runs_the_function_once():
    calls = []

    def f(v):
        calls.append(1)
        return v**2

    _, push = linearize(f, A)
    assert [lists(push(t(1, 0))), lists(push(t(0, 1))), len(calls)] == [[2.0, 0.0], [0.0, 4.0], 1]


def test_a_pushforward_may_be_batched_and_differentiated():
    _, push = linearize(lambda v: v**2, A)
    assert lists(vmap(push)(rg.eye(2, dtype=rg.float64))) == [[2.0, 0.0], [0.0, 4.0]]
    assert lists(grad(lambda d: push(d).sum())(t(1, 1))) == [2.0, 4.0]


def test_jvp_has_aux():
    out, along, aux = jvp(lambda v: (v * 2, v * 3), (A,), (t(1, 10),), has_aux=True)
    assert (lists(out), lists(along), lists(aux)) == ([2.0, 4.0], [2.0, 20.0], [3.0, 6.0])


def test_strict_refuses_outputs_that_do_not_depend_on_the_primals():
    with pytest.raises(RuntimeError, match=r"an output of shape \(3,\) does not depend on the primals"):
        jvp(lambda v: (v, rg.ones(3)), (A,), (A,), strict=True)
    assert lists(jvp(lambda v: v * 2, (A,), (A,), strict=True)[1]) == [2.0, 4.0]


@pytest.mark.parametrize(
    ("primals", "tangents", "error", "text"),
    [
        (A, A, RuntimeError, "primals must be a tuple of at least one argument"),
        ((), (), RuntimeError, r"primals must be a tuple of at least one argument, got \(\)"),
        ([A], [A], RuntimeError, "primals must be a tuple"),
        ((A,), (A, A), RuntimeError, "the tangent is a tree"),
        ((A,), (t(1),), RuntimeError, r"tangent 0 has shape \(1,\), but \(2,\) is expected"),
        ((A,), (rg.ones(2),), RuntimeError, "tangent 0 is float32, but float64 is expected"),
        ((A,), (1.0,), RuntimeError, "the tangent|tangent 0 must be a Tensor, got float"),
        ((rg.arange(2),), (rg.arange(2),), ValueError, r"primals must be floating or complex, got int64\[2\]"),
    ],
)
def test_primals_and_tangents_that_do_not_fit_are_refused(primals, tangents, error, text):
    with pytest.raises(error, match=f"jvp: .*{text}"):
        jvp(lambda v: v * 2, primals, tangents)


def test_writes_to_arguments_of_forward_mode_take_effect_at_the_end():
    v = t(3, 5)
    out, along = jvp(lambda v: v.mul_(v), (v,), (t(1, 1),))
    assert (lists(out), lists(along), lists(v)) == ([9.0, 25.0], [6.0, 10.0], [9.0, 25.0])


# ------------------------------------------------------------------------------------------- writes to arguments


@pytest.mark.parametrize("transform", [grad, jacrev, jacfwd])
def test_an_argument_that_is_not_differentiated_can_be_written_to(transform):
    def f(x, others):
        others["y"][0] = x[1]
        others["log"].append("called")
        return (others["y"] * x).sum()

    y, log = t(5, 7), []
    assert transform(f)(t(2, 3), {"y": y, "log": log}).tolist() == [3.0, 9.0]
    assert (y.tolist(), log) == ([3.0, 7.0], [])  # containers with tensors are copied, as in PyTorch


def test_a_container_without_tensors_is_the_callers():
    log = []
    grad(lambda x, seen: seen.append(1) or x.sum())(A, log)
    assert log == [1]


def test_jvp_writes_to_the_tangents_that_are_ordered_as_their_primals():
    def double(x):
        return x[0].mul_(2)

    for tangent, written in [(rg.ones(2, 2), True), (rg.ones(2, 2).t(), False), (rg.ones(2, 1).expand(2, 2), False)]:
        x = rg.ones(2, 2)
        _, derivative = jvp(double, (x,), (tangent,))
        assert derivative.tolist() == [2.0, 2.0]
        assert x.tolist() == [[2.0, 2.0], [1.0, 1.0]]
        assert tangent.tolist() == ([[2.0, 2.0], [1.0, 1.0]] if written else [[1.0, 1.0], [1.0, 1.0]])


def test_forward_mode_is_switched_off_for_the_innermost_jvp_only():
    def f(x):
        with rg.autograd.forward_ad.set_fwd_grad_enabled(False):
            constant = x * x
        return x * x - constant

    def derivative(x):
        return jvp(f, (x,), (one,))[1]

    x, one = t(3), t(1)
    assert derivative(x).tolist() == [6.0]
    assert jvp(derivative, (x,), (one,))[1].tolist() == [2.0]
    assert jvp(lambda x: jvp(lambda y: f(y) * x, (x,), (one,))[1], (x,), (one,))[1].tolist() == [12.0]
    with rg.autograd.forward_ad.set_fwd_grad_enabled(False):
        assert jvp(lambda x: x * x, (x,), (one,))[1].tolist() == [6.0]
