"""Attention within the components of nested tensors, compared with a loop over them."""

import tracemalloc

import numpy as np
import pytest

import retrograd as rg
from retrograd import kernels
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.backend import ragged_attention
from retrograd.core import registry
from retrograd.func import grad, hessian, jvp, vmap
from retrograd.kernels import attention_reference
from retrograd.nested import nested_tensor, nested_tensor_from_jagged
from retrograd.testing import LAWS, assert_close, errors_of, samples_of

from ..case_groups import group_cases

L, S = [3, 0, 5, 2], [2, 4, 1, 0]
D, E, H = 4, 6, 2
attend = rg.nn.functional.scaled_dot_product_attention


@pytest.fixture(autouse=True)
def _seed():
    rg.manual_seed(0)


def nested(lengths, *after, before=(), size=1.0, dtype="float64"):
    return nested_tensor([size * rg.randn(*before, n, *after, dtype=dtype) for n in lengths], requires_grad=True)


def masks(make, before=(), queries=L, keys=S):
    return nested_tensor([make(rg.randn(*before, n, m, dtype="float64")) for n, m in zip(queries, keys, strict=True)])


def check(q, k, v, mask=None, tolerance=1e-9, **how):
    """Check that values and gradients are those of dense attention on each component."""
    leaves = [q, k, v, *([mask] if mask is not None and mask.requires_grad else [])]
    out = attend(q, k, v, mask, **how)
    parts = [x.unbind() if x is not None and x.is_nested else [x] * len(L) for x in (q, k, v, mask)]
    loop = [attend(*one, **how) for one in zip(*parts, strict=True)]
    total, expected = 0, 0
    for part, one in zip(out.unbind(), loop, strict=True):
        assert_close(part.detach(), one.detach().numpy(), rtol=tolerance, atol=tolerance)
        weights = rg.randn(*one.shape, dtype=one.dtype)
        total, expected = total + (part * weights).sum(), expected + (one * weights).sum()
    for g, e in zip(rg.autograd.grad(total, leaves), rg.autograd.grad(expected, leaves), strict=True):
        for x, y in zip(g.unbind(), e.unbind(), strict=True):
            assert_close(x, y.numpy(), rtol=tolerance, atol=10 * tolerance)


def qkv(queries=L, keys=S, before=(H,), **more):
    q, k = nested(queries, D, before=before, **more), nested(keys, D, before=before, **more)
    return q, k, nested(keys, E, before=before, **more)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [1.0, 40.0])  # scores whose exponentials are finite, and others
def test_it_is_that_of_each_component(causal, size):
    check(*qkv(size=size), is_causal=causal, tolerance=1e-7)
    check(*qkv(keys=L, size=size), is_causal=causal, tolerance=1e-7)
    check(*qkv(before=(), size=size), is_causal=causal, scale=0.3, tolerance=1e-7)
    check(*qkv(before=(3, 2)), is_causal=causal)


def test_single_precision():
    check(*qkv(dtype="float32"), tolerance=1e-5)
    check(*qkv(dtype="float32", size=10.0, keys=L), is_causal=True, tolerance=1e-4)


@pytest.mark.parametrize("causal", [False, True])
def test_blocks_of_queries_are_as_one(causal, monkeypatch):
    for name in ("attend", "attend_grad"):
        monkeypatch.setattr(kernels, name, getattr(kernels.reference, name))
    monkeypatch.setattr(attention_reference, "BLOCK", 10)
    monkeypatch.setattr(attention_reference, "CAUSAL_QUERIES", 2)
    check(*qkv(), is_causal=causal)
    check(*qkv(keys=[4, 3, 7, 2]), is_causal=causal)
    check(*qkv(), masks(lambda m: m > 0) if not causal else None, is_causal=causal)


