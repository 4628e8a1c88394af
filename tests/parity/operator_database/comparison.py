"""Run one sample input in both libraries, and compare the results by aspect."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

import retrograd as rg

from ..exact import EXACT, exact
from .conversion import UNAVAILABLE_DTYPES, Converter, UnavailableError, member, rebind
from .entries import DTYPES, FREE_ORDER, FREE_SIGNS, counterpart, draws, entries, reduced
from .sides import (
    Side,
    array,
    attempt,
    batch,
    difference_quotients,
    flat,
    gradients,
    in_double,
    in_place,
    inner_products,
    into,
    name_of,
    only_tensors,
    repeated,
    seed,
    tangents,
    tensor_of,
    unchanged,
    wide_quotients,
)

ASPECTS = (
    "error", "value", "dtype", "shape", "contiguity", "aliasing", "requires_grad", "gradient", "second gradient",
    "jvp", "vmap", "inplace", "out",
)  # fmt: skip
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, OverflowError)
QUOTIENTS = {difference_quotients: 1e-6, wide_quotients: 1e-8}  # with their errors in double precision
TOLERANCE = {
    "float64": 1e-9, "complex128": 1e-9, "float32": 1e-4, "complex64": 1e-4, "float16": 1e-2, "bfloat16": 3e-2,
}  # fmt: skip
INEXACT = "fcV"  # kinds of dtypes; V is bfloat16


@dataclass
class Report:
    """The results for a sample: the aspects that were compared, and the differences by aspect.

    `closer` has the aspects in which PyTorch's results, of half or single precision, are further than ours from
    PyTorch's results in double precision.
    """

    tried: list[str] = field(default_factory=list)
    closer: list[str] = field(default_factory=list)
    differences: dict[str, str] = field(default_factory=dict)

    def check(self, aspect: str, compare: Callable[[], str | None]) -> None:
        """Record whether an aspect differs; an exception is a difference too."""
        self.tried.append(aspect)
        try:
            message = compare()
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        if message is not None:
            self.differences[aspect] = message[:300]


class Comparison:
    """One sample of one entry in both libraries, and in PyTorch in double precision."""

    def __init__(self, name: str, entry: Any, function: Callable, sample: Any) -> None:
        wrapper, process = entry.gradcheck_wrapper, sample.output_process_fn_grad or unchanged
        self.name, self.entry, self.report = name, entry, Report()
        self.random = draws(name, sample)
        self.theirs = Side(torch, entry.op, sample, wrapper, process, unchanged)
        self.ours = Side(rg, function, sample, rebind(wrapper), rebind(process), Converter().convert)
        self.make_wide = lambda: Side(torch, entry.op, sample, wrapper, process, in_double)
        self.tied = name in FREE_ORDER and has_equals(self.theirs, FREE_ORDER[name])
        self.tolerance = max([TOLERANCE.get(name_of(t.dtype), 0.0) for t in self.theirs.tensors], default=0.0)

    def run(self) -> Report:
        """Compare every aspect that applies."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            self.results()
            refused = self.report.tried == ["error"]
            if not refused and not self.tied and not self.report.differences.keys() & {"value", "shape"}:
                self.derivatives()
                self.batches()
                self.writes()
        return self.report

    @property
    def coarse(self) -> bool:
        """Return whether an operand is bfloat16: its samples have zeros, where PyTorch's second gradients are NaN."""
        return any(t.dtype == torch.bfloat16 for t in self.theirs.tensors)

    @cached_property
    def wide(self) -> Side:
        """Return PyTorch's function with the sample in double precision."""
        return self.make_wide()

    @cached_property
    def wide_gradients(self) -> tuple[list, list | None]:
        """Return first and second gradients of PyTorch in double precision."""
        return gradients(self.wide)

    def is_exact(self, theirs: list, found: list) -> bool:
        """Return whether values of a function of one tensor that differ from PyTorch's agree with mpmath."""
        if self.name not in EXACT or len(self.theirs.tensors) != 1 or len(found) != 1:
            return False
        (x,), (expected,) = self.theirs.tensors, map(array, theirs)
        truth = [exact(self.name, "value", (v,), {}) for v in array(x).ravel().tolist()]
        known = np.array([v is not None for v in truth]).reshape(tuple(x.shape))
        values = np.array([0.0 if v is None else float(v) for v in truth]).reshape(tuple(x.shape))
        return far_apart([torch.from_numpy(np.where(known, values, expected))], found, self.tolerance) is None

    def numbers(self, aspect: str, theirs: list, ours: Callable[[], list], again: Callable[[Side], list]) -> None:
        """Compare tensors; differing ones with exact values, or with PyTorch's result in double precision."""

        def compare() -> str | None:
            found = ours()
            tolerance = self.tolerance * (10 if aspect in ("gradient", "second gradient", "jvp") else 1)
            message = far_apart(theirs, found, tolerance)
            if message is not None and aspect in ("value", "vmap", "out") and self.is_exact(theirs, found):
                self.report.closer.append(aspect)
                return None
            if message is None or not self.low_precision(theirs):
                return message
            truth, refused = attempt(lambda: again(self.wide))
            if refused is not None or far_apart(truth, found, tolerance, overflow=True):
                return message
            self.report.closer.append(aspect)
            return None

        self.report.check(aspect, compare)

    def slopes(self, aspect: str, theirs: list, ours: Callable[[], list], again: Callable, along: Callable) -> None:
        """Compare derivatives; differing ones are compared with difference quotients of PyTorch's function."""
        self.numbers(aspect, theirs, ours, again)
        if aspect in self.report.differences and any(
            self.closer_to(quotients, allowed, theirs, ours, along) for quotients, allowed in QUOTIENTS.items()
        ):
            del self.report.differences[aspect]
            self.report.closer.append(aspect)

    def closer_to(self, quotients: Callable, allowed: float, theirs: list, ours: Callable, along: Callable) -> bool:
        """Return whether ours equal difference quotients in double precision, and PyTorch's are further away."""
        truth, refused = attempt(lambda: along(self.wide, quotients(self.wide)))
        own, refusal = attempt(lambda: along(self.ours, ours()))
        if refused or refusal or far_apart(truth, own, max(allowed, 10 * self.tolerance)):
            return False
        return distance(truth, along(self.wide, theirs)) > 10 * max(distance(truth, own), allowed)

    def low_precision(self, theirs: list) -> bool:
        """Return whether an operand or a result has less than double precision."""
        tensors = [*self.theirs.tensors, *(t for t in theirs if t is not None)]
        return any(name_of(t.dtype) in ("float16", "bfloat16", "float32", "complex64") for t in tensors)

    # ------------------------------------------------------------------------------------------------ results

    def results(self) -> None:
        """Compare errors, values and other properties of the results."""
        expected, refused = attempt(self.theirs)
        if any(isinstance(v, torch.Tensor) and v.dtype in UNAVAILABLE_DTYPES for v in flat(expected)):
            raise UnavailableError("a result of a dtype that NumPy lacks")
        found, refusal = attempt(self.ours)
        self.report.check("error", lambda: differing_errors(refused, refusal))
        if refused or refusal:
            return
        theirs, ours = flat(expected), flat(found)
        self.report.check("shape", lambda: differing_kinds(theirs, ours))
        if "shape" in self.report.differences:
            return
        pairs = [(a, b) for a, b in zip(theirs, ours, strict=True) if isinstance(a, torch.Tensor)]
        self.report.check("shape", lambda: first_difference(pairs, lambda t: tuple(t.shape)))
        self.report.check("dtype", lambda: first_difference(pairs, lambda t: name_of(t.dtype)))
        self.report.check("requires_grad", lambda: first_difference(pairs, lambda t: bool(t.requires_grad)))
        self.report.check("aliasing", lambda: different_aliasing(pairs, self.theirs.tensors, self.ours.tensors))
        if "shape" not in self.report.differences:
            self.report.check("contiguity", lambda: lost_contiguity(pairs))
            self.values(expected, found)

    def values(self, expected: Any, found: Any) -> None:
        """Compare the values, where they are defined."""
        if self.random:
            return
        if self.name in FREE_SIGNS:
            theirs = self.theirs.defined(expected)
            self.numbers("value", theirs, lambda: self.ours.defined(found), lambda side: side.defined(side()))
            return
        if self.tied:
            dim = FREE_ORDER[self.name]
            theirs = named(self.theirs, expected, dim)
            self.report.check("value", lambda: far_apart(theirs, named(self.ours, found, dim), 0.0))
            return
        pairs = zip(flat(expected), flat(found), strict=True)
        others = [(a, b) for a, b in pairs if not isinstance(a, torch.Tensor) and not equal(a, b)]
        if others:
            self.report.check("value", lambda: f"{others[0][0]!r}, ours {others[0][1]!r}")
            return
        theirs = list(only_tensors(expected))
        self.numbers("value", theirs, lambda: list(only_tensors(found)), lambda side: list(only_tensors(side())))

    # -------------------------------------------------------------------------------------------- derivatives

    def derivatives(self) -> None:
        """Compare first and second gradients and the derivative along a direction."""
        if self.random or not self.theirs.leaves:
            return
        (first, second), refused = _pair(attempt(lambda: gradients(self.theirs)))
        if refused is None and any(g is not None for g in first):
            (own_first, own_second), refusal = _pair(attempt(lambda: gradients(self.ours)))
            if refusal is not None:
                self.report.check("gradient", lambda: f"ours raises {type(refusal).__name__}: {refusal}")
            else:
                again = lambda side: self.wide_gradients[0]  # noqa: E731
                self.slopes("gradient", first, lambda: own_first, again, inner_products)
                if second is not None and not self.coarse and any(g is not None and g.numel() for g in second):
                    self.numbers(
                        "second gradient",
                        second,
                        lambda: present(own_second),
                        lambda side: present(self.wide_gradients[1]),
                    )
        along, refused = attempt(lambda: tangents(self.theirs))
        if refused is None:
            self.slopes("jvp", along, lambda: tangents(self.ours), tangents, lambda side, found: found)

    # ------------------------------------------------------------------------------------- batches and writes

    def batches(self) -> None:
        """Compare `vmap` over two equal examples, stacked along the first dimension, with PyTorch's."""
        tensors = self.theirs.tensors
        chosen = [i for i, t in enumerate(tensors) if t.is_floating_point() or t.is_complex()] or range(len(tensors))
        if chosen and not self.random:
            expected, refused = attempt(lambda: batch(self.theirs, list(chosen)))
            if refused is None:
                self.examples(expected, list(chosen))

    def examples(self, expected: list, chosen: list[int]) -> None:
        """Compare the results of `vmap`; those that differ, with what PyTorch's function gives for one example."""
        self.numbers("vmap", expected, lambda: batch(self.ours, chosen), lambda side: batch(side, chosen))
        if "vmap" in self.report.differences:
            alone, refused = attempt(lambda: repeated(self.theirs, chosen))
            own, refusal = attempt(lambda: batch(self.ours, chosen))
            if not refused and not refusal and not far_apart(alone, own, self.tolerance):
                del self.report.differences["vmap"]
                self.report.closer.append("vmap")

    def writes(self) -> None:
        """Compare the in-place variant and `out=`."""
        theirs, ours, entry = self.theirs, self.ours, self.entry
        if entry.inplace_variant is not None and theirs.tensors and theirs.args[0] is theirs.tensors[0]:
            name = getattr(entry.inplace_variant, "__name__", None)
            function = member(rg.Tensor, name) if name in dir(torch.Tensor) else rebind(entry.inplace_variant)
            wanted, refused = attempt(lambda: in_place(theirs, entry.inplace_variant))
            found, refusal = attempt(lambda: in_place(ours, function))
            self.report.check("inplace", lambda: differing_errors(refused, refusal))
            if refused is None and refusal is None and not self.random:
                self.numbers("inplace", wanted, lambda: found, lambda side: in_place(side, entry.inplace_variant))
        like, _ = attempt(theirs)
        if entry.supports_out and isinstance(like, torch.Tensor) and not self.random:
            wanted, refused = attempt(lambda: into(theirs, like))
            if refused is None:
                self.numbers("out", wanted, lambda: into(ours, like), lambda side: into(side, in_double(like)))


