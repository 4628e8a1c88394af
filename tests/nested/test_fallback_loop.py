"""Operators without a ragged rule are looped over the components."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.core.op import registry
from retrograd.func import grad, hessian, jvp, vmap
from retrograd.nested import as_nested_tensor, dispatch, fallback_loop, nested_tensor
from retrograd.nested.buffer import values, wrap_buffer_like
from retrograd.nested.buffer_layout import get_layout
from retrograd.ops.batch_loop import PerformanceWarning
from retrograd.testing import LAWS, assert_close
from retrograd.testing.nested_law import law_nested

SIZES = (3, 1, 2)
quietly = pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")


def matrices(seed=0, sizes=SIZES):
    r = np.random.default_rng(seed)
    return [rg.tensor(r.uniform(-1, 1, (n, n)) + 3 * np.eye(n)) for n in sizes]


def assert_parts(found, expected):
    assert found.is_nested
    for a, b in zip(found.unbind(), expected, strict=True):
        assert_close(a, b, rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------------------------------------- the warning


def test_the_warning_names_operator_and_line_and_comes_once():
    x = as_nested_tensor(matrices())
    with pytest.warns(
        PerformanceWarning, match=r"^linalg\.matrix_exp: at .*test_fallback_loop\.py:\d+ in test_the_.* one by one"
    ) as caught:
        first = rg.linalg.matrix_exp(x)
    assert caught[0].filename == __file__
    again = rg.linalg.matrix_exp(x)  # a warning would be an error
    assert_parts(again, first.unbind())


def test_every_operator_has_a_warning_of_its_own():
    x = as_nested_tensor(matrices())
    with pytest.warns(PerformanceWarning, match="matrix_exp"):
        rg.linalg.matrix_exp(x)
    with pytest.warns(PerformanceWarning, match="inv"):
        rg.linalg.inv(x)


def test_where_warnings_are_errors_every_call_fails():
    x = as_nested_tensor(matrices())
    for _ in range(2):
        with pytest.raises(PerformanceWarning):
            rg.linalg.matrix_exp(x)


def test_forgotten_warnings_are_reported_again():
    x = as_nested_tensor(matrices())
    for _ in range(2):
        with pytest.warns(PerformanceWarning):
            rg.linalg.matrix_exp(x)
        fallback_loop.reset_warnings()


def test_operators_with_a_rule_do_not_warn():
    x = as_nested_tensor(matrices())
    (x.sin() + x).relu().sum()


# ------------------------------------------------------------------------------------------------- transforms


@quietly
def test_derivatives_of_first_and_second_order_are_those_of_a_loop():
    parts = [m.requires_grad_() for m in matrices()]
    out = rg.linalg.matrix_exp(as_nested_tensor(parts)).sin()
    wanted = [rg.linalg.matrix_exp(m).sin() for m in parts]
    assert_parts(out, wanted)
    for order in range(2):
        total, loop = out.values().sum(), sum(w.sum() for w in wanted)
        got = rg.autograd.grad(total, parts, create_graph=not order)
        expected = rg.autograd.grad(loop, parts, create_graph=not order)
        for a, b in zip(got, expected, strict=True):
            assert_close(a, b, rtol=1e-9, atol=1e-9)
        if not order:
            out = as_nested_tensor([g * g for g in got])
            wanted = [g * g for g in expected]


@quietly
def test_gradcheck_passes_twice():
    x = nested_tensor(matrices(sizes=(2, 1)), requires_grad=True)
    assert rg.autograd.gradcheck(lambda x: rg.linalg.inv(x).values(), (x,))
    assert rg.autograd.gradgradcheck(lambda x: rg.linalg.inv(x).values(), (x,))


@quietly
def test_forward_mode_and_a_hessian_are_those_of_a_loop():
    parts, ts = matrices(), matrices(1)
    x, t = as_nested_tensor(parts), as_nested_tensor(ts)
    out, tangent = jvp(rg.linalg.inv, (x,), (t,))
    assert_parts(out, [rg.linalg.inv(m) for m in parts])
    assert_parts(tangent, [jvp(rg.linalg.inv, (m,), (u,))[1] for m, u in zip(parts, ts, strict=True)])

    def f(s):
        return rg.linalg.det(x * s).sum()

    s = rg.tensor(1.5, dtype=rg.float64)
    assert_close(
        hessian(f)(s), sum(n * (n - 1) * 1.5 ** (n - 2) * rg.linalg.det(m) for n, m in zip(SIZES, parts, strict=True))
    )
    assert_close(grad(f)(s), sum(n * 1.5 ** (n - 1) * rg.linalg.det(m) for n, m in zip(SIZES, parts, strict=True)))


@quietly
def test_a_batch_of_factors_is_that_of_a_loop():
    x, factors = as_nested_tensor(matrices()), rg.tensor([1.0, 2.0])
    out = vmap(lambda s: rg.linalg.inv(x * s).values())(factors)
    for row, s in zip(out, factors, strict=True):
        assert_close(row, rg.linalg.inv(x * s).values())


@quietly
def test_a_traced_program_gives_the_same():
    x = as_nested_tensor(matrices())
    graph = rg.fx.trace(lambda x: rg.linalg.inv(x) * 2, x)
    assert_parts(graph(x), [2 * rg.linalg.inv(m) for m in matrices()])


# ------------------------------------------------------------------------------------------------- operands


@quietly
def test_a_plain_operand_with_a_row_for_each_component_goes_with_them():
    factors = rg.linalg.cholesky(rg.stack([m @ m.mT for m in matrices(sizes=(3, 3))]))
    sides = [rg.ones(3, n, dtype=rg.float64) for n in (1, 4)]
    found = rg.cholesky_solve(as_nested_tensor(sides), factors)
    assert_parts(found, [rg.cholesky_solve(b, L) for b, L in zip(sides, factors, strict=True)])


@quietly
@pytest.mark.parametrize("channels", [2, 3])  # of which there may be as many as components
def test_a_weight_is_the_same_for_all_components(channels):
    r = np.random.default_rng(0)
    signals = [rg.tensor(r.uniform(-1, 1, (2, n))) for n in (5, 3, 4)][:channels]
    weight = rg.tensor(r.uniform(-1, 1, (channels, 2, 2)))
    found = rg.nn.functional.conv1d(as_nested_tensor(signals), weight)
    assert_parts(found, [rg.nn.functional.conv1d(s, weight) for s in signals])


@quietly
def test_a_list_of_tensors_and_several_results():
    parts = matrices()
    U, S, Vh = rg.linalg.svd(as_nested_tensor(parts))
    assert_parts((U * S.unsqueeze(-2)) @ Vh, parts)
    left, right = as_nested_tensor(parts), as_nested_tensor([m[:, :1] for m in parts])
    assert_parts(rg.einsum("bij,bjk,bkl->bil", [left, left, right]), [m @ m @ m[:, :1] for m in parts])


@quietly
def test_integers_and_truths_are_operands_too():
    parts = [m > 2 for m in matrices()]
    found = rg.isin(as_nested_tensor([p.long() for p in parts]), rg.tensor([1, 7]))
    assert_parts(found, parts)


@quietly
def test_no_components_give_none_and_gradients_of_nothing():
    x = as_nested_tensor(matrices())[:0].requires_grad_()
    out = rg.linalg.inv(x)
    assert out.is_nested
    assert out.shape[0] == 0
    out.values().sum().backward()
    assert x.grad.values().numel() == 0


@quietly
def test_random_numbers_are_those_of_the_stacked_components():
    x = rg.ones(3, 4, dtype=rg.float64)
    rg.manual_seed(0)
    expected = rg.nn.functional.gumbel_softmax(x)
    rg.manual_seed(0)
    found = rg.nn.functional.gumbel_softmax(as_nested_tensor(list(x)))
    assert_parts(found, expected)


# --------------------------------------------------------------------------------------------------- refused calls


@pytest.mark.parametrize(
    "call",
    [
        lambda x: rg.fft.fftshift(x),  # along all dimensions
        lambda x: rg.linalg.svdvals(x.sum(-1)),  # one matrix of rows
        lambda x: rg.linalg.qr(x.sum(-1)),
        lambda x: rg.unique(x, dim=0),
        lambda x: rg.fft.fft(x, dim=0),
        lambda x: rg.put(x, rg.tensor([0]), rg.zeros(1, dtype=rg.float64)),
    ],
)
@quietly
def test_calls_that_would_act_across_the_components_are_refused(call):
    with pytest.raises(RuntimeError, match="across the components"):
        call(as_nested_tensor(matrices()))


@quietly
def test_an_operator_says_what_it_does_not_take_and_for_which_component():
    x = as_nested_tensor([rg.eye(2), rg.ones(2, 3)])
    with pytest.raises(ValueError, match=r"shapes \(1, 2, 3\) do not fit") as caught:
        rg.linalg.matrix_exp(x)
    assert caught.value.__notes__ == ["This is component 1 of a nested tensor, as a batch of one."]


def test_different_numbers_of_components_are_refused():
    with pytest.raises(ValueError, match="have 3 and 2 components"):
        rg.polar(as_nested_tensor(matrices()), as_nested_tensor(matrices()[:2]))


def test_shapes_that_never_fit_are_reported_as_for_dense_tensors():
    x = as_nested_tensor([rg.ones(2, 3), rg.ones(4, 3)])
    with pytest.raises(ValueError, match="layer_norm: normalized_shape"):
        rg.nn.functional.layer_norm(x, (5,))


# ------------------------------------------------------------------------------------------------- the law


def test_the_law_finds_a_rule_that_is_wrong(monkeypatch):
    op, args = registry["sin"], (rg.ones(2, 3, dtype=rg.float64),)
    law_nested(op, args, {})
    monkeypatch.setitem(dispatch._rule_cache, op, [lambda op, args, params: args[0].cos()])
    with pytest.raises(AssertionError, match=r"sin: inputs .* nested"):
        law_nested(op, args, {})


def test_the_law_finds_a_refusal_without_need(monkeypatch):
    def refuse(op, args, params):
        raise RuntimeError("sin: refused")

    monkeypatch.setitem(dispatch._rule_cache, registry["sin"], [refuse])
    with pytest.raises(AssertionError, match="refused, though the operator maps over the rows"):
        law_nested(registry["sin"], (rg.ones(2, 3, dtype=rg.float64),), {})


def test_the_law_finds_gradients_that_are_wrong(monkeypatch):
    def without_gradient(op, args, params):
        return wrap_buffer_like(get_layout(args[0]), values(args[0]).detach().sin())

    monkeypatch.setitem(dispatch._rule_cache, registry["sin"], [without_gradient])
    with pytest.raises(AssertionError, match="gradients"):
        law_nested(registry["sin"], (rg.ones(2, 3, dtype=rg.float64),), {})


def test_the_law_is_one_of_the_laws():
    assert LAWS["nested"] is law_nested
