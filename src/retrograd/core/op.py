"""Operators and the one way to run them: on arrays at the ground, through the current level above it."""

from numpy import asarray, generic, ndarray

from retrograd.core.dtype import is_differentiable
from retrograd.core.gradfn import GradFn, VjpRule, node
from retrograd.core.level import current
from retrograd.core.tensor import (
    TensorBase,
    alias,
    count_of,
    floating,
    make,
    plain,
    same_kind,
    version_of,
)

compiled = not __file__.endswith(".py")
if not compiled:  # compiled, this is a cast without a check: see tensor.pxd
    globals()["known_tensor"] = lambda tensor: tensor

namespaces = {}  # array type -> namespace of functions on such arrays, filled by retrograd.backend


class Op:
    """One operator: its schema, its rules and its kernels.  Calling it runs it wherever the call stands."""

    __slots__ = (
        "definition",
        "differentiable",
        "exact",
        "fits",
        "inlined",
        "kernel",
        "kernels",
        "last",
        "leading",
        "name",
        "params",
        "positional",
        "promotes",
        "required",
        "rules",
        "schema",
        "simple",
        "to_float",
        "variadic",
        "view",
    )

    def __init__(self, schema, definition):
        self.schema = schema
        self.definition = definition
        self.name = schema.name
        self.params = schema.defaults
        self.variadic = schema.variadic
        self.last = len(schema.inputs) - 1
        self.simple = 0 if schema.params or schema.variadic or schema.returns != "Tensor" else len(schema.inputs)
        self.leading = len(schema.inputs) if schema.inputs_lead and not schema.variadic else -1
        self.positional = schema.positional_params
        self.exact = schema.exact
        self.required = len(schema.params)
        self.differentiable = definition.differentiable
        self.promotes = definition.promotion is not None
        self.to_float = definition.promotion == "float"
        self.fits = definition.fits
        self.view = definition.view
        self.inlined = definition.inlined
        self.rules = _vjp_rules(schema, definition)
        self.kernels = {}
        self.kernel = None

    def __call__(self, *args, **kwargs):
        if self.simple and not kwargs and len(args) == self.simple:
            if self.simple == 1:
                return call1(self, args[0])
            if self.simple == 2:
                return call2(self, args[0], args[1])
            return call(self, args, self.params)
        if self.leading >= 0 and len(args) >= self.leading:
            params = self.quick_params(args, kwargs)
            if params is not None:
                return call(self, args[: self.leading], params)
        inputs, params = self.schema.bind(args, kwargs)
        return call(self, inputs, params)

    def quick_params(self, args, kwargs):
        """The params of a call whose arguments need no conversion; None leaves them to the schema."""
        if len(args) == self.leading and not kwargs:
            return self.params if len(self.params) == self.required else None
        params = self.params.copy()
        extra = len(args) - self.leading
        if extra > len(self.positional):
            return None
        for i in range(extra):
            name = self.positional[i]
            if not fits_exactly(self.exact[name], args[self.leading + i]) or name in kwargs:
                return None
            params[name] = args[self.leading + i]
        for name, value in kwargs.items():
            if name not in self.exact or not fits_exactly(self.exact[name], value):
                return None
            params[name] = value
        return params if len(params) == self.required else None

    def kernel_for(self, arrays):
        """The implementation for the arrays' kind: NumPy's unless one of them is of another kind."""
        for array in arrays:
            if type(array) in namespaces and type(array) is not ndarray:
                return self.bound(type(array))
        return self.kernel if self.kernel is not None else self.bound(ndarray)

    def bound(self, array_type):
        """The implementation over one namespace, bound on first use."""
        if array_type not in self.kernels:
            self.kernels[array_type] = self.definition.bind(namespaces[array_type])
        if array_type is ndarray:
            self.kernel = self.kernels[ndarray]
        return self.kernels[array_type]


def fits_exactly(kind, value):
    """Whether a value is what the param's type wants, without conversion; `kind` is from `Schema.exact`."""
    if kind is tuple:
        if type(value) is not tuple:
            return False
        for member in value:
            if type(member) is not int:
                return False
        return True
    return type(value) is kind


registry = {}


def operator_named(name):
    """The registered operator of that name; a KeyError names it."""
    if name not in registry:
        raise KeyError(f"no operator named {name!r} is registered")
    return registry[name]


