"""Parity cases of vmap."""

import warnings

from .common import integers, mixing, x
from .derivatives import in_mode, stale_view


def scaled(m):
    return lambda v, s: v * s


def structure(m):
    """Return a function from trees to trees."""
    return lambda d: {"sum": d["a"] + d["b"][0], "rest": (d["b"][1] * 2, [d["a"].sum()])}


def trees(m):
    return {"a": x(m, 4, 3), "b": (x(m, 4, 3, seed=2), x(m, 4, 2, seed=3))}


def pair(m):
    return lambda a, b: a.sum() * b


FORMS = {
    "vmap": lambda m: m.func.vmap(mixing(m))(x(m, 4, 3)),
    "of one number each": lambda m: m.func.vmap(m.sin)(x(m, 4)),
    "of one example": lambda m: m.func.vmap(mixing(m))(x(m, 1, 3)),
    "of no examples": lambda m: m.func.vmap(lambda v: v.sum())(x(m, 0, 3)),
    "of no elements": lambda m: m.func.vmap(m.sin)(x(m, 4, 0)),
    "of two arguments": lambda m: m.func.vmap(pair(m))(x(m, 4, 3), x(m, 4, 2)),
    "of a tree": lambda m: m.func.vmap(structure(m))(trees(m)),
    "of a list": lambda m: m.func.vmap(lambda s: [s[0] + s[1]])([x(m, 4), x(m, 4, seed=2)]),
    "under another name": lambda m: m.vmap(mixing(m))(x(m, 4, 3)),
    "in_dims 1": lambda m: m.func.vmap(mixing(m), 1)(x(m, 3, 4)),
    "in_dims -1": lambda m: m.func.vmap(mixing(m), -1)(x(m, 3, 4)),
    "in_dims -2": lambda m: m.func.vmap(mixing(m), -2)(x(m, 4, 3)),
    "in_dims (0, None)": lambda m: m.func.vmap(pair(m), (0, None))(x(m, 4, 3), x(m, 2)),
    "in_dims (None, 0)": lambda m: m.func.vmap(pair(m), (None, 0))(x(m, 3), x(m, 4, 2)),
    "in_dims (1, 0)": lambda m: m.func.vmap(pair(m), (1, 0))(x(m, 3, 4), x(m, 4, 2)),
    "in_dims of a tree": lambda m: m.func.vmap(lambda d, s: d["a"] * d["b"] * s, ({"a": 0, "b": 1}, None))(
        {"a": x(m, 4, 3), "b": x(m, 3, 4)}, x(m)
    ),
    "in_dims 0 for a tree": lambda m: m.func.vmap(lambda d, s: d["a"] * d["b"] * s, (0, None))(
        {"a": x(m, 4, 3), "b": x(m, 4, 3)}, x(m)
    ),
    "in_dims with None in a tree": lambda m: m.func.vmap(lambda d: d["a"] * d["b"], ({"a": 0, "b": None},))(
        {"a": x(m, 4, 3), "b": x(m, 3)}
    ),
    "in_dims None for a tree": lambda m: m.func.vmap(lambda v, d: v * d["a"][0], (0, None))(x(m, 4), {"a": [x(m)]}),
    "in_dims of nested tuples": lambda m: m.func.vmap(lambda p, s: p[0] * p[1][0] + s, ((0, (1,)), 0))(
        (x(m, 4, 3), (x(m, 3, 4),)), x(m, 4)
    ),
    "in_dims of a list in a tuple": lambda m: m.func.vmap(lambda s: s[0] * s[1], ([0, 1],))([x(m, 4, 3), x(m, 3, 4)]),
    "a number without in_dim": lambda m: m.func.vmap(lambda v, n: v * n, (0, None))(x(m, 4), 3),
    "a string without in_dim": lambda m: m.func.vmap(lambda v, s: v * len(s), (0, None))(x(m, 4), "abc"),
    "None as an argument": lambda m: m.func.vmap(lambda v, n: v if n is None else n, (0, None))(x(m, 4), None),
    "None as an argument with in_dim 0": lambda m: m.func.vmap(lambda v, n: v * 2)(x(m, 4), None),
    "keywords are batched": lambda m: m.func.vmap(lambda v, s: v * s)(x(m, 4), s=x(m, 4, seed=2)),
    "keywords that are numbers": lambda m: m.func.vmap(lambda v, s: v * s)(x(m, 4), s=2),
    "keywords of another size": lambda m: m.func.vmap(lambda v, s: v * s.sum())(x(m, 4), s=x(m, 3)),
    "out_dims 1": lambda m: m.func.vmap(mixing(m), out_dims=1)(x(m, 4, 3)),
    "out_dims -1": lambda m: m.func.vmap(mixing(m), out_dims=-1)(x(m, 4, 3)),
    "out_dims 2 of 2": lambda m: m.func.vmap(lambda v: v.reshape(3, 1), out_dims=2)(x(m, 4, 3)),
    "out_dims (0, 1)": lambda m: m.func.vmap(lambda v: (v, v * 2), out_dims=(0, 1))(x(m, 4, 3)),
    "out_dims for a list": lambda m: m.func.vmap(lambda v: [v, v * 2], out_dims=(0, 1))(x(m, 4, 3)),
    "out_dims a list for a tuple": lambda m: m.func.vmap(lambda v: (v, v * 2), out_dims=[0, 1])(x(m, 4, 3)),
    "out_dims (1,) of one": lambda m: m.func.vmap(mixing(m), out_dims=(1,))(x(m, 4, 3)),
    "out_dims of a dict": lambda m: m.func.vmap(lambda v: {"a": v, "b": v * 2}, out_dims={"a": 0, "b": 1})(x(m, 4, 3)),
    "out_dims 1 for a tree": lambda m: m.func.vmap(lambda v: {"a": v, "b": (v * 2,)}, out_dims=1)(x(m, 4, 3)),
    "out_dims begin like the result": lambda m: m.func.vmap(lambda v: ((v, v), v), out_dims=(1, 0))(x(m, 4, 3)),
    "out_dims None of what is shared": lambda m: m.func.vmap(lambda v: m.ones(2), out_dims=None)(x(m, 4, 3)),
    "out_dims (0, None)": lambda m: (lambda c: m.func.vmap(lambda v: (v, c * 2), out_dims=(0, None))(x(m, 4)))(x(m, 2)),
    "a constant output": lambda m: m.func.vmap(lambda v: m.ones(2))(x(m, 4, 3)),
    "out_dims None of no tensor": lambda m: m.func.vmap(lambda v: (v, 3, "a"), out_dims=(0, None, None))(x(m, 4)),
    "out_dims None of None": lambda m: m.func.vmap(lambda v: None, out_dims=None)(x(m, 4)),
    "a captured output": lambda m: (lambda c: m.func.vmap(lambda v: c)(x(m, 4, 3)))(x(m, 2)),
    "a captured output at 1": lambda m: (lambda c: m.func.vmap(lambda v: c, out_dims=1)(x(m, 4, 3)))(x(m, 2)),
    "the argument itself": lambda m: m.func.vmap(lambda v: v)(x(m, 4, 3)),
    "the argument moved": lambda m: m.func.vmap(lambda v: v, 1, 0)(x(m, 3, 4)),
    "one output twice": lambda m: m.func.vmap(lambda v: (v, v))(x(m, 4)),
    "an integer batch": lambda m: m.func.vmap(lambda v: v * 2 + 1)(integers(m, 4, 3)),
    "a bool batch": lambda m: m.func.vmap(lambda v: ~v)(integers(m, 4) > 1),
    "a complex batch": lambda m: m.func.vmap(lambda v: v * v.conj() + 1j)(x(m, 4, 3, dtype="complex128")),
    "dtypes meet as alone": lambda m: m.func.vmap(lambda a, b: a * b)(x(m, 4, dtype="float32"), x(m, 4)),
    "a number meets as alone": lambda m: m.func.vmap(lambda a, b: a * b, (0, None))(x(m, 4, dtype="float32"), x(m)),
    "chunk_size 1": lambda m: m.func.vmap(mixing(m), chunk_size=1)(x(m, 4, 3)),
    "chunk_size 3": lambda m: m.func.vmap(mixing(m), chunk_size=3)(x(m, 4, 3)),
    "chunk_size 4": lambda m: m.func.vmap(mixing(m), chunk_size=4)(x(m, 4, 3)),
    "chunk_size 9": lambda m: m.func.vmap(mixing(m), chunk_size=9)(x(m, 4, 3)),
    "chunk_size with dims": lambda m: m.func.vmap(
        lambda d: (d["a"], {"b": d["b"] * 2}), ({"a": 1, "b": None},), (1, 0), chunk_size=3
    )({"a": x(m, 2, 4), "b": x(m, 3)}),
    "chunk_size in vmap": lambda m: m.func.vmap(m.func.vmap(mixing(m), chunk_size=2))(x(m, 2, 3, 3)),
    "nested": lambda m: m.func.vmap(m.func.vmap(lambda a, b: a * b, (0, None)), (None, 0))(x(m, 3), x(m, 2)),
    "nested three deep": lambda m: m.func.vmap(m.func.vmap(m.func.vmap(m.sin, 1, 1)), out_dims=2)(x(m, 2, 3, 4, 5)),
    "of a callable object": lambda m: m.func.vmap(m.sum)(x(m, 4, 3)),
    "a name kept": lambda m: m.func.vmap(pair).__name__,
    "the shape inside": lambda m: shape_inside(m),
    "a closure": lambda m: (lambda w: m.func.vmap(lambda v: v @ w)(x(m, 4, 3)))(x(m, 3, 2)),
    "a graph below": lambda m: graph_below(m),
    "requires_grad inside": lambda m: requires_inside(m),
    "grad mode inside": lambda m: in_mode(m.no_grad, lambda: mode_inside(m)),
    "autograd inside": lambda m: autograd_inside(m),
    "written inside": lambda m: m.func.vmap(lambda v: v.clone().mul_(v).add_(1))(x(m, 4, 3)),
    "the argument written": lambda m: argument_written(m),
    "a view written": lambda m: m.func.vmap(view_written)(x(m, 4, 3)),
    "a stale view": lambda m: m.func.vmap(lambda v: view_then_write(v))(x(m, 4, 3)),
    "a fresh tensor written with what is shared": lambda m: m.func.vmap(lambda v: m.zeros(3).add_(1) + v)(x(m, 4, 3)),
    "the argument written in chunks": lambda m: (lambda v: (m.func.vmap(lambda a: a.mul_(2), 1, chunk_size=2)(v), v))(
        x(m, 3, 4)
    ),
    "a shared argument written": lambda m: m.func.vmap(lambda a, b: b.mul_(2) + a, (0, None))(x(m, 4), x(m, 3)),
    "a shared tensor written with a batch": lambda m: m.func.vmap(lambda v: stale_view(m, v))(x(m, 4, 3)),
    "a captured tensor written": lambda m: (lambda w: m.func.vmap(lambda v: w.add_(v))(x(m, 4, 3)))(x(m, 3)),
}


