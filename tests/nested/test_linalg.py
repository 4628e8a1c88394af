"""Products with nested operands, compared with a loop over the components."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.backend import ragged_products
from retrograd.core import registry
from retrograd.func import jvp, vmap
from retrograd.nested import as_nested_tensor, nested_tensor
from retrograd.testing import LAWS, assert_close, samples_of

from ..case_groups import group_cases

J, K = [3, 0, 5, 2], [2, 4, 1, 3]
D, E, H = 4, 6, 2
linear = rg.nn.functional.linear


@pytest.fixture(autouse=True)
def _seed():
    rg.manual_seed(0)


def dense(*shape):
    return rg.randn(*shape, dtype="float64", requires_grad=True)


def nested(shapes):
    return nested_tensor([rg.randn(*s, dtype="float64") for s in shapes], requires_grad=True)


def rows(lengths, *after, before=()):
    return nested([(*before, n, *after) for n in lengths])


def columns(lengths, *before):
    return nested([(*before, n) for n in lengths])


def one_of(x, i, own):
    """Return a component's part of an operand, as a batch of one."""
    if x.is_nested:
        return x.unbind()[i].unsqueeze(0)
    return x[i : i + 1] if own else x


def check(f, *args, own=False):
    """Check values and gradients against a loop over the components; plain operands may have one per component."""
    out, loop = f(*args), []
    count = len(next(a for a in args if a.is_nested).unbind())
    for i in range(count):
        loop.append(f(*[one_of(a, i, own) for a in args]).squeeze(0))
    assert len(out.unbind()) == count
    total, expected = rg.zeros((), dtype="float64"), rg.zeros((), dtype="float64")
    for part, one in zip(out.unbind(), loop, strict=True):
        assert_close(part.detach(), one.detach().numpy(), rtol=1e-9, atol=1e-12)
        weights = rg.randn(*one.shape, dtype="float64")
        total, expected = total + (part * weights).sum(), expected + (one * weights).sum()
    for g, e in zip(rg.autograd.grad(total, args), rg.autograd.grad(expected, args), strict=True):
        for x, y in zip(g.unbind(), e.unbind(), strict=True):
            assert_close(x, y.numpy(), rtol=1e-9, atol=1e-11)


# ------------------------------------------------------------------------------------------------------- linear


def test_linear_is_that_of_each_component():
    check(linear, rows(J, D), dense(E, D), dense(E))
    check(linear, rows(J, D, before=(H,)), dense(E, D), dense(E))
    check(linear, rows(J, H, D), dense(E, D))
    check(linear, nested([(2, 3, D), (1, 4, D)]), dense(E, D), dense(E))


def test_linear_is_one_product_of_all_rows():
    x, weight = rows(J, D), dense(E, D)
    out = linear(x, weight)
    (node, _), *_ = out.grad_fn.next_functions
    assert node._record.op.name == "linear"
    assert_close(out.values().detach(), (x.values() @ weight.T).detach().numpy())


def test_linear_of_sets_of_sets():
    sets = [nested_tensor([rg.randn(n, D, dtype="float64") for n in lengths]) for lengths in ([2, 3], [1], [4, 0, 2])]
    x, weight = as_nested_tensor(sets), dense(E, D).detach()
    for part, of in zip(linear(x, weight).unbind(), sets, strict=True):
        assert_close(part.values(), linear(of, weight).values().numpy())


def test_linear_of_no_components_and_of_empty_ones():
    assert linear(rows([0, 0], D), dense(E, D)).values().shape == (0, E)
    x = rows(J, D)
    none = rg.nested.nested_tensor_from_jagged(x.values()[:0], rg.tensor([0]))
    assert linear(none, dense(E, D)).values().shape == (0, E)


# ------------------------------------------------------------------------------------------------------- matmul


def test_products_with_what_components_share():
    check(rg.matmul, rows(J, D), dense(D, E))
    check(rg.matmul, rows(J, D), dense(D))
    check(rg.matmul, rows(J, D, before=(H,)), dense(H, D, E))
    check(rg.matmul, rows(J, H, D), dense(D, E))
    check(rg.matmul, rows(J, H, D), dense(1, D, E))
    check(rg.matmul, rows(J, D), dense(1, D, E))
    check(rg.matmul, dense(E, D), columns(J, D))
    check(rg.matmul, dense(D), columns(J, D))
    check(rg.matmul, dense(E, D), columns(J, H, D))
    check(rg.matmul, dense(E, H), rows(J, H, D))


