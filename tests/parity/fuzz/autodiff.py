"""Lines that differentiate: backward, hooks, higher orders, function transforms."""

import re
from collections.abc import Callable

from .picker import Picker, Tensors

# Operators with which PyTorch reads or writes memory that is not a tensor's, where an example is too small for them.
CRASHES = re.compile(r"lu_unpack")


def backward(p: Picker, v: Tensors) -> str:
    """Return a backward pass that adds to the gradients of leaves."""
    i = p.floating(v)
    keep = "retain_graph=True" if p.chance(0.9) else ""
    return p.pick((
        f"v[{i}].backward(W(v[{i}]), {keep})", f"total(v[{i}]).backward({keep})",
        f"L.autograd.backward([v[{i}]], [W(v[{i}])], {keep})",
        f"L.autograd.backward([total(v[{i}]), total(v[{p.floating(v)}])], {keep})",
        f"v[{i}].backward(W(v[{i}]), {keep or 'retain_graph=False'}, inputs=[v[{p.floating(v)}]])",
    ))  # fmt: skip


def gradient(p: Picker, v: Tensors) -> str:
    """Return a gradient as a tensor of the program: differentiable in turn, mostly."""
    i = p.floating(v)
    inputs = [j for j in v if v[j].requires_grad]
    j = p.pick(inputs) if inputs else i
    create = f"create_graph={p.chance(0.8)}, retain_graph=True, allow_unused=True"
    return p.pick((
        f"L.autograd.grad(v[{i}], v[{j}], W(v[{i}]), {create})[0]",
        f"L.autograd.grad(total(v[{i}]), [v[{j}]], {create})[0]",
        f"L.autograd.grad(total(v[{i}]), [v[{j}]], materialize_grads=True, create_graph=True)[0]",
    ))  # fmt: skip


def detached(p: Picker, v: Tensors) -> str:
    """Return a tensor of the same values outside the graph, or a gradient."""
    i = p.one(v)
    return p.pick((
        f"v[{i}].detach()", f"v[{i}].detach().clone().requires_grad_()", f"v[{i}].data", f"v[{i}].grad",
    ))  # fmt: skip


def state(p: Picker, v: Tensors) -> str:
    """Return a line that changes what a tensor's gradient does."""
    i = p.one(v)
    return p.pick((
        f"v[{i}].retain_grad()", f"v[{i}].register_hook(lambda g: g * 2)", f"v[{i}].register_hook(lambda g: None)",
        f"v[{i}].register_hook(lambda g: g.clone().mul_(0.5))", f"v[{i}].grad = None",
        f"v[{i}].register_post_accumulate_grad_hook(lambda t: t.grad.mul_(2))",
        new_data(v) or f"v[{i}].retain_grad()", f"v[{i}].requires_grad = {v[i]._base is None or v[i].requires_grad}",
    ))  # fmt: skip


def new_data(v: Tensors) -> str | None:
    """Return an assignment to the data of the latest tensor, if that is new, no view, and not saved in a graph."""
    i = max(v)
    if v[i]._base is not None or sum(t is v[i] for t in v.values()) > 1 or any(t._base is v[i] for t in v.values()):
        return None
    return f"v[{i}].data = v[{i}].data * 2"


def transform(p: Picker, v: Tensors, expression: Callable[[Picker, Tensors], str]) -> str:
    """Return a transform of a small function, made of an expression of the program."""
    made = expression(p, v)
    numbers = re.findall(r"v\[(\d+)\]", made)
    if not numbers or CRASHES.search(made):
        return made
    i = int(p.pick(numbers))
    body = f"lambda x: {made.replace(f'v[{i}]', 'x')}"
    scalar = f"lambda x: total({made.replace(f'v[{i}]', 'x')})"
    made = p.pick((
        f"L.func.grad({scalar})(v[{i}])", f"L.func.grad_and_value({scalar})(v[{i}])[0]",
        f"L.func.vmap({body}, in_dims={p.dim(v[i])})(v[{i}])", f"L.func.vmap(L.func.grad({scalar}))(v[{i}])",
        f"L.func.jvp({body}, (v[{i}],), (W(v[{i}]),))[1]", f"L.func.vjp({body}, v[{i}])[0]",
        f"(lambda made: made[1](W(made[0]))[0])(L.func.vjp({body}, v[{i}]))",
        f"L.func.jacrev({body})(v[{i}])", f"L.func.jacfwd({body})(v[{i}])", f"L.func.hessian({scalar})(v[{i}])",
        f"L.func.vmap({body}, out_dims=-1)(v[{i}])", f"L.func.grad(L.func.grad({scalar}))(v[{i}])",
        checkpointed(made, i),
    ))  # fmt: skip
    return f"{made}.clone()" if made.startswith("L.func") else made  # which results share memory differs


def checkpointed(made: str, i: int) -> str:
    """Return an expression as a checkpoint, whose operands are arguments: they may be dropped before it runs again."""
    others = sorted({int(n) for n in re.findall(r"v\[(\d+)\]", made)} - {i})
    for n, name in ((i, "x"), *((n, f"x{n}") for n in others)):
        made = made.replace(f"v[{n}]", name)
    arguments = "".join(f", x{n}" for n in others)
    values = "".join(f", v[{n}]" for n in others)
    return f"L.utils.checkpoint.checkpoint(lambda x{arguments}: {made}, v[{i}]{values}, use_reentrant=False)"