def shape_inside(m):
    seen = []
    m.func.vmap(lambda v: seen.extend([tuple(v.shape), v.ndim, v.numel(), len(v), v.size(-1)]) or v)(x(m, 4, 3, 2))
    return seen


def graph_below(m):
    v, w = x(m, 4, 3).requires_grad_(), x(m, 3).requires_grad_()
    return m.autograd.grad((m.func.vmap(lambda a: (a * w).sum() ** 2)(v)).sum(), (v, w))


def requires_inside(m):
    seen = []
    m.func.vmap(lambda v: seen.append(v.requires_grad) or v)(x(m, 4).requires_grad_())
    return seen


def mode_inside(m):
    seen = []
    m.func.vmap(lambda v: seen.append(m.is_grad_enabled()) or v)(x(m, 4))
    return seen


def autograd_inside(m):
    def f(v):
        return m.autograd.grad((v**3).sum(), v)[0]

    return m.func.vmap(f)(x(m, 4, 3).requires_grad_())


def argument_written(m):
    v = x(m, 4, 3)
    return m.func.vmap(lambda a: a.mul_(2))(v), v


def view_written(v):
    out = v * 1
    out[:2].mul_(3)
    out[1:].add_(v[:2])
    return out


def view_then_write(v):
    out = v * 1
    view = out[1:]
    out.mul_(2)
    return view


