"""Lines that write to a tensor: in-place operators, assignments, `out=`."""

import re

import torch

from .differential import GUARD
from .expressions import BINARY, UNARY
from .machine import recorded
from .picker import Picker, Tensors, share_memory
from .views import mask_key

VIEWS = re.compile(r"(squeeze|unsqueeze|t|swapaxes|transpose)_\(")


def write(p: Picker, v: Tensors) -> str:
    """Return an in-place call whose result is a tensor of the program too."""
    i = p.writable(v)
    call = _call(p, v, i)
    if VIEWS.match(call) and v[i].requires_grad:
        if p.chance(0.8) and not _of_leaf(v[i]):
            return f"v[{max(v) + 1}] = v[{i}].{call}"
        call = f"mul_({p.number()})"  # only the view becomes another one, of a leaf too, which PyTorch refuses
    return f"{GUARD if p.chance(0.1) else ''}v[{max(v) + 1}] = v[{i}].{call}"


def _of_leaf(x: torch.Tensor) -> bool:
    """Return whether a tensor is a leaf, or a view of one."""
    return recorded(x) != "True, leaf False" or (x._base is not None and x._base.is_leaf)


def _call(p: Picker, v: Tensors, i: int) -> str:
    a, b = source(v, i, p.fitting(v, i)), source(v, i, p.fitting(v, i))
    d, part, first = p.dim(v[i]), f"v[{i}].detach().clone()", "L.tensor([0])"
    number = p.number() if v[i].is_floating_point() else p.pick(("2", "-1", "3", "0"))
    index = f"L.tensor([{p.below(p.size(v[i], d))}])"
    zeros = f"L.zeros_like(v[{i}], dtype=L.int64)"
    piece = f"v[{i}].narrow({d}, 0, 1).clone()"
    grads = ("requires_grad_()", "requires_grad_(False)") if v[i]._base is None else ("detach_()",)
    viewed = v[i]._base is not None or any(t._base is v[i] for t in v.values())
    fitting = [f"cumsum_({d})"] * (v[i].dtype != torch.bool) + ["detach_()"] * (not viewed)
    return p.pick((
        f"add_({a})", f"mul_({a})", f"copy_({a})", f"add_({a}, alpha=2)", f"lerp_({a}, 0.5)", f"atan2_({a})",
        f"hypot_({a})", f"addcmul_({a}, {b}, value={number})", f"addcdiv_({a}, {b}, value=2)", f"sub_({number})",
        f"mul_({number})", f"div_({number})", f"fill_({number})", f"pow_({number})", f"clamp_(min={number})",
        f"remainder_({number})", f"masked_fill_(v[{i}] > 0, {number})", "zero_()", "clamp_(-1, 1)", "sigmoid_()",
        "relu_()", "neg_()", "abs_()", "exp_()", "sin_()", "tanh_()", "round_()", "floor_()", "sqrt_()",
        "nan_to_num_()", "triu_()", "tril_()", "squeeze_()", "t_()", f"unsqueeze_({d})", f"swapaxes_({d}, 0)",
        f"transpose_({d}, {p.dim(v[i])})", f"fill_diagonal_({number})", *fitting,
        p.pick(grads),
        f"index_fill_({d}, {index}, {number})", f"index_add_({d}, {index}, {piece})",
        f"put_({first}, {part}.flatten()[:1])",
        f"index_copy_({d}, {index}, {piece})", f"index_put_(({first},), {a})", f"scatter_({d}, {zeros}, {number})",
        f"scatter_add_({d}, {zeros}, {part})", f"masked_scatter_(v[{i}] > 0, {part})",
    ))  # fmt: skip


def source(v: Tensors, i: int, j: int) -> str:
    """Return the value to write to tensor i: tensor j, or a copy where PyTorch would overwrite what it still reads.

    To integers and booleans it is detached: PyTorch would make them require grad.
    """
    if v[j].requires_grad and not (v[i].is_floating_point() or v[i].is_complex()):
        return f"v[{j}].detach().clone()"
    return f"v[{j}].clone()" if i != j and share_memory(v[i], v[j]) else f"v[{j}]"


def augmented(p: Picker, v: Tensors) -> str:
    """Return an augmented assignment, to a tensor or to a part of it."""
    i = p.writable(v)
    j = p.fitting(v, i)
    recorded = v[i].requires_grad or v[j].requires_grad
    operator = p.pick(("+", "-", "*", "/", "**", "%", "*" if recorded else "//"))
    other = p.number() if p.chance(0.4) else source(v, i, j)
    target = f"v[{i}]" if p.chance(0.6) else f"v[{i}][{p.key(v[i], distinct=True)}]"
    return f"{target} {operator}= {other}"


def assignment(p: Picker, v: Tensors) -> str:
    """Return an assignment to a part of a tensor."""
    i = p.writable(v)
    key = (mask_key(p, v, v[i]) if p.chance(0.3) else None) or p.key(v[i], distinct=True)
    j = p.pick((p.one(v), p.fitting(v, i)))
    value = p.pick((p.number(), source(v, i, j) if i != j else f"v[{j}].clone()"))
    return f"{GUARD if p.chance(0.05) else ''}v[{i}][{key}] = {value}"


def into(p: Picker, v: Tensors) -> str:
    """Return a call that writes its result into a tensor by `out=`."""
    i = p.one(v)
    same = [j for j in v if v[j].shape == v[i].shape]
    call = f"{p.pick(UNARY)}(v[{i}]" if p.chance(0.4) else f"{p.pick(BINARY)}(v[{i}], v[{p.pick(same)}]"
    out = p.pick(same)
    call = re.sub(r"v\[(\d+)\]", lambda found: source(v, out, int(found[1])), call)
    guard = GUARD if v[out].requires_grad or p.chance(0.5) else ""  # PyTorch's graph of `out` stays as it was
    return f"{guard}v[{max(v) + 1}] = L.{call}, out=v[{out}])"
