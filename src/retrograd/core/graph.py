"""How a tensor was made: the nodes of the autograd graph and the rules that they run."""

import weakref
from functools import partial
from itertools import count

from numpy import zeros as zero_array

from retrograd.core.aval import symbolic
from retrograd.core.dtype import is_differentiable
from retrograd.core.hooks import RemovableHandle, hooks_of
from retrograd.core.level import at, current
from retrograd.core.tensor import TensorBase, alias, count_of, make, version_of

compiled = not __file__.endswith(".py")

# Where a rule's argument comes from.
INPUT, OUT, AVAL, PARAM, ONE_OUT = 0, 1, 2, 3, 4


class VjpRule:
    """A vjp rule of one input: its parameter names say what to keep of the call.

    `g` is the cotangent; `out` the output; an input's name its value; `<input>_aval` its shape and dtype
    only; a parameter's name the parameter; of several outputs, the name of one is that alone.
    """

    __slots__ = ("count", "depends", "fn", "keys", "kinds", "needs_avals", "needs_out", "needs_values")

    def __init__(self, fn, inputs, params, owner, outputs=()):
        self.fn = fn
        names = arguments(fn)
        sources = [_source(name, inputs, params, owner, outputs) for name in names]
        self.kinds = tuple(kind for kind, _ in sources)
        self.keys = tuple(key for _, key in sources)
        self.count = len(sources)
        self.needs_values = sum({1 << key for kind, key in sources if kind == INPUT})
        self.needs_avals = sum({1 << key for kind, key in sources if kind == AVAL})
        members = sum({1 << key for kind, key in sources if kind == ONE_OUT})
        self.needs_out = -1 if OUT in self.kinds else members  # as bits, one for each output
        self.depends = False  # whether the cotangent requires grad for the input's sake: set by the operator


def arguments(fn):
    """The names of a rule's arguments after the first, `g` or `t`."""
    code = getattr(fn, "__wrapped__", fn).__code__
    return code.co_varnames[1 : code.co_argcount]


def _source(name, inputs, params, owner, outputs):
    if name == "out":
        return OUT, 0
    if name in inputs:
        return INPUT, inputs.index(name)
    if name.endswith("_aval") and name[:-5] in inputs:
        return AVAL, inputs.index(name[:-5])
    if name in params:
        return PARAM, name
    if name in outputs:
        return ONE_OUT, outputs.index(name)
    raise TypeError(f"{owner}: a rule asks for {name!r}, which is no input, output or parameter of the operator")


class Counter:
    """Creation numbers: higher is later, whichever thread made the node."""

    __slots__ = ("last",)

    def __init__(self):
        self.last = 0


counter = Counter()
_numbers = count(1)  # the same uncompiled


class Packed:
    """A saved tensor as a pack hook left it, and what the tensor was in the graph."""

    __slots__ = ("edge", "hooks", "number", "packed")

    def __init__(self, hooks, tensor):
        shown = make(tensor.value, tensor.level, tensor.tag)
        shown.version = version_of(tensor)
        before = count_of(shown)
        with at(current().level, False):
            self.packed = hooks.pack(shown)
        if count_of(shown) != before:
            raise RuntimeError(
                f"saved_tensors_hooks: the pack hook is modifying its input in place, a tensor of shape {shown.shape} "
                f"that the graph needs as it is; write to a copy, tensor.clone()"
            )
        self.hooks = hooks
        self.edge = history_of(tensor)
        self.number = tensor.output_nr

    def unpack(self):
        """The tensor again, with its place in the graph."""
        tensor = self.hooks.unpack(self.packed)
        if not isinstance(tensor, TensorBase):
            raise TypeError(f"saved_tensors_hooks: unpack_hook must return a Tensor, got {type(tensor).__name__}")
        if self.edge is None and not tensor._requires_grad:
            return tensor
        return attached(make(tensor.value, tensor.level, tensor.tag), self.edge, self.number)