def test_heads_after_the_rows_are_read_where_they_are(monkeypatch):
    seen = []
    kernel = ragged_attention.attend
    monkeypatch.setattr(ragged_attention, "attend", lambda *args: seen.extend(args[:3]) or kernel(*args))
    leaves = [nested(L, H, D) for _ in range(3)]
    out = attend(*[x.transpose(1, 2) for x in leaves])
    for array, x in zip(seen, leaves, strict=True):
        assert np.shares_memory(array, x.value.values)
    back = out.transpose(1, 2)
    assert back.values().value.flags.c_contiguous
    for number, part in enumerate(back.unbind()):
        one = attend(*[x.unbind()[number].transpose(0, 1) for x in leaves]).transpose(0, 1)
        assert_close(part.detach(), one.detach().numpy(), rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------------------------------------------- masks


def test_masks_of_each_component():
    check(*qkv(), masks(lambda m: m > 0))
    check(*qkv(), masks(lambda m: m > 0, before=(H,)))
    check(*qkv(), masks(lambda m: m))
    check(*qkv(), masks(lambda m: m, before=(H,)).requires_grad_())
    check(*qkv(), masks(lambda m: m).requires_grad_())
    check(*qkv(before=()), masks(lambda m: m))


def test_masks_that_broadcast():
    check(*qkv(), masks(lambda m: m > 0, queries=[1] * 4))
    check(*qkv(), masks(lambda m: m, keys=[1] * 4, before=(H,)).requires_grad_())
    check(*qkv(), rg.randn(H, 1, 1, dtype="float64", requires_grad=True))
    assert rg.all(attend(*qkv(), rg.tensor([[False]])).values() == 0)


def test_a_query_that_may_look_nowhere_gets_0():
    q, k, v = qkv()
    mask = masks(lambda m: m > 10)
    out = attend(q, k, v, mask)
    assert rg.all(out.values() == 0)
    assert all(rg.all(g.values() == 0) for g in rg.autograd.grad(out.values().sum(), [q, k, v]))


@pytest.mark.parametrize("before", [(), (1, 1), (4, 1), (1, H), (4, H)])
@pytest.mark.parametrize("sizes", [(max(L), max(S)), (1, max(S)), (max(L), 1)])
@pytest.mark.parametrize("kind", ["boolean", "float"])
def test_a_mask_of_padded_tensors_is_cut_to_each_component(before, sizes, kind):
    rg.manual_seed(0)
    mask = rg.randn(*before, *sizes, dtype=rg.float64)
    mask = (mask > -0.5) if kind == "boolean" else mask.requires_grad_()
    q, k, v = qkv()
    out = attend(q, k, v, mask)
    whole = mask.expand(4, H, max(L), max(S))
    for i, (part, queries, keys) in enumerate(zip(out.unbind(), L, S, strict=True)):
        own = attend(*(x.unbind()[i] for x in (q, k, v)), whole[i, :, :queries, :keys])
        assert_close(part, own, rtol=1e-9, atol=1e-9)
    if kind == "float":
        out.values().sin().sum().backward()
        parts = [
            attend(*(x.unbind()[i].detach() for x in (q, k, v)), whole[i, :, : L[i], : S[i]]).sin().sum()
            for i in range(4)
        ]
        (expected,) = rg.autograd.grad(sum(parts), mask)
        assert_close(mask.grad, expected, rtol=1e-9, atol=1e-9)


def test_an_error_says_which_mask_does_not_fit():
    with pytest.raises(ValueError, match=r"a mask of shape \(9, 9\) does not fit 4 components of at most"):
        attend(*qkv(), rg.ones(9, 9, dtype=bool))
    with pytest.raises(ValueError, match=r"component 2 of attn_mask has shape \(5, 3\), but there are 5 queries and 1"):
        attend(*qkv(), masks(lambda m: m, keys=[2, 4, 3, 0]))
    with pytest.raises(RuntimeError, match="give attn_mask or is_causal, not both"):
        attend(*qkv(), masks(lambda m: m), is_causal=True)


# ---------------------------------------------------------------------------------------------- kinds of operands


def test_heads_that_share_keys():
    q, (_, k, v) = nested(L, D, before=(6,)), qkv()
    check(q, k, v, enable_gqa=True)
    check(q, k, v, enable_gqa=True, is_causal=True)
    check(q, k, v, masks(lambda m: m, before=(6,)), enable_gqa=True)
    check(q, k, v, masks(lambda m: m > 0), enable_gqa=True)
    with pytest.raises(ValueError, match="3 heads"):
        attend(nested(L, D, before=(3,)), k, v, enable_gqa=True)


def test_heads_broadcast():
    _, k, v = qkv()
    check(nested(L, D, before=(1,)), k, v)
    check(nested(L, D, before=(H,)), nested(S, D, before=(1,)), v)


def test_plain_keys_and_values_belong_to_the_components():
    q = nested(L, D, before=(H,))
    k, v = rg.randn(4, H, 7, D, dtype="float64"), rg.randn(4, H, 7, E, dtype="float64")
    for i, part in enumerate(attend(q, k, v).unbind()):
        assert_close(part.detach(), attend(q.unbind()[i], k[i], v[i]).detach().numpy(), rtol=1e-9, atol=1e-12)


def test_components_of_one_length_are_as_stacked():
    q, k, v = (nested([5, 5, 5], D, before=(H,)) for _ in range(3))
    dense = [rg.stack(list(x.unbind())) for x in (q, k, v)]
    out = rg.stack(list(attend(q, k, v, is_causal=True).unbind()))
    assert_close(out.detach(), attend(*dense, is_causal=True).detach().numpy(), rtol=1e-9, atol=1e-12)


def test_no_components_at_all():
    offsets = rg.tensor([0])
    q = nested_tensor_from_jagged(rg.zeros(0, H, D), offsets).transpose(1, 2)
    assert attend(q, q, q).shape[0] == 0


def test_dropout_draws_for_each_component():
    ones = nested_tensor([rg.ones(n, 1) for n in (4, 300)])
    out = attend(ones, ones, ones, dropout_p=0.5)
    assert_close(out.unbind()[1].mean().item(), 1.0, rtol=0, atol=0.1)
    assert out.unbind()[1].std().item() > 0.01


@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")  # before the error, of a loop
def test_errors_name_the_first_component_that_does_not_fit():
    q, k, _ = qkv()
    with pytest.raises(ValueError, match=r"component 1 has keys of shape \(2, 4, 4\) and values of shape \(2, 3, 4\)"):
        attend(q, k, nested([2, 3, 1, 0], D, before=(H,)))
    with pytest.raises(ValueError, match="3, 4 components"):
        attend(q, nested(S[:3], D, before=(H,)), nested(S[:3], D, before=(H,)))
    with pytest.raises(ValueError, match="do not fit"):
        attend(q, nested(S, D + 1, before=(H,)), nested(S, D, before=(H,)))


# ----------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("causal", [False, True])
def test_memory_is_linear_in_the_longest_component(causal):
    def peak(length):
        q = nested([length, 3], 4, dtype="float32")
        tracemalloc.start()
        attend(q, q, q, is_causal=causal).values().sum().backward()
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(4000) < 0.2 * 4 * 4000**2
    assert peak(8000) < 2.5 * peak(4000)


def test_only_gradients_that_are_requested_are_computed():
    q, k, v = qkv()
    plan = ragged_attention.Plan(q.value.structure, k.value.structure, 1.0, False)
    arrays = [x.values().value for x in (q, k, v)]
    out, sums = ragged_attention.attend(*arrays, None, None, plan)
    output_mask = (False, False, True, False)
    found = ragged_attention.attend_backward(out, 0 * sums, *arrays, None, None, out, sums, plan, output_mask)
    assert [d.shape for d in found] == [(0,), (0,), arrays[2].shape, (0,)]
    k.requires_grad_(False)
    attend(q, k, v).values().sum().backward()
    assert k.grad is None
    assert q.grad is not None


# ------------------------------------------------------------------------------- further derivatives, and batches


@group_cases
@pytest.mark.parametrize("law", [law for law in LAWS if law != "nested"])  # they take the buffers
@pytest.mark.parametrize("name", ["nested.attend", "nested.attend_backward"])
def test_the_operators_keep_the_laws(name, law):
    for args, params in samples_of(registry[name]):
        LAWS[law](registry[name], args, params)


def test_half_precision_and_integers_are_for_others():
    for args, params, error, text in errors_of(registry["nested.attend"]):
        with pytest.raises(error, match=text):
            registry["nested.attend"](args[0], args[1:], **params)
    q, k, v = (x.detach().to("float16") for x in qkv(dtype="float32"))
    for part, *one in zip(attend(q, k, v).unbind(), q.unbind(), k.unbind(), v.unbind(), strict=True):
        assert_close(part, attend(*one).numpy(), rtol=0, atol=4e-3)


def flat(q, k, v, causal=False):
    """Return a function of buffers."""
    offsets = [rg.tensor([0, *np.cumsum(n)]) for n in (L, S, S)]
    given = [nested_tensor_from_jagged(x, o) for x, o in zip((q, k, v), offsets, strict=True)]
    return attend(*given, is_causal=causal).values()


def buffers():
    return [rg.randn(sum(n), 2, dtype="float64", requires_grad=True) for n in (L, S, S)]


@pytest.mark.parametrize("causal", [False, True])
def test_second_derivatives(causal):
    assert gradcheck(lambda *x: flat(*x, causal), buffers())
    assert gradgradcheck(lambda *x: flat(*x, causal), buffers())


def test_second_derivatives_with_masks():
    mask = masks(lambda m: m)

    def f(q, k, v, added):
        offsets = [rg.tensor([0, *np.cumsum(n)]) for n in (L, S, S)]
        given = [nested_tensor_from_jagged(x, o) for x, o in zip((q, k, v), offsets, strict=True)]
        whole = registry["nested.from_values"](added, structure=mask.value.structure)
        return attend(*given, whole).values()

    inputs = (*buffers(), mask.values().detach().requires_grad_())
    assert gradcheck(f, inputs)
    assert gradgradcheck(f, inputs)


def test_hessian_is_that_of_the_loop():
    q, k, v = (x.detach() for x in buffers())

    def loop(q):
        parts = [x.split(n) for x, n in ((q, L), (k, S), (v, S))]
        return sum(attend(*one).sin().sum() for one in zip(*parts, strict=True))

    assert_close(hessian(lambda q: flat(q, k, v).sin().sum())(q), hessian(loop)(q).numpy(), rtol=1e-8, atol=1e-10)


def test_forward_mode():
    primals, tangents = ([x.detach() for x in buffers()] for _ in range(2))
    _, pushed = jvp(flat, tuple(primals), tuple(tangents))
    low, high = (flat(*[x + s * t for x, t in zip(primals, tangents, strict=True)]) for s in (-1e-6, 1e-6))
    assert_close(pushed, ((high - low) / 2e-6).numpy(), rtol=1e-6, atol=1e-7)


def test_batches_of_buffers():
    many = [rg.randn(3, sum(n), 2, dtype="float64") for n in (L, S, S)]
    for dims in ((0, 0, 0), (0, None, None), (None, 0, 0), (None, None, 0)):
        args = [x if d == 0 else x[0] for x, d in zip(many, dims, strict=True)]
        out = vmap(flat, dims)(*args)
        pulled = vmap(grad(lambda *x: flat(*x).sin().sum(), (0, 1, 2)), dims)(*args)
        for i in range(3):
            one = [x[i] if d == 0 else x for x, d in zip(args, dims, strict=True)]
            assert_close(out[i], flat(*one).numpy(), rtol=1e-9, atol=1e-12)
            for g, e in zip(pulled, grad(lambda *x: flat(*x).sin().sum(), (0, 1, 2))(*one), strict=True):
                assert_close(g[i], e.numpy(), rtol=1e-8, atol=1e-11)


def test_batches_of_components():
    q, k, v = (x.detach() for x in qkv())
    for i, part in enumerate(vmap(attend)(q, k, v).unbind()):
        one = attend(*[x.unbind()[i] for x in (q, k, v)])
        assert_close(part, one.numpy(), rtol=1e-9, atol=1e-12)
