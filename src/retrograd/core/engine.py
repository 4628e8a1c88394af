"""Reverse mode: one pass over the graph of one level, latest node first."""

import threading
from contextvars import copy_context
from functools import partial
from heapq import heappop, heappush

from numpy import add, empty, empty_like, errstate, geterr, ndarray, seterr

from retrograd.core.graph import GradFn, zeros
from retrograd.core.hooks import of_leaves, run_after, run_before, run_tensor_hooks, some_leaf_is_watched
from retrograd.core.level import at, current, modes_of, set_modes
from retrograd.core.reentrant import DEPTH, on_another_thread
from retrograd.core.tensor import COPIED, TensorBase, alias, bump_version, make, preserve_snapshots, same_kind

LARGE = 1 << 16  # bytes
accumulating = threading.Lock()  # held while a .grad is added to: passes on several threads may share leaves
NOTHING = object()  # waits at a node that runs without a gradient


class BackwardPass:
    """One backward pass: cotangents on their way, by node, and those that have arrived at leaves.

    Creation numbers are a topological order, so a node that is popped from the heap has had all its
    cotangents.  A sum is made in place only into memory that this pass itself allocated.

    `accumulate(leaf, g, owned)` gets what arrives at each leaf; without it, that is kept in `captured`.  It is
    called at the end, or, while `left` counts the edges to each leaf, as soon as the leaf has had its last cotangent.
    """

    __slots__ = (
        "__weakref__",
        "accumulate",
        "adds",
        "arrived",
        "callbacks",
        "captured",
        "careful",
        "counting",
        "first",
        "heap",
        "in_place",
        "left",
        "needed",
        "owned",
        "pending",
        "reachable",
        "retain",
        "roots",
        "targets",
        "watchers",
    )

    def __init__(self, roots, retain, in_place, needed, targets, accumulate):
        self.roots = roots
        self.retain = retain
        self.in_place = in_place
        self.needed = needed  # the nodes on a path to a wanted input; None: every node
        self.targets = targets  # the (node, output number) pairs whose cotangents are wanted
        self.accumulate = accumulate
        self.adds = accumulate is not None and in_place
        self.watchers = current().watchers
        self.left = edges_to_leaves(roots, needed) if of_leaves and some_leaf_is_watched() else None
        self.careful = self.left is not None or self.watchers is not None
        self.counting = False
        self.reachable = None
        self.callbacks = []  # functions to call when the pass is over
        self.first = None  # the latest node of all that wait, if it is not in the heap: chains need no heap
        self.heap = []
        self.pending = {}
        self.arrived = {}
        self.captured = {}
        self.owned = set()

    def deliver(self, edge, number, g):
        """Bring a cotangent to the node or leaf at the end of an edge."""
        if isinstance(edge, TensorBase):
            self.accumulate_leaf(edge, g, False)
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
            self.pending[fn] = g if old is NOTHING else self.summed(fn, old, g)

    def deliver_nothing(self, edge):
        """A user's function gave no gradient for an edge: what is behind it runs all the same, as in PyTorch."""
        if not isinstance(edge, TensorBase) and edge not in self.pending:
            self.pending[edge] = NOTHING if edge.out_avals is None else [None] * len(edge.out_avals)
            self.enqueue(edge)

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

    def execute(self, roots, cotangents):
        """The whole pass: from the cotangents of the roots to what was asked for."""
        state = current()
        modes = modes_of(state)
        state.running = self
        state.depth += 1
        try:
            for (edge, number), g in zip(roots, cotangents, strict=True):
                self.deliver(edge, number, g)
                if self.left is not None and isinstance(edge, TensorBase):
                    self.count_down(edge)
            self.run()
            while self.callbacks:
                self.callbacks.pop(0)()
        finally:
            set_modes(state, modes)
            state.depth -= 1
        return self.captured

    def run(self):
        """Run every node that has a cotangent."""
        while True:
            fn: GradFn = self.next()
            if fn is None:
                break
            if self.counting:
                self.enqueue(fn)
                self.count()
                fn = self.next()
            g = self.pending.pop(fn)
            if g is NOTHING:
                self.run_on_nothing(fn)
                continue
            if self.targets is not None or fn._hooks is not None:
                g = self.run_output_hooks(fn, g)
            if self.needed is None or not self.needed.isdisjoint(fn.edges):
                if self.careful or fn._hooks is not None or fn.rules is None:
                    self.watched_step(fn, g)
                else:
                    self.step(fn, g if fn.out_avals is None else materialize(fn, g))
                if not self.retain:
                    fn.release()
        for leaf in tuple(self.arrived):
            self.finalize_leaf(leaf)

    def run_on_nothing(self, fn):
        """Run a node that got no gradient at all."""
        if self.needed is None or not self.needed.isdisjoint(fn.edges):
            self.watched_step(fn, None)
            if not self.retain:
                fn.release()

    def run_output_hooks(self, fn, g):
        """The cotangents of a node after its outputs' hooks; those that were asked for are kept."""
        single = fn.out_avals is None
        if fn._hooks is not None:
            if self.in_place and self.arrived:
                self.copy_shared_grads()
            gs = [g] if single else g
            for number in range(len(gs)):
                gs[number] = run_tensor_hooks(fn._hooks, number, gs[number])
            g = gs[0] if single else gs
        if self.targets is not None:
            self.capture(fn, g)
        return g

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
                    fresh = self.in_place and is_fresh(gi, g) and (members is None or is_once(gi, members))
                    self.accumulate_leaf(edge, gi, fresh)
                else:
                    self.deliver(edge, 0 if fn.numbers is None else fn.numbers[i], gi)

    def watched_step(self, fn, g):
        """Run one node for those who look: its hooks, the watchers, leaves that wait for their last cotangent."""
        gs = (g,) if fn.out_avals is None else tuple(g)
        if self.in_place and self.arrived and (fn._hooks is not None or fn.rules is None):
            self.copy_shared_grads()
        if fn._hooks is not None and fn._hooks.before:
            gs = run_before(fn._hooks, gs)
        proceed = self.gradients
        for watcher in self.watchers or ():
            proceed = partial(watcher.pull, proceed)
        results = proceed(fn, gs)
        if fn._hooks is not None and fn._hooks.after:
            results = run_after(fn._hooks, results, gs)
        ours = self.in_place and fn._hooks is None and fn.rules is not None and len(gs) == 1
        for i, edge in enumerate(fn.edges):
            if edge is None or (self.needed is not None and edge not in self.needed):
                continue
            if results[i] is not None:
                if isinstance(edge, TensorBase):
                    fresh = ours and is_fresh(results[i], gs[0]) and (not fn.listed or is_once(results[i], results))
                    self.accumulate_leaf(edge, results[i], fresh)
                else:
                    self.deliver(edge, 0 if fn.numbers is None else fn.numbers[i], results[i])
            elif fn.rules is None or g is None:
                self.deliver_nothing(edge)
            if isinstance(edge, TensorBase) and self.left is not None:
                self.count_down(edge)

    def gradients(self, fn, gs):
        """Per edge of the node the cotangent, None where it is not wanted or nothing flows."""
        wanted = [edge is not None and (self.needed is None or edge in self.needed) for edge in fn.edges]
        if fn.rules is None:
            return fn.op.gradients(fn, gs, wanted)
        if fn.out_avals is None and gs[0] is None:  # a hook may take the gradient away
            return [None] * len(wanted)
        g = gs[0] if fn.out_avals is None else materialize(fn, gs)
        last = len(fn.rules) - 1
        if not fn.listed:
            return [fn.pull(i, g) if wanted[i] else None for i in range(len(wanted))]
        members = fn.pull(last, g) if any(wanted[last:]) else [None] * (len(wanted) - last)
        single = [fn.pull(i, g) if wanted[i] else None for i in range(last)]
        return single + [m if w else None for m, w in zip(members, wanted[last:], strict=True)]

    def count_down(self, leaf):
        """One edge to the leaf is done with; after the last the leaf has all that it will get."""
        self.left[leaf] -= 1
        if self.left[leaf] == 0 and leaf in self.arrived:
            self.finalize_leaf(leaf)

    def finalize_leaf(self, leaf):
        """A leaf has had its last cotangent: its hooks run, and it is accumulated, or kept for the caller."""
        g = unlinked(self.arrived.pop(leaf))
        hooks = leaf._hooks
        if hooks is not None:
            g = run_tensor_hooks(hooks, 0, g)
        if self.accumulate is None:
            self.captured[leaf] = g
        elif not leaf._requires_grad:
            return  # any more
        elif hooks is None:
            self.accumulate(leaf, g, leaf in self.owned)
        else:
            (g,) = run_before(hooks, (g,))
            if g is not None:
                self.accumulate(leaf, g, False)
            for function in tuple(hooks.accumulated.values()):
                if function(leaf) is not None:
                    raise RuntimeError("a post-accumulate-grad hook must return None")
            run_after(hooks, (), (g,))

    def will_run(self, edge):
        """Whether this pass brings a cotangent to a node or leaf, as far as the graph tells."""
        if self.needed is not None:
            return edge in self.needed
        if self.reachable is None:
            self.reachable = reachable_from(self.roots)
        return edge in self.reachable

    def accumulate_leaf(self, leaf, g, fresh):
        """A cotangent reaches a leaf; `fresh` says that nobody else sees its memory."""
        if self.adds and leaf._grad is not None and self.left is None and is_large(g):
            self.counting = True
        old = self.arrived.get(leaf)
        if old is None:
            self.arrived[leaf] = g
            if fresh:
                self.owned.add(leaf)
        else:
            total = self.summed(leaf, old, g)
            if total is not old:
                self.arrived[leaf] = total

    def count(self):
        """From here on each leaf is settled after its last cotangent: what it waits with takes much memory."""
        self.counting = False
        self.left = edges_to_leaves(self.pending, self.needed)
        self.careful = True
        for leaf in tuple(self.arrived):
            if leaf not in self.left:
                self.finalize_leaf(leaf)

    def copy_shared_grads(self):
        """A user's code is about to run, which may write to its gradient: leaves keep copies of what they share."""
        for leaf, g in tuple(self.arrived.items()):
            if leaf not in self.owned and g.level is None:
                self.arrived[leaf] = laid_out(g, leaf, False)
                self.owned.add(leaf)

    def capture(self, fn, g):
        """Keep the cotangent of a node that was asked for."""
        if fn.out_avals is None:
            if (fn, 0) in self.targets:
                self.captured[fn, 0] = unlinked(g)
            return
        for number in range(len(g)):
            if (fn, number) in self.targets and g[number] is not None:
                self.captured[fn, number] = unlinked(g[number])