def _pair(outcome: tuple[Any, Exception | None]) -> tuple[tuple, Exception | None]:
    found, refused = outcome
    return (found or ([], None)), refused


def present(gradients: list | None) -> list:
    """Return the second gradients; an error if the first ones do not require grad."""
    assert gradients is not None, "the first gradients do not require grad"
    return gradients


# ----------------------------------------------------------------------------------------------- differences


def differing_errors(theirs: Exception | None, ours: Exception | None) -> str | None:
    """Return whether only one library refuses, or ours does so with an internal error."""
    if theirs is None and ours is not None:
        return f"ours raises {type(ours).__name__}: {ours}"
    if theirs is not None and ours is None:
        return f"PyTorch raises {type(theirs).__name__}: {theirs}"
    if ours is not None and not isinstance(ours, REFUSALS):
        return f"an internal error, {type(ours).__name__}: {ours}"
    return None


def differing_kinds(theirs: list, ours: list) -> str | None:
    """Return whether the results differ in number, or in which of them are tensors."""
    kinds = [isinstance(v, torch.Tensor) for v in theirs], [isinstance(v, rg.Tensor) for v in ours]
    return None if kinds[0] == kinds[1] else f"{len(theirs)} results {kinds[0]}, ours {len(ours)} {kinds[1]}"


