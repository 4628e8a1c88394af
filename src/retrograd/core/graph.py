"""The autograd graph: its nodes, and the tensors that they saved."""

import weakref
from functools import partial
from itertools import count

from numpy import ndarray
from numpy import zeros as zero_array

from retrograd.core.aval import Aval, symbolic
from retrograd.core.device import array_devices
from retrograd.core.dtype import is_differentiable
from retrograd.core.op import operator_named
from retrograd.core.state import at, current, note_array_call
from retrograd.core.tensor import TensorBase, alias, count_of, make, unwrap_all, version_of
from retrograd.core.vjp_rule import AVAL, INPUT, ONE_OUT, OUT, VjpRule

compiled = not __file__.endswith(".py")


class Counter:
    """The last creation number: a later node has a higher one, whichever thread made it."""

    __slots__ = ("last",)

    def __init__(self):
        self.last = 0


counter = Counter()
_numbers = count(1)  # the uncompiled counterpart of `counter`


class Packed:
    """A saved tensor after its pack hook, with the edge to the tensor."""

    __slots__ = ("edge", "hooks", "number", "packed")

    def __init__(self, hooks, tensor):
        shown = make(tensor.value, tensor.level, tensor.tag)
        shown.version = version_of(tensor)
        before = count_of(shown)
        with at(current().level, False):
            self.packed = hooks.pack(shown)
        if count_of(shown) != before:
            raise RuntimeError(
                f"A saved tensor pack hook is modifying its input in place, a tensor of shape {shown.shape} that the "
                f"graph needs as it is; write to a copy, tensor.clone()"
            )
        self.hooks = hooks
        self.edge = history_of(tensor)
        self.number = tensor._output_nr

    def unpack(self):
        """Return the tensor, attached to its edge of the graph."""
        tensor = self.hooks.unpack(self.packed)
        if not isinstance(tensor, TensorBase):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(tensor).__name__}"
            )
        if self.edge is None and not tensor._requires_grad:
            return tensor
        return attach(make(tensor.value, tensor.level, tensor.tag), self.edge, self.number)


class Snapshot:
    """A saved tensor whose content is copied before the first later write, if there is one.

    PyTorch saves a copy at once in such a case.
    """

    __slots__ = ("__weakref__", "count", "edge", "level", "number", "tag", "value", "version")

    def preserve(self):
        """Copy the content, because the storage is about to be written to."""
        self.value = self.value.copy()
        self.version = None

    def is_overwritten(self):
        """Return whether the storage was written to without `preserve` being called first."""
        return self.version is not None and self.version.count != self.count

    def unpack(self):
        """Return the tensor as it was saved, attached to the graph, since a level below may record its use."""
        if isinstance(self.edge, TensorBase) and self.edge.value is self.value and self.version is not None:
            return self.edge  # a leaf that was not written to
        tensor = make(self.value, self.level, self.tag)
        tensor.version = self.version  # a recorded pass that saves this notices writes
        return attach(tensor, self.edge, self.number)


def snapshot_of(tensor):
    """Return a snapshot of a tensor; on the ground it is registered with the version counter."""
    new: Snapshot = Snapshot.__new__(Snapshot)
    new.value = tensor.value
    new.level = tensor.level
    new.tag = tensor.tag
    new.edge = history_of(tensor)
    new.number = tensor._output_nr
    new.version = None
    new.count = 0
    if tensor.level is None:  # above the ground values are never overwritten
        version = version_of(tensor)
        new.version = version
        new.count = version.count
        references = version.snapshots
        if references is None:
            version.snapshots = references = set()
        references.add(weakref.ref(new, references.discard))
    return new


def history_of(tensor):
    """Return the edge to a tensor: its grad_fn, the tensor itself if it is a leaf that requires grad, or None."""
    return tensor if tensor._grad_fn is None and tensor._requires_grad else tensor._grad_fn


def attach(tensor, edge, number):
    """Attach a fresh tensor to an edge of the graph, unless that is None, and return it."""
    if edge is None:
        return tensor
    tensor._requires_grad = True
    if isinstance(edge, TensorBase):  # the value is in another tensor than the leaf: an identity node leads to the leaf
        tensor._grad_fn = note_output(node(PASS_ON, PASS_ON.rules, {}, (edge,), False), tensor)
    else:
        tensor._grad_fn, tensor._output_nr = edge, number
    return tensor