class Snapshot:
    """A saved tensor that may be written to after: the content is copied before the first write, if there is one.

    PyTorch saves a value of its own in such a case, which takes a copy each time.
    """

    __slots__ = ("__weakref__", "count", "edge", "level", "number", "tag", "value", "version")

    def preserve(self):
        """Copy the content: the storage is about to be written to."""
        self.value = self.value.copy()
        self.version = None

    def changed(self):
        """Whether the storage was written to by somebody who did not say so before."""
        return self.version is not None and self.version.count != self.count

    def unpack(self):
        """The tensor as it was saved, with its position in the graph: a level below may record what is done to it."""
        if isinstance(self.edge, TensorBase) and self.edge.value is self.value and self.version is not None:
            return self.edge  # a leaf that was not written to
        tensor = make(self.value, self.level, self.tag)
        tensor.version = self.version  # what a recorded pass saves of it shows the same storage: writes are noticed
        return attached(tensor, self.edge, self.number)


def snapshot_of(tensor):
    """Return a snapshot of a tensor; on the ground the writes to its storage know of it."""
    new: Snapshot = Snapshot.__new__(Snapshot)
    new.value = tensor.value
    new.level = tensor.level
    new.tag = tensor.tag
    new.edge = history_of(tensor)
    new.number = tensor.output_nr
    new.version = None
    new.count = 0
    if tensor.level is None:  # above the ground no value is ever overwritten
        version = version_of(tensor)
        new.version = version
        new.count = version.count
        references = version.snapshots
        if references is None:
            version.snapshots = references = []
        elif len(references) % 64 == 0:  # as graphs go, so do their snapshots
            references[:] = [r for r in references if r() is not None]
        references.append(weakref.ref(new))
    return new


def history_of(tensor):
    """The edge to a tensor: the node that made it, itself if it is a leaf that requires grad, else None."""
    return tensor if tensor._grad_fn is None and tensor._requires_grad else tensor._grad_fn


def attached(tensor, edge, number):
    """Attach a fresh tensor to an edge of the graph, unless that is None, and return it."""
    if edge is None:
        return tensor
    tensor._requires_grad = True
    if isinstance(edge, TensorBase):  # a leaf: the value is another tensor's, the gradient goes to the leaf
        tensor._grad_fn = node(PASS_ON, PASS_ON.rules, {}, (edge,), False)
    else:
        tensor._grad_fn, tensor.output_nr = edge, number
    return tensor


class _PassOn:
    """The identity, as the operator of a node."""

    name = "alias"
    reduces_cotangent = False
    rules = (VjpRule(lambda g: g, ["x"], [], "alias"),)


PASS_ON = _PassOn()


def zeros(aval):
    """A zero cotangent on the ground; levels above treat it as a constant."""
    zero = partial(zero_array, dtype=aval.dtype)
    size = symbolic(aval.shape)
    return make(zero(aval.shape) if size is None else size.made(zero, aval.shape), None, None)


class _ZeroSlope:
    """A function that is constant wherever it has a derivative, as the operator of a node."""

    name = "zero_slope"
    reduces_cotangent = False
    rules = (VjpRule(lambda g: zeros(g.aval), ["x"], [], "zero_slope"),)


ZERO_SLOPE = _ZeroSlope()


def depending(g, fn, index):
    """The cotangent of an input, from a rule that has read it: at the least its derivative by that input is zero.

    The cotangent of a piecewise linear function is made of comparisons, which have no derivative.
    """
    if g._requires_grad or fn.listed or fn.edges[index] is None:
        return g
    made = node(ZERO_SLOPE, ZERO_SLOPE.rules, {}, (fn.edges[index],), False)
    if fn.numbers is not None:
        made.numbers = (fn.numbers[index],)
    out = alias(g, None)
    out._grad_fn, out._requires_grad = made, True
    return out