def _vjp_rules(schema, definition):
    inputs = [p.name for p in schema.inputs]
    params = [p.name for p in schema.params]
    rules = []
    for name in inputs:
        fn = getattr(definition, "vjp_" + name, None)
        rules.append(None if fn is None else VjpRule(fn, inputs, params, schema.name))
    return tuple(rules)


# ---------------------------------------------------------------------------------------------------- calls


def call1(op, a):
    """Run an operator of one input and no params."""
    state = current()
    if state.level is None and isinstance(a, TensorBase) and not op.inlined and op.kernel is not None:
        t: TensorBase = known_tensor(a)  # noqa: F821
        if t.level is None and type(t.value) is ndarray and (not op.to_float or floating(t.value)):
            try:
                r = op.kernel(t.value)
            except (ValueError, TypeError, IndexError):
                explain(op, (a,), op.params)
                raise
            out = make(r if type(r) is ndarray else asarray(r), None, None)
            if op.view:
                out.version = version_of(t)
            if t._requires_grad and state.grad_enabled and op.differentiable:
                record(op, (a,), op.params, out, None)
            return out
    return call(op, (a,), op.params)


def call2(op, a, b):
    """Run an operator of two inputs and no params."""
    state = current()
    if state.level is None and not op.inlined:
        wanted = False
        x = a
        y = b
        if isinstance(a, TensorBase):
            t: TensorBase = known_tensor(a)  # noqa: F821
            if t.level is not None:
                return call(op, (a, b), op.params)
            x = t.value
            wanted = t._requires_grad
        if isinstance(b, TensorBase):
            u: TensorBase = known_tensor(b)  # noqa: F821
            if u.level is not None:
                return call(op, (a, b), op.params)
            y = u.value
            wanted = wanted or u._requires_grad
        if op.kernel is not None and plain(x, y) and (not op.to_float or floating(x) or floating(y)):
            try:
                r = op.kernel(x, y)
            except (ValueError, TypeError, IndexError):
                explain(op, (a, b), op.params)
                raise
            out = make(r if type(r) is ndarray else asarray(r), None, None)
            if wanted and state.grad_enabled and op.differentiable and floating(out.value):
                record2(op, a, b, out)
            return out
    return call(op, (a, b), op.params)


def call(op, args, params):
    """Run an operator on its flat inputs: the one dispatch function."""
    if op.inlined:
        return op.definition.compose(*args, **params)
    state = current()
    level = state.level
    if level is None:
        out = ground(op, args, params)
    else:
        with level.below():
            out = level.process(op, args, params)
    if state.grad_enabled and op.differentiable:
        for a in args:
            if isinstance(a, TensorBase) and a._requires_grad and a.level is level:
                record(op, args, params, out, level)
                break
    return out


def ground(op, args, params):
    """Run the kernel on the arrays themselves."""
    arrays = [raw(op, a) for a in args]
    if op.promotes:
        arrays = op.definition.promote(arrays)
    kernel = op.kernel_for(arrays)
    try:
        out = kernel(*arrays, **params)
    except (ValueError, TypeError, IndexError):
        explain(op, args, params)
        raise
    if type(out) is tuple:
        return tuple([make(as_array(r), None, None) for r in out])
    result = make(as_array(out), None, None)
    if op.view and isinstance(args[0], TensorBase):
        result.version = version_of(args[0])
    return result


def as_array(result):
    """A kernel's result as an array: NumPy answers scalars where the result has no dimensions."""
    return result if type(result) in namespaces else asarray(result)


def raw(op, a):
    """The array of an operand on the ground; Python numbers and None pass."""
    if isinstance(a, TensorBase):
        if a.level is None:
            return a.value
        raise RuntimeError(
            f"{op.name}: this tensor, of shape {a.value.shape}, belongs to a {type(a.level).__name__} that is "
            f"{'not the current one' if a.level.active else 'over'}: it has escaped the function that was "
            f"transformed. Return it from that function instead."
        )
    if a is None or type(a) is ndarray or isinstance(a, (bool, int, float, complex)):
        return a
    if isinstance(a, (generic, ndarray)):
        return asarray(a)
    if type(a) in namespaces:
        return a
    raise TypeError(f"{op.name}: expected a Tensor, an array or a number, got {type(a).__name__}; see rg.tensor")


def explain(op, args, params):
    """A kernel failed: let the shape rule say it better, by raising."""
    op.definition.shape(*[a.aval if isinstance(a, TensorBase) else a for a in args], **params)


