"""Random sessions on kinds of tensors: nested ones, views and other dtypes; and transforms of functions."""

from .session_preamble import PREAMBLE
from .sessions import Family

NESTED = Family(
    PREAMBLE
    + """
optimizer = rg.optim.Adam(model.parameters(), lr=0.05)
attend, table, prior = nn.MultiheadAttention(3, 1, batch_first=True), nn.Embedding(7, 3), num(6, 1, 3)
model.attend, model.table, model.ln = attend, table, nn.LayerNorm(3)
weight = num(8, 3).requires_grad_()
def nest(seed, *sizes):
    return rg.nested.nested_tensor([num(seed + i, n, 3) for i, n in enumerate(sizes)], layout=rg.jagged)
def leaves(seed, *sizes): return nest(seed, *sizes).detach().requires_grad_()
def attend_causally(t):
    h = t.unflatten(-1, (1, 3)).transpose(1, 2)
    return F.scaled_dot_product_attention(h, h, h, is_causal=True).transpose(1, 2).flatten(-2)
def ragged(*ts): return rg.nested.as_nested_tensor(list(ts), layout=rg.jagged)
def windows(t): return rg.nested.narrow(t, 1, rg.tensor([0, 1, 2]), rg.tensor([2, 3, 1]), layout=rg.jagged)
def flat(t): return t.values() if t.is_nested else t
s.nt = nest(70, 2, 3)
state = lambda: [s.nt, s.h, log, weight.grad]
""",
    [
        [
            "{v} = {a}.sin()", "{v} = {a} * 2 + 1", "{v} = model.a({a})", "{v} = {a} * weight", "{v} = {a} + prior",
            "{v} = model.ln({a})", "{v} = F.gelu({a})", "{v} = {a}.softmax(-1)", "{v} = F.dropout({a}, 0.3)",
            "{v} = {a} @ model.a.weight", "{v} = {a}.transpose(1, 2).transpose(1, 2)",
            "{v} = {a} - {a}.mean(-1, keepdim=True)",
            "{v} = F.scaled_dot_product_attention({a}, {a}, {a})",
            "{v} = attend_causally({a})",
            "{v} = {a}.relu().square()", "{v} = {a}.clone()", "{v} = {a}.detach()", "{v} = {a}.double().float()",
            "{v} = rg.cat([{a}, {a}], -1)[..., :3]", "{v} = rg.where({a} > 0, {a}, 0.5)",
            "{v} = {a} + {a}.exp().clamp(max=2.0)",
        ],
        [
            "{v} = ragged(*[t * 2 for t in {a}.unbind()])",
            "{v} = ragged({a}[0], {a}[1] + 1)",
            "{v} = rg.nested.nested_tensor_from_jagged({a}.values() * 3, {a}.offsets())",
            "{v} = ragged(x[0], num(3, 2, 3), x[1][:1])",
            "{v} = ragged(*[t.cumsum(0) for t in {a}])",
            "{v} = {a} * {a}.to_padded_tensor(0.0).mean()", "{v} = {a} * {a}.size(0)", "{v} = {a} * len({a}.unbind())",
            "{v} = {a} + {a}.sum(1, keepdim=True)", "{v} = {a} - {a}.amax(1, keepdim=True)",
            "{v} = {a} * {a}.values().std()",
            "{v} = {a} * {a}.to_padded_tensor(0.0).shape[1]", "{v} = {a} * {a}.offsets().diff().max()",
            "{v} = rg.nested.nested_tensor_from_padded({a}.to_padded_tensor(0.0), {a}.offsets().diff())",
            "{v} = {a}.unbind()[0].sum() * {a}", "{v} = ragged(*[t.flip(0) for t in {a}.unbind() if len(t)])",
            "{v} = {a} * {a}.mean((1, 2))[:, None, None]", "{v} = {a} * {a}.values().sum().item()",
            "{v} = attend({a}, {a}, {a}, need_weights=False)[0]",
            "{v} = F.embedding(({a}.detach().abs()[..., 0] * 3).long().clamp(0, 6), table.weight)",
        ],
        [
            "s.nt = {a}.detach()", "s.nt = s.nt * 0.9", "log.append({a}.detach().values().sum())", "s.n += 1",
            "s.h = {a}.detach().sum(1)", "log.append({a}.detach().to_padded_tensor(-1.0))", "{a}.detach().mul_(1.5)",
            "s.nt.add_(1.0)", "{a}.values().detach().zero_() if s.n > 2 else None",
        ],
    ],
    [
        "optimizer.zero_grad()\n    loss = model.b({a}).square().mean((1, 2)).sum()\n"
        "    if loss.requires_grad: loss.backward(); optimizer.step()\n    log.append(loss.detach())",
        "loss = F.mse_loss(flat(model.a({a})), flat({a}).detach())\n    if loss.requires_grad: loss.backward()",
        "loss = F.cross_entropy(flat(model.b({a})), flat({a}).detach().argmax(-1)) if s.n < 3 else flat({a}).sum()\n"
        "    if loss.requires_grad: loss.backward()",
    ],
    ["{a}", "{a}.detach()", "({a}, s.nt)", "{a}.values()", "{a}.sum(1)", "{a}.to_padded_tensor(0.0)", "{a}.unbind()",
     "{a}.offsets()", "({a}.mean(-1), {a}.size(0))"],
    [
        "model.a.weight.requires_grad_(False)", "model.a.weight.requires_grad_(True)", "s.nt = nest({i}, 1, 4)",
        "s.n += 1",
        "s.nt = nest({i}, 2, 3)", "model.ln = nn.Identity()", "model.eval()", "prior = num({i}, 1, 3)",
        "weight.grad = None",
        "weight.requires_grad_(not weight.requires_grad)", "f, g = g, f", "s.nt.mul_(0.5)",
        "optimizer.param_groups[0]['lr'] *= 0.5",
        "model.a = nn.Linear(3, 3)", "prior = nest({i}, 2, 3)",
    ],
    ["nest({i}, 2, 3)", "leaves({i}, 2, 3)", "nest({i}, 1, 4, 2)",
     "nest({i}, *[1 + ({i} * k) % 4 for k in (1, 2, 3)])"],
    [
        "nest({i}, 2, 3)", "nest({i}, 3, 2)", "nest({i}, 4, 1, 2)", "nest({i}, 0, 3)", "leaves({i}, 2, 3)", "s.nt",
        "num({i}, 2, 4, 3)",
        "nest({i}, 2, 3).double()", "model.a(nest({i}, 2, 3))", "nest({i}, 5)", "nest({i}, *[2] * 3)",
        "rg.nested.nested_tensor([num({i}, 2, 3), num({i}, 1, 3)])", "windows(num({i}, 3, 5, 3))",
        "nest({i}, 2, 3).transpose(1, 2).transpose(1, 2)", "nest({i}, 5, 4)", "nest({i}, 1, 1)",
    ],
    ["rg.no_grad()({f})({x})", "backward({f}({x}))", "backward({f}({x}))", "in_thread({f}, {x})",
     "under(rg.inference_mode(), {f}, {x})", "under(rg.autocast('cpu', dtype=rg.bfloat16), {f}, {x})",
     "func.grad(lambda t: total({f}(t)))({x})"],
)  # fmt: skip

