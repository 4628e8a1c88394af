"""Reverse mode: one backward pass over the graph of one level, in descending order of creation numbers."""

import threading
from functools import partial
from heapq import heappop, heappush
from operator import attrgetter, methodcaller

from numpy import add, empty, empty_like, ndarray

from retrograd.core.device import array_devices
from retrograd.core.graph import GradFn, zeros
from retrograd.core.hooks import (
    check_no_replacement,
    conjugate,
    of_leaves,
    run_after,
    run_before,
    run_tensor_hooks,
    some_leaf_is_watched,
)
from retrograd.core.op import compound
from retrograd.core.reentrant import DEPTH, on_another_thread
from retrograd.core.state import ERRORS_IGNORED, current, float_errors, modes_of, note_array_call, set_modes
from retrograd.core.tensor import (
    TensorBase,
    bump_version,
    is_real_array,
    make,
    preserve_snapshots,
    same_kind,
    unwrap_all,
)
from retrograd.core.views import synced_grad_fn, unlink_copy

LARGE = 1 << 16  # bytes
accumulating = threading.Lock()  # held while adding to a .grad: passes on several threads may share leaves
COPY = methodcaller("copy")
NOTHING = object()  # the pending entry of a node that runs without a gradient
set_errors, reset_errors = float_errors.set, float_errors.reset


