"""`scan`, `map` and `associative_scan`: a function applied along a dimension."""

from collections.abc import Callable
from typing import Any

import optree

from retrograd.core import Internal, Tensor, op, operator_named
from retrograd.core.errors import OperandIndexError, OperandTypeError, OperandValueError
from retrograd.func.batch import vmap
from retrograd.fx.subgraph import record_call, subgraph_of, trace_functions
from retrograd.fx.tracer import TraceLevel
from retrograd.higher_order.operands import call_without_writes, check_same_avals, flatten, trace_level
from retrograd.ops.family import Composite

_cat, _movedim, _select, _stack = map(operator_named, ("cat", "movedim", "select", "stack"))
_flip = operator_named("flip")


def scan(combine_fn: Callable, init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> tuple[Any, Any]:
    """Return the last carry, and the stacked outputs, of `carry, y = combine_fn(carry, x)` for every x along a dim.

    combine_fn: a function of the carry and of the slices of `xs`, which have one dimension less.  It returns the
        next carry, of the same structure, shapes and dtypes, and a pytree of tensors.  It may use tensors from around
        it, which get gradients.
    init: the first carry, a pytree of tensors.
    xs: a pytree of tensors of the same size along `dim`.
    reverse: whether the last slice comes first; each output is stacked at the index of its slice.

    Outputs are stacked along `dim`, or along 0 if they have too few dimensions.  Reverse mode saves the values of every
    step.  A trace records one node with the function.

    Raises RuntimeError for carries of another structure, shape or dtype, for leaves that are no tensors or have no
    slices, for sizes that differ, and for functions that write to their arguments.

    After `torch._higher_order_ops.scan`, which takes the first tensor's size where sizes differ.

    >>> import retrograd as rg
    >>> from retrograd.higher_order import scan
    >>> scan(lambda total, x: (total + x, total * x), rg.tensor(0.0), rg.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    starts, spec = flatten(init)
    slices, spec_xs = flatten(xs)
    if not slices:
        return init, []
    dim = _check_scan(combine_fn, starts, slices, dim, reverse)

    def step(*leaves: Any) -> tuple[list, Any, list]:
        carry, x = leaves[: len(starts)], leaves[len(starts) :]
        given = optree.tree_unflatten(spec, carry), optree.tree_unflatten(spec_xs, x)
        return _check_step(call_without_writes("scan: combine_fn", combine_fn, given), starts, spec)

    carry, outputs, tree = _scan_leaves(step, starts, slices, dim, reverse)
    return optree.tree_unflatten(spec, carry), optree.tree_unflatten(tree, outputs)


def _scan_leaves(step: Callable, starts: list, slices: list, dim: int, reverse: bool) -> tuple[list, list, Any]:
    """Run or record a scan; return the last carry, the stacked outputs and their structure."""
    level = trace_level()
    if level is not None:
        return _record_scan(level, step, starts, slices, dim, reverse)
    return _run_scan(step, starts, slices, dim, reverse)


def _run_scan(step: Callable, carry: list, slices: list, dim: int, reverse: bool) -> tuple[list, list, Any]:
    """Run all steps; return the last carry, the stacked outputs and their structure."""
    size = slices[0].shape[dim]
    rows, tree = [], None
    for i in reversed(range(size)) if reverse else range(size):
        carry, row, tree = step(*carry, *[_select(x, dim, i) for x in slices])
        rows.append(row)
    ordered = reversed(rows) if reverse else rows
    return carry, [_stack_outputs(list(column), dim) for column in zip(*ordered, strict=True)], tree


def _stack_outputs(outputs: list[Tensor], dim: int) -> Tensor:
    return _stack(outputs, dim=dim if dim <= outputs[0].ndim else 0)


def _check_scan(combine_fn: Any, starts: list, slices: list, dim: Any, reverse: Any) -> int:
    """Check the arguments of a scan; return its dim, at least 0."""
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise _DimError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if not starts:
        raise RuntimeError("scan() operator requires init leaves.")
    for name, leaves in (("init", starts), ("xs", slices)):
        wrong = [x for x in leaves if not isinstance(x, Tensor)]
        if wrong:
            raise RuntimeError(f"All {name} leaves must be a Tensor but got {wrong[0]}")
    return _check_sizes(slices, dim)


class _DimError(OperandTypeError, ValueError):
    """A dim that is no int: PyTorch raises a ValueError, or a TypeError, by its version."""


def _check_sizes(slices: list[Tensor], dim: int) -> int:
    """Raise a RuntimeError unless the tensors have slices along a dim, as many each; return the dim, at least 0."""
    ndim = slices[0].ndim
    if not -ndim <= dim < ndim:
        raise OperandIndexError(
            f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}], but got {dim}): all xs leaves "
            f"must at least have 'dim' number of dimensions"
        )
    first = dim + ndim if dim < 0 else dim
    if any(x.ndim <= first or x.shape[first] == 0 for x in slices):
        raise OperandValueError(
            "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0, got shapes "
            f"{', '.join(str(tuple(x.shape)) for x in slices)} for dim {dim}"
        )
    if len({x.shape[first] for x in slices}) > 1:
        raise OperandValueError(
            f"All xs leaves must have the same size along dim, got {[x.shape[first] for x in slices]}"
        )
    return first


def _check_step(result: Any, starts: list, spec: Any) -> tuple[list, list, Any]:
    """Return the leaves of the carry, and those of the output with their structure, of one step's result."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise RuntimeError(f"combine_fn must return a carry and an output, but got {result}")
    carry, tree = flatten(result[0])
    check_same_avals(("init", "carry"), starts, carry)
    if tree != spec:
        raise RuntimeError(f"Expected init and carry to have same structure but got lhs:{spec} and rhs:{tree}")
    outputs, tree = flatten(result[1])
    return carry, _check_tensors("combine_fn", outputs), tree


def _check_tensors(name: str, outputs: list) -> list:
    wrong = [x for x in outputs if not isinstance(x, Tensor)]
    if wrong:
        raise RuntimeError(f"{name} must return tensors, but got {wrong[0]}")
    return outputs


def _record_scan(
    level: TraceLevel, step: Callable, starts: list, slices: list, dim: int, reverse: bool
) -> tuple[list, list, Any]:
    """Record one node with the function of a step as a sub-graph."""
    trees = []

    def flat(*leaves: Any) -> tuple:
        carry, row, tree = step(*leaves)
        trees.append(tree)
        return (*carry, *row)

    with level.below():
        first = [_select(x.value if x.level is level else x, dim, 0) for x in slices]
    graphs, captured, _ = trace_functions(level, "scan", {"combine_fn": flat}, ([*starts, *first],))
    counts = {"carried": len(starts), "sliced": len(slices)}
    params = {"combine_fn": graphs[0], **counts, "dim": dim, "reverse": reverse}
    results = record_call(level, operator_named("higher_order.scan"), (*starts, *slices, *captured), params)
    return list(results[: len(starts)]), list(results[len(starts) :]), trees[0]


@op(
    "higher_order.scan(Tensor[] operands, *, any combine_fn, int carried, int sliced, int dim, bool reverse)"
    " -> Tensor[]"
)
class scan_node(Internal, Composite, exempt={"nested": "components with fewer steps have other results to stack"}):
    """Return the last carry and the outputs of a scan of a sub-graph: the node that a trace of `scan` records.

    The operands are `carried` tensors, `sliced` ones, and those that are the same in every step.
    """

    def compose(*operands: Any, combine_fn: Callable, carried: int, sliced: int, dim: int, reverse: bool) -> tuple:
        xs, rest = operands[carried : carried + sliced], operands[carried + sliced :]

        def step(*leaves: Any) -> tuple[list, list, Any]:
            results = list(combine_fn(*leaves, *rest))
            return results[:carried], results[carried:], None

        carry, outputs, _ = _scan_leaves(step, list(operands[:carried]), list(xs), dim, reverse)
        return (*carry, *outputs)

    def oracle(
        np: Any, *operands: Any, combine_fn: Callable, carried: int, sliced: int, dim: int, reverse: bool
    ) -> Any:
        carry, xs, rest = operands[:carried], operands[carried : carried + sliced], operands[carried + sliced :]
        rows = []
        for i in range(len(xs[0]))[:: -1 if reverse else 1]:
            results = combine_fn(*carry, *[x[i] for x in xs], *rest)
            carry, row = results[:carried], results[carried:]
            rows.append(row)
        return (*carry, *[np.stack(column) for column in zip(*rows[:: -1 if reverse else 1], strict=True)])

    def samples(r: Any) -> Any:
        combine_fn = subgraph_of("combine_fn", lambda c, x, w: (c * x + w, c.sin() * x), r(2), r(2), r(2))
        counts = {"carried": 1, "sliced": 1}
        yield (r(2), r(3, 2), r(2)), {"combine_fn": combine_fn, **counts, "dim": 0, "reverse": False}
        yield (r(2), r(3, 2), r(2)), {"combine_fn": combine_fn, **counts, "dim": 0, "reverse": True}
        mapped = subgraph_of("combine_fn", lambda x: (x.exp() * x,), r(2))
        yield (r(3, 2),), {"combine_fn": mapped, "carried": 0, "sliced": 1, "dim": 0, "reverse": False}


# ------------------------------------------------------------------------------------------------------ map


def map(f: Callable, xs: Any, *args: Any) -> Any:
    """Return the stacked results of `f(x, *args)` for every x along the first dimension of `xs`.

    f: a function of a slice of `xs` and of the further arguments that returns a pytree of tensors.
    xs: a pytree of tensors of the same size along their first dimension.

    The slices are processed one after another: `vmap` processes all at once, and needs more memory.  A trace records
    one node with the function: that of a `scan` with nothing to carry.

    Raises RuntimeError for leaves that are no tensors, for sizes that are zero or differ.

    After `torch._higher_order_ops.map`.

    >>> import retrograd as rg
    >>> from retrograd import higher_order
    >>> higher_order.map(lambda x, y: x @ y, rg.ones(2, 3), rg.tensor([1.0, 2.0, 3.0]))
    tensor([6., 6.])
    """
    if not callable(f):
        raise RuntimeError(f"map: f must be a callable, but got {f}")
    leaves, spec = flatten(xs)
    _check_map(leaves, xs)

    def step(*x: Any) -> tuple[list, list, Any]:
        given = (optree.tree_unflatten(spec, x), *args)
        outputs, tree = optree.tree_flatten(call_without_writes("map: f", f, given))  # None is a tree without leaves
        wrong = [out for out in outputs if not isinstance(out, Tensor)]
        if wrong:
            raise RuntimeError(
                f"Expect outputs of map only contains tensors or None. f must return tensors, got {wrong[0]}"
            )
        return [], outputs, tree

    _, outputs, tree = _scan_leaves(step, [], leaves, 0, False)
    return optree.tree_unflatten(tree, outputs)


def _check_map(leaves: list, xs: Any) -> None:
    if not leaves or not all(isinstance(x, Tensor) and x.ndim for x in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}. Each must have a dimension.")
    if leaves[0].shape[0] == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if len({x.shape[0] for x in leaves}) > 1:
        shapes = [tuple(x.shape) for x in leaves]
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")


# ----------------------------------------------------------------------------------------- associative_scan


def associative_scan(
    combine_fn: Callable, xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Return all prefixes of an associative function along a dim: x0, f(x0, x1), f(f(x0, x1), x2), ...

    combine_fn: an associative function of two slices of `xs` that returns one of the same structure.  It runs on many
        pairs at once, by `vmap`: about 2 log2(n) times for n slices.
    xs: a pytree of tensors of the same size along `dim`.
    reverse: whether the last slice comes first.
    combine_mode: "pointwise" or "generic", which are the same here: neither needs a compiler.

    Raises ValueError for leaves that are no tensors or have no slices, and RuntimeError for results that differ from
    slices in structure, shape or dtype.

    After `torch._higher_order_ops.associative_scan`.

    >>> import retrograd as rg
    >>> from retrograd.higher_order import associative_scan
    >>> associative_scan(lambda a, b: a * b, rg.tensor([1.0, 2.0, 3.0, 4.0]), 0)
    tensor([ 1.,  2.,  6., 24.])
    """
    leaves, spec = flatten(xs)
    dim = _check_associative(combine_fn, leaves, dim, reverse, combine_mode)

    def combine(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        out, tree = flatten(pairwise(optree.tree_unflatten(spec, left), optree.tree_unflatten(spec, right)))
        if tree != spec:
            raise RuntimeError(f"associative_scan: combine_fn must return a tree like xs, {spec}, but got {tree}")
        check_same_avals(("combine_fn_output", "xs"), out, left)
        return out

    pairwise = vmap(combine_fn)
    rows = [_movedim(x, dim, 0) for x in leaves]
    rows = [_flip(x, (0,)) for x in rows] if reverse else rows
    found = _prefixes(combine, rows)
    found = [_flip(x, (0,)) for x in found] if reverse else found
    return optree.tree_unflatten(spec, [_movedim(x, 0, dim) for x in found])


def _check_associative(combine_fn: Any, leaves: list, dim: Any, reverse: Any, combine_mode: Any) -> int:
    """Check the arguments; return the dim, at least 0."""
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise _DimError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if not all(isinstance(x, Tensor) for x in leaves):
        raise ValueError("xs leaves must be a Tensor")
    return _check_sizes(leaves, dim)


def _prefixes(combine: Callable, xs: list[Tensor]) -> list[Tensor]:
    """Return all prefixes along dimension 0, by a recursion over the combined pairs."""
    size = xs[0].shape[0]
    if size == 1:
        return xs
    # The prefixes of the pairs are those that end at odd indices. Each of the others takes one more element.
    odd = _prefixes(combine, combine([x[: size - 1 : 2] for x in xs], [x[1::2] for x in xs]))
    if size == 2:
        return [_cat([x[:1], o]) for x, o in zip(xs, odd, strict=True)]
    shorter = [o[: (size - 1) // 2] for o in odd]
    even = [_cat([x[:1], e]) for x, e in zip(xs, combine(shorter, [x[2::2] for x in xs]), strict=True)]
    return [_interleave(e, o) for e, o in zip(even, odd, strict=True)]


def _interleave(even: Tensor, odd: Tensor) -> Tensor:
    """Return rows that alternate between two tensors; the first may have one row more."""
    count = odd.shape[0]
    pairs = _stack([even[:count], odd], dim=1).reshape(2 * count, *odd.shape[1:])
    return _cat([pairs, even[count:]])
