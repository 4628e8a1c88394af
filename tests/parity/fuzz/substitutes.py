"""PyTorch with other formulas for operators whose rules are wrong or open at special values.

Each formula computes the same values by operators with ordinary derivatives.  If a program has no difference with them,
the difference was PyTorch's rule.
"""

import re
from collections.abc import Callable
from contextlib import ExitStack
from functools import reduce
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from .copying import Copying

_amax, _amin, _logsumexp, _logcumsumexp = torch.amax, torch.amin, torch.logsumexp, torch.logcumsumexp
_logaddexp, _copysign, _nan_to_num, _atan2 = torch.logaddexp, torch.copysign, torch.nan_to_num, torch.atan2
_prod, _cumprod, _maximum, _abs, _polar = torch.prod, torch.cumprod, torch.maximum, torch.abs, torch.polar


def _differentiable(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


def _extremum(function: Callable) -> Callable:
    """Return `amax` or `amin` as the mean of the elements that equal it, where NaN equals NaN."""

    def extremum(x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        if not _differentiable(x):
            return function(x, dim, keepdim)
        out, values = function(x.detach(), dim, keepdim=True), x.detach()
        chosen = (values == out) | (values != values)
        return torch.where(chosen, x, 0).sum(dim, keepdim) / chosen.sum(dim, keepdim)

    return extremum


def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """Return the logarithm of the sum of each prefix."""
    if x.is_complex() or not x.ndim or not x.numel():
        return _logcumsumexp(x, dim)
    return torch.stack([_logsumexp(x.narrow(dim, 0, i + 1), dim) for i in range(x.shape[dim])], dim)


def logaddexp(a: Tensor, b: Tensor) -> Tensor:
    """Return the larger number, and the logarithm of the rest."""
    if a.is_complex() or b.is_complex():
        return _logaddexp(a, b)
    difference = torch.where(a == b, 0, a - b)
    return _maximum(a, b) + torch.log1p(torch.exp(-_abs(difference)))


def copysign(a: Tensor, b: Any) -> Tensor:
    """Return a, or -a where the signs differ."""
    b = torch.as_tensor(b)
    a = a.to(_copysign(a.detach(), b.detach()).dtype)
    return torch.where(a.signbit() != b.signbit(), -a, a)


def nan_to_num(x: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Return x where it is finite, and other numbers elsewhere."""
    return (
        torch.where(x.isfinite(), x, _nan_to_num(x.detach(), nan, posinf, neginf)) if _differentiable(x) else x.clone()
    )


def prod(x: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the elements multiplied one after another."""
    if not _differentiable(x) or dtype is not None or not x.numel() or not x.ndim:
        return _prod(x, dtype=dtype) if dim is None else _prod(x, dim, keepdim, dtype=dtype)
    factors = x.flatten().unbind() if dim is None else x.unbind(dim)
    out = reduce(torch.mul, factors)
    return out.unsqueeze(dim) if dim is not None and keepdim else out


def cumprod(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the elements of each prefix multiplied one after another."""
    if not _differentiable(x) or dtype is not None or not x.numel() or not x.ndim:
        return _cumprod(x, dim, dtype=dtype)
    products = [x.select(dim, 0)]
    for i in range(1, x.shape[dim]):
        products.append(products[-1] * x.select(dim, i))
    return torch.stack(products, dim)


def vander(x: Tensor, N: int | None = None) -> Tensor:
    """Return the powers of x as columns."""
    powers = [torch.ones_like(x)]
    for _ in range(1, x.shape[-1] if N is None else N):
        powers.append(powers[-1] * x)
    return torch.stack(powers, -1)


def atan2(a: Tensor, b: Tensor) -> Tensor:
    """Return the angle, a constant at the origin."""
    out = _atan2(a.detach(), b.detach())
    origin = (a == 0) & (b == 0)
    return torch.where(origin, out, _atan2(torch.where(origin, 1, a), torch.where(origin, 1, b))).to(out.dtype)


def norm(x: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, **options: Any) -> Tensor:
    """Return the norm of order 2 by squares that neither overflow nor underflow; 0 is a constant."""
    p = options.pop("ord", p)
    if p not in ("fro", None, 2) or options or not _differentiable(x) or not x.numel():
        raise RuntimeError("only norms of order 2 have another formula")
    dims = tuple(range(x.ndim)) if dim is None else dim
    scale = _amax(_abs(x.detach()), dims, keepdim=True)
    scale = torch.where((scale > 0) & scale.isfinite(), scale, 1)
    scaled = x / scale
    squares = (scaled * scaled.conj()).real if x.is_complex() else scaled * scaled
    total = squares.sum(dims, keepdim=True)
    out = torch.where(total > 0, torch.where(total > 0, total, 1).sqrt(), total) * scale
    return out if keepdim else out.squeeze(dims)


def polar(a: Tensor, angle: Tensor) -> Tensor:
    """Return a complex number by its real and imaginary part."""
    return torch.complex(a * angle.cos(), a * angle.sin())


# Name -> (formula, why PyTorch's derivative differs).
FORMULAS: dict[str, tuple[Callable, str]] = {
    "amax": (_extremum(_amax), "NaN, which is the extremum, has the gradient here; PyTorch divides 0 by 0 ties"),
    "amin": (_extremum(_amin), "NaN, which is the extremum, has the gradient here; PyTorch divides 0 by 0 ties"),
    "logcumsumexp": (logcumsumexp, "a fault of PyTorch's: its rule drops cotangents that are NaN, and makes others"),
    "logaddexp": (logaddexp, "the limit; PyTorch subtracts infinities"),
    "copysign": (copysign, "a fault of PyTorch's: its rule divides the result by the operand"),
    "nan_to_num": (nan_to_num, "ours selects; PyTorch multiplies NaN by 0"),
    "prod": (prod, "the product of the other factors; PyTorch divides by NaN, and returns 0 where two factors are 0"),
    "cumprod": (cumprod, "a fault of PyTorch's: its rule divides by the operand, and drops cotangents that are NaN"),
    "vander": (vander, "a fault of PyTorch's: its rule divides by the operand"),
    "atan2": (atan2, "a fault of PyTorch's: at the origin the derivative is 0 in both, that of this rule NaN"),
    "norm": (norm, "a fault of PyTorch's: the squares overflow or underflow"),
    "vector_norm": (norm, "a fault of PyTorch's: the squares overflow or underflow"),
    "polar": (polar, "a fault of PyTorch's: its rule takes the absolute value for positive"),
}
NAMESPACES = (torch, torch.Tensor, torch.special, torch.linalg)


class Substituted(Copying):
    """PyTorch with the formulas of some operators, in place of its own implementation and rule."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.operators = names
        self.called: set[str] = set()

    def execute(self, line: str) -> Exception | None:
        """Run one line; return the exception with which PyTorch refuses it."""
        with ExitStack() as stack:
            for name in self.operators:
                for namespace in NAMESPACES:
                    if hasattr(namespace, name):
                        stack.enter_context(mock.patch.object(namespace, name, self._formula(name)))
                    if hasattr(namespace, f"{name}_"):
                        stack.enter_context(mock.patch.object(namespace, f"{name}_", self._in_place(name)))
            return super().execute(line)

    def effective(self) -> bool:
        """Return whether each formula was used."""
        return self.called == set(self.operators)

    def _formula(self, name: str) -> Callable:
        def formula(*args: Any, **options: Any) -> Any:
            out = options.pop("out", None)
            self.called.add(name)
            made = FORMULAS[name][0](*args, **options)
            return made if out is None else out.copy_(made)

        return formula

    def _in_place(self, name: str) -> Callable:
        return lambda x, *args, **options: x.copy_(self._formula(name)(x, *args, **options))


def substitutions(lines: list[str]) -> list[list[str]]:
    """Return which formulas to try for a program: each operator that has one alone, then all together."""
    names = [name for name in FORMULAS if re.search(rf"[.]{name}_?\(", "\n".join(lines))]
    return [[name] for name in names] + [names] * (len(names) > 1)


def reason_for(names: list[str]) -> str:
    """Return why the rules of these operators differ."""
    return "; ".join(dict.fromkeys(FORMULAS[name][1] for name in names))
