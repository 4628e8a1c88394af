"""Matches of a pattern in a graph, as `replace_pattern` finds them."""

from dataclasses import dataclass, field
from typing import Any

from retrograd.fx.graph import Graph
from retrograd.fx.node import Node
from retrograd.fx.subgraph_matching import Match, Matcher, results_of

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """A match: the pattern's results, its nodes with their counterparts, and the counterparts of its two ends."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """Finds the subgraphs that match a pattern, by the rules of `fx.replace_pattern`.

    With `ignore_literals` numbers and strings in the pattern match any others.  Without `remove_overlapping_matches`
    matches may share calls.  Raises ValueError for a pattern whose results are not all those of calls.

    >>> from retrograd import fx
    >>> pattern = fx.symbolic_trace(lambda a: (a + 1).exp()).graph
    >>> graph = fx.symbolic_trace(lambda x: (x.neg() + 1).exp() * 2).graph
    >>> [match] = SubgraphMatcher(pattern).match(graph)
    >>> match.placeholder_nodes, match.returning_nodes
    ([neg], [exp])
    """

    def __init__(self, pattern: Graph, remove_overlapping_matches: bool = True, ignore_literals: bool = False) -> None:
        self.pattern = pattern
        self.pattern_anchors = list(results_of(pattern))
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals

    def match(self, graph: Graph) -> list[InternalMatch]:
        """Return the matches in a graph, in its order."""
        matcher = Matcher(graph, self.pattern, self.ignore_literals)
        found = matcher.matches() if self.remove_overlapping_matches else matcher.overlapping_matches()
        return [self._described(match) for match in found]

    def _described(self, match: Match) -> InternalMatch:
        placeholders = [match.nodes_map.get(node) for node in self.pattern.find_nodes(op="placeholder")]
        returned = [match.nodes_map[node] for node in self.pattern_anchors]
        inputs = [value for value in placeholders if isinstance(value, Node)]
        return InternalMatch(self.pattern_anchors, dict(match.nodes_map), inputs, returned)
