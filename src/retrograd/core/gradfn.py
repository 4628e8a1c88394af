"""How a tensor was made: the nodes of the autograd graph and the rules that they run."""

from retrograd.core.level import current
from retrograd.core.tensor import TensorBase, alias, count_of

compiled = not __file__.endswith(".py")

# Where a rule's argument comes from.
INPUT, OUT, AVAL, PARAM = 0, 1, 2, 3


class VjpRule:
    """A vjp rule of one input: its parameter names say what to keep of the call.

    `g` is the cotangent; `out` the output; an input's name its value; `<input>_aval` its shape and dtype
    only; a parameter's name the parameter.
    """

    __slots__ = ("count", "fn", "keys", "kinds", "needs_avals", "needs_out", "needs_values")

    def __init__(self, fn, inputs, params, owner):
        self.fn = fn
        names = arguments(fn)
        sources = [_source(name, inputs, params, owner) for name in names]
        self.kinds = tuple(kind for kind, _ in sources)
        self.keys = tuple(key for _, key in sources)
        self.count = len(sources)
        self.needs_values = sum({1 << key for kind, key in sources if kind == INPUT})
        self.needs_avals = sum({1 << key for kind, key in sources if kind == AVAL})
        self.needs_out = OUT in self.kinds


def arguments(fn):
    """The names of a rule's arguments after the first, `g` or `t`."""
    code = fn.__code__
    return code.co_varnames[1 : code.co_argcount]


def _source(name, inputs, params, owner):
    if name == "out":
        return OUT, 0
    if name in inputs:
        return INPUT, inputs.index(name)
    if name.endswith("_aval") and name[:-5] in inputs:
        return AVAL, inputs.index(name[:-5])
    if name in params:
        return PARAM, name
    raise TypeError(f"{owner}: a rule asks for {name!r}, which is no input or parameter of the operator")


class Counter:
    """Creation numbers: higher is later, whichever thread made the node."""

    __slots__ = ("last",)

    def __init__(self):
        self.last = 0


counter = Counter()


class GradFn:
    """A node of the graph: operator, edges to what made its inputs, and the values that its rules need.

    An edge is the node that made an input, the input itself if that is a leaf, or None.  `saved` holds the
    declared inputs that some rule reads, and the output last; it is None when nothing is kept, or once freed.
    `listed` says that the last declared input is a list: the edges from there on are those of its members.
    """

    __slots__ = (
        "__weakref__",
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
        "versions",
    )

    def name(self):
        """PyTorch's name of the node: MulBackward0 for `mul`."""
        return "".join(word.capitalize() for word in self.op.name.split("_")) + "Backward0"

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
        if self.avals is None or self.avals[index] is None or not self.op.fits:
            return result
        return self.op.definition.fit(result, self.avals[index])

    def fetch(self, kind, key):
        """One argument of a rule."""
        if kind == INPUT:
            return self.value(key)
        if kind == OUT:
            return self.output()
        if kind == AVAL:
            return self.avals[key]
        return self.params[key]

    def value(self, index):
        """A saved input, if it is what it was."""
        if self.freed:
            raise RuntimeError(
                f"backward of {self.op.name}: its saved values are freed already. To walk the graph a second "
                f"time, pass retain_graph=True to the first backward() or grad()."
            )
        saved = self.saved[index]
        if type(saved) is tuple:
            for i, member in enumerate(saved):
                self.check(member, self.versions[index][i] if self.versions is not None else 0)
        else:
            self.check(saved, self.versions[index] if self.versions is not None else 0)
        return saved

    def check(self, saved, version):
        """A value that was written to since it was saved is an error, not a wrong gradient."""
        if isinstance(saved, TensorBase) and count_of(saved) != version:
            raise RuntimeError(
                f"backward of {self.op.name}: a tensor of shape {saved.shape} that it saved was changed in "
                f"place: it is at version {count_of(saved)}, expected version {version}. Write to a copy "
                f"(x.clone()), or write after the backward pass."
            )

    def output(self):
        """The saved output; back in the graph where the pass itself is recorded."""
        saved = self.value(-1)
        if not current().grad_enabled:
            return saved
        if type(saved) is tuple:
            return tuple([alias(member, self) for member in saved])
        return alias(saved, self)

    def release(self):
        """Free the saved values."""
        if self.saved is not None:
            self.saved = None
            self.freed = True

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
    counter.last += 1
    fn.sequence = counter.last
    return fn


def empty(fn):
    """Plain Python leaves the fields of a new object unset."""
    fn.numbers = fn.saved = fn.versions = fn.avals = fn.out_avals = None
    fn.freed = False


class AccumulateGrad:
    """The node at a leaf, as the graph shows it: it adds to `variable.grad`."""

    __slots__ = ("variable",)

    def __init__(self, variable):
        self.variable = variable

    def name(self):
        """The name that PyTorch gives this node."""
        return "AccumulateGrad"

    next_functions = ()

    def __repr__(self):
        return f"<AccumulateGrad {self.variable.shape}>"


def as_node(edge):
    """An edge as users see it."""
    return AccumulateGrad(edge) if isinstance(edge, TensorBase) else edge
