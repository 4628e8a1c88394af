"""The operators that implement attention on nested tensors: on buffers, with their own kernels.

Their derivatives are those of the same formulas in products of the components' matrices.
"""

from functools import partial
from typing import Any

from retrograd.backend.ragged import structure_of
from retrograd.backend.ragged_attention import Plan, may_look
from retrograd.backend.ragged_products import Part, Parts, pair_structures
from retrograd.core import Aval, Internal, op, registry
from retrograd.nested.jvp_vjp import jvp, vjp
from retrograd.nested.rules.segment_matmul import mT, multiply_each
from retrograd.ops.batching import align_batched, batch_all
from retrograd.ops.create import as_tensor
from retrograd.ops.family import sum_to
from retrograd.ops.pointwise import exp, log, where
from retrograd.ops.reduce import sum as sum_over
from retrograd.ops.view import cat, reshape, squeeze, unsqueeze


class Attention(Internal):
    """Operators on buffers of queries, keys and values, and masks whose rows are the pairs of a query and a key."""

    formulas: Any

    @classmethod
    def jvp(cls, op, primals, tangents, out, params):
        """The derivative of the formulas."""
        return jvp(cls.formulas(primals[0], out, **params), primals[1:], tangents[1:])


@op("nested.attend(Tensor? attn_mask, Tensor[] tensors, *, any plan) -> (Tensor out, Tensor sums)")
class attend(Attention):
    """softmax(scale q k^T + attn_bias) v within the components, and the logarithms of the sums of exponentials.

    tensors: q, k, v and, optionally, attn_bias; a query without keys gets 0.  The dimensions of q before the rows are
    those of the result.
    """

    def impl(xp, attn_mask, q, k, v, attn_bias=None, *, plan):
        _check("nested.attend", q, k, v, plan)
        return xp.ragged_attention.attend(q, k, v, attn_mask, attn_bias, plan)

    def shape(attn_mask, q, k, v, attn_bias=None, *, plan):
        _check("nested.attend", q, k, v, plan)
        return Aval((*q.shape[:-1], v.shape[-1]), q.dtype), Aval(q.shape[:-1], q.dtype)

    def vjp_tensors(g, attn_mask, tensors, out, plan):
        needs_grad = tuple([t.requires_grad for t in tensors])
        found = attend_backward(attn_mask, [*g, *out, *tensors], plan=plan, output_mask=(*needs_grad, False)[:4])
        return [d if w else None for d, w in zip(found, needs_grad, strict=False)]

    def formulas(attn_mask, out, plan):
        return partial(_attend, attn_mask, out[1], plan)

    def batch(batched, n, *args, plan):
        args = (*args[:1], args[1] if batched[1] else registry["expand"](args[1], (n, *args[1].shape)), *args[2:])
        batched = (*batched[:1], True, *batched[2:])
        attn_mask, *tensors = align_batched(args, batched, (1, 2, 2, 2, 1)[: len(args)])
        return attend(attn_mask, tensors, plan=plan)

    def samples(r):
        rows, plan = (r(2, 5, 3), r(2, 5, 3), r(2, 5, 4)), _plan([2, 0, 3], [2, 0, 3], causal=True)
        yield (None, *rows), {"plan": plan}
        plan = _plan([2, 0, 3], [1, 2, 2])
        yield (None, r(2, 5, 3), r(1, 5, 3), r(5, 4)), {"plan": plan}
        yield (r.booleans(8), r(2, 5, 3), r(5, 3), r(5, 1), r(2, 8)), {"plan": plan}

    def errors(r):
        yield (None, r.ints(3, (5, 3)), r(5, 3), r(5, 3)), {"plan": _plan([5], [5])}, TypeError, "float32 or float64"


@op(
    "nested.attend_backward(Tensor? attn_mask, Tensor[] tensors, *, any plan, any output_mask) "
    "-> (Tensor dq, Tensor dk, Tensor dv, Tensor dbias)"
)
class attend_backward(Attention):
    """The cotangents of `attend`: tensors are the cotangents of its results, the results, and its inputs.

    Those of q, k, v and attn_bias that `output_mask` does not ask for have shape (0,).
    """

    def impl(xp, attn_mask, g, g_sums, out, sums, q, k, v, attn_bias=None, *, plan, output_mask):
        _check("nested.attend_backward", q, k, v, plan)
        masks = attn_mask, attn_bias
        return xp.ragged_attention.attend_backward(g, g_sums, q, k, v, *masks, out, sums, plan, output_mask)

    def shape(attn_mask, g, g_sums, out, sums, q, k, v, attn_bias=None, *, plan, output_mask):
        _check("nested.attend_backward", q, k, v, plan)
        operands = zip((q, k, v, attn_bias), output_mask, strict=True)
        return tuple([Aval(x.shape if w else (0,), q.dtype) for x, w in operands])

    def vjp_tensors(g, attn_mask, tensors, out, plan, output_mask):
        return vjp(attend_backward.definition.formulas(attn_mask, out, plan, output_mask), tensors, g)

    def formulas(attn_mask, out, plan, output_mask):
        return partial(_attend_backward, attn_mask, plan, output_mask)

    def batch(batched, n, *args, plan, output_mask):
        whole = batch_all(args, batched, n)
        given = [a is not None for a in whole]
        attn_mask, *tensors = align_batched(whole, given, (1, 2, 1, 2, 1, 2, 2, 2, 1)[: len(whole)])
        found = attend_backward(attn_mask, tensors, plan=plan, output_mask=output_mask)
        pairs = zip(found, [*whole[5:], None][:4], strict=True)
        return tuple([reshape(d, (n, 0) if d.ndim == 1 else x.shape) for d, x in pairs])

    def samples(r):
        plan = _plan([2, 0, 3], [2, 0, 3], causal=True)
        rows = (r(2, 5, 4), r(2, 5), r(2, 5, 4), r(2, 5), r(2, 5, 3))
        yield (None, *rows, r(2, 5, 3), r(2, 5, 4)), {"plan": plan, "output_mask": (True, True, True, False)}
        plan = _plan([2, 0, 3], [1, 2, 2])
        others = (r(5, 3), r(1, 5, 4), r(8))
        yield (r.booleans(8), *rows, *others), {"plan": plan, "output_mask": (False, True, True, True)}
        yield (None, *rows, *others[:2]), {"plan": plan, "output_mask": (True, False, False, False)}


