"""Explanations, in words, of why a tensor gets a gradient or does not."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple

from retrograd.autograd.nodes import (
    describe_type,
    inputs_of,
    is_leaf,
    producer,
    saved_values,
    short_name,
    topological_order,
)
from retrograd.autograd.source_lines import Cut
from retrograd.core import Tensor
from retrograd.core.dtype import is_differentiable

MAX_LEAVES = 12  # leaves whose paths are described
MAX_CUTS = 5  # lines shown where values were cut off
MAX_STEPS = 7  # operators of a path before its middle is left out


class Explanation(NamedTuple):
    """The result of `explain`: the text, the leaves that the backward pass reaches, and the cut.

    `cut` has a `reason` and a `line`, or is None where nothing was cut off.
    """

    text: str
    leaves: tuple[Tensor, ...] = ()
    cut: Cut | None = None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def explain(tensor: Tensor, leaf: Tensor | None = None) -> Explanation:
    """Explain why gradients flow from a tensor, and to which leaves, or why not; with `leaf`, for that one.

    For a tensor that requires grad, the text lists the leaves that its backward pass reaches, each with the shortest
    path of operators.  For another tensor, it names the line that detached it from the graph, or another reason.  For
    a `.grad` that is None, it says why.  It suggests a fix.  The time is proportional to the size of the graph.

    Raises TypeError if an argument is not a tensor.

    >>> import retrograd as rg
    >>> w = rg.ones(3, requires_grad=True)
    >>> print(explain((w * w).sum(), w))
    The gradient of this tensor, float32[], reaches the leaf float32[3]: sum → mul → leaf.
    The leaf's .grad is None: no backward pass has reached it yet. Call .backward() on this tensor.
    """
    for name, value in (("tensor", tensor), ("leaf", tensor if leaf is None else leaf)):
        if not isinstance(value, Tensor):
            raise TypeError(f"explain: {name} must be a Tensor, got {type(value).__name__}")
    if not tensor.requires_grad:
        return _explain_no_graph(tensor, leaf)
    if leaf is not None:
        return _explain_path(tensor, leaf)
    return _explain_leaf(tensor) if tensor.is_leaf else _explain_result(tensor)


# -------------------------------------------------------------------------------------- a tensor without a graph


def _explain_no_graph(tensor: Tensor, leaf: Tensor | None) -> Explanation:
    reason, way_out = _reason_for_no_graph(tensor)
    about = f"This tensor, {describe_type(tensor)}, does not require grad: {reason}."
    lines = [about, "" if leaf is None else f"So no gradient goes from it to the leaf {describe_type(leaf)}.", way_out]
    return Explanation(_join_lines(lines), (), cut_of(tensor))


def _reason_for_no_graph(tensor: Tensor) -> tuple[str, str]:
    """Return why a tensor does not require grad, and a suggestion."""
    cut = cut_of(tensor)
    if cut is not None:
        return _reason_of_cut(cut)
    if not is_differentiable(tensor.dtype):
        return (
            f"its dtype is {tensor.dtype}, and only floating and complex numbers have gradients",
            "Way out: make it floating, as in x.float() or rg.tensor([1.0]), before the computation; what was rounded "
            "or compared has no gradient.",
        )
    if tensor.is_inference():
        return (
            "it was made under inference_mode(), where nothing is recorded",
            "Way out: make it outside of inference_mode(); x.clone() outside gives a copy that may require grad.",
        )
    return (
        "nothing that requires grad went into it",
        "Way out: if it is a leaf of your own, call x.requires_grad_(). Otherwise call requires_grad_() on the tensors "
        "that it is to be differentiated by, before it is computed from them; a module's parameters have it already, "
        "unless they were frozen.",
    )


def cut_of(tensor: Tensor) -> Cut | None:
    """Return where and why a value was cut off from its graph; None inside a transform, which uses the tags."""
    return Cut(*tensor.tag) if tensor.level is None and tensor.tag is not None else None


# For each reason of a cut: its name for users, and a suggestion. Other reasons are operators without a gradient.
CUT_REASONS = {
    "detach": (
        "detach()",
        "leave out detach() there (and .data or numpy(), which do the same); x.clone() copies without a cut",
    ),
    "no_grad": ("no_grad()", "compute it outside of no_grad(), or in a block `with rg.enable_grad():` inside"),
    "mark_non_differentiable": (
        "a Function, which marked its output as non-differentiable,",
        "see what its forward gives to ctx.mark_non_differentiable()",
    ),
    "inference_mode": ("inference_mode()", "compute it outside of inference_mode()"),
}


def _reason_of_cut(cut: Cut) -> tuple[str, str]:
    other = f"take the gradient of what goes into {cut.reason}, or use an operator that has a gradient in its place"
    _, way_out = CUT_REASONS.get(cut.reason, ("", other))
    return (
        f"it, or a value that it was computed from, was cut off from the graph by {_describe_cut(cut)}",
        f"Way out: {way_out}.",
    )


def _describe_cut(cut: Cut) -> str:
    """Return a text: the reason of a cut, and the line."""
    call, _ = CUT_REASONS.get(cut.reason, (f"{cut.reason}, which has no gradient,", ""))
    return f"{call} at {cut.line}"


# ----------------------------------------------------------------------------------------------- one that has one


def _explain_leaf(tensor: Tensor) -> Explanation:
    about = (
        f"This tensor, {describe_type(tensor)}, is a leaf that requires grad: gradients that reach it are added to "
        f".grad."
    )
    if tensor._grad is not None:
        return Explanation(_join_lines([about, ".grad holds the sum of what has reached it so far."]), (tensor,))
    return Explanation(_join_lines([about, *_describe_missing_grad(tensor)]), (tensor,))


def _describe_missing_grad(leaf: Tensor) -> Iterator[str]:
    yield (
        ".grad is None: no backward pass has reached it since it was made, or since zero_grad() or .grad = None "
        "cleared it."
    )
    hooks = leaf._hooks
    if hooks is not None and hooks.accumulated:
        yield "Or one of its post-accumulate-grad hooks has cleared .grad, as optimizers within backward() do."
    yield (
        "Way out: call .backward() on a result that depends on it. If you have called it already, "
        "explain(result, leaf) tells whether that result depends on this leaf, and where the way is cut."
    )


def _explain_result(tensor: Tensor) -> Explanation:
    root = producer(tensor)
    paths = _ShortestPaths(root)
    leaves = tuple(paths.leaves())
    lines = [
        f"This tensor, {describe_type(tensor)}, requires grad: {short_name(root)} made it from something that does.",
        f"A backward pass from it reaches {_format_count(len(leaves), 'leaf', 'leaves')}, by the shortest way:",
        *(f"  {describe_type(leaf)}: {paths.path_to(leaf)}" for leaf in leaves[:MAX_LEAVES]),
        f"  and {len(leaves) - MAX_LEAVES:,} more" if len(leaves) > MAX_LEAVES else "",
        *_describe_cuts(root),
        *_describe_freed(root),
        *_describe_result_grad(tensor),
    ]
    return Explanation(_join_lines(lines), leaves)


def _describe_result_grad(tensor: Tensor, whose: str = "Its own") -> Iterator[str]:
    if tensor._grad is None and not tensor.retains_grad:
        yield (
            f"{whose} .grad stays None, because it is no leaf: call .retain_grad() on it before backward() to keep "
            f"its gradient, or ask autograd.grad(result, tensor) for it."
        )


def _describe_cuts(root: Any) -> Iterator[str]:
    """Return the cuts of inputs without gradient, as far as nodes have saved these inputs."""
    found = {(cut.reason, cut.line): cut for node in topological_order([root]) for cut in _find_cuts(node)}
    for cut in islice(found.values(), MAX_CUTS):
        yield f"No gradient goes through a value that was cut off by {_describe_cut(cut)}."
    if len(found) > MAX_CUTS:
        yield f"Nor through values that were cut off at {len(found) - MAX_CUTS} other places."


def _find_cuts(node: Any) -> Iterator[Any]:
    if not is_leaf(node):
        for _, value in saved_values(node):
            cut = None if value.requires_grad else cut_of(value)
            if cut is not None:
                yield cut


def _describe_freed(root: Any) -> Iterator[str]:
    if any(not is_leaf(node) and node.freed for node in topological_order([root])):
        yield (
            "A backward pass has gone over its graph already and freed the saved values, so another one fails. "
            "Way out: compute it again, or pass retain_graph=True to the first backward()."
        )


# ------------------------------------------------------------------------------------------- from a tensor to one


def _explain_path(tensor: Tensor, leaf: Tensor) -> Explanation:
    what = (
        f"the leaf {describe_type(leaf)}"
        if leaf.is_leaf
        else f"the result {describe_type(leaf)} of {short_name(leaf._grad_fn)}"
    )
    if not leaf.requires_grad:
        reason, way_out = _reason_for_no_graph(leaf)
        about = (
            f"No gradient goes from this tensor, {describe_type(tensor)}, to {what}, which does not require grad: "
            f"{reason}."
        )
        return Explanation(_join_lines([about, way_out]), (), cut_of(leaf))
    root, target = producer(tensor), producer(leaf)
    paths = _ShortestPaths(root)
    if id(target) not in paths.consumers:
        return Explanation(_join_lines(_describe_no_path(tensor, what, root)))
    about = f"The gradient of this tensor, {describe_type(tensor)}, reaches {what}: {paths.path_to(target)}."
    return Explanation(_join_lines([about, *_describe_freed(root), *_describe_leaf_grad(leaf)]), (leaf,))


def _describe_no_path(tensor: Tensor, what: str, root: Any) -> list[str]:
    operators = sum(not is_leaf(node) for node in topological_order([root]))
    cuts = list(_describe_cuts(root))
    behind = f"of the {_format_count(operators, 'operator')} that computed it, none"
    return [
        f"No gradient goes from this tensor, {describe_type(tensor)}, to {what}: {behind} got a value that depends on "
        f"it.",
        *cuts,
        "If one of these comes from the leaf, that is where the gradient is lost."
        if cuts
        else "Way out: look for a use of the leaf under no_grad(), through detach(), .data, numpy(), item() or an "
        "integer; or for another tensor (a copy, an older one) that is used instead.",
    ]


def _describe_leaf_grad(leaf: Tensor) -> Iterator[str]:
    if not leaf.is_leaf:
        yield from _describe_result_grad(leaf, "The result's own")
    elif leaf._grad is None:
        yield "The leaf's .grad is None: no backward pass has reached it yet. Call .backward() on this tensor."


class _ShortestPaths:
    """The shortest paths from a node to all reachable ones."""

    def __init__(self, root: Any) -> None:
        self.consumers: dict[int, Any] = {id(root): None}  # for each node, its consumer on the shortest path
        self.nodes = [root]
        queue = deque(self.nodes)
        while queue:
            node = queue.popleft()
            for source in inputs_of(node):
                if source is not None and id(source) not in self.consumers:
                    self.consumers[id(source)] = node
                    self.nodes.append(source)
                    queue.append(source)

    def leaves(self) -> Iterator[Tensor]:
        return (node for node in self.nodes if is_leaf(node))

    def path_to(self, target: Any) -> str:
        """Return the operators on the gradient's path to a node."""
        names = []
        node = self.consumers[id(target)]
        while node is not None:
            names.append(short_name(node))
            node = self.consumers[id(node)]
        return " → ".join([*_shorten_path(names[::-1]), "leaf" if is_leaf(target) else "result"])


def _shorten_path(names: Iterable[str]) -> Sequence[str]:
    """Return a path in few words: repeated operators are counted, a long middle is left out.

    >>> _shorten_path(["sum", "mul", "mul", "mul"])
    ['sum', 'mul × 3']
    """
    runs = [(name, len(list(run))) for name, run in groupby(names)]
    words = [name if count == 1 else f"{name} × {count:,}" for name, count in runs]
    if len(words) <= MAX_STEPS:
        return words
    half = MAX_STEPS // 2
    hidden = sum(count for _, count in runs[half:-half])
    return [*words[:half], f"… {_format_count(hidden, 'operator')} …", *words[-half:]]


def _format_count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _join_lines(lines: Iterable[str]) -> str:
    return "\n".join(line for line in lines if line)