MISUSE = {
    "in_dims a list": lambda m: m.func.vmap(mixing(m), [0])(x(m, 4, 3)),
    "in_dims a float": lambda m: m.func.vmap(mixing(m), 0.0)(x(m, 4, 3)),
    "in_dims a string": lambda m: m.func.vmap(mixing(m), "0")(x(m, 4, 3)),
    "in_dims None": lambda m: m.func.vmap(mixing(m), None)(x(m, 4, 3)),
    "in_dims (None,)": lambda m: m.func.vmap(mixing(m), (None,))(x(m, 4, 3)),
    "in_dims too many": lambda m: m.func.vmap(mixing(m), (0, 0))(x(m, 4, 3)),
    "in_dims too few": lambda m: m.func.vmap(pair(m), (0,))(x(m, 4, 3), x(m, 4)),
    "in_dims of another structure": lambda m: m.func.vmap(mixing(m), ({"a": 0},))(x(m, 4, 3)),
    "in_dims with other keys": lambda m: m.func.vmap(lambda d: d["a"], ({"b": 0},))({"a": x(m, 4, 3)}),
    "in_dims with a float inside": lambda m: m.func.vmap(mixing(m), (0.5,))(x(m, 4, 3)),
    "in_dims out of range": lambda m: m.func.vmap(mixing(m), 2)(x(m, 4, 3)),
    "in_dims out of range below": lambda m: m.func.vmap(mixing(m), -3)(x(m, 4, 3)),
    "no dimensions": lambda m: m.func.vmap(m.sin)(x(m)),
    "a number with in_dim": lambda m: m.func.vmap(lambda v, n: v * n)(x(m, 4), 3),
    "no arguments": lambda m: m.func.vmap(lambda: m.ones(2))(),
    "sizes that differ": lambda m: m.func.vmap(pair(m))(x(m, 4, 3), x(m, 3)),
    "only keywords": lambda m: m.func.vmap(lambda v: v)(v=x(m, 4)),
    "out_dims a float": lambda m: m.func.vmap(mixing(m), out_dims=0.0)(x(m, 4, 3)),
    "out_dims a string": lambda m: m.func.vmap(mixing(m), out_dims="0")(x(m, 4, 3)),
    "out_dims out of range": lambda m: m.func.vmap(mixing(m), out_dims=2)(x(m, 4, 3)),
    "out_dims out of range below": lambda m: m.func.vmap(mixing(m), out_dims=-3)(x(m, 4, 3)),
    "out_dims too many": lambda m: m.func.vmap(lambda v: (v, v), out_dims=(0, 0, 0))(x(m, 4)),
    "out_dims too many for one": lambda m: m.func.vmap(mixing(m), out_dims=(0, 0))(x(m, 4, 3)),
    "out_dims None of a batch": lambda m: m.func.vmap(mixing(m), out_dims=None)(x(m, 4, 3)),
    "out_dims None of one of two": lambda m: m.func.vmap(lambda v: (v, v), out_dims=(0, None))(x(m, 4)),
    "out_dims of other keys": lambda m: m.func.vmap(lambda v: {"a": v}, out_dims={"b": 0})(x(m, 4)),
    "an output that is a number": lambda m: m.func.vmap(lambda v: 3.0)(x(m, 4)),
    "an output None": lambda m: m.func.vmap(lambda v: None)(x(m, 4)),
    "an output with None": lambda m: m.func.vmap(lambda v: (v, None))(x(m, 4)),
    "an output that is a string": lambda m: m.func.vmap(lambda v: (v, "a"))(x(m, 4)),
    "an empty output": lambda m: m.func.vmap(lambda v: ())(x(m, 4)),
    "item": lambda m: m.func.vmap(lambda v: v * v.sum().item())(x(m, 4, 3)),
    "if": lambda m: m.func.vmap(lambda v: v if v.sum() > 0 else -v)(x(m, 4, 3)),
    "float": lambda m: m.func.vmap(lambda v: v * float(v.sum()))(x(m, 4, 3)),
    "tolist": lambda m: m.func.vmap(lambda v: v * len(v.tolist()))(x(m, 4, 3)),
    "nonzero": lambda m: m.func.vmap(lambda v: m.nonzero(v))(x(m, 4, 3)),
    "a mask as index": lambda m: m.func.vmap(lambda v: v[v > 0])(x(m, 4, 3)),
    "if on what is shared": lambda m: (lambda c: m.func.vmap(lambda v: v if c.sum() > 0 else -v)(x(m, 4)))(x(m, 2)),
    "randomness wrong": lambda m: m.func.vmap(mixing(m), randomness="some")(x(m, 4, 3)),
    "chunk_size 0": lambda m: m.func.vmap(mixing(m), chunk_size=0)(x(m, 4, 3)),
    "chunk_size -2": lambda m: m.func.vmap(mixing(m), chunk_size=-2)(x(m, 4, 3)),
}


