"""Power series along a curve, one operator after another, from the rules for first derivatives alone.

Coefficient k of a series belongs to t**k; that of order 0 is the tensor's value.  An operator whose derivative does not
change along the curve maps coefficients to coefficients; a product of series has sums of products (Cauchy); the
solution of linear equations follows by substitution, since these are products, too.  All others obey y' = rule(x, x',
y): run on series, the operator's own rule gives y' up to order k - 1 where y is known as far, and so y up to order k.

A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed. (2008), chapter 13.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from retrograd.core import Op, Tensor, call, registry
from retrograd.core.vjp_rule import arguments
from retrograd.func.series_rules import SOLVES
from retrograd.levels.dual import output_tangents
from retrograd.ops.matrix_functions import PowerSeries


class Series(ABC):
    """The coefficients of a tensor, tensors of the level below or None for zero; tuples for several outputs."""

    __slots__ = ("coefficients",)

    def __init__(self, coefficients: list) -> None:
        self.coefficients = coefficients  # those computed so far

    @abstractmethod
    def needs(self, k: int) -> list[tuple["Series", int]]:
        """Return the series that must be known, and up to which order, for the next coefficient k."""

    @abstractmethod
    def coefficient(self, k: int) -> Any:
        """Return coefficient k, once all that it needs is known."""


def extend(series: Series, order: int) -> None:
    """Compute all coefficients up to an order, without recursion, since rules may be nested deeply."""
    pending = [(series, order)]
    while pending:
        s, k = pending[-1]
        following = len(s.coefficients)
        if following > k:
            pending.pop()
            continue
        missing = [(other, m) for other, m in s.needs(following) if len(other.coefficients) <= m]
        if missing:
            pending += missing
        else:
            s.coefficients.append(s.coefficient(following))


class ConstantSeries(Series):
    """A series whose coefficients are all known."""

    __slots__ = ()

    def needs(self, k: int) -> list[tuple[Series, int]]:
        """Return nothing."""
        return []

    def coefficient(self, k: int) -> None:
        """Return zero."""


class Derivative(Series):
    """The derivative of a series along the curve."""

    __slots__ = ("series",)

    def __init__(self, value: Tensor, series: Series) -> None:
        super().__init__([value])
        self.series = series

    def needs(self, k: int) -> list[tuple[Series, int]]:
        """Return the series up to one order more."""
        return [(self.series, k + 1)]

    def coefficient(self, k: int) -> Tensor | None:
        """Return (k + 1) times coefficient k + 1."""
        following: Tensor | None = self.series.coefficients[k + 1]
        return None if following is None else following * (k + 1)


class OutputSeries(Series):
    """One output of an operator that has several."""

    __slots__ = ("index", "parent")

    def __init__(self, parent: Series, index: int) -> None:
        super().__init__([parent.coefficients[0][index]])
        self.parent = parent
        self.index = index

    def needs(self, k: int) -> list[tuple[Series, int]]:
        """Return the series of all outputs."""
        return [(self.parent, k)]

    def coefficient(self, k: int) -> Tensor | None:
        """Return this output's coefficient."""
        return _select_output(self.parent.coefficients[k], self.index)


def _select_output(coefficients: tuple | None, index: int) -> Tensor | None:
    return None if coefficients is None else coefficients[index]


# ------------------------------------------------------------------------------------------- results of operators


class Call(NamedTuple):
    """One call of an operator: operands and their series (None if constant), params and result."""

    op: Op
    operands: tuple
    series: tuple[Series | None, ...]
    params: dict
    out: Any

    @property
    def varying(self) -> list[int]:
        """The indices of the operands that vary."""
        return [i for i, s in enumerate(self.series) if s is not None]

    def names(self) -> list[str]:
        """The declared name of each operand."""
        return [self.op.schema.inputs[min(i, self.op.last)].name for i in range(len(self.operands))]

    def coefficients_at(self, k: int, *, without: int | None = None) -> tuple:
        """Return the operands' coefficients k."""
        return tuple([None if s is None or i == without else s.coefficients[k] for i, s in enumerate(self.series)])

    def derivative(self, tangents: tuple, out: Any) -> Any:
        """Return the operator's derivative at the start of the curve; None (zero) without tangents."""
        if all(t is None for t in tangents):
            return None
        return output_tangents(self.op, self.operands, tangents, out, self.params)


class CallSeries(Series):
    """The result of a call; coefficient k needs the operands' coefficients up to k."""

    __slots__ = ("call",)

    def __init__(self, op_call: Call) -> None:
        super().__init__([op_call.out])
        self.call = op_call

    def needs(self, k: int) -> list[tuple[Series, int]]:
        """Return the operands up to the same order."""
        return [(s, k) for s in self.call.series if s is not None]


class Affine(CallSeries):
    """The result of an operator whose derivative is constant along the curve."""

    __slots__ = ()

    def coefficient(self, k: int) -> Any:
        """Return the derivative along the operands' coefficients."""
        return self.call.derivative(self.call.coefficients_at(k), self.call.out)


