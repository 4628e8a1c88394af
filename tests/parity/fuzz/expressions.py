"""Lines that compute a new tensor: elementwise, reductions, joins, products."""

import torch

from .picker import Picker, Tensors

UNARY = (
    "sin", "cos", "tanh", "exp", "abs", "neg", "sigmoid", "relu", "square", "floor", "ceil", "round", "sign", "sqrt",
    "rsqrt", "reciprocal", "log1p", "expm1", "erf", "atan", "trunc", "frac", "isnan", "isfinite", "logical_not", "sinh",
    "asinh", "log2", "positive", "digamma", "nan_to_num",
)  # fmt: skip
BINARY = (
    "add", "sub", "mul", "div", "maximum", "minimum", "atan2", "pow", "fmod", "remainder", "hypot", "logaddexp", "eq",
    "lt", "ge", "ne", "logical_and", "copysign", "fmax", "xlogy", "nextafter",
)  # fmt: skip
REDUCTIONS = (
    "sum", "mean", "amax", "amin", "prod", "var", "std", "logsumexp", "any", "all", "argmax", "argmin", "nansum",
    "count_nonzero", "median", "norm",
)  # fmt: skip
SEVERAL_DIMS = ("sum", "mean", "amax", "amin", "var", "std", "logsumexp", "nansum", "any", "all", "norm")
ROWWISE = ("cumsum", "cumprod", "softmax", "log_softmax", "logcumsumexp")
OPERATORS = ("+", "-", "*", "/", "**", "%", "<", "==")
DTYPES = (
    "float64",
    "float32",
    "int64",
    "bool",
    "float16",
    "int32",
    "uint8",
    "complex128",
    "complex64",
    "int16",
    "int8",
)


def unary(p: Picker, v: Tensors) -> str:
    """Return a function of one tensor."""
    name = p.pick(UNARY)
    return f"L.{name}(v[{p.one(v)}]{'.nan_to_num()' * (name == 'sign')})"  # PyTorch's sign of NaN is 0


def binary(p: Picker, v: Tensors) -> str:
    """Return a function of two tensors that broadcast."""
    i = p.one(v)
    j = p.partner(v, i)
    if torch.bool in (v[i].dtype, v[j].dtype):  # PyTorch's other rules subtract, which it refuses
        return f"v[{i}] {p.pick(('+', '*', '<', '=='))} v[{j}]"
    if p.chance(0.05):  # detached: PyTorch's has no derivative
        return f"v[{i}].detach() // v[{j}].detach()"
    if p.chance(0.3):
        return f"v[{i}] {p.pick(OPERATORS)} v[{j}]"
    return f"L.{p.pick(BINARY)}(v[{i}], v[{j}])"


def scalar(p: Picker, v: Tensors) -> str:
    """Return a tensor combined with a Python number."""
    i, operator = p.one(v), p.pick(OPERATORS)
    if p.chance(0.7):
        return f"v[{i}] {operator} {p.number()}"
    number = "2" if operator == "**" else p.number()
    return f"{number} {operator} v[{i}]{'.detach()' * (operator == '%')}"  # PyTorch's has no derivative


def reduction(p: Picker, v: Tensors) -> str:
    """Return a reduction of all elements, or along dimensions."""
    i, name = p.one(v), p.pick(REDUCTIONS)
    if name == "median" and not v[i].numel():
        name = "sum"
    if name == "median" or (name not in ("amax", "logsumexp") and p.chance(0.3)):
        return f"v[{i}].{name}()"
    keepdim = "" if name == "count_nonzero" else f", keepdim={p.chance(0.4)}"
    dims = p.dims(v[i]) if name in SEVERAL_DIMS and p.chance(0.3) else p.dim(v[i])
    return f"v[{i}].{name}(dim={dims}{keepdim})"


def rowwise(p: Picker, v: Tensors) -> str:
    """Return a function along one dimension, of the same shape."""
    name = p.pick(ROWWISE)
    i = p.one(v) if name in ("cumsum", "cumprod") else p.floating(v)
    return f"v[{i}].{name}(dim={p.dim(v[i])})"