def test_products_of_two_nested_tensors():
    check(rg.matmul, rows(J, D), columns(K, D))
    check(rg.matmul, rows(J, D, before=(H,)), columns(K, H, D))
    check(rg.matmul, nested(list(zip(J, K, strict=True))), rows(K, E))
    check(rg.matmul, columns(J, D), nested(list(zip(J, K, strict=True))))
    check(rg.matmul, rows(J, D, E), rows(J, E, D))


def test_a_ragged_dimension_summed_over_leaves_a_plain_tensor():
    a, b = columns(J, H, D), rows(J, E, before=(H,))
    assert not (a @ b).is_nested
    assert (a @ b).shape == (len(J), H, D, E)
    assert rg.all((a @ b)[1] == 0)
    check(rg.matmul, a, b)
    check(lambda a, b: a.transpose(1, 2) @ b, rows(J, D), rows(J, E))


def test_dimensions_in_front_broadcast():
    check(rg.matmul, rows(J, D, before=(1,)), columns(K, H, D))
    check(rg.matmul, rows(J, D, before=(3, 1)), columns(K, 3, H, D))


def test_each_component_with_its_own_matrix():
    check(rg.matmul, rows(J, D), dense(len(J), D, E), own=True)
    check(rg.matmul, dense(len(J), E, D), columns(J, D), own=True)
    check(rg.matmul, rows(J, D, before=(H,)), dense(len(J), H, D, E), own=True)


def test_components_of_one_shape_are_as_stacked():
    a, b = [5, 5, 5], dense(3, D, E)
    x = rows(a, D)
    assert_close((x @ b).values().detach(), (x.values().reshape(3, 5, D) @ b).reshape(15, E).detach().numpy())


def test_a_ragged_dimension_may_meet_one_of_the_same_size_everywhere():
    check(rg.matmul, rows(J, 3), rows([3, 3, 3, 3], E))
    check(rg.matmul, columns([3, 3, 3, 3], H), columns(J, 3))
    check(rg.matmul, dense(4, H, 3), rows([3, 3, 3, 3], E), own=True)


def test_matrices_with_holes_between_them():
    buffer = rg.randn(12, D, dtype="float64", requires_grad=True)
    x = rg.nested.nested_tensor_from_jagged(buffer, rg.tensor([0, 4, 8, 12]), rg.tensor([2, 0, 3]))
    out = x @ x.transpose(1, 2)
    assert_close(out.unbind()[2].detach(), (buffer[8:11] @ buffer[8:11].T).detach().numpy())
    (g,) = rg.autograd.grad(out.values().sum(), [buffer])
    assert rg.all(g[2:8] == 0)
    assert rg.all(g[:2] != 0)


def test_integers_are_multiplied():
    x = nested_tensor([rg.tensor([[1, 2]]), rg.tensor([[3, 4], [5, 6]])])
    assert (x @ x.transpose(1, 2)).values().tolist() == [5, 25, 39, 39, 61]


def test_only_gradients_that_are_requested_are_computed(monkeypatch):
    calls, kernel = [], ragged_products.multiply_each
    monkeypatch.setattr(ragged_products, "multiply_each", lambda *args: calls.append(1) or kernel(*args))
    a, b = rows(J, D), columns(K, D)
    (a @ b.detach()).values().sum().backward()
    assert len(calls) == 2
    (a.detach() @ b).values().sum().backward()
    assert len(calls) == 4
    assert a.grad is not None
    assert b.grad is not None


@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")  # before the error, of a loop
@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (rows(J, D), columns(K, E), r"component 0 has shapes \(3, 4\) and \(6, 2\)"),
        (columns(J, D), rows([3, 0, 4, 2], E), r"component 2 has shapes \(4, 5\) and \(4, 6\)"),
        (rows(J, D), columns(K[:2], D), "4 and 2 components"),
        (rows(J, D, before=(2,)), columns(K, 3, D), r"component 0 has shapes \(2, 3, 4\) and \(3, 4, 2\)"),
    ],
)
def test_an_error_names_the_first_component_that_does_not_fit(a, b, text):
    with pytest.raises(ValueError, match=text):
        a @ b


def test_operands_have_one_dtype():
    with pytest.raises(RuntimeError, match="one dtype, got float64 and float32"):
        rows(J, D) @ columns(K, D).to("float32")


# --------------------------------------------------------------------------- composed of products


