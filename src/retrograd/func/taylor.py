"""Taylor mode: derivatives of any order along a curve, at a cost polynomial in the order."""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import optree

from retrograd.core import Level, Op, Tensor, at, current, registry
from retrograd.core.dtype import is_differentiable
from retrograd.core.level import values_at, wrap_result
from retrograd.core.tensor import make
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func.reverse import check_outputs
from retrograd.func.series import (
    Call,
    ConstantSeries,
    Derivative,
    OutputSeries,
    Series,
    extend,
    make_series,
    run_operator,
)
from retrograd.func.series_rules import FORMULAS
from retrograd.func.vjp_run import unwrap_tree
from retrograd.levels import outputs, value_at
from retrograd.levels.dual import output_tangents
from retrograd.levels.outer_grads import OuterGradLevel
from retrograd.ops.create import as_tensor


class JetLevel(OuterGradLevel):
    """A tensor's tag is its series along the curve, up to an order; None is a constant.

    For the program's operators, all coefficients are computed immediately.  For operators that derivative rules call,
    only the coefficients that are needed are computed, and equal calls in several rules share one series.  So sin and
    cos, each in the other's derivative, are two series and not a tree.
    """

    own_mode, forward_mode = False, True
    grads_differ = True

    def __init__(self, order: int, function: Callable | None = None) -> None:
        self.order = order
        self.function = function
        self._cache: Any = None  # while rules run: their results by key, with the objects whose ids are in the keys
        self._integrals: list[Any] = []  # the series whose rules have run

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """Run the operator on the values, and on the series."""
        if self._cache is not None:
            return self._process_in_rule(op, args, params)
        op_call = self._call(op, args, params)
        if not op_call.varying:
            return wrap_result(self, op_call.out, None)
        series = make_series(op_call, self)
        self._cache = {}
        try:
            extend(series, self.order)
        finally:
            self._cache = None
            for integral in self._integrals:  # the derivative of exp or tanh depends on the result itself: a cycle
                integral.derivatives = []
            self._integrals = []
        return self._wrap_outputs(ConstantSeries(series.coefficients))

    def _call(self, op: Op, args: tuple, params: dict) -> Call:
        operands = values_at(self, args)
        tags = tuple([a.tag if isinstance(a, Tensor) and a.level is self else None for a in args])
        return Call(op, operands, tags if op.differentiable else (), params, run_operator(op, operands, params))

    def _process_in_rule(self, op: Op, args: tuple, params: dict) -> Any:
        if op.name in FORMULAS:
            with at(self, current().grad_enabled):
                return FORMULAS[op.name](*args, **params)
        # Rules of several operators often make the same call, such as cos in the rule of sin. One series serves all.
        key = self._key(op, args, params)
        if key not in self._cache:
            op_call = self._call(op, args, params)
            if op_call.varying:
                self._cache[key] = self._wrap_outputs(make_series(op_call, self)), op_call
            else:
                self._cache[key] = wrap_result(self, op_call.out, None), op_call
        return self._cached_result(key)

    def _cached_result(self, key: Hashable) -> Any:
        """Return cached results as new tensors, since a rule may write to them."""
        return outputs(self._cache[key][0], lambda o: make(o.value, self, o.tag))

    def _wrap_outputs(self, series: Series) -> Any:
        """Return the outputs of a call at this level, each with its series."""
        out = series.coefficients[0]
        if not isinstance(out, tuple):
            return self.tensor(out, series)
        return tuple(
            [self.tensor(o, OutputSeries(series, i)) if isinstance(o, Tensor) else o for i, o in enumerate(out)]
        )

    def tensor(self, value: Tensor, series: Series) -> Tensor:
        """Return a tensor of this level; a constant has no series."""
        if isinstance(series, OutputSeries) and len(series.parent.coefficients) > self.order:
            extend(series, self.order)
            series = ConstantSeries(series.coefficients)
        return make(value, self, series if self._varies(series, 1) and is_differentiable(value.dtype) else None)

    def _varies(self, series: Series, k: int) -> bool:
        """Return whether coefficients from k on may be nonzero."""
        return len(series.coefficients) <= self.order or any(c is not None for c in series.coefficients[k:])

    def run_rule(self, op_call: Call, result_series: Series) -> Any:
        """Return value and series of each output's derivative along the curve; None stands for zero."""
        op, operands, series, params, _ = op_call
        self._integrals.append(result_series)
        args = tuple([x if s is None else make(x, self, s) for x, s in zip(operands, series, strict=True)])
        tangents = tuple([None if s is None else self._derivative(s) for s in series])
        key = self._key(op, args, params)
        self._cache.setdefault(key, (self._wrap_outputs(result_series), op_call))
        with at(self, current().grad_enabled):
            dots = output_tangents(op, args, tangents, self._cached_result(key), params)
        return [self._value_and_series(d) for d in dots] if isinstance(dots, tuple) else self._value_and_series(dots)

    def _value_and_series(self, dot: Tensor | None) -> tuple[Tensor | None, Series | None]:
        if isinstance(dot, Tensor) and dot.level is self:
            return dot.value, dot.tag
        return dot, None

    def _derivative(self, series: Series) -> Tensor:
        """Return the derivative of a series along the curve, always the same object."""
        key = id(series)
        if key not in self._cache:
            value, first = series.coefficients[:2]
            first = registry["zeros_like"](value) if first is None else first
            derivative = Derivative(first, series) if self._varies(series, 2) else None
            self._cache[key] = make(first, self, derivative), series
        tensor: Tensor = self._cached_result(key)
        return tensor

    def _key(self, op: Op, args: tuple, params: dict) -> Hashable:
        return op, tuple([self._operand_key(a) for a in args]), _hashable(params)

    def _operand_key(self, a: Any) -> Hashable:
        if isinstance(a, Tensor):
            return id(a.tag) if a.level is self and a.tag is not None else id(value_at(self, a))
        return _hashable(a)


