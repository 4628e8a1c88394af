"""Make `import autograd` import this package, for unmodified libraries."""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from retrograd.core import Tensor
from retrograd.core.dtype import float64, set_default_dtype
from retrograd.hips import extend, methods
from retrograd.interop.numpy_protocol.table import values
from retrograd.ops.family import sum_to

_HOMES = {"numpy": "retrograd.numpy", "scipy": "retrograd.scipy", "misc": "retrograd.hips.misc"}
_OTHERS = {
    "": "retrograd.hips",
    "builtins": "retrograd.hips.builtins",
    "core": "retrograd.hips.core",
    "differential_operators": "retrograd.hips",
    "extend": "retrograd.hips.extend",
    "test_util": "retrograd.hips.test_util",
    "wrap_util": "retrograd.hips.wrap_util",
}


def install() -> None:
    """Make `import autograd` and imports from it import this package, for every module of the process.

    Call it before importing these libraries; RuntimeError if HIPS autograd itself has been imported. It changes the
    process: Python's floats become float64, as by `rg.set_default_dtype(rg.float64)`, and tensor methods follow NumPy
    where PyTorch's meaning differs, such as `x.var()`.

    >>> install()  # doctest: +SKIP
    >>> import lifelines  # doctest: +SKIP
    """
    ours = sys.modules["retrograd.hips"]
    if sys.modules.get("autograd", ours) is not ours:
        raise RuntimeError("install: autograd has been imported already; call install() before whatever imports it")
    set_default_dtype(float64)
    methods.give()
    sys.modules.update(dict(_modules()))


def _modules() -> Iterator[tuple[str, ModuleType]]:
    """Return each module by its name in HIPS autograd."""
    for name, target in _OTHERS.items():
        yield f"autograd.{name}".rstrip("."), importlib.import_module(target)
    for name, target in _HOMES.items():
        yield from _tree(f"autograd.{name}", importlib.import_module(target))
    yield "autograd.tracer", _module("tracer", getval=values, isbox=_is_tensor, Box=Tensor, **_OF_TRACER)
    yield "autograd.numpy.numpy_boxes", _module("numpy.numpy_boxes", ArrayBox=Tensor)
    yield "autograd.numpy.numpy_vjps", _module("numpy.numpy_vjps", unbroadcast_f=unbroadcast_f)


def _tree(name: str, package: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    """Return a package and the public modules below it, under another name."""
    yield name, package
    for info in pkgutil.iter_modules(getattr(package, "__path__", ())):
        if not info.name.startswith("_"):
            yield from _tree(f"{name}.{info.name}", importlib.import_module(f"{package.__name__}.{info.name}"))


def _module(name: str, **members: Any) -> ModuleType:
    made = ModuleType(f"autograd.{name}", "Names of HIPS autograd's internals that libraries import.")
    made.__dict__.update(members)
    return made


_OF_TRACER = {"primitive": extend.primitive, "notrace_primitive": extend.notrace_primitive}


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)


def unbroadcast_f(target: Any, f: Any) -> Any:
    """Return the pullback f with its result summed over the axes along which the target was broadcast."""
    return lambda g: sum_to(f(g), getattr(target, "shape", ()))
