"""Attention without a stored weight matrix: forward and backward operators with memory linear in the length.

T. Dao et al., FlashAttention, arXiv 2205.14135.  With scores S = scale q k^T + attn_bias, restricted to the keys that a
query may attend to, and the log-sum-exp L of each row, the weights are P = exp(S - L).  The cotangent of S is
A = P (D + c) with D = g v^T and c = dL - sum(g out).  Higher derivatives do store these matrices.
"""

import math
from typing import NamedTuple

from retrograd.core import Aval, Internal, call, op, registry
from retrograd.ops.batching import align_batched, batch_all
from retrograd.ops.family import broadcast_dims, broadcast_shapes, kernels_support, sum_to
from retrograd.ops.linalg import matmul
from retrograd.ops.pointwise import exp, where
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import expand, reshape, transpose, tril, unflatten, unsqueeze


def masked_attention(q, k, v, mask, scale, causal):
    """Return softmax(scale q k^T) v, for boolean or additive masks and operands that broadcast."""
    fronts = [x.shape[:-2] for x in (q, k, v, mask) if x is not None]
    front = broadcast_shapes("scaled_dot_product_attention", fronts)
    q = q if q.shape[:-2] == front else expand(q, (*front, *q.shape[-2:]))
    attn_mask, attn_bias = (mask, []) if mask is None or mask.dtype.kind == "b" else (None, [mask])
    return call(attend, (attn_mask, q, k, v, *attn_bias), {"scale": scale, "causal": causal})[0]


def group_queries(q, k, v, mask):
    """Move the queries that share keys into a dimension of their own; `flatten(out, -4, -3)` undoes it."""
    groups = k.shape[-3]
    if mask is not None and mask.ndim > 2:
        mask = unsqueeze(mask, -3) if mask.shape[-3] == 1 else unflatten(mask, -3, (groups, -1))
    return unflatten(q, -3, (groups, -1)), unsqueeze(k, -3), unsqueeze(v, -3), mask


def supports_attention(*tensors):
    """Whether the kernels support the dtypes: the same for all, except boolean masks."""
    *rows, mask = tensors
    return kernels_support(*rows) and (mask is None or mask.dtype in (rows[0].dtype, bool))


# --------------------------------------------------------------------------------------------- matrices


def _check(name, attn_mask, q, k, v, attn_bias=None):
    tensors = [x for x in (q, k, v, attn_bias) if x is not None]
    if not kernels_support(*tensors[:3], attn_bias) or (attn_mask is not None and attn_mask.dtype != bool):
        listed = ", ".join(str(x.dtype) for x in tensors)
        raise TypeError(f"{name}: expected float32 or float64, all alike, got {listed}")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(f"{name}: queries {q.shape}, keys {k.shape} and values {v.shape} do not fit")
    front = broadcast_shapes(name, [x.shape[:-2] for x in (q, k, v, attn_mask, attn_bias) if x is not None])
    if front != q.shape[:-2]:
        raise ValueError(f"{name}: queries {q.shape} must have the dimensions in front that all have, {front}")


def _mT(x):
    return transpose(x, -2, -1)


def _row_sums(x):
    return sum_over(x, -1, keepdim=True)


class _BackwardMatrices(NamedTuple):
    """The matrices of the derivative rules: P, A and D + c."""

    p: object
    a: object
    d: object


def _attention_weights(attn_mask, q, k, sums, attn_bias, scale, causal):
    scores = matmul(q * scale, _mT(k))
    scores = scores if attn_bias is None else scores + attn_bias
    if causal:
        below = tril(registry["ones"](scores.shape[-2:], dtype="bool"))
        attn_mask = below if attn_mask is None else registry["logical_and"](attn_mask, below)
    scores = scores - unsqueeze(sums, -1)
    return exp(scores if attn_mask is None else where(attn_mask, scores, -math.inf))


def _backward_matrices(attn_mask, g, of_sums, out, sums, q, k, v, attn_bias, scale, causal):
    p = _attention_weights(attn_mask, q, k, sums, attn_bias, scale, causal)
    d = matmul(g, _mT(v)) + unsqueeze(of_sums - sum_over(g * out, -1), -1)
    return _BackwardMatrices(p, p * d, d)


def add_optional(*parts):
    """Return the sum of the parts that are not None; None if all are."""
    terms = [part for part in parts if part is not None]
    return sum(terms[1:], terms[0]) if terms else None


def _matmul_optional(a, b):
    """Return the matrix product; None if one operand is None."""
    return None if a is None or b is None else matmul(a, b)


# -------------------------------------------------------------------------------------------- operators