class GradFn:
    """A node of the graph: operator, edges to what made its inputs, and the values that its rules need.

    An edge is the node that made an input, the input itself if that is a leaf, or None.  `saved` holds the
    declared inputs that some rule reads, and the output last; it is None when nothing is kept, or once freed.
    `listed` says that the last declared input is a list: the edges from there on are those of its members.
    A node without rules is a user's `Function`: its operator pulls all gradients at once, with `params["ctx"]`.
    """

    __slots__ = (
        "__weakref__",
        "_hooks",
        "avals",
        "edges",
        "freed",
        "listed",
        "numbers",
        "op",
        "out_avals",
        "params",
        "rules",
        "saved",
        "sequence",
        "trace",
        "versions",
    )

    def name(self):
        """PyTorch's name of the node: MulBackward0 for `mul`."""
        if self.rules is None:
            return f"{self.op.name}Backward"
        return "".join(word.capitalize() for word in self.op.name.replace(".", "_").split("_")) + "Backward0"

    def __repr__(self):
        return f"<{self.name()} #{self.sequence}>"

    def __lt__(self, other):
        return self.sequence > other.sequence  # a heap of nodes yields the latest first

    def __hash__(self):
        return self.sequence

    def __eq__(self, other):
        return self is other

    def pull(self, index, g):
        """The cotangent of input `index`; for a list input, the list of cotangents of its members."""
        rule: VjpRule = self.rules[index]
        if rule.count == 0:
            result = rule.fn(g)
        elif rule.count == 1 and rule.kinds[0] == INPUT:
            result = rule.fn(g, self.value(rule.keys[0]))
        else:
            args = [g]
            for i in range(rule.count):
                args.append(self.fetch(rule.kinds[i], rule.keys[i]))
            result = rule.fn(*args)
        if self.avals is not None and self.avals[index] is not None and self.op.reduces_cotangent:
            result = self.op.definition.fit(result, self.avals[index])
        if rule.depends and current().grad_enabled and isinstance(result, TensorBase):
            return depending(result, self, index)
        return result

    def fetch(self, kind, key):
        """One argument of a rule."""
        if kind == INPUT:
            return self.value(key)
        if kind == OUT:
            return self.output()
        if kind == ONE_OUT:
            return self.output()[key]
        if kind == AVAL:
            return self.avals[key]
        return self.params[key]

    def value(self, index):
        """A saved input, if it is what it was."""
        if self.freed:
            raise RuntimeError(
                f"backward a second time: the values that {self.op.name} saved are freed already. To walk the graph "
                f"again, or read them, pass retain_graph=True to the first backward() or grad()."
            )
        saved = self.saved[index]
        if isinstance(saved, TensorBase):
            t: TensorBase = saved
            if t.version is not None or self.versions is not None:
                self.check(t, self.versions[index] if self.versions is not None else 0)
            if t._grad_fn is None and index >= 0:
                self.check_attached(t, self.edges[index])
            return saved
        if type(saved) is tuple:
            versions = self.versions[index] if self.versions is not None else None
            return tuple([self.restored(member, versions[i] if versions else 0) for i, member in enumerate(saved)])
        return self.restored(saved, 0)

    def restored(self, saved, version):
        """One saved value: unpacked, or checked to be what it was."""
        if type(saved) is Packed:
            return saved.unpack()
        if type(saved) is Snapshot:
            tensor = saved.unpack()
            if saved.changed():
                tensor.version = saved.version
                self.check(tensor, saved.count)
            return tensor
        if isinstance(saved, TensorBase):
            self.check(saved, version)
        return saved

    def check(self, saved, version):
        """A value that was written to since it was saved is an error, not a wrong gradient."""
        count = count_of(saved)
        if count != version:
            where = saved.version.where
            raise RuntimeError(
                f"backward of {self.op.name} ({self.name()}): a value that it saved has been modified by an inplace "
                f"operation since: the {saved.dtype} tensor of shape {saved.shape} is at version {count}; expected "
                f"version {version}."
                + (f" It was written to at {where}." if where else "")
                + " Write to a copy, x.clone(), or after the backward pass."
            )

    def check_attached(self, saved, edge):
        """An input that `detach_` has taken out of its graph since can't be saved as what it was."""
        if edge is not None and edge is not saved:
            raise RuntimeError(
                f"backward of {self.op.name}: its input of shape {saved.shape} was detached in place by detach_() "
                f"after it had been saved. Use x = x.detach() instead."
            )

    def output(self):
        """The saved output; back in the graph where the pass itself is recorded."""
        saved = self.value(-1)
        if not current().grad_enabled:
            return saved
        if type(saved) is tuple:
            return tuple([self.output_again(member, number) for number, member in enumerate(saved)])
        return alias(saved, self)

    def output_again(self, member, number):
        """One of several outputs, back in the graph as that; integers never were in it.  None stays None."""
        if member is None or not is_differentiable(member.dtype):
            return member
        out = alias(member, self)
        out.output_nr = number
        return out

    def release(self):
        """Free the saved values."""
        if self.saved is not None:
            self.saved = None
            self.freed = True

    def __getattr__(self, name):
        """What a user's `Function` keeps on its ctx shows on the node, which in PyTorch is the ctx."""
        if self.rules is not None or name.startswith("__") or "ctx" not in self.params:
            raise AttributeError(f"{self.name()!r} has no attribute {name!r}")
        return getattr(self.params["ctx"], name)

    @property
    def metadata(self):
        """A dict for the user's own notes on this node."""
        return hooks_of(self).metadata

    def register_hook(self, fn):
        """Call `fn(grad_inputs, grad_outputs)` after the node has run; a tuple that it returns replaces grad_inputs."""
        return RemovableHandle(hooks_of(self).after, fn)

    def register_prehook(self, fn):
        """Call `fn(grad_outputs)` before the node runs; a tuple that it returns replaces grad_outputs."""
        return RemovableHandle(hooks_of(self).before, fn)

    @property
    def next_functions(self):
        """Per input, the node that made it and which of its outputs it was; (None, 0) without gradient."""
        numbers = self.numbers or (0,) * len(self.edges)
        return tuple((as_node(edge), number) for edge, number in zip(self.edges, numbers, strict=True))