# ---------------------------------------------------------------------------------------------- recording


def record2(op, a, b, out):
    """`record` for two inputs and one output on the ground, where it matters most how long it takes."""
    left = edge_to(op, 0, a)
    right = edge_to(op, 1, b)
    values = 0
    avals = 0
    keeps_out = False
    if left is not None:
        rule: VjpRule = op.rules[0]
        values, avals, keeps_out = rule.needs_values, rule.needs_avals, rule.needs_out
        if a.output_nr:
            return record(op, (a, b), op.params, out, None)
    if right is not None:
        rule = op.rules[1]
        values |= rule.needs_values
        avals |= rule.needs_avals
        keeps_out = keeps_out or rule.needs_out
        if b.output_nr:
            return record(op, (a, b), op.params, out, None)
    fn: GradFn = node(op, op.rules, op.params, (left, right), False)
    if values or keeps_out:
        x = a if values & 1 else None
        y = b if values & 2 else None
        fn.saved = (x, y, kept_output(out) if keeps_out else None)
        m, n = written(x), written(y)
        if m or n:
            fn.versions = (m, n, 0)
    if avals or op.fits:
        x = aval_of(a) if avals & 1 or (op.fits and left is not None and not agrees(a, out)) else None
        y = aval_of(b) if avals & 2 or (op.fits and right is not None and not agrees(b, out)) else None
        if x is not None or y is not None:
            fn.avals = (x, y)
    out.grad_fn = fn
    out._requires_grad = True


def edge_to(op, index, a):
    """The edge to an operand on the ground: what made it, itself if it is a leaf, None without gradient."""
    if isinstance(a, TensorBase):
        t: TensorBase = known_tensor(a)  # noqa: F821
        if t._requires_grad:
            if op.rules[index] is None:
                missing_rule(op, index)
            return t if t.grad_fn is None else t.grad_fn
    return None


def written(a):
    """How often the storage of an operand was written to; numbers and arrays don't tell."""
    return count_of(a) if isinstance(a, TensorBase) else 0


def record(op, args, params, out, level):
    """Give the output its node in the level's graph."""
    single = type(out) is not tuple
    if single:
        t: TensorBase = out
        if not floating(t.value) and not is_differentiable(t.dtype):
            return
    edges = []
    numbers = None
    values = 0
    avals = 0
    keeps_out = False
    for i, a in enumerate(args):
        edge = None
        if isinstance(a, TensorBase):
            u: TensorBase = a
            if u._requires_grad and u.level is level:
                edge = u if u.grad_fn is None else u.grad_fn
                if u.output_nr:
                    numbers = True
                rule: VjpRule = op.rules[min(i, op.last)]
                if rule is None:
                    missing_rule(op, i)
                values |= rule.needs_values
                avals |= rule.needs_avals
                keeps_out = keeps_out or rule.needs_out
        edges.append(edge)
    fn: GradFn = node(op, op.rules, params, tuple(edges), op.variadic)
    if numbers:
        fn.numbers = tuple([a.output_nr if isinstance(a, TensorBase) else 0 for a in args])
    if values or keeps_out:
        save(fn, op, args, out, values, keeps_out)
    if avals or op.fits:
        keep_avals(fn, op, args, out, avals)
    if single:
        t = out
        t.grad_fn = fn
        t._requires_grad = True
    else:
        mark_outputs(fn, out)


def mark_outputs(fn, outs):
    """Each floating output of an operator with several is one output of its node."""
    fn.out_avals = tuple([out.aval for out in outs])
    for i, out in enumerate(outs):
        if is_differentiable(out.dtype):
            out.grad_fn, out.output_nr, out._requires_grad = fn, i, True


def save(fn, op, args, out, wanted, keeps_out):
    """Keep the inputs that some rule reads, and the output if one asks for it, with their versions."""
    last = op.last
    saved = []
    versions = []
    for i in range(last + 1):
        keep = None
        version = 0
        if wanted >> i & 1:
            if op.variadic and i == last:
                keep = tuple(args[i:])
                version = tuple([written(a) for a in keep])
            else:
                keep = args[i]
                version = written(keep)
        saved.append(keep)
        versions.append(version)
    saved.append(kept_output(out) if keeps_out else None)
    versions.append(0)
    fn.saved = tuple(saved)
    if any(versions):
        fn.versions = tuple(versions)


