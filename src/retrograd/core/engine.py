"""Reverse mode: one pass over the graph of one level, latest node first."""

from heapq import heappop, heappush

from numpy import add, errstate, ndarray
from numpy import zeros as zero_array

from retrograd.core.gradfn import GradFn
from retrograd.core.level import at
from retrograd.core.tensor import TensorBase, make, same_kind


class Pass:
    """One backward pass: cotangents on their way, by node, and those that have arrived at leaves.

    Creation numbers are a topological order, so a node that is popped from the heap has had all its
    cotangents.  A sum is made in place only into memory that this pass itself allocated.
    """

    __slots__ = ("arrived", "captured", "first", "heap", "in_place", "needed", "owned", "pending", "retain", "targets")

    def __init__(self, retain, in_place, needed, targets):
        self.retain = retain
        self.in_place = in_place
        self.needed = needed  # the nodes on a path to a wanted input; None: every node
        self.targets = targets  # the (node, output number) pairs whose cotangents are wanted
        self.first = None  # the latest node of all that wait, if it is not in the heap: chains need no heap
        self.heap = []
        self.pending = {}
        self.arrived = {}
        self.captured = {}
        self.owned = set()

    def deliver(self, edge, number, g):
        """Bring a cotangent to the node or leaf at the end of an edge."""
        if isinstance(edge, TensorBase):
            self.arrive(edge, g, False)
            return
        fn: GradFn = edge
        if fn.out_avals is not None:
            self.deliver_one_of(fn, number, g)
            return
        old = self.pending.get(fn)
        if old is None:
            self.pending[fn] = g
            self.enqueue(fn)
        else:
            self.pending[fn] = self.summed(fn, old, g)

    def enqueue(self, fn):
        """A node waits for its turn; `first` is later than all in the heap."""
        rival: GradFn = self.first
        if rival is None:
            rival = self.heap[0] if self.heap else None
            if rival is None or fn.sequence > rival.sequence:
                self.first = fn
                return
        elif fn.sequence > rival.sequence:
            self.first = fn
            fn = rival
        heappush(self.heap, fn)

    def next(self):
        """The latest node that waits; None when there is none."""
        fn: GradFn = self.first
        if fn is not None:
            self.first = None
            return fn
        return heappop(self.heap) if self.heap else None

    def deliver_one_of(self, fn, number, g):
        """The node has several outputs: its cotangents wait in a list."""
        slots = self.pending.get(fn)
        if slots is None:
            slots = self.pending[fn] = [None] * len(fn.out_avals)
            self.enqueue(fn)
        slots[number] = self.summed((fn, number), slots[number], g)

    def summed(self, key, old, g):
        """The sum of two cotangents for the same place."""
        if old is None:
            return g
        if key in self.owned:
            total: TensorBase = old
            term: TensorBase = g
            if same_kind(total.value, term.value):
                add(total.value, term.value, total.value)
                return old
        if self.in_place:
            self.owned.add(key)
        return old + g

    def run(self):
        """Run every node that has a cotangent."""
        while True:
            fn: GradFn = self.next()
            if fn is None:
                return
            g = self.pending.pop(fn)
            if self.targets is not None:
                self.capture(fn, g)
            if self.needed is None or not self.needed.isdisjoint(fn.edges):
                self.step(fn, g if fn.out_avals is None else materialize(fn, g))
                if not self.retain:
                    fn.release()

    def step(self, fn, g):
        """Run one node: a cotangent for each edge that is wanted."""
        members = None
        last = len(fn.rules) - 1
        for i in range(len(fn.edges)):
            edge = fn.edges[i]
            if edge is None or (self.needed is not None and edge not in self.needed):
                continue
            if fn.listed and i >= last:
                if members is None:
                    members = fn.pull(last, g)
                gi = members[i - last]
            else:
                gi = fn.pull(i, g)
            if gi is not None:
                if isinstance(edge, TensorBase):
                    self.arrive(edge, gi, members is None and self.in_place and is_fresh(gi, g))
                else:
                    self.deliver(edge, 0 if fn.numbers is None else fn.numbers[i], gi)

    def arrive(self, leaf, g, fresh):
        """A cotangent reaches a leaf; `fresh` says that nobody else sees its memory."""
        old = self.arrived.get(leaf)
        if old is None:
            self.arrived[leaf] = g
            if fresh:
                self.owned.add(leaf)
        else:
            total = self.summed(leaf, old, g)
            if total is not old:
                self.arrived[leaf] = total

    def capture(self, fn, g):
        """Keep the cotangent of a node that was asked for."""
        if fn.out_avals is None:
            if (fn, 0) in self.targets:
                self.captured[fn, 0] = g
            return
        for number in range(len(g)):
            if (fn, number) in self.targets and g[number] is not None:
                self.captured[fn, number] = g[number]


def is_fresh(result, g):
    """Whether a rule's result is memory of its own.  The laws hold rules to: fresh memory, or a view of g."""
    if result is g or type(g) is tuple or type(result.value) is not ndarray:
        return False
    return result.value is not g.value and result.value.base is None


def materialize(fn, slots):
    """Zeros where an output of a node with several got no cotangent."""
    return tuple([zeros(aval) if g is None else g for aval, g in zip(fn.out_avals, slots, strict=True)])


def zeros(aval):
    """A zero cotangent on the ground; levels above treat it as a constant."""
    return make(zero_array(aval.shape, aval.dtype), None, None)


def edge_of(tensor):
    """The end of an edge to a tensor: its node and output number, or itself if it is a leaf."""
    return (tensor, 0) if tensor.grad_fn is None else (tensor.grad_fn, tensor.output_nr)


def needed_for(roots, wanted):
    """The nodes and leaves from which something wanted can be reached, the wanted ones included."""
    needed = set(wanted)
    seen = set()
    stack = [(root, False) for root in roots]
    while stack:
        node, done = stack.pop()
        if isinstance(node, TensorBase):
            continue
        if done:
            if any(edge in needed for edge in node.edges if edge is not None):
                needed.add(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((edge, False) for edge in node.edges if edge is not None and edge not in seen)
    return needed


def pullback(roots, cotangents, *, level, inputs=None, create_graph=False, retain_graph=False):
    """Cotangents at one level: of `inputs`, edges as made by `edge_of`, or of every leaf if that is None.

    `roots` are edges too.  Returns a dict from leaf or (node, output number) to cotangent, without those
    that nothing flows to, and the set of leaves whose cotangent's memory the caller may keep as it is.
    """
    needed = targets = None
    if inputs is not None:
        needed = needed_for([edge for edge, _ in roots], [edge for edge, _ in inputs])
        targets = {pair for pair in inputs if not isinstance(pair[0], TensorBase)}
    run = Pass(retain_graph, level is None and not create_graph, needed, targets)
    with at(level, create_graph), errstate(all="ignore"):  # an infinite slope is no accident of the user's
        for (edge, number), g in zip(roots, cotangents, strict=True):
            run.deliver(edge, number, g)
        run.run()
    return {**run.arrived, **run.captured}, run.owned
