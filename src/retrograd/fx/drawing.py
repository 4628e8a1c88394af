"""Draw a graph: its calls as boxes in rows, inputs first, each in the colour of its stage."""

from collections.abc import Callable, Mapping
from typing import Any

from retrograd.autograd.drawing.draw import SVG
from retrograd.autograd.drawing.fold import Folded, Group, fold
from retrograd.autograd.drawing.read import LEAF, OPERATOR, OUTPUT, Vertex
from retrograd.autograd.drawing.svg import caption_of, paint
from retrograd.core import Aval
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import Node, target_name

Stages = Mapping[Any, Any] | Callable[[Node], Any]

# For each stage: box, edge and text colour, on a light page and on a dark one; repeated for further stages.
COLOURS = (
    (("#e2ecfd", "#86acee", "#173d80"), ("#16294a", "#3f6cb8", "#c6dafc")),
    (("#fdeadb", "#efa96c", "#7a3a08"), ("#3d2512", "#b3702f", "#fcdcc0")),
    (("#ece6fb", "#ab97e6", "#43298f"), ("#291f47", "#7159bd", "#dccffb")),
    (("#fbe3ec", "#e68bad", "#7f1742"), ("#421a2b", "#b04a76", "#fbcddd")),
    (("#eef4d6", "#b1c45e", "#4a5608"), ("#2a3013", "#7f912f", "#e3edb6")),
    (("#def3f8", "#6fbfd3", "#0b4d5f"), ("#0f303a", "#2c8aa1", "#bfeaf5")),
    (("#fdf3cf", "#dfbd45", "#664d00"), ("#382d0c", "#a3852a", "#f8e6a6")),
    (("#eceef1", "#a7b0bd", "#39424f"), ("#2a313b", "#6b7788", "#dde2ea")),
)


def draw(graph: Graph | GraphModule, stages: Stages | None = None) -> SVG:
    """Return a graph as a picture: notebooks display it, `save(path)` writes it to a file, `str` returns the text.

    Inputs, parameters and constants are green.  Calls show the name of the callee and the type of the result, if
    `meta["val"]` has it; the tooltip shows the node and the line of the user's code.  Calls of a stage have its
    colour, with a legend.  The stage is `meta["stage"]` of the node, or given by `stages`, a mapping from nodes or
    names, or a function of a node; None is no stage.  Without stages, consecutive repetitions are drawn once, in a
    frame with their count.  Guards and other calls without users are drawn too.

    Raises TypeError for an object that is no graph, and KeyError for a name in `stages` that no node has.

    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda x: (x + 1).exp())
    >>> picture = str(fx.draw(module, {"add": 0, "exp": 1}))
    >>> "2 stages" in picture, ">stage 1</text>" in picture
    (True, True)
    """
    graph = graph.graph if isinstance(graph, GraphModule) else graph
    if not isinstance(graph, Graph):
        raise TypeError(f"draw: expected a graph or a graph module, got {type(graph).__name__}")
    nodes = list(graph.nodes)
    stage_of = _stages(nodes, stages)
    numbers = {stage: number for number, stage in enumerate(_sort_stages(stage_of.values()))}
    index_of = {node: index for index, node in enumerate(nodes)}
    vertices = [_vertex(node, index_of, _style(stage_of, numbers, node)) for node in nodes]
    caption = caption_of(vertices)
    if not numbers:
        return SVG(paint(fold(vertices), "Graph", caption))
    count = f"{len(numbers)} stage{'s' * (len(numbers) > 1)}"
    unfolded = Folded(Group(1, list(range(len(vertices)))), vertices, {})
    legend = [(f"stage-{number}", f"stage {stage}") for stage, number in numbers.items()]
    return SVG(paint(unfolded, "Graph", f"{caption} · {count}", style=_css(len(numbers)), legend=legend))


def _repr_svg_(graph: Graph | GraphModule) -> str:
    """Return the SVG text that notebooks display."""
    return str(draw(graph))


Graph._repr_svg_ = _repr_svg_  # type: ignore[attr-defined]
GraphModule._repr_svg_ = _repr_svg_  # type: ignore[attr-defined]


def _stages(nodes: list[Node], stages: Stages | None) -> dict[Node, Any]:
    """Return the stage of each node that has one; values read by one stage only, except inputs, belong to it."""
    if callable(stages):
        stage_of = {node: stages(node) for node in nodes}
    elif stages is not None:
        names = {node.name: node for node in nodes}
        stage_of = {names[key] if isinstance(key, str) else key: stage for key, stage in stages.items()}
    else:
        stage_of = {node: node.meta.get("stage") for node in nodes}
    stage_of = {node: stage for node, stage in stage_of.items() if stage is not None and node.op != "output"}
    for node in nodes:
        readers = {stage_of.get(user) for user in node.users}
        if node.op == "get_attr" and node not in stage_of and len(readers) == 1 and None not in readers:
            stage_of[node] = readers.pop()
    return stage_of


def _sort_stages(stages: Any) -> list:
    """Return the distinct stages: numbers by size, others in order of appearance."""
    distinct = list(dict.fromkeys(stages))
    return sorted(distinct) if all(isinstance(stage, int) for stage in distinct) else distinct


def _style(stage_of: dict[Node, Any], numbers: dict[Any, int], node: Node) -> str:
    return f"stage-{numbers[stage_of[node]]}" if node in stage_of else ""


def _vertex(node: Node, index_of: dict[Node, int], style: str) -> Vertex:
    inputs = tuple(index_of[used] for used in node.all_input_nodes)
    val = node.meta.get("val")
    detail = str(val) if isinstance(val, Aval) else ""
    tip = "\n".join(filter(None, (node.format_node(), node.meta.get("stack_trace", ""))))
    if node.op == "output":
        return Vertex(OUTPUT, "output", "", tip, inputs)
    if node.op in ("placeholder", "get_attr"):
        return Vertex(LEAF, node.target, detail, tip, inputs, style)
    name = str(node.args[1]) if node.target is getattr else target_name(node.target)
    return Vertex(OPERATOR, f".{name}" if node.op == "call_method" else name, detail, tip, inputs, style)


def _css(count: int) -> str:
    """Return the colours of the stages; values that are read get a dashed edge, to differ from calls."""
    rules: tuple[list[str], list[str]] = ([], [])
    for number in range(count):
        for theme, (box, edge, ink) in zip(rules, COLOURS[number % len(COLOURS)], strict=True):
            at = f".rg-graph .vertex.stage-{number}"
            theme.append(f"{at} rect {{ fill: {box}; stroke: {edge}; }} {at} text:not(.caption) {{ fill: {ink}; }}")
    light, dark = ("\n".join(theme) for theme in rules)
    dashed = ".rg-graph .vertex.leaf[class*=stage] rect { stroke-dasharray: 4 3; }"
    return f"{light}\n{dashed}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