INPUTS = Family(
    PREAMBLE
    + """
import collections
optimizer = rg.optim.SGD(model.parameters(), lr=0.1)
base = num(9, 8, 6)
class Pair(collections.namedtuple("Pair", "a b")): pass
x0 = num(20)
state = lambda: [s.h, log, base, x0, x0.grad]
""",
    [
        [
            "{v} = {a} * 2 + 1", "{v} = {a}.sin()", "{v} = {a} + s.h[:1, :1]", "{v} = {a}.t().contiguous().t()",
            "{v} = {a}.reshape(-1).reshape({a}.shape)", "{v} = {a}[:]",
            "{v} = {a}.softmax(-1) if {a}.is_floating_point() else {a} + 1", "{v} = {a}.sum(0, keepdim=True) + {a}",
            "{v} = {a}.cumsum(0)", "{v} = {a}.view_as({a})", "{v} = {a}.clone()",
            "{v} = {a} @ {a}.t() @ {a}", "{v} = {a}.to(rg.float64)", "{v} = {a}.float()", "{v} = {a} / 3",
            "{v} = {a} // 2", "{v} = rg.cat([{a}, {a}])[:len({a})]",
            "{v} = {a}.expand(2, *{a}.shape)[1]", "{v} = {a}.flip(-1)",
            "{v} = {a} * (1 if {a}.is_contiguous() else 2)", "{v} = {a} * {a}.stride(0)",
            "{v} = {a}.mean(-1, keepdim=True) - {a}",
            "{v} = {a} * {a}.numel()", "{v} = {a}.type(rg.float32) + {a}", "{v} = {a}.abs().sqrt()",
            "{v} = {a}.clamp(-1, 1)", "{v} = rg.maximum({a}, x)", "{v} = x + {a}", "{v} = {a}.detach()",
            "{v} = {a}.sort(-1)[0]", "{v} = {a}.amax(0) + {a}", "{v} = rg.where({a} > 0, {a}, x)",
            "{v} = {a} * (x0 is x)", "{v} = {a}.T", "{v} = {a}[..., ::2].sum() + {a}", "{v} = {a} ** 2",
            "{v} = {a}.new_zeros({a}.shape) + {a}", "{v} = rg.empty_like({a}).fill_(2) * {a}",
            "{v} = {a} * rg.ones(()) * True", "{v} = F.layer_norm({a}, {a}.shape[-1:])", "{v} = {a}.var(0) + {a}",
            "{v} = rg.einsum('ij,ij->ij', {a}, {a})", "{v} = {a}.logsumexp(0) + {a}", "{v} = {a}.prod(0) + {a}",
        ],
        [
            "{a}.detach().add_(1)", "x.detach()[:1].zero_()", "s.h = {a}.detach()", "s.h = x.detach()",
            "log.append({a}.detach())", "base[0, 0] += 1", "{a}.data.mul_(2)", "x0.detach().copy_(x0 * 2)",
            "{a}.detach().t().add_(1)",
        ],
    ],
    ["loss = {a}.float().sum()\n    if loss.requires_grad: loss.backward()",
     "loss = ({a} * {a}).mean() if {a}.is_floating_point() else x0.sum()\n    if loss.requires_grad: loss.backward()"],
    ["{a}", "{a}.detach()", "({a}, x)", "x", "Pair({a}, x)", "[{a}[:1], {a}.shape]", "{{'a': {a}, 'b': {a}.dtype}}",
     "x.t()", "{a}.sum()"],
    ["base = num({i}, 8, 6)", "x0 = num({i})", "x0.requires_grad_(not x0.requires_grad)", "x0.grad = None",
     "base.zero_()", "s.h = base[:4, :3]", "s.h = x0", "s.h = num({i}, 4, 3).double()", "f, g = g, f", "x0 = x0.t()",
     "s.h = num({i}, 0, 3)",
     "x0.data = num({i})", "x0 = base[1:5, :3]"],
    ["num({i})", "base[:4, :3]", "x0", "num({i}).requires_grad_()"],
    [
        "num({i})", "num({i}).double()", "num({i}).half()", "num({i}).bfloat16()", "(num({i}) * 3).long()",
        "(num({i}) * 3).int()", "num({i}) > 0", "num({i}).to(rg.complex64)", "num({i}, 0, 3)", "num({i}, 4, 0)",
        "num({i}, 1, 1)",
        "num({i}, 1, 3).expand(4, 3)", "num({i}, 4, 1).expand(4, 3)", "num({i}, 1, 1).expand(4, 3)",
        "num({i}, 3, 4).t()", "base[::2, ::2]", "base[:4, 1:4]", "base[4:, 3:]", "base[:4, :3].t()",
        "base.view(4, 12)[:, :3]", "x0.detach()", "x0.data", "x0[:]",
        "num({i}).view(12)[:9].view(3, 3)", "rg.as_strided(base, (4, 3), (1, 2))", "num({i}).requires_grad_()",
        "num({i}).requires_grad_() * 2", "base.flip(0)[:4, :3]", "num({i}, 8, 3)[::2]", "num({i}, 4, 3, 2)[..., 0]",
        "rg.zeros(4, 3)", "s.h", "num({i}, 3)", "rg.tensor(2.0)",
        "num({i}, 2, 4, 3)", "rg.full((4, 3), float('nan'))", "rg.full((4, 3), float('inf'))", "-rg.zeros(4, 3)",
        "nn.Parameter(num({i}))", "num({i}).numpy()", "num({i}).tolist()", "2.0", "(num({i}) * 3).to(rg.uint8)",
    ],
    ["backward({f}({x}))", "rg.no_grad()({f})({x})", "{f}(x={x})", "[{f}({x}), {f}({x})]", "backward({f}({x}))",
     "[r.add_(1) for r in [{f}({x})] if isinstance(r, rg.Tensor)]"],
)  # fmt: skip