class Product(CallSeries):
    """The result of an operator that is linear in each varying operand."""

    __slots__ = ()

    def coefficient(self, k: int) -> Tensor | None:
        """Return the sum of all products of coefficients whose orders add up to k."""
        op, operands, series, params, _ = self.call
        varying = self.call.varying
        columns = [series[i].coefficients for i in varying]  # type: ignore[union-attr]
        total = None
        for orders in _weak_compositions(k, len(varying)):
            factors = list(operands)
            for i, column, order in zip(varying, columns, orders, strict=True):
                factors[i] = column[order]
            if all(factors[i] is not None for i in varying):
                total = _add_terms(total, run_operator(op, tuple(factors), params))
        return total


def run_operator(op: Op, operands: tuple, params: dict) -> Any:
    """Run `call`, or the faster path for operators without params."""
    return op(*operands) if op.simple and op.simple == len(operands) else call(op, operands, params)


def _weak_compositions(total: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to write a number as a sum of `count` numbers."""
    if count == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _weak_compositions(total - first, count - 1):
            yield (first, *rest)


def _add_terms(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a + b


class Solution(CallSeries):
    """The result of an operator that solves equations E(b, y) = a for y, E linear in y and in b.

    E(b[0], y[k]) is a[k] minus all E(b[j], y[k - j]); and the derivative along b, where `out` is any y, is the solution
    for -E(b', y).
    """

    __slots__ = ()

    def coefficient(self, k: int) -> Tensor | None:
        """Return the coefficient by substitution."""
        right = self.call.names().index(SOLVES[self.call.op.name])
        total: Tensor | None = self.call.derivative(self.call.coefficients_at(k), self.call.out)
        for j in range(1, k):
            if self.coefficients[k - j] is not None:
                term = self.call.derivative(self.call.coefficients_at(j, without=right), self.coefficients[k - j])
                total = _add_terms(total, term)
        return total


class MatrixFunction(CallSeries):
    """The result of a function of matrices that is a power series, such as the exponential.

    Triangular matrices with the operand's coefficients in their blocks, a[j - i] at (i, j), multiply as series do; so
    the function of such a matrix has the result's coefficients in its blocks.
    """

    __slots__ = ()

    def coefficient(self, k: int) -> Tensor:
        """Return the last block of the first row."""
        op, (matrix,), (series,), params, _ = self.call
        zero, cat, narrow = registry["zeros_like"](matrix), registry["cat"], registry["narrow"]
        found = [zero if c is None else c for c in series.coefficients[: k + 1]]  # type: ignore[union-attr]
        rows = [cat([zero] * i + found[: k + 1 - i], -1) for i in range(k + 1)]
        first = narrow(run_operator(op, (cat(rows, -2),), params), -2, 0, matrix.shape[-1])
        block: Tensor = narrow(first, -1, k * matrix.shape[-1], matrix.shape[-1])
        return block


class Runner(Protocol):
    """The interface that runs rules on series: see `JetLevel.run_rule`."""

    def run_rule(self, op_call: Call, parent: Series) -> Any:
        """Return the derivative of a call's result, a tensor or a tuple of them; None stands for zero."""


class Integral(CallSeries):
    """The result of any other operator: its rule runs on series, and gives the derivative of the result."""

    __slots__ = ("derivatives", "runner")

    def __init__(self, op_call: Call, runner: Runner) -> None:
        super().__init__(op_call)
        self.runner = runner
        self.derivatives: list[tuple[Tensor | None, Series | None]] = []  # value and series for each output

    def needs(self, k: int) -> list[tuple[Series, int]]:
        """Return the derivatives, which exist after the rule has run."""
        return super().needs(1) if k == 1 else [(s, k - 1) for _, s in self.derivatives if s is not None]

    def coefficient(self, k: int) -> Any:
        """Return y[k] from k y[k] = y'[k - 1]."""
        if k == 1:
            found = self.runner.run_rule(self.call, self)
            self.derivatives = found if isinstance(self.call.out, tuple) else [found]
        parts = tuple([_integrate(value, s, k) for value, s in self.derivatives])
        return parts if isinstance(self.call.out, tuple) else parts[0]


def _integrate(value: Tensor | None, series: Series | None, k: int) -> Tensor | None:
    if k == 1:
        return value
    coefficient: Tensor | None = None if series is None else series.coefficients[k - 1]
    return None if coefficient is None else coefficient / k


def make_series(op_call: Call, runner: Runner) -> Series:
    """Return the series of a call's result."""
    definition, varying = op_call.op.definition, op_call.varying
    if definition.jvp is not None:
        return Integral(op_call, runner)
    if issubclass(definition, PowerSeries):
        return MatrixFunction(op_call)
    names, linear = op_call.names(), definition.linear.replace(",", " ").split()
    if "," in definition.linear or all(
        _operands_in_derivative(op_call.op, names, i).isdisjoint(varying) for i in varying
    ):
        return Affine(op_call)
    if op_call.op.name in SOLVES:
        return Solution(op_call)
    return Product(op_call) if all(names[i] in linear for i in varying) else Integral(op_call, runner)


def _operands_in_derivative(op: Op, names: list[str], index: int) -> set[int]:
    """Return the operands that the derivative by one of them depends on, from its rule's arguments."""
    definition, everything = op.definition, set(range(len(names)))
    if names[index] in definition.linear.split():
        return everything - {index}
    rule = getattr(definition, f"jvp_{names[index]}", None) or getattr(op.rules[min(index, op.last)], "fn", None)
    results = {"out", *op.schema.outputs}.difference(names)
    if rule is None or not results.isdisjoint(arguments(rule)):
        return everything
    return {i for i, name in enumerate(names) if name in arguments(rule)}
