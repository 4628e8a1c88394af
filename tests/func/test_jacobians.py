"""`jacrev`, `jacfwd` and `hessian`, compared with derivatives by hand."""

import pytest

import retrograd as rg
from retrograd.core import current
from retrograd.func import grad, hessian, jacfwd, jacrev, vmap
from retrograd.levels import VmapLevel

BOTH = pytest.mark.parametrize("jac", [jacrev, jacfwd])


def t(*values):
    return rg.tensor(values, dtype=rg.float64)


def outer(a, b):
    return a[:, None] * b


A, B = t(1.0, 2.0), t(3.0, 5.0, 7.0)
BY_A = [[[3.0, 0.0], [5.0, 0.0], [7.0, 0.0]], [[0.0, 3.0], [0.0, 5.0], [0.0, 7.0]]]
BY_B = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]]


@BOTH
@pytest.mark.parametrize(
    ("argnums", "expected"),
    [(0, BY_A), (1, BY_B), (-1, BY_B), ((0,), (BY_A,)), ((1, 0), (BY_B, BY_A)), ((-1, -2), (BY_B, BY_A))],
    ids=str,
)
def test_the_dimensions_of_the_output_come_first_and_argnums_say_of_what(jac, argnums, expected):
    found = jac(outer, argnums)(A, B)
    assert (tuple(g.tolist() for g in found) if isinstance(argnums, tuple) else found.tolist()) == expected


@BOTH
@pytest.mark.parametrize(
    ("argnums", "text"),
    [
        (2, "argnums has 2, but there are only 2 positional arguments"),
        (-3, "argnums has -3"),
        ((), "argnums must not be empty"),
        ((0, 0), "must be unique"),
        ((1, -1), "must be unique"),
        (0.0, "must be an int or a tuple of ints, got 0.0"),
        ((0.5,), "must be an int or a tuple of ints"),
        ([0], "must be an int or a tuple of ints"),
    ],
    ids=str,
)
def test_argnums_that_fit_no_argument_are_refused(jac, argnums, text):
    with pytest.raises(RuntimeError, match=f"{jac.__name__}: .*{text}"):
        jac(outer, argnums)(A, B)


@BOTH
def test_arguments_and_outputs_are_trees(jac):
    def f(d, s):
        return {"p": d["a"][0] * d["b"][0], "q": (d["b"][0].sum() * s,)}

    found = jac(f)({"a": [A], "b": (t(3.0, 5.0), rg.tensor(1.0))}, s=2.0)
    assert (list(found), list(found["p"])) == (["p", "q"], ["a", "b"])
    assert type(found["q"]) is type(found["p"]["b"]) is tuple
    assert found["p"]["a"][0].tolist() == [[3.0, 0.0], [0.0, 5.0]]
    assert found["p"]["b"][1].tolist() == [0.0, 0.0]
    assert found["q"][0]["b"][0].tolist() == [2.0, 2.0]
    assert found["q"][0]["a"][0].shape == (2,)


@BOTH
def test_the_function_runs_once(jac):
    calls = []

    def f(v):
        calls.append(1)
        return rg.sin(v)

    jac(f)(rg.ones(20))
    assert len(calls) == 1


@BOTH
def test_auxiliary_results_are_passed_on(jac):
    found, aux = jac(lambda v: (v * v, {"twice": v * 2, "shape": v.shape}), has_aux=True)(A)
    assert found.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert (aux["twice"].tolist(), aux["shape"], aux["twice"].level) == ([2.0, 4.0], (2,), None)
    with pytest.raises(RuntimeError, match=rf"{jac.__name__}: .*with has_aux the function must return a tuple"):
        jac(rg.sin, has_aux=True)(A)


@BOTH
def test_empty_arguments_and_outputs_have_empty_jacobians(jac):
    assert jac(lambda v: v[:0])(A).shape == (0, 2)
    assert jac(lambda v: v.sum() * rg.ones(3, dtype=v.dtype))(rg.ones(0, dtype=rg.float64)).shape == (3, 0)
    assert jac(rg.sin)(rg.ones(0)).shape == (0, 0)
    both = jac(lambda v: (v[:0], v * 2))(A)
    assert (both[0].shape, both[1].tolist()) == ((0, 2), [[2.0, 0.0], [0.0, 2.0]])


@BOTH
def test_inputs_that_the_output_does_not_depend_on_have_jacobian_zero(jac):
    assert jac(lambda v: rg.ones(3))(A).tolist() == [[0.0, 0.0]] * 3
    assert jac(lambda a, b: a * 2, 1)(A, B).tolist() == [[0.0] * 3] * 2


@BOTH
def test_complex_numbers_are_refused_but_inside(jac):
    with pytest.raises(RuntimeError, match=rf"{jac.__name__}: expected real inputs and outputs, got complex64\[2\]"):
        jac(rg.sin)(rg.ones(2, dtype=rg.complex64))
    with pytest.raises(RuntimeError, match=rf"{jac.__name__}: expected real inputs and outputs, got complex128\[2\]"):
        jac(lambda v: v * 1j)(A)
    assert jac(lambda v: (v * 3j).imag)(A).tolist() == [[3.0, 0.0], [0.0, 3.0]]


@BOTH
@pytest.mark.parametrize("result", [3.0, None, (), (A, "a")], ids=["float", "None", "empty", "mixed"])
def test_outputs_must_be_tensors(jac, result):
    with pytest.raises(RuntimeError, match=rf"{jac.__name__}: .*the function must return"):
        jac(lambda v: result)(A)