def default_name(op):
    """Return the name of an operator's nodes that PyTorch would make of its name: MulBackward0 for `mul`."""
    return "".join([word.title() for word in op.name.replace(".", "_").split("_")]) + "Backward0"


class NodeOperator:
    """The operator of a node with one input that no call made: it has a vjp rule only."""

    definition = None

    def __init__(self, name, rule):
        self.name = name
        self.rules = (VjpRule(rule, ["x"], [], name),)


def zeros(aval, like=None):
    """Return a zero cotangent on the ground, on the device of `like`; levels above treat it as a constant."""
    size = symbolic(aval.shape)
    if size is not None and size.is_example_dim(aval.shape.index(size)):  # of one example: its level adds the others
        return operator_named("zeros")(aval.shape, dtype=aval.dtype)
    device = None if like is None else array_devices.get(type(unwrap_all(like)))
    zero = partial(zero_array if device is None else device.namespace.zeros, dtype=aval.dtype)
    array = zero(aval.shape) if size is None else size.make_array(zero, aval.shape)
    note_array_call(zero, (aval.shape,), array)
    return make(array, None, None)


def passes_on_to(edge, leaf):
    """Return whether an edge leads to a leaf through an identity node."""
    return not isinstance(edge, TensorBase) and edge.op is PASS_ON and edge.edges[0] is leaf


PASS_ON = NodeOperator("alias", lambda g: g)  # the identity
ZERO_SLOPE = NodeOperator("zero_slope", lambda g: zeros(g.aval, g))  # a derivative of zero wherever there is one


def connect_to_input(g, fn, index):
    """Return the cotangent of an input, connected to that input with a derivative of zero if it has no graph.

    The rule has read the input, but the cotangent of a piecewise linear function consists of comparisons, which have no
    derivative.
    """
    if g._requires_grad or fn.has_list_input or fn.edges[index] is None:
        return g
    made = node(ZERO_SLOPE, ZERO_SLOPE.rules, {}, (fn.edges[index],), False)
    if fn.numbers is not None:
        made.numbers = (fn.numbers[index],)
    out = alias(g, None)
    out._grad_fn, out._requires_grad = note_output(made, g), True
    return out


