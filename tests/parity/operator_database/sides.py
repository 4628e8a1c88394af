"""A sample input with one library's function: its arguments, and the function of selected tensors."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import retrograd as rg

Tensors = (torch.Tensor, rg.Tensor)


class Side:
    """One library's function with one sample's arguments."""

    def __init__(
        self, library: Any, function: Callable, sample: Any, wrapper: Callable, process: Callable, convert: Callable
    ):
        self.library, self.function, self.wrapper, self.process = library, function, wrapper, process
        self.args = convert((sample.input, *sample.args))
        self.kwargs = convert(dict(sample.kwargs))
        tensors = [t for t in flat((self.args, self.kwargs)) if isinstance(t, Tensors)]
        self.tensors = list({id(t): t for t in tensors}.values())
        self.leaves = [t for t in self.tensors if t.requires_grad]

    def __call__(self) -> Any:
        """Run the function on the sample."""
        return self.function(*self.args, **self.kwargs)

    def substituted(self, function: Callable, old: list, new: list) -> Any:
        """Run a function on the sample with some of its tensors replaced."""
        replaced = {id(t): v for t, v in zip(old, new, strict=True)}
        args, kwargs = substitute((self.args, self.kwargs), replaced)
        return function(*args, **kwargs)

    def of(self, tensors: list) -> Callable:
        """Return the function of some of the sample's tensors, with a tuple of tensors as result."""
        return lambda *values: only_tensors(self.process(self.substituted(self.function, tensors, list(values))))

    def defined(self, out: Any) -> list:
        """Return the part of a result that is defined: a decomposition's without its arbitrary signs, for example."""
        return list(only_tensors(self.process(out)))

    def smooth(self, tensors: list) -> Callable:
        """Return the function of some tensors as in PyTorch's gradient tests: symmetrized, without arbitrary signs."""

        def call(*values: Any) -> tuple:
            wrapped = lambda *args, **kwargs: self.wrapper(self.function, *args, **kwargs)  # noqa: E731
            return only_tensors(self.process(self.substituted(wrapped, tensors, list(values))))

        return call


def only_tensors(value: Any) -> tuple:
    """Return the tensors in nested containers."""
    return tuple(t for t in flat(value) if isinstance(t, Tensors))


def substitute(value: Any, replaced: dict[int, Any]) -> Any:
    """Return nested containers with some of their objects replaced."""
    if type(value) in (tuple, list):
        return type(value)(substitute(v, replaced) for v in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(substitute(v, replaced) for v in value))
    if isinstance(value, dict):
        return {k: substitute(v, replaced) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(substitute(v, replaced) for v in (value.start, value.stop, value.step)))
    return replaced.get(id(value), value)


def flat(value: Any) -> list:
    """Return the members of nested containers, in order."""
    if isinstance(value, (tuple, list)):
        return [m for v in value for m in flat(v)]
    if isinstance(value, dict):
        return [m for v in value.values() for m in flat(v)]
    if isinstance(value, slice):
        return flat((value.start, value.stop, value.step))
    return [value]


def unchanged(value: Any) -> Any:
    """Return the value itself."""
    return value


DOUBLE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


def in_double(value: Any) -> Any:
    """Return PyTorch's arguments with tensors and dtypes of half or single precision in double precision."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(DOUBLE.get(value.dtype, value.dtype)).requires_grad_(value.requires_grad)
    if type(value) in (tuple, list):
        return type(value)(map(in_double, value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(in_double, value))
    if isinstance(value, dict):
        return {k: in_double(v) for k, v in value.items()}
    return DOUBLE.get(value, value) if isinstance(value, torch.dtype) else value


def seed() -> None:
    """Seed all random generators that samples and operators use."""
    random.seed(0)
    np.random.seed(0)  # PyTorch's samples draw from it
    seed_libraries()


def seed_libraries() -> None:
    """Seed the generators of both libraries.

    `torch.manual_seed` formats the stack for each kind of device that is absent: milliseconds, for every call.
    """
    torch.default_generator.manual_seed(0)
    rg.manual_seed(0)


def attempt(function: Callable) -> tuple[Any, Exception | None]:
    """Return a function's result, or the exception with which it refuses."""
    try:
        seed_libraries()
        return function(), None
    except Exception as error:
        return None, error


def name_of(dtype: Any) -> str:
    """Return a dtype's name, which both libraries share."""
    return str(dtype).removeprefix("torch.")


def array(tensor: Any) -> np.ndarray:
    """Return the values of a tensor of either library."""
    if not isinstance(tensor, torch.Tensor):
        return np.asarray(tensor.detach().numpy())
    if tensor.dtype == torch.bfloat16:
        return tensor.detach().view(torch.int16).numpy(force=True).view(rg.bfloat16)
    return tensor.numpy(force=True)