TRANSFORMS = Family(
    PREAMBLE
    + """
from retrograd.utils.checkpoint import checkpoint
optimizer = rg.optim.SGD(model.parameters(), lr=0.1)
fwAD = rg.autograd.forward_ad
w = num(8, 3, 3).requires_grad_()
def loss_of(x, w): return ((x @ w).tanh() * x).sum()
@compile
def inner(x): return (x * s.d['k']).sin() + x.mean(0)
@compile
def scalar(x): return (x.sin() * x).sum()
@compile
def counted(x):
    s.n += 1
    return x * 2
@compile
def broken(x):
    h = x.exp().clamp(max=3.0)
    return h * h.sum().item()
@compile
def linear(x, w): return x @ w + w[0]
per_row = compile(func.vmap(func.grad(scalar)))
jac = compile(func.jacrev(lambda x: x.sum(0).sin()))
hess = compile(func.hessian(scalar))
@compile
def pair(x): return {"a": x.cos(), "b": [x, x * 2]}
def dual(f, x, t):
    with fwAD.dual_level():
        out = f(fwAD.make_dual(x, t))
        return [fwAD.unpack_dual(o) for o in ([out] if isinstance(out, rg.Tensor) else [])]
def vjp_of(f, x):
    out, back = func.vjp(lambda t: total(f(t)), x)
    return [out, *back(rg.ones_like(out))]
state = lambda: [log, s.h, s.n, w.grad]
""",
    [
        [
            "{v} = inner({a})", "{v} = counted({a})", "{v} = broken({a})", "{v} = linear({a}, w)",
            "{v} = per_row({a})", "{v} = {a} * scalar({a})",
            "{v} = pair({a})['b'][1] + {a}", "{v} = func.vmap(inner)({a}[None])[0]", "{v} = func.grad(scalar)({a})",
            "{v} = func.vmap(scalar)({a})[:, None] * {a}", "{v} = func.jvp(inner, ({a},), ({a}.cos(),))[1]",
            "{v} = {a} + jac({a}).sum((0, 1))",
            "{v} = {a} + hess({a}[0]).sum(0)", "{v} = func.jacfwd(scalar)({a}[0]) + {a}",
            "{v} = func.grad(lambda t: inner(t).square().sum())({a})",
            "{v} = vjp_of(inner, {a})[1]", "{v} = func.vmap(linear, in_dims=(0, None))({a}, w)",
            "{v} = rg.autograd.grad(scalar({a} * w[0]), w)[0] + {a}[0]",
            "{v} = func.grad(func.grad(lambda t: scalar(t * {a})))(rg.tensor(0.5)) * {a}",
            "{v} = func.linearize(inner, {a})[1]({a})",
            "{v} = func.vmap(func.grad(loss_of), in_dims=(0, None))({a}, w)",
            "{v} = func.grad(loss_of, argnums=1)({a}, w)[:1] + {a}",
        ],
        [
            "{v} = {a}.sin()", "{v} = {a} * 2 + 1", "{v} = model.a({a})", "{v} = {a} @ w",
            "with rg.no_grad(): {v} = inner({a})",
            "{v} = F.dropout({a}, 0.3)", "with rg.autocast('cpu', dtype=rg.bfloat16): {v} = linear({a}, w).float()",
            "{v} = checkpoint(inner, {a}, use_reentrant=False)",
        ],
        ["s.n += 1", "s.h = {a}.detach()", "log.append({a}.detach().sum())", "s.d['k'] = 2.5"],
    ],
    ["loss = scalar({a})\n    if loss.requires_grad: loss.backward()",
     "loss = inner({a}).sum() + w.sum()\n    loss.backward(retain_graph=True)"],
    ["{a}", "{a}.detach()", "({a}, inner({a}))", "{a}.sum()", "{{'a': {a}}}"],
    ["s.d['k'] = 3.0", "s.d['k'] = rg.tensor(0.5)", "w.grad = None", "w.requires_grad_(not w.requires_grad)",
     "w.data = num({i}, 3, 3)", "f, g = g, f",
     "inner = compile(lambda x: x * 2)", "scalar = lambda x: x.sum()", "model.a = nn.Linear(3, 3)",
     "rg.compiler.reset()", "s.n = 0"],
    ["num({i})", "num({i}).requires_grad_()", "num({i}, 2, 3)"],
    ["num({i})", "num({i}).requires_grad_()", "num({i}, 3, 3)", "num({i}).double()", "num({i}, 3, 4).t()",
     "num({i}, 1, 3)", "inner(num({i}))"],
    [
        "func.vmap({f})(rg.stack([{x}, {x}]))", "func.grad(lambda t: total({f}(t)))({x})", "backward({f}({x}))",
        "dual({f}, {x}, num(1)[:len({x})])",
        "func.jvp({f}, ({x},), ({x}.cos(),))", "vjp_of({f}, {x})", "func.jacrev({f})({x})", "func.jacfwd({f})({x})",
        "func.hessian(lambda t: total({f}(t)))({x})",
        "func.vmap(func.grad(lambda t: total({f}(t))))(rg.stack([{x}, {x}]))",
        "compile(func.vmap({f}))(rg.stack([{x}, {x}]))", "per_row({x})",
        "compile(func.grad(lambda t: total({f}(t))))({x})", "rg.autograd.functional.jacobian({f}, {x})",
        "func.functionalize({f})({x})", "jac({x})", "hess({x}[0])",
    ],
)  # fmt: skip