class BackwardPass:
    """One backward pass: the cotangents that wait at nodes, and those that have arrived at leaves.

    Creation numbers are a topological order: a node that is popped from the heap has received all its cotangents.
    Cotangents are added in place only into memory that this pass itself allocated.

    `accumulate(leaf, g, owned)` receives the cotangent of each leaf; without it, cotangents are stored in `captured`.
    It is called at the end of the pass. If `left` counts the remaining edges to each leaf, it is called as soon as the
    leaf has received its last cotangent.
    """

    def __init__(self, roots, retain, in_place, needed, targets, accumulate):
        self.roots = roots
        self.retain = retain
        self.in_place = in_place
        self.needed = needed  # the nodes on a path to a requested input; None: every node
        self.targets = targets  # the (node, output number) pairs whose cotangents are requested
        self.accumulate = accumulate
        self.adds = accumulate is not None and in_place
        self.watchers = current().watchers
        self.left = edges_to_leaves(roots, needed) if of_leaves and some_leaf_is_watched() else None
        # Hooks, watchers and counted leaves need `watched_step`; all other nodes take the faster `step`.
        self.careful = self.left is not None or self.watchers is not None
        self.counting = False
        self.reachable = None
        self.callbacks = []  # functions to call at the end of the pass; None: it is over, or has failed
        self.first = None  # the latest pending node, if not in the heap: a chain of nodes never uses the heap
        self.heap = []
        self.pending = {}
        self.arrived = {}
        self.captured = {}
        self.owned = set()

    def deliver(self, edge, number, g):
        """Add a cotangent to the node or leaf at the end of an edge."""
        if isinstance(edge, TensorBase):
            self.accumulate_leaf(edge, g, False)
            return
        fn: GradFn = edge
        if fn.out_avals is not None:
            self.deliver_output(fn, number, g)
            return
        old = self.pending.get(fn)
        if old is None:
            self.pending[fn] = g
            self.enqueue(fn)
        else:
            self.pending[fn] = g if old is NOTHING else self.add_cotangents(fn, old, g)

    def deliver_nothing(self, edge):
        """Schedule a node for which a user's Function returned no gradient: as in PyTorch, it runs all the same."""
        if not isinstance(edge, TensorBase) and edge not in self.pending:
            self.pending[edge] = NOTHING if edge.out_avals is None else [None] * len(edge.out_avals)
            self.enqueue(edge)

    def enqueue(self, fn):
        """Schedule a node; `first` is later than every node in the heap."""
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
        """Remove and return the latest pending node; None if there is none."""
        fn: GradFn = self.first
        if fn is not None:
            self.first = None
            return fn
        return heappop(self.heap) if self.heap else None

    def deliver_output(self, fn, number, g):
        """Add a cotangent to one output of a node with several: its cotangents wait in a list."""
        slots = self.pending.get(fn)
        if slots is None:
            slots = self.pending[fn] = [None] * len(fn.out_avals)
            self.enqueue(fn)
        slots[number] = self.add_cotangents((fn, number), slots[number], g)

    def add_cotangents(self, key, old, g):
        """Return the sum of two cotangents of the same value; `key` identifies the value in `owned`."""
        if old is None:
            return g
        # This pass allocated `old` for an earlier sum, so nobody else can see an in-place addition.
        if key in self.owned:
            total: TensorBase = old
            term: TensorBase = g
            if same_kind(total.value, term.value):
                add(total.value, term.value, total.value)
                if self.watchers is not None:
                    note_array_call(add, (total.value, term.value, total.value), total.value)
                return old
        if self.in_place:
            self.owned.add(key)
        return old + g if same_kind(old.value, g.value) else sum_of_gradients(old, g)

    def execute(self, level, create_graph, roots, cotangents):
        """Run the pass at a level: from the cotangents of the roots to the requested results."""
        state = current()
        modes = modes_of(state)
        outer_level = state.level
        grad_enabled = state.grad_enabled
        state.level = level
        state.grad_enabled = create_graph
        state.running = self
        state.overrides_off = 2  # rules compute on saved tensors of any class, and are no calls of the program
        state.depth += 1
        device = state.device
        state.device = None  # rules of nodes on a device set it
        token = set_errors(ERRORS_IGNORED)  # infinite slopes are legitimate, so NumPy shall not warn
        try:
            for i in range(len(roots)):
                edge, number = roots[i]
                g = cotangents[i]
                if self.needed is not None and isinstance(edge, TensorBase) and edge not in self.needed:
                    continue  # a leaf that is none of the inputs; nodes go on to run their hooks
                self.deliver(edge, number, g)
                if self.left is not None and isinstance(edge, TensorBase):
                    self.count_down(edge)
            self.run()
            while self.callbacks:
                self.callbacks.pop(0)()
        finally:
            self.callbacks = None
            set_modes(state, modes)
            state.level = outer_level
            state.grad_enabled = grad_enabled
            state.depth -= 1
            state.device = device
            reset_errors(token)
        return self.captured

    def run(self):
        """Run every node that has received a cotangent, then finalize the leaves."""
        while True:
            fn: GradFn = self.next()
            if fn is None:
                break
            if self.counting:
                self.enqueue(fn)
                self.count()
                fn = self.next()
            g = self.pending.pop(fn)
            nothing = g is NOTHING
            if nothing:
                g = None
            elif self.targets is not None or fn._hooks is not None:
                g = self.run_output_hooks(fn, g)
            # A node that is itself an input of backward() runs with its hooks, also if nothing behind it is needed.
            if self.needed is None or leads_to(fn, self.needed) or self.runs_for_hooks(fn):
                if nothing or self.careful or fn._hooks is not None or fn.rules is None:
                    self.watched_step(fn, g)
                else:
                    self.step(fn, g if fn.out_avals is None else materialize(fn, g))
                if not self.retain:
                    fn.release()
        for leaf in list(self.arrived):
            self.finalize_leaf(leaf)

    def runs_for_hooks(self, fn):
        """Return whether a node behind which nothing is needed has hooks that a call of backward() runs."""
        return self.accumulate is not None and fn._hooks is not None and bool(fn._hooks.before or fn._hooks.after)

    def run_output_hooks(self, fn, g):
        """Return the cotangents of a node after the hooks of its outputs, and capture the requested ones."""
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
        """Run one node: compute and deliver a cotangent for each needed edge."""
        members = None
        last = len(fn.rules) - 1
        for i in range(len(fn.edges)):
            edge = fn.edges[i]
            if edge is None or (self.needed is not None and edge not in self.needed):
                continue
            if fn.has_list_input and i >= last:
                if members is None:
                    members = fn.vjp(last, g)
                gi = members[i - last]
            else:
                gi = fn.vjp(i, g)
            if gi is not None:
                if isinstance(edge, TensorBase):
                    fresh = self.in_place and is_fresh(gi, g) and (members is None or is_once(gi, members))
                    self.accumulate_leaf(edge, gi, fresh)
                else:
                    self.deliver(edge, 0 if fn.numbers is None else fn.numbers[i], gi)

    def watched_step(self, fn, g):
        """Run one node with its hooks and the watchers, and count down the edges to leaves."""
        gs = (g,) if fn.out_avals is None else tuple(g)
        user_code = calls_user_code(fn)
        if self.in_place and self.arrived and (fn._hooks is not None or user_code):
            self.copy_shared_grads()
        if fn._hooks is not None and fn._hooks.before:
            gs = run_before(fn._hooks, gs)
        if self.watchers is None:
            results = self.gradients(fn, gs)
        else:
            proceed = self.gradients
            for watcher in self.watchers:
                proceed = partial(watcher.run_node, proceed)
            results = proceed(fn, gs)
        if fn._hooks is not None and fn._hooks.after:
            results = run_after(fn._hooks, results, gs)
        # After hooks or a user's Function, results may be shared with the user's code, so they are never added into.
        ours = self.in_place and fn._hooks is None and not user_code
        for i, edge in enumerate(fn.edges):
            if edge is None or (self.needed is not None and edge not in self.needed):
                continue
            if results[i] is not None:
                if isinstance(edge, TensorBase):
                    self.accumulate_leaf(edge, results[i], ours and owns_memory(results[i], gs, results))
                else:
                    self.deliver(edge, 0 if fn.numbers is None else fn.numbers[i], results[i])
            elif g is None or user_code:
                self.deliver_nothing(edge)
            if isinstance(edge, TensorBase) and self.left is not None:
                self.count_down(edge)

    def gradients(self, fn, gs):
        """Return the cotangent of each edge of the node; None where it is not needed or there is none."""
        needs_input_grad = [edge is not None and (self.needed is None or edge in self.needed) for edge in fn.edges]
        if fn.rules is None:
            return fn.op.gradients(fn, gs, needs_input_grad)
        if fn.out_avals is None and gs[0] is None:  # a hook may have removed the gradient
            return [None] * len(needs_input_grad)
        g = gs[0] if fn.out_avals is None else materialize(fn, gs)
        last = len(fn.rules) - 1
        if not fn.has_list_input:
            return [fn.vjp(i, g) if needs_input_grad[i] else None for i in range(len(needs_input_grad))]
        members = fn.vjp(last, g) if any(needs_input_grad[last:]) else [None] * (len(needs_input_grad) - last)
        single = [fn.vjp(i, g) if needs_input_grad[i] else None for i in range(last)]
        return single + [m if w else None for m, w in zip(members, needs_input_grad[last:], strict=True)]

    def count_down(self, leaf):
        """Note that one edge to the leaf is done; after the last one, finalize the leaf."""
        self.left[leaf] -= 1
        if self.left[leaf] == 0 and leaf in self.arrived:
            self.finalize_leaf(leaf)

    def finalize_leaf(self, leaf):
        """Run the hooks of a leaf that has received its last cotangent, then accumulate or capture the sum."""
        g = unlink_copy(self.arrived.pop(leaf))
        hooks, owned = leaf._hooks, leaf in self.owned
        if hooks is not None:
            owned = owned and not hooks.see_gradient()
            g = run_tensor_hooks(hooks, 0, g)
        if self.accumulate is None:
            self.captured[leaf] = g
        elif not leaf._requires_grad:
            return  # it was switched off during the pass
        elif hooks is None:
            if not (self.adds and accumulate_plain(leaf, g, owned)):
                self.accumulate(leaf, g, owned)
        else:
            (g,) = run_before(hooks, (g,))
            if g is not None:
                first = leaf._grad is None
                self.accumulate(leaf, g, owned)
                if first and leaf._grad is not None and leaf._grad._grad_fn is None:
                    g = conjugate(leaf._grad)  # as in PyTorch, whose .grad takes over the memory of the gradient
            for function in list(hooks.accumulated.values()):
                check_no_replacement(function, function(leaf), leaf)
            run_after(hooks, (), (g,))

    def will_run(self, edge):
        """Return whether this pass, as far as the graph shows, brings a cotangent to a node or leaf."""
        if self.needed is not None and edge not in self.needed:
            return False
        if self.reachable is None:  # requested inputs are needed, even if no path leads to them
            self.reachable = reachable_from(self.roots)
        return edge in self.reachable

    def accumulate_leaf(self, leaf, g, fresh):
        """Add a cotangent to those of a leaf; `fresh` says that nobody else references its memory."""
        # Large gradients that wait until the end of the pass, while .grad exists too, would take twice the memory.
        if self.adds and leaf._grad is not None and self.left is None and is_large(g):
            self.counting = True
        old = self.arrived.get(leaf)
        if old is None:
            self.arrived[leaf] = g
            if fresh:
                self.owned.add(leaf)
        else:
            total = self.add_cotangents(leaf, old, g)
            if total is not old:
                self.arrived[leaf] = total

    def count(self):
        """From here on finalize each leaf after its last cotangent, because waiting gradients take much memory."""
        self.counting = False
        self.left = edges_to_leaves(self.pending, self.needed)
        self.careful = True
        for leaf in tuple(self.arrived):
            if leaf not in self.left:
                self.finalize_leaf(leaf)

    def copy_shared_grads(self):
        """Copy gradients that leaves share with others, before user code runs that may write to its gradient."""
        for leaf, g in list(self.arrived.items()):
            if leaf not in self.owned and g.level is None:
                self.arrived[leaf] = match_layout(g, leaf, False)
                self.owned.add(leaf)

    def capture(self, fn, g):
        """Store the cotangents of a node that were requested."""
        if fn.out_avals is None:
            if (fn, 0) in self.targets:
                self.captured[fn, 0] = unlink_copy(g)
            return
        for number in range(len(g)):
            if (fn, number) in self.targets and g[number] is not None:
                self.captured[fn, number] = unlink_copy(g[number])