def tensor_of(library: Any, values: np.ndarray, dtype: str) -> Any:
    """Return a tensor of a library with the values of an array."""
    return library.from_numpy(np.asarray(values, "float32" if dtype == "bfloat16" else dtype)).to(
        getattr(library, dtype)
    )


def noise(library: Any, tensor: Any, seed: int) -> Any:
    """Return a tensor of random values in the shape and dtype of another."""
    rng = np.random.default_rng(seed)
    made = rng.uniform(-1, 1, tuple(tensor.shape))
    if tensor.is_complex():
        made = made + 1j * rng.uniform(-1, 1, tuple(tensor.shape))
    return tensor_of(library, made, name_of(tensor.dtype))


# --------------------------------------------------------------------------------------------------- programs


def gradients(side: Side) -> tuple[list, list | None]:
    """Return the gradients of the results' product with noise, and those of their own product with noise."""
    library, leaves = side.library, side.leaves
    outs = [t for t in side.smooth([])() if t.requires_grad]
    if not outs:
        return [], None
    seeds = [noise(library, o, i) for i, o in enumerate(outs)]
    first = list(library.autograd.grad(outs, leaves, seeds, create_graph=True, allow_unused=True))
    terms = []
    for i, g in enumerate(first):
        if g is not None and g.requires_grad:
            product = (g * noise(library, g, 100 + i)).sum()
            terms.append(product.real if product.is_complex() else product)
    if not terms:
        return first, None
    second, refused = attempt(lambda: list(library.autograd.grad(terms, leaves, allow_unused=True)))
    if refused is not None and library is rg:
        raise refused
    return first, second


def tangents(side: Side) -> list:
    """Return the derivatives of the results along noise."""
    leaves = [x.detach() for x in side.leaves]
    along = [noise(side.library, x, 200 + i) for i, x in enumerate(leaves)]
    return list(side.library.func.jvp(side.smooth(side.leaves), tuple(leaves), tuple(along))[1])


def difference_quotients(side: Side) -> list:
    """Return central differences of the results along the noise of `tangents`."""
    ahead, behind = (_perturbed(side, step) for step in (1e-6, -1e-6))
    return [(a - b) / 2e-6 for a, b in zip(ahead, behind, strict=True)]


def wide_quotients(side: Side) -> list:
    """Return fourth-order differences with a wide step, which have more digits where the results are large."""
    h = 1e-3
    results = zip(*[_perturbed(side, step) for step in (-2 * h, -h, h, 2 * h)], strict=True)
    return [(a - 8 * b + 8 * c - d) / (12 * h) for a, b, c, d in results]


def _perturbed(side: Side, step: float) -> tuple:
    """Return the results a step along the noise of `tangents`."""
    leaves = [x.detach() for x in side.leaves]
    along = [noise(torch, x, 200 + i) for i, x in enumerate(leaves)]
    return side.smooth(side.leaves)(*[x + step * t for x, t in zip(leaves, along, strict=True)])


def inner_products(side: Side, found: list) -> list:
    """Return <cotangents, tangents> of gradients, or of tangents: one number, equal where both are right."""
    if len(found) == len(side.leaves) and all(
        f is None or f.shape == x.shape for f, x in zip(found, side.leaves, strict=True)
    ):
        pairs = [
            (f, noise(side.library, x, 200 + i))
            for i, (f, x) in enumerate(zip(found, side.leaves, strict=True))
            if f is not None
        ]
    else:
        pairs = [(noise(side.library, f, i), f) for i, f in enumerate(found)]
    terms = [(side.library.conj(g) * t).real.sum() if g.is_complex() else (g * t).sum() for g, t in pairs]
    return [sum(terms, side.library.zeros(()))]


def batch(side: Side, chosen: list[int]) -> list:
    """Return the results for two equal examples."""
    tensors = [side.tensors[i] for i in chosen]
    stacked = [side.library.stack([t.detach(), t.detach()]) for t in tensors]
    return list(side.library.func.vmap(side.of(tensors), randomness="same")(*stacked))


def repeated(side: Side, chosen: list[int]) -> list:
    """Return twice the results for one example, as `batch` should."""
    tensors = [side.tensors[i] for i in chosen]
    return [side.library.stack([t, t]) for t in side.of(tensors)(*[t.detach() for t in tensors])]


def in_place(side: Side, function: Callable) -> list:
    """Return a copy of the first argument after the in-place variant ran on it."""
    changed = side.args[0].detach().clone()
    out = function(changed, *side.args[1:], **side.kwargs)
    assert out is changed, "the result is not the tensor itself"
    return [changed]


def into(side: Side, like: torch.Tensor) -> list:
    """Return the tensor that the function wrote its result into."""
    out = side.library.zeros(tuple(like.shape), dtype=getattr(side.library, name_of(like.dtype)))
    args, kwargs = substitute((side.args, side.kwargs), {id(t): t.detach() for t in side.tensors})
    side.function(*args, **kwargs, out=out)
    return [out]