def convert(p: Picker, v: Tensors) -> str:
    """Return a tensor in another dtype."""
    i = p.one(v)
    return p.pick((f"v[{i}].to(L.{p.pick(DTYPES)})", f"v[{i}].type_as(v[{p.one(v)}])", f"v[{i}].to(v[{p.one(v)}])"))


def join(p: Picker, v: Tensors) -> str:
    """Return two tensors of one shape joined."""
    i = p.one(v)
    j = p.pick([j for j in v if v[j].shape == v[i].shape])
    return f"L.{p.pick(('cat', 'stack'))}([v[{i}], v[{j}]], dim={p.dim(v[i])})"


def product(p: Picker, v: Tensors) -> str:
    """Return a matrix product."""
    i = p.one(v)
    x = v[i]
    same = [j for j, y in v.items() if x.ndim and y.ndim and y.dtype == x.dtype]
    fitting = [j for j in same if x.shape[-1] == v[j].shape[-2 if v[j].ndim > 1 else -1]]
    return f"v[{i}] @ v[{p.pick(fitting)}]" if fitting else f"L.outer(v[{i}].flatten(), v[{i}].flatten())"


def along(p: Picker, v: Tensors) -> str:
    """Return a selection, or an order, along one dimension."""
    i = p.one(v)
    d = p.dim(v[i])
    size = p.size(v[i], d)
    numbers = f"L.tensor({[abs(n) % max(size, 1) for n in p.indices(size, 2)]})"
    return p.pick((
        f"v[{i}].index_select({d}, {numbers})", f"v[{i}].index_fill({d}, {numbers}, {p.number()})",
        f"v[{i}].sort({d}, stable=True)[0]", f"v[{i}].cummax({d})[0]", f"v[{i}].topk(1, {d})[0]",
        f"L.take_along_dim(v[{i}], L.argsort(v[{i}], dim={d}, stable=True), {d})", f"v[{i}].max({d})[0]",
        f"L.diff(v[{i}], dim={d})", f"v[{i}].kthvalue(1, {d})[0]", f"v[{i}].var({d}, correction=0)",
        f"v[{i}].gather({d}, L.argsort(v[{i}], dim={d}, stable=True))", f"v[{i}].cummin({d})[0]",
        f"v[{i}].min({d})[0]", f"v[{i}].take(L.tensor([0, -1]))",
    ))  # fmt: skip


def choice(p: Picker, v: Tensors) -> str:
    """Return elements of two tensors, or of one and a number, chosen by a condition."""
    i = p.one(v)
    other = f"v[{p.partner(v, i)}]" if p.chance(0.7) else p.number()
    return p.pick((
        f"L.where(v[{i}] > {p.number()}, v[{i}], {other})", f"L.where(v[{i}] > {p.number()}, {other}, v[{i}])",
        f"v[{i}].masked_fill(v[{i}] > {p.number()}, {p.number()})", f"v[{i}].clamp({p.number()}, {p.number()})",
        f"v[{i}].clamp(min={other})", f"L.lerp(v[{i}], {other}, {p.number()})",
    ))  # fmt: skip


def like(p: Picker, v: Tensors) -> str:
    """Return a tensor made after another."""
    i = p.one(v)
    return p.pick((
        f"L.zeros_like(v[{i}])", f"L.ones_like(v[{i}])", f"L.full_like(v[{i}], {p.number()})",
        f"v[{i}].new_zeros(2, 2)", f"v[{i}].new_tensor([1, 2])", f"v[{i}].new_full((2,), {p.number()})",
        "L.arange(3)", "L.zeros(0, 2)", f"L.tensor({p.number()})", f"L.tensor([{p.number()}, {p.number()}])",
        "L.eye(2, dtype=L.float64)", "L.empty(0)",
    ))  # fmt: skip
