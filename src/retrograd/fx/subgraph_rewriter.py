"""Replace patterns in graphs, with filters for matches and a choice of replacements."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import Node
from retrograd.fx.subgraph_matching import Match, Program, replace_pattern, rewrite_matches

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class ReplacedPatterns(NamedTuple):
    """A `Match` that was replaced, and the nodes that replaced it."""

    anchor: Node
    nodes_map: dict
    replacements: list[Node]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Program,
    replacement: Program | None = None,
    match_filters: Sequence[Callable[[Match, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[Match, Graph, Graph], Graph] | None = None,
) -> list[ReplacedPatterns]:
    """Replace the matches that all filters accept, like `replace_pattern`; return them with the new nodes.

    Filters, and `replacement_callback`, which returns the replacement for one match, are called with the match, the
    graph and the pattern's graph, before anything changes.  With `ignore_literals` numbers and strings in the pattern
    match any others.  Raises TypeError unless there is either a replacement or a callback, and the errors of
    `replace_pattern`.

    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda x: (x + 1) * (x + 2))
    >>> def is_two(match, graph, pattern):
    ...     return match.anchor.args[1] == 2
    >>> done = fx.subgraph_rewriter.replace_pattern_with_filters(
    ...     module, lambda a: a + 0, lambda a: a.exp(), [is_two], ignore_literals=True
    ... )
    >>> [node.name for node in module.graph.nodes], done[0].replacements
    (['x', 'add', 'exp', 'mul', 'output'], [exp])
    """
    if (replacement is None) == (replacement_callback is None):
        raise TypeError("replace_pattern_with_filters: expected either a replacement or a replacement_callback")

    def accepts(match: Match, pattern_graph: Graph) -> bool:
        return all(accept(match, gm.graph, pattern_graph) for accept in match_filters or ())

    def choose_replacement(match: Match, pattern_graph: Graph) -> Graph:
        assert replacement_callback is not None
        return replacement_callback(match, gm.graph, pattern_graph)

    choose = choose_replacement if replacement_callback is not None else None
    done = rewrite_matches(gm, pattern, replacement, accepts, choose, ignore_literals)
    return [ReplacedPatterns(*match, new) for match, new in done]