def _hashable(x: Any) -> Hashable:
    """Return a hashable key that is equal for equal params; objects that can't be compared equal themselves only."""
    if isinstance(x, (tuple, list)):
        return type(x), tuple([_hashable(m) for m in x])
    if isinstance(x, dict):
        return tuple([(k, _hashable(m)) for k, m in x.items()])
    if isinstance(x, slice):
        return slice, _hashable((x.start, x.stop, x.step))
    return (type(x), x) if isinstance(x, (bool, int, float, complex, str)) else id(x)


def jet(func: Callable, primals: Sequence, series: Sequence, factorial_scaled: bool = True) -> tuple[Any, Any]:
    """Return the output of `func` along a curve x(t), and its derivatives by t up to any order, in one forward pass.

    `primals` has the arguments x(0), pytrees of floating tensors, and `series` for each of them its derivatives x'(0),
    x''(0), ..., equally many: trees like it, in which the number 0 stands for zeros.  The result is (output,
    derivatives), where derivatives is a tree like the output with a list at each leaf: zeros where the output does not
    depend on t.  Without `factorial_scaled` they are Taylor coefficients, derivatives divided by k!, in both.

    Every operator with a forward derivative has those of all orders, from its rule for the first.

    Raises ValueError for series of different lengths, or of other shapes or trees than the primals, TypeError for
    primals and terms that are not floating or of different dtypes, and RuntimeError for outputs that are no tensors.

    J. Bettencourt, M. J. Johnson and D. Duvenaud, Taylor-Mode Automatic Differentiation for Higher-Order Derivatives in
    JAX (2019).

    >>> import retrograd as rg
    >>> rg.func.jet(lambda x: x**3, (rg.tensor(2.0),), ([rg.tensor(1.0), 0, 0],))
    (tensor(8.), [tensor(12.), tensor(12.), tensor(6.)])
    """
    leaves, spec = _check_primals(primals)
    order = _series_order(primals, series)
    terms = [_coefficients(spec, [s[k] for s in series], k + 1, leaves, factorial_scaled) for k in range(order)]
    with JetLevel(order, func) as level:
        curves = [ConstantSeries([x, *cs]) for x, *cs in zip(leaves, *terms, strict=True)]
        args = [level.tensor(x, c) for x, c in zip(leaves, curves, strict=True)]
        out = func(*optree.tree_unflatten(spec, args))
    value = unwrap_tree(level, out)
    check_outputs("jet", value)
    return value, optree.tree_map(lambda o: _derivatives(level, o, factorial_scaled), out)


