"""`scipy.special`: its ufuncs support tensors themselves; here are the other functions."""

from typing import Any

from retrograd.interop.numpy_protocol.special import ufuncs
from retrograd.interop.numpy_protocol.table import O, as_floating, only_default, tensor
from retrograd.scipy._array_like import ArrayLike
from retrograd.scipy._mirror import fallback_members, generate, on_tensors

_special = on_tensors("scipy.special")

globals().update(generate("special"))


@_special
def logsumexp(a: ArrayLike, axis=None, b=None, keepdims=False, return_sign=False):
    """Return log(sum(b exp(a))) without overflow; b scales each term, and must not make the sum negative."""
    only_default("special.logsumexp", return_sign=(return_sign, False))
    x = as_floating(a)
    if b is None:
        return O.logsumexp(x, axis, keepdims)
    top = O.amax(O.real(x) if x.dtype.kind == "c" else x, axis, True).detach()
    top = O.where(O.isfinite(top), top, 0)
    total = O.sum(tensor(b) * O.exp(x - top), axis, True)
    found = O.log(total) + top
    return found if keepdims else O.sum(found, axis)


@_special
def softmax(x: ArrayLike, axis=None):
    """Return exp(x) divided by its sum along axes (None: all)."""
    return O.exp(log_softmax(x, axis))


@_special
def log_softmax(x: ArrayLike, axis=None):
    """Return the logarithm of `softmax`."""
    x = as_floating(x)
    return x - O.logsumexp(x, axis, True)


@_special
def factorial(n, exact=False, extend="zero"):
    """Return gamma(n + 1), for real n."""
    only_default("special.factorial", exact=(exact, False), extend=(extend, "zero"))
    x = as_floating(n)
    return O.where(x < 0, 0.0, O.special.gamma(O.where(x < 0, 0.0, x) + 1))


@_special
def spherical_jn(n, z: ArrayLike, derivative=False):
    """Return the spherical Bessel function of the first kind, of integer order n, or its derivative."""
    z = as_floating(z)
    if not derivative:
        return O.special.spherical_jn(n, z)
    if n == 0:
        return -O.special.spherical_jn(1, z)
    return O.special.spherical_jn(n - 1, z) - (n + 1) / z * O.special.spherical_jn(n, z)


@_special
def zeta(x: ArrayLike, q=None):
    """Return Hurwitz's zeta function of x and q, or Riemann's if q is None; differentiable in both to any order."""
    return ufuncs["_riemann_zeta"](x) if q is None else ufuncs["_zeta"](x, q)


_member, __dir__ = fallback_members("scipy.special")


def __getattr__(name: str) -> Any:
    """Return SciPy's member of that name.  Ufuncs dispatch on tensors, unless SCIPY_ARRAY_API=1 wraps them in
    functions."""
    found = _member(name)
    if hasattr(found, "nin") or name not in ufuncs:
        return found
    return on_tensors("scipy.special", name)(ufuncs[name])
