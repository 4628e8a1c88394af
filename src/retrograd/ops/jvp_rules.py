"""The tangent of an operator's result, from the operator's forward rules.

An operator is differentiated by its own rule `jvp`, by applying it to the tangents where it is linear, by its rules
`jvp_<input>`, or by the rule that its family derives.
"""

from functools import cache

from retrograd.core import operator_named
from retrograd.core.dispatch import call_fast
from retrograd.core.vjp_rule import VjpRule


def tangent(op, primals, tangents, out, params):
    """Return the tangent of an operator's result, or a tuple of one for each of several; None stands for zero."""
    definition = op.definition
    if definition.jvp is not None:
        return definition.jvp(op, primals, tangents, out, params)
    if "," in definition.linear:
        return call_fast(op, _with_tangents(op, primals, tangents), params)
    total = None
    for index, t in enumerate(tangents):
        if t is not None:
            term = _term(op, index, t, primals, out, params)
            total = term if total is None else _sum_of_terms(total, term)
    return total


def _with_tangents(op, primals, tangents):
    """Return the inputs, with tangents (or zeros) in place of those that the operator is linear in."""
    linear = op.definition.linear.replace(",", " ").split()
    return tuple([
        p if _input_name(op, i) not in linear else _zero(p) if t is None else t
        for i, (p, t) in enumerate(zip(primals, tangents, strict=True))
    ])


def _term(op, index, t, primals, out, params):
    """Return the term of the tangent that comes from one input."""
    rule = _rules(op)[min(index, op.last)]
    if rule is LINEAR:
        return call_fast(op, (*primals[:index], t, *primals[index + 1 :]), params)
    if rule is not None:
        return rule.apply(t, group_inputs(op, primals), out, params)
    if op.definition.derived_jvp is not None:
        return op.definition.derived_jvp(op, index, t, primals, out, params)
    raise no_rule(op, index)


LINEAR = object()


@cache
def _rules(op):
    """Return for each input LINEAR, its rule `jvp_<input>`, or None."""
    names, params = [p.name for p in op.schema.inputs], [p.name for p in op.schema.params]
    rules = [getattr(op.definition, f"jvp_{name}", None) for name in names]
    return tuple([
        LINEAR if name in op.definition.linear.split()
        else fn and VjpRule(fn, names, params, op.name, op.schema.outputs)
        for name, fn in zip(names, rules, strict=True)
    ])  # fmt: skip


def group_inputs(op, args):
    """Return a call's flat inputs with those of a list as one tuple."""
    return (*args[: op.last], args[op.last :]) if op.variadic else args


def no_rule(op, index):
    """Return the error for an input without a forward rule: a silent zero would be wrong."""
    name = _input_name(op, index)
    return NotImplementedError(f"{op.name}: no forward derivative is defined with respect to {name!r}")


def _input_name(op, index):
    return op.schema.inputs[min(index, op.last)].name


def _sum_of_terms(a, b):
    """Return the sum of two tangents, of each output if there are several; None is zero."""
    if isinstance(a, tuple):
        return tuple(_sum_of_terms(x, y) for x, y in zip(a, b, strict=True))
    return b if a is None else a if b is None else a + b


def _zero(operand):
    """Return zeros like an operand; a Python number stays a number, so it promotes in the same way."""
    return operator_named("zeros_like")(operand) if hasattr(operand, "dtype") else type(operand)(0)