def _check_primals(primals: Sequence) -> tuple[list[Tensor], Any]:
    if not isinstance(primals, (tuple, list)) or not primals:
        raise ValueError(
            f"jet: primals must be a tuple with an entry for each argument of the function, got {describe(primals)}"
        )
    args: Any = tuple(primals)
    leaves, spec = optree.tree_flatten(args)
    tensors = [as_tensor(leaf) for leaf in leaves]
    for x in tensors:
        if not is_differentiable(x.dtype):
            raise TypeError(f"jet: primals must be floating, got {x.aval}; convert it with .to(dtype) first")
    return tensors, spec


def _series_order(primals: Sequence, series: Sequence) -> int:
    if not isinstance(series, (tuple, list)) or len(series) != len(primals):
        count = f"{len(series)} entries" if isinstance(series, (tuple, list)) else type(series).__name__
        raise ValueError(f"jet: series must be a tuple with a list for each of the {len(primals)} primals, got {count}")
    for i, terms in enumerate(series):
        if not isinstance(terms, (tuple, list, Tensor)):
            raise ValueError(f"jet: series {i} must be a list of derivatives, got {type(terms).__name__}")
    lengths = [len(terms) for terms in series]
    if len(set(lengths)) > 1:
        raise ValueError(f"jet: all series must have as many terms, got {', '.join(map(str, lengths))}")
    return lengths[0]


def _coefficients(spec: Any, given: list, k: int, leaves: list[Tensor], scaled: bool) -> list[Tensor | None]:
    """Return coefficient k of each leaf of the primals."""
    try:
        terms = spec.flatten_up_to(tuple(given))
    except ValueError as error:
        raise ValueError(f"jet: the derivatives of order {k} must be trees like the primals: {error}") from None
    return [_coefficient(term, k, x, scaled) for term, x in zip(terms, leaves, strict=True)]


def _coefficient(term: Any, k: int, x: Tensor, scaled: bool) -> Tensor | None:
    if isinstance(term, (int, float)) and term == 0:
        return None
    t = term if isinstance(term, Tensor) else as_tensor(term, dtype=x.dtype)
    if t.shape != x.shape:
        raise ValueError(f"jet: a derivative of order {k} has shape {t.shape}, but its primal {x.shape}")
    if t.dtype != x.dtype:
        raise TypeError(f"jet: a derivative of order {k} is {t.dtype}, but its primal {x.dtype}")
    return t / float(math.factorial(k)) if scaled and k > 1 else t


def _derivatives(level: Level, out: Tensor, scaled: bool) -> list[Tensor]:
    """Return an output's derivatives from its coefficients, or the coefficients."""
    value = value_at(level, out)
    varies = out.level is level and out.tag is not None
    found = out.tag.coefficients[1:] if varies else [None] * level.order  # type: ignore[attr-defined]
    return [_scale(value, c, k if scaled else 0) for k, c in enumerate(found, 1)]


def _scale(value: Any, coefficient: Tensor | None, k: int) -> Tensor:
    if coefficient is None:
        zeros: Tensor = registry["zeros_like"](value)
        return zeros
    return coefficient * float(math.factorial(k)) if k > 1 else coefficient


suggest_in_module(globals())