def equal(theirs: Any, ours: Any) -> bool:
    """Return whether two results that are not tensors are equivalent."""
    if isinstance(theirs, torch.dtype):
        return name_of(theirs) == name_of(ours)
    if isinstance(theirs, (float, complex)) and isinstance(ours, (float, complex)):
        return bool(np.isclose(theirs, ours, rtol=1e-4, equal_nan=True))
    return type(theirs) is type(ours) and theirs == ours


def first_difference(pairs: list, of: Callable) -> str | None:
    """Return the first pair of tensors that differ."""
    return next((f"{of(a)}, ours {of(b)}" for a, b in pairs if of(a) != of(b)), None)


def lost_contiguity(pairs: list) -> str | None:
    """Return which result is contiguous in PyTorch only, so that `.view(-1)` works there and fails here."""
    for theirs, ours in pairs:
        if theirs.is_contiguous() and not ours.is_contiguous():
            return f"shape {tuple(ours.shape)}: strides {theirs.stride()}, ours {ours.stride()}"
    return None


def different_aliasing(pairs: list, their_inputs: list, our_inputs: list) -> str | None:
    """Return which result shares memory with an input in one library only, or is a view in ours only."""
    for i, (theirs, ours) in enumerate(pairs):
        if ours._is_view() and not theirs._is_view():
            return f"result {i} is a view"  # `detach_()` refuses views, and a write would go to a base
        a = any(_shares(theirs, x) for x in their_inputs)
        b = any(np.shares_memory(array(ours), array(x)) for x in our_inputs)
        if theirs.numel() and a != b:
            return f"result {i} {'shares' if a else 'does not share'} the memory of an input"
    return None