def run_alone(fn, gs):
    """Return the cotangent of each edge of one node, outside of a pass and without hooks."""
    if fn.rules is not None and not [g for g in gs if g is not None]:
        return [None] * len(fn.edges)
    state = current()
    modes = modes_of(state)
    alone = BackwardPass([], True, False, None, None, None)
    state.running = alone
    state.overrides_off = 2
    state.depth += 1
    try:
        return alone.gradients(fn, gs)
    finally:
        set_modes(state, modes)
        state.depth -= 1


def calls_user_code(fn):
    """Return whether the gradients of a node are computed by a user's Function."""
    return fn.rules is None and getattr(fn.op, "calls_user_code", True)


def is_fresh(result, g):
    """Return whether a rule's result owns its memory. The laws hold rules to: fresh memory, or a view of g."""
    if result is g or type(g) is tuple or type(result.value) is not ndarray or result._view is not None:
        return False  # a COPIED view would be recomputed from its base
    return result.value is not g.value and result.value.base is None


def owns_memory(result, gs, results):
    """Return whether a result of a node has memory that no cotangent and no other result of the node has."""
    given = [g for g in gs if g is not None]
    for g in given:
        if not is_fresh(result, g):
            return False
    return bool(given) and is_once(result, results)


def sum_of_gradients(a, b):
    """Return a + b; of a plain gradient and a composite one, as a sparse one is, the plain one comes first."""
    return b + a if compound(a) is not None and compound(b) is None else a + b