class GradFn:
    """A node of the graph: the operator, edges to the nodes of its inputs, and the values that its rules need.

    An edge is the node that made an input, the input itself if that is a leaf, or None. `saved` holds the inputs that
    some rule reads, and the output last. It is None if nothing is saved, or once freed. `has_list_input` says that the
    last declared input is a list: the edges from there on are those of its members. `out_avals` are the avals of
    several outputs; `note_output` keeps that of a single one. A node without rules belongs to a user's `Function`: its
    operator computes all gradients at once, with `params["ctx"]`.
    """

    __slots__ = (
        "__weakref__",
        "_hooks",
        "avals",
        "edges",
        "freed",
        "has_list_input",
        "numbers",
        "op",
        "out_avals",
        "out_kind",
        "out_ndim",
        "out_sizes",
        "params",
        "rules",
        "saved",
        "sequence",
        "trace",
        "versions",
    )

    def name(self):
        """Return PyTorch's name of the node: MulBackward0 for `mul`."""
        if self.rules is None:
            return f"{self.op.name}Backward"
        given = getattr(self.op.definition, "node_name", "")
        return (given(self) if callable(given) else given) or default_name(self.op)

    def __repr__(self):
        return f"<{self.name()} #{self.sequence}>"

    def __lt__(self, other):
        return self.sequence > other.sequence  # reversed, so that a heap yields the latest node first

    def __hash__(self):
        return self.sequence

    def __eq__(self, other):
        return self is other

    def vjp(self, index, g):
        """Return the cotangent of input `index`; for a list input, the list of cotangents of its members."""
        rule: VjpRule = self.rules[index]
        # The two most common signatures, (g) and (g, input), avoid building a list of arguments.
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
            # Undo broadcasting and promotion: sum to the input's shape, convert to its dtype.
            result = self.op.definition.fit(result, self.avals[index])
        if rule.depends and current().grad_enabled and isinstance(result, TensorBase):
            return connect_to_input(result, self, index)
        return result

    def fetch(self, kind, key):
        """Return one argument of a rule."""
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
        """Return a saved input, after checking that it has not changed since."""
        if self.freed:
            raise RuntimeError(
                f"Trying to backward through the graph a second time (or directly access saved tensors after they have "
                f"already been freed): the values that {self.op.name} saved are freed when you call .backward() or "
                f"autograd.grad(). Specify retain_graph=True in the first call to walk the graph again, or read them."
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
            return tuple([self.restore(member, versions[i] if versions else 0) for i, member in enumerate(saved)])
        return self.restore(saved, 0)

    def restore(self, saved, version):
        """Return one saved value: unpacked, or checked to be unchanged."""
        if type(saved) is Packed:
            return saved.unpack()
        if type(saved) is Snapshot:
            tensor = saved.unpack()
            if saved.is_overwritten():
                tensor.version = saved.version
                self.check(tensor, saved.count)
            return tensor
        if isinstance(saved, TensorBase):
            self.check(saved, version)
        return saved

    def check(self, saved, version):
        """Raise if a saved value was written to since it was saved: the gradient would be wrong."""
        count = count_of(saved)
        if count != version:
            where = saved.version.where
            raise RuntimeError(
                f"backward of {self.op.name} ({self.name()}): one of the variables needed for gradient computation has "
                f"been modified by an inplace operation: the {saved.dtype} tensor of shape {saved.shape}"
                + ("" if saved._grad_fn is None else f", which is output {saved._output_nr} of {saved._grad_fn.name()}")
                + f", is at version {count}; expected version {version} instead."
                + (f" It was written to at {where}." if where else "")
                + " Write to a copy, x.clone(), or after the backward pass."
            )

    def check_attached(self, saved, edge):
        """Raise if a saved input was taken out of its graph by `detach_` since it was saved."""
        if edge is not None and edge is not saved and not passes_on_to(edge, saved):
            raise RuntimeError(
                f"backward of {self.op.name}: Trying to use a saved tensor that has been detached in-place, i.e. with "
                f".detach_(): its input of shape {saved.shape}. Use x = x.detach() instead."
            )

    def output(self):
        """Return the saved output; connected to this node if the pass itself is recorded."""
        saved = self.value(-1)
        if not current().grad_enabled:
            return saved
        if type(saved) is tuple:
            return tuple([self.output_again(member, number) for number, member in enumerate(saved)])
        return alias(saved, self)

    def output_again(self, member, number):
        """Return one of several saved outputs, connected to this node if it is differentiable; None stays None."""
        if member is None or not is_differentiable(member.dtype):
            return member
        out = alias(member, self)
        out._output_nr = number
        return out

    def release(self):
        """Free the saved values."""
        if self.saved is not None:
            self.saved = None
            self.freed = True


MOST_SIZES = 5  # the length of `out_sizes`, enough for a batch of volumes


def note_output(fn, out):
    """Keep shape and dtype of the single output of a node, without keeping its memory; return the node.

    The dtype and the sizes of an array are copied, which costs less than a tuple; else `out_kind` is the whole aval.
    """
    if compiled and type(out.value) is ndarray:
        array: ndarray = out.value
        if array.ndim <= MOST_SIZES:
            fn.out_kind = array.dtype
            fn.out_ndim = array.ndim
            for i in range(array.ndim):
                fn.out_sizes[i] = array.shape[i]
            return fn
    fn.out_kind = out.aval
    return fn


def output_aval(fn, number):
    """Return the aval of an output of a node."""
    if fn.out_avals is not None:
        return fn.out_avals[number]
    return fn.out_kind if isinstance(fn.out_kind, Aval) else Aval(fn.out_sizes[: fn.out_ndim], fn.out_kind)


def output_avals(fn):
    """Return the aval of each output of a node."""
    return (output_aval(fn, 0),) if fn.out_avals is None else fn.out_avals


def node(op, rules, params, edges, has_list_input):
    """Return a new node with the next creation number."""
    fn: GradFn = GradFn.__new__(GradFn)
    if not compiled:
        empty(fn)
    fn.op = op
    fn.rules = rules
    fn.params = params
    fn.edges = edges
    fn.has_list_input = has_list_input
    if compiled:
        counter.last += 1  # in C: no other thread runs in between
        fn.sequence = counter.last
    else:
        fn.sequence = next(_numbers)
    return fn


def reserve_numbers(n):
    """Return the highest of n new creation numbers, or of a few more: nodes between can be made later."""
    if compiled:
        counter.last += n
        return counter.last
    for _ in range(n):
        next(_numbers)
    return next(_numbers)


def empty(fn):
    """Set the fields of a new node, which plain Python leaves unset (Cython starts them as None and 0)."""
    fn.numbers = fn.saved = fn.versions = fn.avals = fn.out_avals = fn.out_kind = None
    fn._hooks = fn.trace = None
    fn.freed = False