def samples_of(m, randomness, f=None, *, size=(4, 3), alike=()):
    """Return the shape of the samples, and which examples have the same."""
    m.manual_seed(0)
    draw = f or (lambda v: m.rand(3) + 0 * v)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = m.func.vmap(draw, randomness=randomness)(m.zeros(size))
    return tuple(out.shape), [bool((out[0] == out[i]).all()) for i in range(1, len(out))]


RANDOM = {
    "rand, error": lambda m: samples_of(m, "error"),
    "rand, different": lambda m: samples_of(m, "different"),
    "rand, same": lambda m: samples_of(m, "same"),
    "randn alone, different": lambda m: samples_of(m, "different", lambda v: m.randn(2)),
    "randn alone, same": lambda m: samples_of(m, "same", lambda v: m.randn(2)),
    "rand_like, different": lambda m: samples_of(m, "different", m.rand_like),
    "rand_like, same": lambda m: samples_of(m, "same", m.rand_like),
    "rand_like, error": lambda m: samples_of(m, "error", m.rand_like),
    "dropout, different": lambda m: samples_of(m, "different", lambda v: m.nn.functional.dropout(v + 1), size=(4, 99)),
    "dropout, same": lambda m: samples_of(m, "same", lambda v: m.nn.functional.dropout(v + 1), size=(4, 99)),
    "dropout, error": lambda m: samples_of(m, "error", lambda v: m.nn.functional.dropout(v + 1)),
    "bernoulli, different": lambda m: samples_of(m, "different", lambda v: m.bernoulli(v + 0.5), size=(4, 99)),
    "bernoulli, same": lambda m: samples_of(m, "same", lambda v: m.bernoulli(v + 0.5), size=(4, 99)),
    "in grad, different": lambda m: samples_of(
        m, "different", lambda v: m.func.grad(lambda w: (w * m.rand(3)).sum())(v)
    ),
    "written into, different": lambda m: samples_of(m, "different", lambda v: v.clone().uniform_()),
    "randperm, different": lambda m: samples_of(m, "different", lambda v: m.randperm(99)),
    "randint, same": lambda m: samples_of(m, "same", lambda v: m.randint(0, 9, (20,))),
}

