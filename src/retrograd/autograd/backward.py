"""`backward` and `grad`: checks of what users ask for, around one pass of the engine.

Inside, cotangents are transposed linear maps; PyTorch's gradients of complex tensors are their conjugates
(the direction of steepest ascent), so complex gradients are conjugated where they enter and leave.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Any

from retrograd.autograd.graph import GradientEdge
from retrograd.core import AccumulateGrad, Tensor, at, current, graph_level, registry
from retrograd.core.dispatch import answer_of, is_foreign
from retrograd.core.engine import accumulating, add_into, edge_of, laid_out, ones, pullback
from retrograd.core.hooks import conjugate

Inputs = Tensor | GradientEdge | Sequence[Tensor | GradientEdge]


def backward(
    tensors: Inputs,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Inputs | None = None,
) -> None:
    """Add the gradients of `tensors` to `.grad` of every leaf that they depend on, or of `inputs` only.

    `grad_tensors` has, per tensor, a cotangent of its shape and kind; None stands for 1 where the tensor has a
    single element.  The values that the pass needs are freed unless `retain_graph` (default: `create_graph`).

    Raises RuntimeError for a missing or unfit cotangent, a tensor that requires no gradient, empty inputs and
    a graph whose values are freed.

    >>> import retrograd as rg
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> rg.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if grad_variables is not None:
        warnings.warn("backward: grad_variables is deprecated, use grad_tensors", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("backward: give grad_tensors or its old name grad_variables, not both")
        grad_tensors = grad_variables
    if not isinstance(tensors, Tensor) and (foreign := _foreign(tensors, inputs, grad_tensors)):
        answer_of(backward, foreign, (tensors, grad_tensors, retain_graph, create_graph), {"inputs": inputs})
        return
    if graph_level() is not None:
        raise NotImplementedError("backward: not supported yet inside a function transform or trace; use func.grad")
    roots = _sequence(tensors)
    targets = None if inputs is None else _sequence(inputs)
    wanted = None if targets is None else [_edge(target, index) for index, target in enumerate(targets)]
    if wanted is not None and not wanted:
        raise RuntimeError("backward: inputs is empty: nothing would get a gradient; without it every leaf does")
    seeds = _seeds("backward", roots, grad_tensors)
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True makes a reference cycle: the leaf holds its .grad, whose graph "
            "holds the leaf. Use autograd.grad() instead, or set .grad to None after use; otherwise memory is freed "
            "only when Python's cycle collector runs.",
            UserWarning,
            stacklevel=2,
        )
    accumulate = _accumulate_with_graph if create_graph else _accumulate
    found = _pull(roots, seeds, wanted, create_graph, retain_graph, accumulate)
    for target, g in found.items():
        tensor = _receiver(target, targets)
        if tensor is not None and g is not None:
            accumulate(tensor, g, False)