def _shares(a: torch.Tensor, b: torch.Tensor) -> bool:
    return b.numel() > 0 and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def far_apart(theirs: list, ours: list, tolerance: float, overflow: bool = False) -> str | None:
    """Return the first pair of tensors whose values differ, relative to the largest value; None counts as zeros."""
    if len(theirs) != len(ours):
        return f"{len(theirs)} tensors, ours {len(ours)}"
    for expected, found in zip(theirs, ours, strict=True):
        if expected is None and found is None:
            continue
        a = array(expected) if expected is not None else np.zeros(tuple(found.shape))
        b = array(found) if found is not None else np.zeros(a.shape)
        if a.shape != b.shape:
            return f"shape {a.shape}, ours {b.shape}"
        if overflow and b.dtype.kind in INEXACT:
            a = a.astype(b.dtype)
        allowed = max(tolerance, TOLERANCE.get(str(a.dtype), 0.0))
        if message := differing_values(a, b, allowed):
            return message
    return None


def distance(truth: list, found: list) -> float:
    """Return the largest difference of values, relative to the largest value; None counts as zeros."""
    most = 0.0
    for expected, one in zip(truth, found, strict=True):
        if expected is not None or one is not None:
            a, b = (0.0 if t is None else array(t).astype(complex) for t in (expected, one))
            away = np.abs(np.where(np.isnan(b), np.inf, a - b))
            most = max(most, float(away.max(initial=0.0)) / max(1.0, float(np.abs(a).max(initial=0.0))))
    return most