@BOTH
def test_arguments_must_be_floating(jac):
    with pytest.raises((RuntimeError, ValueError), match="float"):
        jac(lambda v: v * 2)(rg.arange(3))


@BOTH
def test_an_outer_graph_and_an_outer_batch_go_through(jac):
    v = t(1.0, 2.0).requires_grad_()
    (second,) = rg.autograd.grad(jac(lambda v: v**3)(v).sum(), v)
    assert second.tolist() == [6.0, 12.0]
    rows = rg.stack([A, A * 2])
    assert vmap(jac(lambda v: v**2))(rows).tolist() == [[[2.0, 0.0], [0.0, 4.0]], [[4.0, 0.0], [0.0, 8.0]]]


@BOTH
def test_an_outer_no_grad_does_not_block(jac):
    with rg.no_grad():
        assert jac(lambda v: v**2)(A).tolist() == [[2.0, 0.0], [0.0, 4.0]]


@BOTH
def test_a_failing_function_leaves_no_level_active(jac):
    def fails(v):
        raise KeyError

    with pytest.raises(KeyError):
        jac(jac(fails))(A)
    assert current().level is None


@BOTH
def test_an_escaped_tensor_is_an_error_that_names_the_function(jac):
    kept = []

    def leaking(v):
        kept.append(v * 2)
        return v

    jac(leaking)(A)
    with pytest.raises(RuntimeError, match=r"escaped the function .*leaking \(.*test_jacobians\.py:\d+\)"):
        kept[0] + 1


# ------------------------------------------------------------------------------------------------------- chunks


@BOTH
@pytest.mark.parametrize("size", [2, 3, 100])
def test_chunks_change_nothing_but_how_many_run_together(jac, size, monkeypatch):
    sizes, enter = [], VmapLevel.__enter__
    monkeypatch.setattr(VmapLevel, "__enter__", lambda level: sizes.append(level.size) or enter(level))

    def f(v):
        return rg.sin(v) * rg.cat([v[1:], v[:1]])

    assert jac(f, chunk_size=size)(B).tolist() == jac(f)(B).tolist()
    assert sizes == [size] * (3 // size) + [3 % size] * bool(3 % size) + [3]


def test_a_backward_pass_that_reads_values_runs_row_by_row():
    class Checked(rg.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            assert g.nonzero().shape == (1, 1)
            return 2 * g * ctx.saved_tensors[0]

    assert jacrev(Checked.apply, chunk_size=1)(B).tolist() == rg.diag(2 * B).tolist()
    with pytest.raises(RuntimeError, match="can output dynamic shape"):
        jacrev(Checked.apply, chunk_size=2)(B)


@BOTH
@pytest.mark.parametrize("size", [0, -1])
def test_a_chunk_has_at_least_one_row(jac, size):
    with pytest.raises(ValueError, match=f"chunk_size must be at least 1, got {size}"):
        jac(rg.sin, chunk_size=size)(A)


def test_random_numbers_in_forward_mode_are_drawn_once_if_they_may():
    with pytest.raises(RuntimeError, match="rand draws random numbers"):
        jacfwd(lambda v: v * rg.rand(2, dtype=rg.float64))(A)
    found = jacfwd(lambda v: v * rg.rand(2, dtype=rg.float64), randomness="same")(A)
    assert (found - rg.diag(found.diagonal())).abs().max() == 0
    assert found.diagonal().min() > 0


# ----------------------------------------------------------------------------------------------------- Hessians


def test_the_hessian_of_a_scalar_function():
    assert hessian(lambda v: v[0] ** 2 * v[1] + v[1] ** 3)(t(3.0, 5.0)).tolist() == [[10.0, 6.0], [6.0, 30.0]]


def test_the_hessian_of_a_vector_function_has_the_output_first():
    found = hessian(lambda v: v[:2] * v[2])(B)
    assert found.shape == (2, 3, 3)
    assert found[1].tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]


def test_the_hessian_of_several_arguments_is_a_table():
    found = hessian(lambda a, b: (a * b * b).sum(), (0, 1))(A, t(3.0, 5.0))
    assert found[0][0].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert found[0][1].tolist() == found[1][0].tolist() == [[6.0, 0.0], [0.0, 10.0]]
    assert found[1][1].tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_the_hessian_of_a_tree_is_a_tree_of_trees():
    found = hessian(lambda d: (d["a"] ** 2).sum() * d["b"])({"a": A, "b": rg.tensor(3.0, dtype=rg.float64)})
    assert found["a"]["a"].tolist() == [[6.0, 0.0], [0.0, 6.0]]
    assert found["a"]["b"].tolist() == found["b"]["a"].tolist() == [2.0, 4.0]
    assert found["b"]["b"].tolist() == 0.0


def test_reverse_over_forward_and_forward_over_reverse_agree():
    def f(v):
        return (rg.sin(v) * v.sum()).sum()

    found = [outer(inner(f))(B) for outer in (jacrev, jacfwd) for inner in (jacrev, jacfwd)]
    assert all(rg.allclose(h, found[0], rtol=1e-12) for h in found)
    assert rg.allclose(found[0] @ B, grad(lambda v: rg.dot(grad(f)(v), B))(B), rtol=1e-12)