def is_once(result, results):
    """Return whether no other result of a node shares the memory of a fresh one."""
    array = result.value
    others = [other.value for other in results if other is not None]
    return sum([other is array or getattr(other, "base", None) is array for other in others]) == 1


def materialize(fn, slots):
    """Return the cotangents of a node with several outputs, with zeros for outputs that received none."""
    given = [g for g in slots if g is not None]
    like = given[0] if given else None
    return tuple([zeros(aval, like) if g is None else g for aval, g in zip(fn.out_avals, slots, strict=True)])


def is_large(g):
    """Return whether a gradient is large enough to be added to .grad as early as possible."""
    return type(g.value) is ndarray and g.value.nbytes >= LARGE


def add_into(total, term):
    """Add to a tensor's memory if both are plain arrays of equal shape and dtype; return whether that was done."""
    if total.level is not None or not same_kind(total.value, term.value):
        return False
    preserve_snapshots(total)
    try:
        add(total.value, term.value, total.value)
    except ValueError:  # read-only memory, which only the user can have assigned
        return False
    note_array_call(add, (total.value, term.value, total.value), total.value)
    bump_version(total)
    return True


def accumulate_plain(leaf, g, owned):
    """Add a gradient to .grad of a leaf without hooks, if all are real arrays on the ground; return whether it did."""
    t: TensorBase = leaf
    if t.level is not None or g.level is not None or not is_real_array(t.value) or not is_real_array(g.value):
        return False
    with accumulating:
        if t._grad is not None:
            return add_into(t._grad, g)
        t._grad = match_layout(g, t, owned)
        return True