@op("attend(Tensor? attn_mask, Tensor[] tensors, *, float scale, bool causal) -> (Tensor out, Tensor sums)")
class attend(Internal, snapshots="attn_mask tensors out"):
    """Attention softmax(scale q k^T + attn_bias) v, and the log-sum-exp of each row of scores.

    tensors: q (..., l, e), k (..., s, e), v (..., s, d) and optionally `attn_bias`, which broadcasts to (..., l, s), as
    `attn_mask` does.  The leading dimensions of q are those of the result.  A query that may attend to no key gets 0 in
    both results.
    """

    def impl(xp, attn_mask, q, k, v, attn_bias=None, *, scale, causal):
        _check("attend", attn_mask, q, k, v, attn_bias)
        masks = [xp.attention.matrices(mask, q, k) for mask in (attn_mask, attn_bias)]
        look, order = xp.attention.full_attention(q, k, scale, causal), xp.attention.head_order(q)
        return xp.attention.attend(q, k, v, *masks, look, order)

    def shape(attn_mask, q, k, v, attn_bias=None, *, scale, causal):
        _check("attend", attn_mask, q, k, v, attn_bias)
        return Aval((*q.shape[:-1], v.shape[-1]), q.dtype), Aval(q.shape[:-1], q.dtype)

    def vjp_tensors(g, attn_mask, tensors, out, scale, causal):
        needs_grad = tuple([t.requires_grad for t in tensors])
        tensors = [*g, *out, *tensors]
        found = attend_backward(attn_mask, tensors, scale=scale, causal=causal, output_mask=(*needs_grad, False)[:4])
        return [d if w else None for d, w in zip(found, needs_grad, strict=False)]

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        """P (tS - tL) v + P tv with tL = sum(P tS)."""
        (attn_mask, q, k, v, *attn_bias), (_, t_q, t_k, t_v, *t_bias), scale = primals, tangents, params["scale"]
        p = _attention_weights(attn_mask, q, k, out[1], *(attn_bias or [None]), scale, params["causal"])  # type: ignore[call-arg]
        t_scores = _scores_jvp(t_q, t_k, *(t_bias or [None]), q, k, scale)  # type: ignore[call-arg]
        if t_scores is None:
            return matmul(p, t_v), registry["zeros_like"](out[1])
        t_scores = p * t_scores
        level = _row_sums(t_scores)
        return add_optional(matmul(t_scores - p * level, v), _matmul_optional(p, t_v)), sum_over(t_scores, -1)

    def dependence(i, out, *args, scale, causal):
        return broadcast_dims(max(args[i].ndim - 2, 0), args[1].ndim - 2)

    def batch(batched, n, *args, scale, causal):
        args = (*args[:1], args[1] if batched[1] else registry["expand"](args[1], (n, *args[1].shape)), *args[2:])
        attn_mask, *tensors = align_batched(args, (*batched[:1], True, *batched[2:]), (2,) * len(args))
        return attend(attn_mask, tensors, scale=scale, causal=causal)

    oracle = "retrograd.testing.references.attention.attend"

    def samples(r):
        yield (None, r(2, 3, 4), r(2, 3, 4), r(2, 3, 2)), {"scale": 0.7, "causal": True}
        yield (None, r(2, 2, 2, 3), r(2, 1, 3, 3), r(3, 2)), {"scale": 0.7, "causal": False}
        yield (r.booleans(2, 4), r(2, 2, 3), r(4, 3), r(4, 1), r(2, 1, 4)), {"scale": 0.7, "causal": False}

    def errors(r):
        params = {"scale": 1.0, "causal": False}
        yield (None, r.ints(3, (5, 3)), r(5, 3), r(5, 3)), params, TypeError, "float32 or float64"
        yield (None, r(5, 3), r(5, 2), r(5, 3)), params, ValueError, "do not fit"
        yield (None, r(5, 3), r(2, 5, 3), r(5, 3)), params, ValueError, "dimensions in front"


def _scores_jvp(t_q, t_k, t_bias, q, k, scale):
    """Return the tangent of the scores; None if it is zero."""
    t_scores = add_optional(_matmul_optional(t_q, _mT(k)), None if t_k is None else matmul(q, _mT(t_k)))
    return add_optional(None if t_scores is None else t_scores * scale, t_bias)