def unlinked(g):
    """A gradient that is a copy of what another cotangent shows, without that link: it may be written to."""
    if g._view is None or g._view.made != COPIED:
        return g
    out = alias(g, g._grad_fn)
    out.version = None
    return out


def is_fresh(result, g):
    """Whether a rule's result is memory of its own.  The laws hold rules to: fresh memory, or a view of g."""
    if result is g or type(g) is tuple or type(result.value) is not ndarray or result._view is not None:
        return False  # a copy that follows its base would be computed again
    return result.value is not g.value and result.value.base is None


def is_once(result, results):
    """Whether no other of a rule's results has the same memory, given that it is memory of their own."""
    return sum([other is not None and other.value is result.value for other in results]) == 1


def materialize(fn, slots):
    """Zeros where an output of a node with several got no cotangent."""
    return tuple([zeros(aval) if g is None else g for aval, g in zip(fn.out_avals, slots, strict=True)])


def is_large(g):
    """Whether a gradient is worth being added to .grad as soon as possible."""
    return type(g.value) is ndarray and g.value.nbytes >= LARGE


def add_into(total, term):
    """Add to a tensor's memory, if both are plain arrays of one kind; whether that was done."""
    if total.level is not None or not same_kind(total.value, term.value):
        return False
    preserve_snapshots(total)
    try:
        add(total.value, term.value, total.value)
    except ValueError:  # read-only memory, which only the user can have put there
        return False
    bump_version(total)
    return True