def match_layout(g, leaf, owned):
    """Return a gradient in memory of its own with the strides of its leaf; g itself if it is that already."""
    if g.level is not None:  # above the ground no memory is written to
        return g
    if type(g.value) is not ndarray or type(leaf.value) is not ndarray:
        return g if owned else make(copy_composite(g.value), None, None)
    if owned and g.value.strides == leaf.value.strides:
        return g
    array = copy_in_layout(g.value, leaf.value)
    note_array_call(copy_in_layout, (g.value, leaf.value), array)
    return make(array, None, None)


def copy_composite(array):
    """Return a copy of an array of another kind than NumPy's."""
    out = array.copy()
    note_array_call(COPY, (array,), out)
    return out


def copy_in_layout(array, like):
    """Return a copy of an array, with the strides of another one."""
    out = empty_like(like, array.dtype)
    out[...] = array
    return out


def ones(shape, dtype, like=None):
    """Return a cotangent of ones on the ground, on the device of the tensor `like`."""
    device = None if like is None else array_devices.get(type(unwrap_all(like)))
    function = ones_array if device is None else device.namespace.ones
    array = function(shape, dtype)
    note_array_call(function, (shape, dtype), array)
    return make(array, None, None)


def ones_array(shape, dtype):
    """Return an array of ones."""
    array = empty(shape, dtype)
    array.fill(1)
    return array


def plain_seed(root, g):
    """Return the cotangent at the start of a simple pass on the ground; None if the pass is not simple.

    It is g for an output of real numbers that g fits, or 1 for a single one if g is None. No level and no watcher may
    be active, and no class may override operators. A pass that is not simple has its own errors too.
    """
    state = current()
    if state.level is not None or state.watchers is not None or not isinstance(root, TensorBase):
        return None
    t: TensorBase = root
    if t._overrides or t.level is not None or t._view is not None or not t._requires_grad:
        return None
    if not is_real_array(t.value):
        return None
    if g is None:
        a: ndarray = t.value
        for i in range(a.ndim):
            if a.shape[i] != 1:
                return None
        return make(ones_array(t.value.shape, t.value.dtype), None, None)
    if not isinstance(g, TensorBase):
        return None
    u: TensorBase = g
    return g if u.level is None and not u._overrides and same_kind(u.value, t.value) else None


def simple_gradients(root, targets, retain):
    """Return the cotangents of tensors in a simple pass from one real number; None if the pass is not simple."""
    ends = []
    for target in targets:
        if not isinstance(target, TensorBase):
            return None
        t: TensorBase = target
        if t._overrides or t.level is not None or t._view is not None or not t._requires_grad:
            return None
        if not is_real_array(t.value):
            return None
        ends.append((t, 0) if t._grad_fn is None else (t._grad_fn, t._output_nr))
    seed = plain_seed(root, None)
    if seed is None or not ends:
        return None
    found = run_pass([edge_of(root)], [seed], None, ends, False, retain, None)
    return [found.get(end[0] if isinstance(end[0], TensorBase) else end) for end in ends]