def node(op, rules, params, edges, listed):
    """A new node, the latest of all; compiled, its other fields are None and 0 from the start."""
    fn: GradFn = GradFn.__new__(GradFn)
    if not compiled:
        empty(fn)
    fn.op = op
    fn.rules = rules
    fn.params = params
    fn.edges = edges
    fn.listed = listed
    if compiled:
        counter.last += 1  # in C: no other thread runs in between
        fn.sequence = counter.last
    else:
        fn.sequence = next(_numbers)
    return fn


def empty(fn):
    """Plain Python leaves the fields of a new object unset."""
    fn.numbers = fn.saved = fn.versions = fn.avals = fn.out_avals = fn._hooks = fn.trace = None
    fn.freed = False


class AccumulateGrad:
    """The node at a leaf, as the graph shows it: it adds to `variable.grad`."""

    __slots__ = ("__weakref__", "variable")

    def __init__(self, variable):
        self.variable = variable

    def name(self):
        """The name that PyTorch gives this node."""
        return "AccumulateGrad"

    next_functions = ()

    @property
    def metadata(self):
        """A dict for the user's own notes on this node."""
        return hooks_of(self.variable).metadata

    def register_hook(self, fn):
        """Call `fn(grad_inputs, grad_outputs)` after the gradient was added; there are no grad_inputs."""
        return RemovableHandle(hooks_of(self.variable).after, fn)

    def register_prehook(self, fn):
        """Call `fn(grad_outputs)` before the gradient is added; a tuple that it returns replaces it."""
        return RemovableHandle(hooks_of(self.variable).before, fn)

    def __repr__(self):
        return f"<AccumulateGrad {self.variable.shape}>"


_accumulators = weakref.WeakValueDictionary()  # by the id of the leaf, which each of them holds


def accumulator(leaf):
    """The node at a leaf: the same one as long as somebody holds it."""
    found = _accumulators.get(id(leaf))
    if found is None:
        found = _accumulators.setdefault(id(leaf), AccumulateGrad(leaf))
    return found


def as_node(edge):
    """An edge as users see it."""
    return accumulator(edge) if isinstance(edge, TensorBase) else edge