def laid_out(g, leaf, owned):
    """A gradient in memory of its own, in the layout of its leaf; g itself if it is so, and nobody else's."""
    if g.level is not None:  # nothing is written to there
        return g
    if type(g.value) is not ndarray or type(leaf.value) is not ndarray:
        return g if owned else make(g.value.copy(), None, None)
    if owned and g.value.strides == leaf.value.strides:
        return g
    array = empty_like(leaf.value, g.value.dtype)
    array[...] = g.value
    return make(array, None, None)


def ones(shape, dtype):
    """A cotangent of ones on the ground."""
    array = empty(shape, dtype)
    array.fill(1)
    return make(array, None, None)


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


def reachable_from(roots):
    """All nodes and leaves that the roots depend on, themselves included."""
    seen = set(roots)
    stack = list(seen)
    while stack:
        node = stack.pop()
        for edge in () if isinstance(node, TensorBase) else node.edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return seen


def edges_to_leaves(roots, needed):
    """How many edges of the part of the graph that runs lead to each leaf."""
    counts = {}
    for node in reachable_from(roots):
        if not isinstance(node, TensorBase) and (needed is None or node in needed):
            for edge in node.edges:
                if isinstance(edge, TensorBase):
                    counts[edge] = counts.get(edge, 0) + 1
    for root in roots:
        if isinstance(root, TensorBase):
            counts[root] = counts.get(root, 0) + 1
    return counts


def pullback(roots, cotangents, *, level, inputs=None, create_graph=False, retain_graph=False, accumulate=None):
    """Cotangents at one level: of `inputs`, edges as made by `edge_of`, or of every leaf if that is None.

    `roots` are edges too.  Returns a dict from leaf or (node, output number) to cotangent, without those that
    nothing flows to; `accumulate(leaf, g, owned)`, if given, takes those of leaves, and may keep the memory of
    those that are owned.
    """
    needed = targets = None
    ends = [edge for edge, _ in roots]
    if inputs is not None:
        needed = needed_for(ends, [edge for edge, _ in inputs])
        targets = {pair for pair in inputs if not isinstance(pair[0], TensorBase)}
    run = BackwardPass(ends, retain_graph, level is None and not create_graph, needed, targets, accumulate)
    if current().depth % DEPTH == DEPTH - 1:
        return on_another_thread(partial(run_at, run, level, create_graph, roots, cotangents))
    return run_at(run, level, create_graph, roots, cotangents)


def run_at(run, level, create_graph, roots, cotangents):
    """The whole pass, at a level."""
    before = copy_context()
    try:
        with at(level, create_graph), errstate(all="ignore"):  # an infinite slope is no accident of the user's
            return run.execute(roots, cotangents)
    except KeyboardInterrupt:
        seterr(**before.run(geterr))  # it may have come inside of errstate, which is written in Python
        raise