def simple_backward(root, g, retain, accumulate):
    """Run a simple pass from one tensor, whose results are accumulated; return whether the pass is simple."""
    seed = plain_seed(root, g)
    if seed is None:
        return False
    run_pass([edge_of(root)], [seed], None, None, False, retain, accumulate)
    return True


def edge_of(tensor):
    """Return the edge to a tensor: its node and output number, or (tensor, 0) for a leaf."""
    fn = synced_grad_fn(tensor)
    return (tensor, 0) if fn is None else (fn, tensor._output_nr)


def needed_for(roots, targets):
    """Return the nodes and leaves from which a target can be reached, the targets included."""
    needed = set(targets)
    nodes = nodes_behind(roots)
    nodes.reverse()
    # A node has a higher number than those at its edges. The nodes of a chain are in order already.
    before = 0
    for fn in nodes:
        if fn.sequence < before:
            nodes.sort(key=SEQUENCE)
            break
        before = fn.sequence
    for fn in nodes:
        if leads_to(fn, needed):
            needed.add(fn)
    return needed


SEQUENCE = attrgetter("sequence")


def leads_to(fn, ends):
    """Return whether one of the edges of a node leads to one of some nodes and leaves."""
    for edge in fn.edges:
        if edge is not None and edge in ends:
            return True
    return False


def nodes_behind(roots):
    """Return all nodes that can be reached from the roots, including those that are roots."""
    seen = {end for end in roots if not isinstance(end, TensorBase)}
    nodes = list(seen)
    for fn in nodes:  # which grows meanwhile
        for edge in fn.edges:
            if edge is not None and not isinstance(edge, TensorBase) and edge not in seen:
                seen.add(edge)
                nodes.append(edge)
    return nodes


def reachable_from(roots):
    """Return all nodes and leaves that can be reached from the roots, including the roots."""
    return {edge for fn in nodes_behind(roots) for edge in fn.edges if edge is not None}.union(roots)


def edges_to_leaves(roots, needed):
    """Return a dict from each leaf to the number of edges that lead to it, in the part of the graph that runs."""
    counts = {}
    for node in nodes_behind(roots):
        if needed is None or node in needed:
            for edge in node.edges:
                if isinstance(edge, TensorBase):
                    counts[edge] = counts.get(edge, 0) + 1
    for root in roots:
        if isinstance(root, TensorBase):
            counts[root] = counts.get(root, 0) + 1
    return counts


def pullback(roots, cotangents, *, level, inputs=None, create_graph=False, retain_graph=False, accumulate=None):
    """Return the cotangents at one level: of `inputs`, edges as made by `edge_of`, or of every leaf if that is None.

    `roots` are edges too. The result is a dict from leaf or (node, output number) to cotangent, without those that
    receive none. `accumulate(leaf, g, owned)`, if given, receives the cotangents of leaves instead, and may keep the
    memory of those that are owned.
    """
    return run_pass(roots, cotangents, level, inputs, create_graph, retain_graph, accumulate)


def run_pass(roots, cotangents, level, inputs, create_graph, retain, accumulate):
    """Return the result of `pullback`, whose arguments these are, without the cost of their names."""
    needed = targets = None
    ends = [edge for edge, _ in roots]
    if inputs is not None:
        needed = needed_for(ends, [edge for edge, _ in inputs])
        targets = {pair for pair in inputs if not isinstance(pair[0], TensorBase)} or None
    run = BackwardPass(ends, retain, level is None and not create_graph, needed, targets, accumulate)
    # Hooks and Functions may start passes inside passes: every DEPTH-th moves to a new thread, with a fresh stack.
    depth = current().depth
    if depth and depth % DEPTH == DEPTH - 1:
        return on_another_thread(partial(run.execute, level, create_graph, roots, cotangents))
    return run.execute(level, create_graph, roots, cotangents)