OPERATORS = {
    "where": lambda m, v: m.where(v > 0, v, v * v),
    "indexing by a number": lambda m, v: v[1],
    "indexing by slices": lambda m, v: v[::2, 1:],
    "indexing by None": lambda m, v: v[:, None],
    "indexing by an ellipsis": lambda m, v: v[..., -1],
    "indexing by a tensor": lambda m, v: v[m.tensor([2, 0])],
    "indexing by two tensors": lambda m, v: v[m.tensor([2, 0]), m.tensor([1, 1])],
    "indexing by the batch": lambda m, v: v[v.argmax(0)],
    "gather": lambda m, v: v.gather(0, v.argsort(0)),
    "take_along_dim": lambda m, v: m.take_along_dim(v, v.argsort(1), 1),
    "index_select": lambda m, v: m.index_select(v, 1, m.tensor([2, 2, 0])),
    "einsum": lambda m, v: m.einsum("ij,kj->ik", v, v),
    "matmul": lambda m, v: v @ v.mT,
    "a product with a vector": lambda m, v: v @ v[0],
    "dot": lambda m, v: m.dot(v[0], v[1]),
    "softmax": lambda m, v: m.softmax(v, -1),
    "log_softmax": lambda m, v: m.log_softmax(v, 0),
    "logsumexp": lambda m, v: m.logsumexp(v, 1),
    "cross_entropy": lambda m, v: m.nn.functional.cross_entropy(v, m.tensor([0, 2, 1])),
    "cross_entropy of one": lambda m, v: m.nn.functional.cross_entropy(v[0], m.tensor(2)),
    "mse_loss": lambda m, v: m.nn.functional.mse_loss(v, v.mT),
    "one_hot": lambda m, v: m.nn.functional.one_hot(v.argmax(0), 3) * v,
    "conv1d": lambda m, v: m.nn.functional.conv1d(v[None], v[:, None, :2], groups=3),
    "conv2d": lambda m, v: m.nn.functional.conv2d(v[None, None], m.ones(2, 1, 2, 2, dtype=m.float64)),
    "layer_norm": lambda m, v: m.nn.functional.layer_norm(v, (3,)),
    "relu and linear": lambda m, v: m.nn.functional.linear(m.relu(v), v, v[0]),
    "max with indices": lambda m, v: tuple(m.max(v, 0)),
    "sort": lambda m, v: tuple(m.sort(v, -1)),
    "cumsum": lambda m, v: m.cumsum(v, 0),
    "cat and stack": lambda m, v: (m.cat([v, v], 1), m.stack([v, v], -1)),
    "split": lambda m, v: tuple(m.split(v, 2, 0)),
    "chunk and unbind": lambda m, v: (tuple(v.chunk(2, 1)), tuple(v.unbind(1))),
    "reshape and flatten": lambda m, v: (v.reshape(-1), v.flatten(), v.unsqueeze(-1).squeeze(-1)),
    "transposes": lambda m, v: (v.t(), v.mT, v.transpose(0, 1), v.permute(1, 0), v.movedim(0, 1)),
    "expand": lambda m, v: v[:, :1].expand(3, 4),
    "sums": lambda m, v: (v.sum(), v.sum(0), v.sum((0, 1)), v.sum(-1, keepdim=True), v.mean(), v.std(), v.var(0)),
    "extremes": lambda m, v: (v.max(), v.amax(1), v.argmax(), v.argmin(1, keepdim=True), v.amin((0, 1))),
    "norms": lambda m, v: (v.norm(), m.linalg.norm(v, dim=0), m.linalg.vector_norm(v)),
    "inverses": lambda m, v: (m.linalg.inv(v), m.linalg.det(v), m.linalg.solve(v, v[0]), m.linalg.slogdet(v)[1]),
    "triangles": lambda m, v: (m.tril(v), m.triu(v, 1), m.diag(v), v.diagonal(), m.diag_embed(v[0])),
    "arange by the shape": lambda m, v: m.arange(len(v)) * v,
    "iteration": lambda m, v: sum(row * i for i, row in enumerate(v)),
    "comparisons": lambda m, v: ((v > 0) & (v < 0.5), v == v, m.isclose(v, v * 2), m.maximum(v, v * v)),
    "creation like it": lambda m, v: (m.zeros_like(v), m.ones_like(v) * v, v.new_zeros(2), m.full_like(v, 2.0)),
    "conversions": lambda m, v: (v.float(), v.long(), v.to(m.complex128), v.type_as(v.float())),
    "roll and flip": lambda m, v: (m.roll(v, 1, 0), m.flip(v, (0, 1)), m.roll(v, 1)),
    "pad": lambda m, v: m.nn.functional.pad(v, (1, 2)),
    "outer and kron": lambda m, v: (m.outer(v[0], v[1]), m.kron(v, v[:2, :2])),
    "masked_fill": lambda m, v: v.masked_fill(v > 0, 9.0),
    "embedding": lambda m, v: m.nn.functional.embedding(m.tensor([0, 2, 2]), v),
    "clamp": lambda m, v: v.clamp(-0.3, 0.3) + m.clamp(v, min=0),
    "attention": lambda m, v: m.nn.functional.scaled_dot_product_attention(v[None], v[None], v[None]),
}


def of_operators(cases):
    """Run each operator by vmap over a batch, and its gradient example by example."""

    def scalar(value):
        values = value if isinstance(value, tuple) else (value,)
        return sum(scalar(v) if isinstance(v, tuple) else (v * 0.7).sum().real for v in values)

    found = {f"{name}": lambda m, f=f: m.func.vmap(lambda v: f(m, v), 1)(x(m, 3, 4, 3)) for name, f in cases.items()}
    for name, f in cases.items():
        found[f"{name}, gradient"] = lambda m, f=f: m.func.vmap(m.func.grad(lambda v: scalar(f(m, v))))(x(m, 4, 3, 3))
    return found


BATCHED = of_operators(OPERATORS)