def differing_values(a: np.ndarray, b: np.ndarray, tolerance: float) -> str | None:
    """Return where two arrays differ by more than the tolerance; NaN equals NaN, infinities themselves."""
    if a.dtype.kind not in INEXACT and b.dtype.kind not in INEXACT:
        same = a == b
    else:
        wide = complex if "c" in (a.dtype.kind, b.dtype.kind) else float
        a, b = a.astype(wide), b.astype(wide)
        finite = np.isfinite(a)
        scale = max(1.0, float(np.abs(a[finite]).max(initial=0.0)))
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (finite & (np.abs(a - b) <= tolerance * scale))
    if np.all(same):
        return None
    index = tuple(int(i[0]) for i in np.nonzero(~np.atleast_1d(same)))
    return f"at {index} of {a.shape}: {np.atleast_1d(a)[index]}, ours {np.atleast_1d(b)[index]}"


def axis(side: Side, position: int | None) -> int:
    """Return the dimension that an argument names: its position after the input, or None for dimension 0."""
    if position is None:
        return 0
    given = side.args[1:]
    return int(side.kwargs.get("dim", given[position] if position < len(given) else -1))


def has_equals(side: Side, position: int | None) -> bool:
    """Return whether some elements along the dimension are equal."""
    dim = axis(side, position)
    ordered = np.sort(np.atleast_1d(array(side.args[0])), axis=dim)
    return bool((np.diff(ordered, axis=dim) == 0).any())


def named(side: Side, result: Any, position: int | None) -> list:
    """Return results with the elements of the input in place of the indices that name them."""
    found = list(only_tensors(result))
    if position is None:
        return found
    dim, values, indices = axis(side, position), array(side.args[0]), array(found[-1])
    indices = indices if indices.ndim == values.ndim else np.expand_dims(indices, dim)
    return [*found[:-1], tensor_of(torch, np.take_along_axis(values, indices, dim), name_of(side.args[0].dtype))]


def compare_samples(name: str, dtype: str) -> Iterator[tuple[int, Report]]:
    """Yield the number and the report of every sample of an entry whose values NumPy's arrays can hold."""
    entry = entries()[name]
    theirs = DTYPES[dtype]
    seed()
    recorded = entry.supports_autograd and theirs in entry.supported_backward_dtypes("cpu")
    for number, sample in enumerate(entry.sample_inputs("cpu", theirs, requires_grad=recorded)):
        with suppress(UnavailableError):
            yield number, Comparison(name, entry, counterpart(entry), reduced(name, sample)).run()
