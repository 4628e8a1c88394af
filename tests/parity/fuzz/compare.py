"""Comparison of two tensors, and of the gradients of two runs.

A message has a line for each difference of another kind, so that an exempt one hides no other.
"""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
import torch

import retrograd as rg

from .machine import REFUSALS, UNKNOWN, Machine, pattern, recorded

TOLERANCE = {"float64": 1e-8, "complex128": 1e-8, "float32": 1e-3, "complex64": 1e-3, "float16": 3e-2}
DTYPES = {
    getattr(torch, name): np.dtype(name)
    for name in (*TOLERANCE, "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
}
# PyTorch's refusals to use a saved tensor.
LOST = re.compile("has been modified by an inplace operation|Trying to backward through the graph a second time")
ROUNDING = {"float64": 1e-15, "complex128": 1e-15, "float32": 1e-6, "complex64": 1e-6, "float16": 5e-3}


def difference(theirs: torch.Tensor, ours: Any, coarsest: str = "", follow: bool = True) -> str | None:
    """Return how two tensors differ; if only by rounding, ours is set to PyTorch's values where it is to `follow`."""
    if not isinstance(ours, rg.Tensor):
        return f"a tensor, ours {type(ours).__name__}"
    if theirs.shape != ours.shape:
        return f"shape {tuple(theirs.shape)}, ours {ours.shape}"
    if DTYPES[theirs.dtype] != ours.dtype:
        return f"dtype {DTYPES[theirs.dtype]}, ours {ours.dtype}"
    a, b = recorded(theirs), recorded(ours)
    if a not in (b, UNKNOWN):
        return f"requires_grad of {ours.dtype} {a}, ours {b}"
    return values_differ(theirs.numpy(force=True), ours.detach().numpy(), follow=follow, coarsest=coarsest)


def values_differ(
    a: np.ndarray, b: np.ndarray, noise: np.ndarray | float = 0.0, follow: bool = False, coarsest: str = ""
) -> str | None:
    """Return where values differ, relative to the largest finite one, beyond the noise; `follow` copies `a` to `b`.

    There is a line for the first element of each kind, as NaN in place of a number.  `coarsest` is the least precise
    dtype used to compute the values, if not their own.  Copied values keep two runs together: an operator is
    responsible for its own rounding only, and jumps, ties and comparisons have the same result in both.
    """
    if a.tobytes() == b.tobytes():
        return None
    equal = a == b
    if a.dtype.kind in "fc":
        equal = equal | (np.isnan(a) & np.isnan(b)) | near(a, b, noise, coarsest or str(a.dtype))
        if equal.all():
            if follow and b.flags.writeable:
                b[...] = a
            return None
    a, b, found = np.atleast_1d(a), np.atleast_1d(b), {}
    for index in zip(*(i.tolist() for i in np.nonzero(~np.atleast_1d(equal))), strict=True):
        found.setdefault((kind_of(a[index]), kind_of(b[index])), f"value at {index}: {a[index]}, ours {b[index]}")
    return "\n".join(found.values())


def kind_of(number: Any) -> str:
    """Return "nan", "inf", "-inf", "0.0" or "number"; of a complex number, those of its parts."""
    if isinstance(number, np.complexfloating):
        return f"{kind_of(number.real)} {kind_of(number.imag)}"
    if not np.isfinite(number):
        return str(number)
    return "number" if number else "0.0"


def on_one_line(error: Exception | str) -> str:
    """Return the beginning of an error's text, without line breaks."""
    return " ".join(str(error)[:200].split("\n"))


def each_line(prefix: str, message: str) -> str:
    """Return a message with a prefix before each of its lines."""
    return "\n".join(prefix + line for line in message.split("\n"))


def near(a: np.ndarray, b: np.ndarray, noise: np.ndarray | float, coarsest: str, scale: float = 0.0) -> np.ndarray:
    """Return which elements are finite and close, relative to the largest or to `scale`."""
    if a.dtype.kind == "c":  # part by part: the one may be infinite, or NaN, and the other a number
        scale = largest(a)
        parts = [(near(x, y, noise, coarsest, scale) | (x == y) | (np.isnan(x) & np.isnan(y))) for x, y in _parts(a, b)]
        return parts[0] & parts[1]
    finite = np.isfinite(a)
    a, b, tolerance = a.astype(np.float64), b.astype(np.float64), max(TOLERANCE[coarsest], TOLERANCE[str(a.dtype)])
    return finite & (np.abs(a - b) <= tolerance * max(scale, largest(a)) + noise)


def largest(values: np.ndarray) -> float:
    """Return the largest finite absolute value, or 1 if that is larger."""
    return max(1.0, float(np.abs(values[np.isfinite(values)]).max(initial=0.0)))


def _parts(a: np.ndarray, b: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(a.real, b.real), (a.imag, b.imag)]


# ------------------------------------------------------------------------------------------------ gradients


def gradients(machine: Machine, results: list[int], leaves: list[int]) -> list:
    """Return the gradients of results with respect to leaves, given by their numbers."""
    if not leaves or not results:
        return [None] * len(leaves)
    outs, leaves = [machine.v[i] for i in results], [machine.v[i] for i in leaves]
    cotangents = [machine.names["W"](t) for t in outs]
    return list(machine.library.autograd.grad(outs, leaves, cotangents, allow_unused=True, retain_graph=True))


def moderate(values: np.ndarray) -> bool:
    """Return whether a gradient of these values is finite and not at the limit of its range."""
    return bool(np.abs(values).max(initial=0.0) < 1e4)  # False for NaN too


def gradient_messages(theirs: Machine, ours: Machine, lines: list[str]) -> Iterator[str]:
    """Yield how the gradients of the leaves differ, and for which results only one library computes them.

    `lines` is the program that both have run.
    """
    leaves, results = theirs.leaves(), theirs.results()
    plain = [i for i in results if moderate(theirs.v[i].numpy(force=True))]
    others = [i for i in results if i not in plain]
    for some, coarsest in ((plain, ""), (others, "float32")):  # of large values few digits are left
        expected, refused = computed(theirs, some, leaves)
        some = [i for i in some if i not in refused]
        found, refused_here = computed(ours, some, leaves, Exception)
        for error in distinct(refused_here):
            yield f"ours refuses backward, {type(error).__name__}: {on_one_line(error)}"
        some = [i for i in some if i not in refused_here]
        if refused_here or expected is None:
            expected = gradients(theirs, some, leaves)
        yield from _compare(theirs, some, leaves, expected, found or gradients(ours, some, leaves), coarsest)
        yield from _accepted(ours, refused, leaves, lines, coarsest)


def computed(
    machine: Machine, results: list[int], leaves: list[int], kinds: Any = REFUSALS
) -> tuple[list | None, dict[int, Exception]]:
    """Return the gradients of results, or None if some are refused, and those results with the exceptions."""
    try:
        return gradients(machine, results, leaves), {}
    except kinds:
        found = {i: _refusal(machine, [i], leaves, kinds) for i in results}
    return None, {i: error for i, error in found.items() if error is not None}


def _refusal(machine: Machine, results: list[int], leaves: list[int], kinds: Any) -> Exception | None:
    try:
        gradients(machine, results, leaves)
    except kinds as error:
        return error
    return None


def distinct(refused: dict[int, Exception]) -> list[Exception]:
    """Return one of the exceptions of each kind."""
    return list({re.sub(r"[\d\W]+", "", str(error))[:80]: error for error in refused.values()}.values())


def _accepted(
    ours: Machine, refused: dict[int, Exception], leaves: list[int], lines: list[str], coarsest: str
) -> Iterator[str]:
    """Yield PyTorch's refusals of results whose gradients ours computes.

    Where a saved tensor was written to or freed, ours may have saved another one, or nothing. Its gradients must then
    be those that PyTorch computes if it saves copies and frees none.
    """
    accepted = {i: error for i, error in refused.items() if _refusal(ours, [i], leaves, REFUSALS) is None}
    lost = [i for i, error in accepted.items() if LOST.search(str(error))]
    if lost:
        yield from _compare_with_copies(ours, lost, leaves, lines, coarsest)
    for error in distinct({i: error for i, error in accepted.items() if i not in lost}):
        yield f"PyTorch refuses backward: {on_one_line(error)}"


def _compare_with_copies(
    ours: Machine, results: list[int], leaves: list[int], lines: list[str], coarsest: str
) -> Iterator[str]:
    """Yield how gradients of ours differ from those of the same program in PyTorch where it saves copies."""
    theirs = Machine(torch)
    for line in lines:
        with nullcontext() if "L.func" in line else torch.autograd.graph.saved_tensors_hooks(torch.clone, torch.clone):
            theirs.execute(with_retained_graph(line))
        for tensor in theirs.v.values():
            recorded(tensor)  # as in the first run: until then, views of written bases have no history
    refused = computed(theirs, results, leaves, Exception)[1]
    for error in distinct(refused):
        yield f"PyTorch refuses backward: {on_one_line(error)}"
    results = [i for i in results if i not in refused]
    expected, found = gradients(theirs, results, leaves), gradients(ours, results, leaves)
    for message in _compare(theirs, results, leaves, expected, found, coarsest):
        yield each_line("PyTorch with copies of what it saved, ", message)


def with_retained_graph(line: str) -> str:
    """Return a line whose backward pass, if there is one, retains the graph."""
    return re.sub(r"\b(backward\(.*?)(, \)|, retain_graph=False|\)$)", _retaining, line)


def _retaining(found: re.Match) -> str:
    call, end = found.groups()
    if "retain_graph=True" in call:
        return found[0]
    return f"{call}{'' if call.endswith('(') else ', '}retain_graph=True{')' * end.endswith(')')}"


def _compare(
    theirs: Machine, results: list[int], leaves: list[int], expected: list, found: list, coarsest: str
) -> Iterator[str]:
    """Yield how the gradients of results differ, as PyTorch computed them and as ours did."""
    if gradients_differ(leaves, expected, found, [0.0] * len(found)) is None:
        return
    large = not all(a is None or moderate(np.nan_to_num(a.numpy(force=True), posinf=0, neginf=0)) for a in expected)
    single = coarsest_of({str(t.dtype)[6:] for t in theirs.v.values()})
    if single and (large or coarsest):  # no digits are left
        return
    coarsest = coarsest or single or "float32" * large
    message = gradients_differ(leaves, expected, found, noise_of(theirs, results, leaves, expected), coarsest)
    if message is not None:
        yield message


def coarsest_of(dtypes: Collection[str]) -> str:
    """Return the least precise floating dtype; "" for float64."""
    return next((d for d in ("float16", "complex64", "float32") if d in dtypes), "")


def presence(gradient: Any) -> str:
    """Return in a word whether there is a gradient, and whether anything but zeros and NaN flows."""
    if gradient is None:
        return "none"
    return "one" if ((gradient != 0) & (gradient == gradient)).any() else "zeros"


def gradients_differ(leaves: list[int], expected: list, found: list, noise: list, coarsest: str = "") -> str | None:
    """Return how lists of gradients of the leaves differ, by more than the noise and `coarsest`'s rounding."""
    messages = []
    for i, a, b, n in zip(leaves, expected, found, noise, strict=True):
        if (a is None) != (b is None):
            messages.append(f"gradient of v[{i}]: {presence(a)}, ours {presence(b)}")
        elif a is not None:
            message = values_differ(a.numpy(force=True), b.detach().numpy(), n, coarsest=coarsest)
            messages += [each_line(f"gradient of v[{i}]: ", message)] if message else []
    return "\n".join(messages) or None


def noise_of(theirs: Machine, results: list[int], leaves: list[int], expected: list) -> list:
    """Return by how much PyTorch's own gradients change when every intermediate cotangent is rounded differently.

    Hooks multiply the gradient of each result by 1 + a few roundings of its dtype: a gradient that cancels to less
    than its terms' rounding changes, one that is computed by a wrong formula does not.
    """
    handles = []
    for number in theirs.results():
        with suppress(RuntimeError):
            handles.append(theirs.v[number].register_hook(_rounder(number)))
    moved = gradients(theirs, results, leaves)
    for handle in handles:
        handle.remove()
    return [0.0 if a is None else 100 * _distance(a, b) for a, b in zip(expected, moved, strict=True)]


def _rounder(seed: int) -> Callable[[torch.Tensor | None], torch.Tensor | None]:
    def rounded(g: torch.Tensor | None) -> torch.Tensor | None:
        if g is None:  # PyTorch's, of outputs without a derivative
            return None
        name = str(g.dtype)[6:]
        signs = np.roll(pattern(tuple(g.shape), "float64").ravel(), seed).reshape(tuple(g.shape))
        return g * torch.tensor(1 + 4 * ROUNDING[name] * signs, dtype=g.dtype)

    return rounded


def _distance(a: torch.Tensor, b: torch.Tensor) -> np.ndarray:
    return np.nan_to_num(np.abs(a.numpy(force=True) - b.numpy(force=True)).astype(np.float64))
