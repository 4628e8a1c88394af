"""Fold repetitions: 48 layers become one frame around a single layer, labelled "× 48".

The post-dominator of a vertex is the nearest vertex on all paths from it to the outputs (Lengauer and Tarjan, ACM
Transactions on Programming Languages and Systems 1, 1979).  A chain is a sequence of vertices, each the post-dominator
of the one before.  A block is a member of a chain with the vertices that serve it alone.  Equal neighbouring blocks
repeat.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from retrograd.autograd.drawing.read import LEAF, MORE, NO_INPUT, OPERATOR, Vertex

MIN_HIDDEN = 12  # fold only if at least this many boxes disappear
MAX_PERIOD = 64  # the longest period of a repetition, in members of a chain
MAX_CONSUMERS = 4  # consumers of a block's input; shared weights have more
MAX_RUN = 24  # longer chains of operators without inputs of their own are elided
RUN_ENDS = 4  # operators that remain of such a chain at each end


@dataclass
class Group:
    """Vertices and groups in a frame that represents `count` copies; the whole picture is a group too."""

    count: int = 1
    members: list["int | Group"] = field(default_factory=list)


class Folded(NamedTuple):
    """The boxes of the picture: `top` groups indices into `vertices`."""

    top: Group
    vertices: list[Vertex]
    representatives: dict[int, int]  # a folded vertex -> its representative

    def inputs(self, vertex: int) -> list[int]:
        """Return the visible inputs of a visible vertex, each once."""
        found = (self._representative(source) for source in self.vertices[vertex].inputs if source != NO_INPUT)
        return list(dict.fromkeys(found))

    def _representative(self, vertex: int) -> int:
        while vertex in self.representatives:
            vertex = self.representatives[vertex]
        return vertex


def fold(vertices: Sequence[Vertex]) -> Folded:
    """Fold a graph whose vertices come after their inputs."""
    folder = _Folder(list(vertices))
    top = Group()
    folder.fill(top, folder.children[folder.root])
    return Folded(top, folder.vertices, folder.representatives)


class _Folder:
    def __init__(self, vertices: list[Vertex]) -> None:
        self.vertices = vertices
        self.root = len(vertices)  # the virtual consumer of all outputs
        self.consumers: list[list[int]] = [[] for _ in vertices]
        for index, vertex in enumerate(vertices):
            for source in vertex.inputs:
                if source != NO_INPUT:
                    self.consumers[source].append(index)
        self.parent = post_dominators(self.consumers)
        self.children: list[list[int]] = [[] for _ in range(self.root + 1)]
        self.size = [1] * self.root + [0]
        for index in range(self.root):  # inputs first, so that sizes are complete when they are added
            self.children[self.parent[index]].append(index)
            self.size[self.parent[index]] += self.size[index]
        self.representatives: dict[int, int] = {}

    def fill(self, group: Group, ends: Sequence[int]) -> None:
        """Put the chains that end at `ends`, and their inputs, into a group."""
        for end in ends:
            self._fill_blocks(group, self._blocks(end))

    def _blocks(self, end: int) -> list["_Block"]:
        """Return the chain that ends at a vertex as blocks, first to last."""
        chain = [end]
        while children := self.children[chain[-1]]:
            chain.append(self._next_in_chain(children))
        blocks = []
        before = NO_INPUT
        for last in reversed(chain):
            side = [child for child in self.children[last] if child != before]
            blocks.append(self._block(last, before, side))
            before = last
        return blocks

    def _next_in_chain(self, children: list[int]) -> int:
        """Return the child that continues a chain: the largest, or the input of a small one, as x in x + f(x)."""
        largest = max(children, key=lambda child: (self.vertices[child].kind != LEAF, self.size[child]))
        feeding = [child for child in children if 1 < len(set(self.consumers[child])) <= MAX_CONSUMERS]
        if feeding and self.size[largest] <= MAX_PERIOD:
            return max(feeding, key=self.size.__getitem__)
        return largest

    def _block(self, last: int, before: int, side: list[int]) -> "_Block":
        subtrees = {child: self._subtree(child) for child in side}
        own = {last}.union(*subtrees.values())
        shared = [c for c in side if not own.issuperset(self.consumers[c])]
        own.difference_update(*(subtrees[child] for child in shared))
        return _Block(
            last, before, [c for c in side if c not in shared], shared, self._canonical_order(last, before, own)
        )

    def _subtree(self, vertex: int) -> list[int]:
        found = [vertex]
        for member in found:  # the list grows in the loop
            found.extend(self.children[member])
        return found

    def _canonical_order(self, last: int, before: int, own: set[int]) -> "_CanonicalOrder":
        """Return a block's vertices in an order that depends only on its shape, and a key that identifies the shape."""
        number = {last: 0}
        words: list[object] = []
        for vertex in (order := [last]):
            about = self.vertices[vertex]
            words += [about.kind, about.name if about.kind == OPERATOR else about.detail]
            for source in about.inputs:
                if source in own and source not in number:
                    number[source] = len(number)
                    order.append(source)
                words.append(number[source] if source in own else "before" if source == before else ("other", source))
        return _CanonicalOrder(order, tuple(words))

    def _fill_blocks(self, group: Group, blocks: list["_Block"]) -> None:
        at = 0
        for start, period, count in repeats([b.visit.shape for b in blocks], [len(b.visit.order) for b in blocks]):
            self._fill_runs(group, blocks[at:start])
            self._fill_repeat(group, blocks[start : start + period * count], period)
            at = start + period * count
        self._fill_runs(group, blocks[at:])

    def _fill_repeat(self, group: Group, blocks: list["_Block"], period: int) -> None:
        for offset in range(period):
            for same in zip(*(block.visit.order for block in blocks[offset::period]), strict=True):
                self._merge_copies(same)
        frame = Group(len(blocks) // period)
        group.members.append(frame)
        self._fill_blocks(frame, [block._replace(shared=[]) for block in blocks[:period]])
        for block in blocks:
            self.fill(group, block.shared)

    def _fill_runs(self, group: Group, blocks: list["_Block"]) -> None:
        for run in operator_runs(blocks):
            if len(run) > MAX_RUN:
                self._elide(run[RUN_ENDS:-RUN_ENDS])
                group.members.append(run[RUN_ENDS].last)
                run = run[:RUN_ENDS] + run[-RUN_ENDS:]
            for block in run:
                group.members.append(block.last)
                self.fill(group, block.side)
                self.fill(group, block.shared)

    def _merge_copies(self, same: Sequence[int]) -> None:
        """Make the first of equal vertices represent all."""
        first = same[0]
        for other in same[1:]:
            self.representatives[other] = first
        if self.vertices[first].kind == LEAF:
            names = [self.vertices[index].name for index in same]
            tip = "\n".join([self.vertices[first].tip, f"and {len(same) - 1} more, the last {names[-1]}".rstrip(" ,")])
            self.vertices[first] = self.vertices[first]._replace(name=common_name(names), tip=tip)

    def _elide(self, run: list["_Block"]) -> None:
        """Replace a run of operators by one box, at the position of its first."""
        first = run[0].last
        names = Counter(self.vertices[block.last].name for block in run)
        tip = "\n".join(f"{name} × {count}" for name, count in names.most_common())
        inputs = [source for block in run for source in self.vertices[block.last].inputs if source != block.before]
        inputs = [run[0].before, *dict.fromkeys(inputs)]
        self.vertices[first] = Vertex(MORE, f"{len(run)} operators", "", tip, tuple(inputs))
        self.representatives.update((block.last, first) for block in run[1:])


class _CanonicalOrder(NamedTuple):
    order: list[int]
    shape: tuple


class _Block(NamedTuple):
    """A member of a chain, its predecessor, and the ends of its inputs: exclusive ones, and shared ones."""

    last: int
    before: int
    side: list[int]
    shared: list[int]
    visit: _CanonicalOrder


def post_dominators(consumers: Sequence[Sequence[int]]) -> list[int]:
    """Return the nearest vertex on all paths from each vertex to the ends; len(consumers) is below all ends.

    consumers: of each vertex, all with higher indices.

    >>> post_dominators([[1, 2], [3], [3], []])
    [3, 3, 3, 4]
    """
    root = len(consumers)
    parent, depth, jump = [root] * (root + 1), [0] * (root + 1), [root] * (root + 1)

    def common_ancestor(a: int, b: int) -> int:
        while depth[a] > depth[b]:
            a = jump[a] if depth[jump[a]] >= depth[b] else parent[a]
        while depth[b] > depth[a]:
            b = jump[b] if depth[jump[b]] >= depth[a] else parent[b]
        while a != b:
            a, b = (jump[a], jump[b]) if jump[a] != jump[b] else (parent[a], parent[b])
        return a

    for vertex in reversed(range(root)):
        above = consumers[vertex][0] if consumers[vertex] else root
        for other in consumers[vertex][1:]:
            above = common_ancestor(above, other)
        parent[vertex], depth[vertex] = above, depth[above] + 1
        far = jump[above]
        even = depth[above] - depth[far] == depth[far] - depth[jump[far]]
        jump[vertex] = jump[far] if even else above  # Myers' jump pointers: ancestors in logarithmic time
    return parent[:root]


def repeats(shapes: Sequence[object], sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the repetitions (start, period, count) of a sequence, disjoint; those that hide most are chosen first.

    >>> repeats("abcabcabcabcx", [2] * 13)
    [(0, 3, 4)]
    """
    numbers: dict[object, int] = {}
    word = [numbers.setdefault(shape, len(numbers)) for shape in shapes]
    found = [run for period in range(1, min(MAX_PERIOD, len(word) // 2) + 1) for run in _runs(word, period)]
    worth = [
        (sum(sizes[start : start + period * (count - 1)]), -period, start, count) for start, period, count in found
    ]
    free = [True] * len(word)
    chosen = []
    for hidden, minus, start, count in sorted(worth, key=lambda w: (-w[0], -w[1], w[2])):
        interval = slice(start, start - minus * count)
        if hidden >= MIN_HIDDEN and all(free[interval]):
            free[interval] = [False] * (-minus * count)
            chosen.append((start, -minus, count))
    return sorted(chosen)


def _runs(word: Sequence[int], period: int) -> Iterator[tuple[int, int, int]]:
    """Yield the longest stretches in which every entry equals the one a period later."""
    start = 0
    for at in range(len(word) - period + 1):
        if at == len(word) - period or word[at] != word[at + period]:
            if at - start >= period:
                yield start, period, (at - start) // period + 1
            start = at + 1


def operator_runs(blocks: Sequence[_Block]) -> Iterator[list[_Block]]:
    """Yield blocks in order: operators without inputs of their own in runs, all others alone."""
    run: list[_Block] = []
    for block in blocks:
        if not block.side and not block.shared and block.before != NO_INPUT:
            run.append(block)
            continue
        if run:
            yield run
        yield [block]
        run = []
    if run:
        yield run


def common_name(names: Sequence[str]) -> str:
    """Return one name for many that differ in a number.

    >>> common_name(["layers.0.weight", "layers.1.weight", "layers.2.weight"])
    'layers.0–2.weight'
    >>> common_name(["first.bias", "second.bias"])
    '*.bias'
    """
    split = [name.split(".") for name in names]
    if not all(names) or len({len(parts) for parts in split}) != 1:
        return ""
    return ".".join(_common_part(parts) for parts in zip(*split, strict=True))


def _common_part(parts: Sequence[str]) -> str:
    if len(set(parts)) == 1:
        return parts[0]
    if all(re.fullmatch(r"\d+", part) for part in parts):
        return f"{parts[0]}–{parts[-1]}"
    return "*"