def kept_output(out):
    """The output outside the graph, so that its node does not hold itself."""
    if type(out) is tuple:
        return tuple([kept_output(o) for o in out])
    out.version = version_of(out)
    return alias(out, None)


def keep_avals(fn, op, args, out, wanted):
    """Keep the shapes and dtypes that rules ask for, and those that a cotangent must be fitted to."""
    avals = [None] * (op.last + 1)
    needed = False
    for i in range(op.last + 1):
        if op.variadic and i == op.last:
            if wanted >> i & 1:
                avals[i] = tuple([aval_of(a) for a in args[i:]])
                needed = True
        elif wanted >> i & 1 or (op.fits and fn.edges[i] is not None and not agrees(args[i], out)):
            avals[i] = aval_of(args[i])
            needed = True
    if needed:
        fn.avals = tuple(avals)


def agrees(a, out):
    """Whether a cotangent of the output fits the input as it is."""
    return (a.level is None and same_kind(a.value, out.value)) or a.aval == out.aval


def aval_of(a):
    """The aval of an operand; a number or None is its own."""
    return a.aval if isinstance(a, TensorBase) else a


def missing_rule(op, index):
    """An input that needs a gradient and has no rule is refused by name, never a silent zero."""
    name = op.schema.inputs[min(index, op.last)].name
    raise NotImplementedError(
        f"{op.name}: no gradient is defined with respect to {name!r}, which requires one. Detach it, or run "
        f"under no_grad()."
    )


# ---------------------------------------------------------------------------------------- Python's operators


def bind_arithmetic(operators):
    """Tell Python's operators which registered operators they are."""
    global ADD, SUB, MUL, DIV, MATMUL, POW, NEG, REMAINDER, FLOOR_DIVIDE, LT, LE, GT, GE, EQ, NE
    ADD, SUB, MUL, DIV = operators["add"], operators["sub"], operators["mul"], operators["div"]
    MATMUL, POW, NEG = operators["matmul"], operators["pow"], operators["neg"]
    REMAINDER, FLOOR_DIVIDE = operators["remainder"], operators["floor_divide"]
    LT, LE, GT, GE = operators["lt"], operators["le"], operators["gt"], operators["ge"]
    EQ, NE = operators["eq"], operators["ne"]


ADD = SUB = MUL = DIV = MATMUL = POW = NEG = REMAINDER = FLOOR_DIVIDE = LT = LE = GT = GE = EQ = NE = None


class Arithmetic(TensorBase):
    """Python's operators, wired straight to the entry for two operands."""

    __slots__ = ()
    __array_ufunc__ = None  # an ndarray on the left leaves the operation to us

    def __add__(self, other):
        return call2(ADD, self, other)

    def __radd__(self, other):
        return call2(ADD, other, self)

    def __sub__(self, other):
        return call2(SUB, self, other)

    def __rsub__(self, other):
        return call2(SUB, other, self)

    def __mul__(self, other):
        return call2(MUL, self, other)

    def __rmul__(self, other):
        return call2(MUL, other, self)

    def __truediv__(self, other):
        return call2(DIV, self, other)

    def __rtruediv__(self, other):
        return call2(DIV, other, self)

    def __floordiv__(self, other):
        return call2(FLOOR_DIVIDE, self, other)

    def __rfloordiv__(self, other):
        return call2(FLOOR_DIVIDE, other, self)

    def __mod__(self, other):
        return call2(REMAINDER, self, other)

    def __rmod__(self, other):
        return call2(REMAINDER, other, self)

    def __matmul__(self, other):
        return call2(MATMUL, self, other)

    def __rmatmul__(self, other):
        return call2(MATMUL, other, self)

    def __pow__(self, other, modulo=None):
        return call2(POW, self, other)

    def __rpow__(self, other, modulo=None):
        return call2(POW, other, self)

    def __neg__(self):
        return call1(NEG, self)

    def __pos__(self):
        return self

    def __lt__(self, other):
        return call2(LT, self, other)

    def __le__(self, other):
        return call2(LE, self, other)

    def __gt__(self, other):
        return call2(GT, self, other)

    def __ge__(self, other):
        return call2(GE, self, other)

    def __eq__(self, other):
        return call2(EQ, self, other)

    def __ne__(self, other):
        return call2(NE, self, other)

    def __hash__(self):
        if compiled:
            return address(self)  # noqa: F821 (declared in op.pxd)
        return id(self)