def _plan(queries, keys, causal=False):
    """Return a plan for samples."""
    queries, keys = (structure_of([(n,) for n in lengths])[0] for lengths in (queries, keys))
    return Plan(queries, keys, 0.7, causal)


def _check(name, q, k, v, plan):
    """Check that the rows are those of the plan, and the dtypes float32 or float64, as the kernels require."""
    for x, rows in ((q, plan.queries), (k, plan.keys), (v, plan.keys)):
        Part("rows", rows).check(name, x.shape)
    if {x.dtype.char for x in (q, k, v)} not in ({"f"}, {"d"}):
        listed = ", ".join(str(x.dtype) for x in (q, k, v))
        raise TypeError(f"{name}: expected float32 or float64, all alike, got {listed}")


# ---------------------------------------------------------------------------------- the formulas, in operators


def _weights(attn_mask, attn_bias, q, k, sums, plan):
    """Return exp(scale q k^T + attn_bias - sums), 0 for masked keys: in one product, with a 1 appended to the keys."""
    ones = registry["ones"]((*k.shape[:-1], 1), dtype=k.dtype)
    queries, keys = cat([q * plan.scale, unsqueeze(-sums, -1)], -1), cat([k, ones], -1)
    scores = multiply_each(queries, mT(keys, _key_part(plan)), parts=_score_parts(plan))
    scores = scores if attn_bias is None else scores + attn_bias
    if plan.causal:
        attn_mask = as_tensor(may_look(plan))
    return exp(scores if attn_mask is None else where(attn_mask, scores, -float("inf")))


def _attend(attn_mask, sums, plan, q, k, v, attn_bias=None):
    """Compute `attend` for given sums, ignoring the dependence of the sums on the inputs."""
    weights = _weights(attn_mask, attn_bias, q, k, sums, plan)
    ones = registry["ones"]((*k.shape[:-1], 1), dtype=k.dtype)
    total = multiply_each(weights, ones, parts=_value_parts(plan))
    total = where(total == 0, 1, total)
    out = multiply_each(weights, v, parts=_value_parts(plan)) / total
    return out, sums + log(squeeze(total, -1))


def _attend_backward(attn_mask, plan, output_mask, g, g_sums, out, sums, q, k, v, attn_bias=None):
    """Compute `attend_backward`."""
    weights = _weights(attn_mask, attn_bias, q, k, sums, plan)
    ones = registry["ones"]((*v.shape[:-1], 1), dtype=v.dtype)
    delta = unsqueeze(g_sums - sum_over(g * out, -1), -1)
    values = mT(cat([v, ones], -1), _key_part(plan))
    dscores = weights * multiply_each(cat([g, delta], -1), values, parts=_score_parts(plan))
    found = (
        lambda: multiply_each(dscores, k * plan.scale, parts=_value_parts(plan)),
        lambda: multiply_each(dscores, q * plan.scale, parts=_transposed_score_parts(plan)),
        lambda: multiply_each(weights, g, parts=_transposed_score_parts(plan)),
        lambda: dscores,
    )
    operands = zip(found, (q, k, v, attn_bias), output_mask, strict=True)
    return [sum_to(f(), x.shape) if w else registry["zeros"]((0,), dtype=q.dtype) for f, x, w in operands]


def _key_part(plan):
    return Part("rows", plan.keys)


def _score_parts(plan):
    """Return the parts for queries times transposed keys."""
    return Parts(
        Part("rows", plan.queries), Part("columns", plan.keys), Part("both", pair_structures(plan.queries, plan.keys))
    )


def _value_parts(plan):
    """Return the parts for scores times values of the keys."""
    return Parts(Part("both", pair_structures(plan.queries, plan.keys)), _key_part(plan), Part("rows", plan.queries))


def _transposed_score_parts(plan):
    """Return the parts for transposed scores times values of the queries."""
    pairs = Part("both", pair_structures(plan.queries, plan.keys), stored_transposed=True)
    return Parts(pairs, Part("rows", plan.queries), _key_part(plan))