@op(
    "attend_backward(Tensor? attn_mask, Tensor[] tensors, *, float scale, bool causal, bool[] output_mask) "
    "-> (Tensor dq, Tensor dk, Tensor dv, Tensor dbias)"
)
class attend_backward(Internal):
    """The cotangents of `attend`: tensors are the cotangents of its results, the results, and its own tensors.

    The cotangents of q, k, v and `attn_bias` that `output_mask` does not request have shape (0,).
    """

    def impl(xp, attn_mask, g, of_sums, out, sums, q, k, v, attn_bias=None, *, scale, causal, output_mask):
        _check("attend_backward", attn_mask, q, k, v, attn_bias)
        masks = [xp.attention.matrices(mask, q, k) for mask in (attn_mask, attn_bias)]
        look = xp.attention.full_attention(q, k, scale, causal)
        *found, d = xp.attention.attend_backward(g, of_sums, q, k, v, *masks, out, sums, look, output_mask)
        return *found, xp.attention.sum_to_shape(d, attn_bias.shape) if output_mask[3] else d

    def shape(attn_mask, g, of_sums, out, sums, q, k, v, attn_bias=None, *, scale, causal, output_mask):
        _check("attend_backward", attn_mask, q, k, v, attn_bias)
        operands = zip((q, k, v, attn_bias), output_mask, strict=True)
        return tuple([Aval(x.shape if w else (0,), q.dtype) for x, w in operands])

    def vjp_tensors(g, attn_mask, tensors, scale, causal, output_mask):
        # of_x is the cotangent of x.  This operator computes dq = A k scale, dk = A^T q scale, dv = P^T h, dbias = A.
        h, _, out, _, q, k, v, *attn_bias = tensors
        b_q, b_k, b_v, b_d = (x if w else None for x, w in zip(g, output_mask, strict=True))
        m = _backward_matrices(attn_mask, *tensors[:7], *(attn_bias or [None]), scale, causal)  # type: ignore[call-arg]
        of_a = _scores_jvp(b_q, b_k, b_d, q, k, scale)
        of_a = m.p * 0 if of_a is None else of_a
        of_d, of_c = of_a * m.p, sum_over(of_a * m.p, -1)
        of_s = of_a * m.a + (0 if b_v is None else matmul(h, _mT(b_v)) * m.p)
        of_h = add_optional(matmul(of_d, v), _matmul_optional(m.p, b_v)) - unsqueeze(of_c, -1) * out
        of_q = add_optional(matmul(of_s, k), _matmul_optional(m.a, b_k)) * scale
        of_k = add_optional(matmul(_mT(of_s), q), _matmul_optional(_mT(m.a), b_q)) * scale
        found = of_h, of_c, -unsqueeze(of_c, -1) * h, -sum_over(of_s, -1), of_q, of_k, matmul(_mT(of_d), h), of_s
        return [sum_to(d, x.shape) for d, x in zip(found, tensors, strict=False)]

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        """Apply the product rule repeatedly."""
        (attn_mask, *tensors), (_, *tangents) = primals, tangents
        scale, output_mask = params["scale"], params["output_mask"]
        tensors, tangents = ([*x, None][:8] for x in (tensors, tangents))
        h, _, _, _, q, k, v, attn_bias = tensors
        t_h, _, _, _, t_q, t_k, _, _ = tangents
        m = _backward_matrices(attn_mask, *tensors, scale, params["causal"])  # type: ignore[call-arg]
        t_p, t_a = _matrices_jvp(m, tensors, tangents, scale)
        # Functions, so that only the cotangents that are asked for are computed.
        found = (
            lambda: add_optional(_matmul_optional(t_a, k), _matmul_optional(m.a, t_k)) * scale,
            lambda: add_optional(_matmul_optional(_mT(t_a), q), _matmul_optional(_mT(m.a), t_q)) * scale,
            lambda: add_optional(_matmul_optional(_mT(t_p), h), _matmul_optional(_mT(m.p), t_h)),
            lambda: t_a,
        )
        each = zip(found, (q, k, v, attn_bias), output_mask, strict=True)
        return tuple([sum_to(f(), x.shape) if w else registry["zeros"]((0,), dtype=q.dtype) for f, x, w in each])

    def batch(batched, n, *args, scale, causal, output_mask):
        all_batched = batch_all(args, batched, n)
        cores = (2, 2, 1, 2, 1, 2, 2, 2, 2)[: len(all_batched)]
        attn_mask, *tensors = align_batched(all_batched, [a is not None for a in all_batched], cores)
        found = attend_backward(attn_mask, tensors, scale=scale, causal=causal, output_mask=output_mask)
        pairs = zip(found, [*all_batched[5:], None][:4], strict=True)
        return tuple([reshape(d, (n, 0) if d.ndim == 1 else x.shape) for d, x in pairs])

    oracle = "retrograd.testing.references.attention.attend_backward"

    def samples(r):
        rows, params = (r(2, 3, 4), r(2, 3), r(2, 3, 4), r(2, 3), r(2, 3, 3)), {"scale": 0.7, "causal": True}
        yield (None, *rows, r(2, 3, 3), r(2, 3, 4)), {**params, "output_mask": (True, True, True, False)}
        others, params = (r(5, 3), r(1, 5, 4), r(3, 5)), {"scale": 0.7, "causal": False}
        yield (r.booleans(3, 5), *rows, *others), {**params, "output_mask": (False, True, True, True)}
        yield (None, *rows, *others[:2]), {**params, "output_mask": (True, False, False, False)}


def _matrices_jvp(m, tensors, tangents, scale):
    """Return the tangents of P and A."""
    h, _, out, _, q, k, v, _ = tensors
    t_h, t_of_sums, t_out, t_sums, t_q, t_k, t_v, t_bias = tangents
    t_scores = _scores_jvp(t_q, t_k, t_bias, q, k, scale)
    t_scores = add_optional(t_scores, None if t_sums is None else -unsqueeze(t_sums, -1))
    t_p = m.p * (0 if t_scores is None else t_scores)
    level = add_optional(t_of_sums, *(None if t is None else -sum_over(t * x, -1) for t, x in ((t_h, out), (t_out, h))))
    t_d = add_optional(_matmul_optional(t_h, _mT(v)), None if t_v is None else matmul(h, _mT(t_v)))
    t_d = add_optional(t_d, None if level is None else unsqueeze(level, -1))
    return t_p, t_p * m.d if t_d is None else t_p * m.d + m.p * t_d