def test_operators_that_are_made_of_products():
    check(rg.bmm, rows(J, D), columns(K, D))
    check(
        lambda x, a, b: rg.baddbmm(x, a, b, beta=0.5), nested(list(zip(J, K, strict=True))), rows(J, D), columns(K, D)
    )
    check(rg.inner, rows(J, D), dense(E, D))
    check(rg.inner, rows(J, D), dense(D))
    check(rg.linalg.vecdot, rows(J, D), rows(J, D))
    check(rg.nn.functional.bilinear, rows(J, D), rows(J, E), dense(3, D, E), dense(3))
    check(lambda x, w: rg.tensordot(x, w, 1), rows(J, D), dense(D, E, 2))
    check(lambda x, w: rg.tensordot(x, w, ([1, 3], [0, 1])), rows(J, D, before=(H,)), dense(H, D, E))


@pytest.mark.parametrize(
    ("equation", "a", "b"),
    [
        ("bjd,de->bje", rows(J, D), dense(D, E)),
        ("bjd,dhe->bhje", rows(J, D), dense(D, H, E)),
        ("bjd,d->bj", rows(J, D), dense(D)),
        ("bhjd,hde->bjhe", rows(J, D, before=(H,)), dense(H, D, E)),
        ("bjd,bjd->bj", rows(J, D), rows(J, D)),
        ("bjd,bje->bjde", rows(J, D), rows(J, E)),
        ("bjd,bkd->bjk", rows(J, D), rows(K, D)),
        ("bjd,bkd->bkj", rows(J, D), rows(K, D)),
        ("bhjd,bhkd->bhjk", rows(J, D, before=(H,)), rows(K, D, before=(H,))),
        ("bjk,bkd->bjd", nested(list(zip(J, K, strict=True))), rows(K, D)),
        ("bjd,bje->bde", rows(J, D), rows(J, E)),
    ],
)
def test_einsum(equation, a, b):
    check(lambda a, b: rg.einsum(equation, [a, b]), a, b)


def test_einsum_over_components_too():
    a, b = rows(J, D), rows(J, E)
    assert_close(rg.einsum("bjd,bje->de", [a, b]).detach(), (a.values().T @ b.values()).detach().numpy())
    assert_close(rg.einsum("bjd->d", [a]).detach(), a.values().sum(0).detach().numpy())


# ------------------------------------------------------------------------------- further derivatives, and batches


@group_cases
@pytest.mark.parametrize("law", [law for law in LAWS if law != "nested"])  # it takes the buffers
def test_the_operator_keeps_the_laws(law):
    for args, params in samples_of(registry["nested.multiply_each"]):
        LAWS[law](registry["nested.multiply_each"], args, params)


def attention_like(x, y):
    """Return a function of two buffers with each kind of product."""
    offsets = [rg.tensor([0, *np.cumsum(n)]) for n in (J, K)]
    a, b = (rg.nested.nested_tensor_from_jagged(z, o) for z, o in zip((x, y), offsets, strict=True))
    scores = a @ b.transpose(1, 2)
    return (scores @ b).values(), a.transpose(1, 2) @ (scores @ b).sin()


def test_second_derivatives():
    x, y = dense(sum(J), 2), dense(sum(K), 2)
    assert gradcheck(attention_like, (x, y))
    assert gradgradcheck(attention_like, (x, y))


def test_forward_mode():
    x, y, t, u = (rg.randn(sum(n), 2, dtype="float64") for n in (J, K, J, K))
    _, pushed = jvp(attention_like, (x, y), (t, u))
    low, high = (attention_like(x + s * t, y + s * u) for s in (-1e-6, 1e-6))
    for p, below, above in zip(pushed, low, high, strict=True):
        assert_close(p, ((above - below) / 2e-6).numpy(), rtol=1e-6, atol=1e-6)


def test_batches_of_buffers():
    x, y = rg.randn(3, sum(J), 2, dtype="float64"), rg.randn(sum(K), 2, dtype="float64")
    out = vmap(attention_like, (0, None))(x, y)
    for i in range(3):
        for o, e in zip(out, attention_like(x[i], y), strict=True):
            assert_close(o[i], e.numpy(), rtol=1e-9, atol=1e-12)


def test_batches_of_components():
    a, b, weights = rows(J, D).detach(), rows(K, D).detach(), dense(len(J), D, E).detach()
    for f, args in ((rg.matmul, (a, weights)), (lambda x, y: x @ y.T, (a, b))):
        for part, *ones in zip(vmap(f)(*args).unbind(), *[x.unbind() for x in args], strict=True):
            assert_close(part, f(*ones).numpy(), rtol=1e-9, atol=1e-12)
