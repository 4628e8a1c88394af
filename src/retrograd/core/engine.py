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

    __slots__ = ("arrived", "captured", "heap", "in_place", "needed", "owned", "pending", "retain", "targets")

    def __init__(self, retain, in_place, needed, targets):
        self.retain = retain
        self.in_place = in_place
        self.needed = needed  # the nodes on a path to a wanted input; None: every node
        self.targets = targets  # the (node, output number) pairs whose cotangents are wanted
        self.heap = []
        self.pending = {}
        self.arrived = {}
        self.captured = {}
        self.owned = set()

    def deliver(self, edge, number, g):
        """Bring a cotangent to the node or leaf at the end of an edge."""
        if isinstance(edge, TensorBase):
            self.arrived[edge] = self.summed(edge, self.arrived.get(edge), g)
            return
        fn: GradFn = edge
        if fn.out_avals is not None:
            self.deliver_one_of(fn, number, g)
            return
        old = self.pending.get(fn)
        if old is None:
            self.pending[fn] = g
            heappush(self.heap, fn)
        else:
            self.pending[fn] = self.summed(fn, old, g)

    def deliver_one_of(self, fn, number, g):
        """The node has several outputs: its cotangents wait in a list."""
        slots = self.pending.get(fn)
        if slots is None:
            slots = self.pending[fn] = [None] * len(fn.out_avals)
            heappush(self.heap, fn)
        slots[number] = self.summed((fn, number), slots[number], g)

    def summed(self, key, old, g):
        """The sum of two cotangents for the same place."""
        if old is None:
            return g
        if key in self.owned and same_kind(old.value, g.value):
            add(old.value, g.value, old.value)
            return old
        if self.in_place:
            self.owned.add(key)
        return old + g

    def run(self):
        """Run every node that has a cotangent."""
        while self.heap:
            fn: GradFn = heappop(self.heap)
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
            if edge is None or not self.wanted(edge):
                continue
            if i >= last and fn.op.variadic:
                if members is None:
                    members = fn.pull(last, g)
                gi = members[i - last]
            else:
                gi = fn.pull(i, g)
            if gi is not None:
                if self.in_place and members is None and isinstance(edge, TensorBase) and is_fresh(gi, g):
                    self.fresh(edge)
                self.deliver(edge, 0 if fn.numbers is None else fn.numbers[i], gi)

    def fresh(self, leaf):
        """A rule allocated the cotangent that comes first to a leaf: nobody else sees that memory."""
        if leaf not in self.arrived:
            self.owned.add(leaf)

    def wanted(self, edge):
        """Whether a cotangent at this edge serves one of the inputs."""
        return self.needed is None or edge in self.needed

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
    if type(result.value) is not ndarray or result.value.base is not None or type(g) is tuple:
        return False
    return result is not g and result.value is not g.value


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
