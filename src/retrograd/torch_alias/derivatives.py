"""Private names of `torch.autograd.functional` and `torch.optim.lbfgs`: for libraries of optimizers."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.core import Tensor, registry
from retrograd.optim.line_search import Point, cubic_minimizer, strong_wolfe


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> Any:
    """Return whether an argument is a tuple, and the argument as one; only the tuple if it has no name."""
    if arg_name is None and fn_name is None:
        return tuple(inp) if isinstance(inp, (tuple, list)) else (inp,)
    single = not isinstance(inp, tuple)
    for x in [inp] if single else inp:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"The {arg_name} given to {fn_name} must be either a Tensor or a tuple of Tensors but the given "
                f"{arg_name} has type {type(x)}."
            )
    return not single, (inp,) if single else inp


def _tuple_postprocess(res: Any, to_unpack: Any) -> Any:
    """Undo `_as_tuple` for results; for tuples of tuples, for the outer and the inner ones."""
    outer, inner = to_unpack if isinstance(to_unpack, tuple) else (to_unpack, True)
    res = res if inner else tuple([x[0] for x in res])
    return res if outer else res[0]


def _grad_postprocess(inputs: Sequence[Any], create_graph: bool) -> Any:
    """Return derivatives without their history, unless it is wanted."""
    if isinstance(inputs[0], Tensor):
        return inputs if create_graph else tuple([x.detach() for x in inputs])
    return tuple([_grad_postprocess(x, create_graph) for x in inputs])


def _construct_standard_basis_for(tensors: Sequence[Tensor], tensor_numels: Sequence[int]) -> tuple[Tensor, ...]:
    """Return the rows of a unit matrix, divided into columns for each tensor.

    >>> import retrograd as rg
    >>> [part.tolist() for part in _construct_standard_basis_for([rg.ones(1), rg.ones(2)], [1, 2])]
    [[[1.0], [0.0], [0.0]], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]]
    """
    parts = registry["eye"](sum(tensor_numels)).split([*tensor_numels], 1)
    return tuple([part.to(x.dtype) for part, x in zip(parts, tensors, strict=True)])


def _cubic_interpolate(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple[Any, Any] | None = None
) -> float:
    """Return the minimizer of the cubic with two values and slopes, within bounds, by default between the points.

    >>> _cubic_interpolate(0.0, 1.0, -2.0, 4.0, 9.0, 6.0)
    1.0
    """
    first, second = [Point(float(x), float(f), None, float(g)) for x, f, g in ((x1, f1, g1), (x2, f2, g2))]
    left, right = sorted((first.t, second.t)) if bounds is None else map(float, bounds)
    return cubic_minimizer(first, second, (left, right))


def _strong_wolfe(
    obj_func: Callable[[Any, float, Tensor], tuple[float, Tensor]],
    x: Any,
    t: Any,
    d: Tensor,
    f: Any,
    g: Tensor,
    gtd: Any,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Tensor, float, int]:
    """Return the value, the gradient and the length of a step by the strong Wolfe conditions; how often it evaluated.

    `obj_func(x, t, d)` returns the value and the gradient at x + t d.
    """
    count = 0

    def evaluate(t: float) -> Point:
        nonlocal count
        count += 1
        value, gradient = obj_func(x, t, d)
        return Point(t, float(value), gradient.clone(), float(gradient.dot(d)))

    start = Point(0.0, float(f), g, float(gtd))
    found = strong_wolfe(evaluate, start, float(t), float(d.abs().max()), tolerance_change, max_ls)
    return found.value, found.gradient, found.t, count