def grad(
    outputs: Inputs,
    inputs: Inputs,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; nothing is added to any `.grad`.

    `outputs` and `inputs` are tensors, edges, or sequences of them; `grad_outputs` has, per output, a cotangent of its
    shape and kind, None standing for 1 where the output has a single element.  Each gradient has the shape and dtype
    of its input.

    Raises RuntimeError for an input that the outputs do not depend on, unless `allow_unused` (its gradient is None) or
    `materialize_grads` (it is zeros), for missing or unfit cotangents, for no inputs at all, and for a graph whose
    values are freed; ValueError for `materialize_grads` without `allow_unused`.

    >>> import retrograd as rg
    >>> x = rg.tensor(3.0, requires_grad=True)
    >>> rg.autograd.grad(x**3, x)
    (tensor(27.),)
    """
    foreign = _foreign(outputs, inputs, grad_outputs)
    if foreign:
        options = {
            "grad_outputs": grad_outputs,
            "retain_graph": retain_graph,
            "create_graph": create_graph,
            "allow_unused": allow_unused,
            "materialize_grads": materialize_grads,
        }
        return answer_of(grad, foreign, (outputs, inputs), options)
    if not only_inputs:
        warnings.warn("grad: only_inputs=False is ignored; use backward()", FutureWarning, stacklevel=2)
    if is_grads_batched:
        raise NotImplementedError("grad: is_grads_batched is not supported yet")
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: materialize_grads=True fills in unused inputs, so allow_unused can't be False")
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    roots, targets = _sequence(outputs), _sequence(inputs)
    if not targets:
        raise RuntimeError("grad: inputs is empty; name the tensors whose gradients are wanted")
    wanted = [_edge(i, index) for index, i in enumerate(targets)]
    seeds = _seeds("grad", roots, grad_outputs)
    found = _pull(roots, seeds, wanted, create_graph, retain_graph, None)
    results = [found.get(edge if isinstance(edge, Tensor) else (edge, number)) for edge, number in wanted]
    return tuple(
        conjugate(g) if g is not None else _unused(index, target, allow_unused, materialize_grads)
        for index, (g, target) in enumerate(zip(results, targets, strict=True))
    )


def _foreign(*values: Any) -> list:
    """The operands, alone or in sequences, whose classes answer for functions themselves."""
    found = []
    for value in values:
        if value is not None and not isinstance(value, Tensor):
            members = value if isinstance(value, (tuple, list)) else (value,)
            found += [m for m in members if m is not None and not isinstance(m, Tensor) and is_foreign(m)]
    return found


def _sequence(value: Any) -> list:
    return [value] if isinstance(value, (Tensor, GradientEdge)) else list(value)


def _end(target: Tensor | GradientEdge) -> tuple[Any, int]:
    """Where the gradient of a target arrives, as the engine has it."""
    if isinstance(target, Tensor):
        return edge_of(target)
    node = target.node
    return (node.variable if isinstance(node, AccumulateGrad) else node), target.output_nr


def _edge(target: Any, index: int) -> tuple[Any, int]:
    if isinstance(target, GradientEdge):
        return _end(target)
    if not isinstance(target, Tensor):
        raise TypeError(f"inputs[{index}]: expected a Tensor or GradientEdge, got {type(target).__name__}")
    if not target.requires_grad:
        raise RuntimeError(f"inputs[{index}], of shape {target.shape}, does not require grad")
    return edge_of(target)


def _seeds(name: str, roots: list, gradients: Any) -> list:
    given = [None] * len(roots) if gradients is None else _sequence(gradients)
    if len(given) != len(roots):
        raise RuntimeError(f"{name}: got {len(roots)} outputs but {len(given)} gradients for them")
    return [_seed(name, index, roots[index], g) for index, g in enumerate(given)]


def _seed(name: str, index: int, root: Tensor | GradientEdge, g: Tensor | None) -> Tensor:
    if not isinstance(root, (Tensor, GradientEdge)):
        raise TypeError(f"{name}: output {index} must be a Tensor or GradientEdge, got {type(root).__name__}")
    if isinstance(root, GradientEdge) and root.aval is None:
        if not isinstance(g, Tensor):
            raise RuntimeError(f"{name}: output {index} is a GradientEdge of unknown shape; give its cotangent")
        return conjugate(g)
    if isinstance(root, Tensor) and not root.requires_grad:
        raise RuntimeError(
            f"{name}: output {index}, of shape {root.shape}, does not require grad: nothing that requires grad "
            f"went into it, or it was made under no_grad() or detached"
        )
    if g is None:
        if root.shape != () and math.prod(root.shape) != 1:
            raise RuntimeError(
                f"{name}: a gradient can be made up only for outputs of one element; output {index} has shape "
                f"{root.shape}: give its cotangent, or reduce it, for example with .sum()"
            )
        if root.dtype.kind == "c":
            raise RuntimeError(
                f"{name}: a gradient can be made up only for real outputs; output {index} is {root.dtype}"
            )
        return ones(root.shape, root.dtype)
    if not isinstance(g, Tensor):
        raise TypeError(f"{name}: gradient {index} must be a Tensor or None, got {type(g).__name__}")
    if g.shape != root.shape:
        raise RuntimeError(f"{name}: gradient {index} has shape {g.shape}, but output {index} has {root.shape}")
    kind, wanted = g.dtype, root.dtype
    if kind is wanted and kind.kind == "f":
        return g
    if kind.kind not in "fc" or (kind.kind == "c") != (wanted.kind == "c"):
        raise RuntimeError(f"{name}: gradient {index} is {kind}, but output {index} is {wanted}")
    return conjugate(g if kind == wanted else registry["to"](g, wanted))


def _pull(
    roots: list, seeds: list, wanted: Any, create_graph: bool, retain_graph: bool | None, accumulate: Any
) -> dict[Any, Tensor]:
    return pullback(
        [_end(root) for root in roots],
        seeds,
        level=current().level,
        inputs=wanted,
        create_graph=create_graph,
        retain_graph=create_graph if retain_graph is None else retain_graph,
        accumulate=accumulate,
    )


def _unused(index: int, target: Any, allowed: bool, materialize: bool) -> Tensor | None:
    if not allowed:
        raise RuntimeError(
            f"grad: the outputs do not depend on inputs[{index}]; pass allow_unused=True for None in its place, "
            f"or materialize_grads=True for zeros"
        )
    if not materialize:
        return None
    return registry["zeros"](target.shape, dtype=target.dtype)


def _receiver(target: Any, inputs: list | None) -> Tensor | None:
    """The tensor whose .grad a cotangent goes to; a node that no input tensor names has none."""
    if isinstance(target, Tensor):
        return target
    for tensor in inputs or ():
        if isinstance(tensor, Tensor):
            fn, number = edge_of(tensor)
            if fn is target[0] and number == target[1]:
                return tensor
    return None


def _accumulate(leaf: Tensor, g: Tensor, owned: bool) -> None:
    """Add to .grad in place; memory that is not owned is copied first."""
    if g.dtype.kind == "c":
        g = conjugate(g)
    with accumulating:
        old = leaf._grad
        if old is None:
            leaf._grad = laid_out(g, leaf, owned)
        elif not add_into(old, g):
            with at(current().level, False):
                leaf._grad = old + g


def _accumulate_with_graph(leaf: Tensor, g: Tensor, owned: bool) -> None:
    """Add to .grad as a new tensor, with its graph."""
    g = conjugate(g)
    with accumulating:
        old = leaf._grad
        leaf._grad = registry["clone"](g) if old is None else old + g  # leaves may have got the same tensor


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Inputs | None = None,
) -> None:
    """Add the gradients of this tensor to `.grad` of the leaves that it depends on; see `autograd.backward`."""
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


_backward.__name__, _backward.__qualname__ = "backward", "Tensor.backward"
setattr(Tensor, "backward", _backward)  # noqa: B010 (a method that another layer adds)
