"""Vjp rules: the derivative of an operator for one input, and what a node has to save for it."""

# The source of a rule's argument: an input, all outputs, an input's aval, a param, or one of several outputs.
INPUT, OUT, AVAL, PARAM, ONE_OUT = 0, 1, 2, 3, 4
_FIELDS = ("count", "depends", "fn", "keys", "kinds", "needs_avals", "needs_out", "needs_values")


class VjpRule:
    """The vjp rule of one input. The names of its parameters determine what a node saves.

    `g` is the cotangent, `out` the output. The name of an input stands for its value, `<input>_aval` for its shape and
    dtype only, the name of a param for the param, and the name of one of several outputs for that output.
    """

    __slots__ = _FIELDS

    def __init__(self, fn, inputs, params, owner, outputs=()):
        self.fn = fn
        names = arguments(fn)
        sources = [_source(name, inputs, params, owner, outputs) for name in names]
        self.kinds = tuple([kind for kind, _ in sources])
        self.keys = tuple([key for _, key in sources])
        self.count = len(sources)
        self.needs_values = sum({1 << key for kind, key in sources if kind == INPUT})
        self.needs_avals = sum({1 << key for kind, key in sources if kind == AVAL})
        members = sum({1 << key for kind, key in sources if kind == ONE_OUT})
        self.needs_out = -1 if OUT in self.kinds else members  # bit i for output i; -1 for all
        self.depends = False  # whether the result depends on the input itself: set by the operator

    def apply(self, g, inputs, out, params):
        """Return the rule's result for g, a cotangent or tangent, and the values of a call: a list input is one."""
        args = [g]
        for i in range(self.count):
            kind = self.kinds[i]
            key = self.keys[i]
            if kind == INPUT:
                args.append(inputs[key])
            elif kind == OUT:
                args.append(out)
            elif kind == ONE_OUT:
                args.append(out[key])
            else:
                args.append(params[key] if kind == PARAM else inputs[key].aval)
        return self.fn(*args)

    def replaced(self, fn):
        """Return a rule with the same arguments that is computed by another function."""
        new = VjpRule.__new__(VjpRule)
        for name in _FIELDS:
            setattr(new, name, getattr(self, name))
        new.fn = fn
        return new


def arguments(fn):
    """Return the names of a rule's arguments after the first, `g` or `t`."""
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
