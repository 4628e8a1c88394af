"""Define and extend operators by name: PyTorch's functions that correspond to an operator's methods."""

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.library.custom_ops import check_name, check_operator, find_operator, when_defined
from retrograd.library.kernel_lookup import FIELDS, KERNELS
from retrograd.library.library_scope import Library
from retrograd.library.mixin import check_device_types
from retrograd.library.operator import CustomOperator

_libraries: dict[str, Library] = {}  # the libraries of `define` calls without `lib`


def _get_library(ns: str, lib: Library | None) -> Library:
    if lib is None and ns not in _libraries:
        _libraries[ns] = Library(ns, "FRAGMENT")
    return lib or _libraries[ns]


def define(
    qualname: str | Library, schema: str, alias_analysis: str = "", *, lib: Library | None = None, tags: Any = ()
) -> Any:
    """Define "namespace::name" with a schema without a name, and return the name.  With `lib`, until that ends.

    `define(lib, "name(...) -> ...")`, PyTorch's older form, is a decorator for the function that runs the operator.

    >>> import retrograd as rg
    >>> rg.library.define("docs::shifted", "(Tensor x, *, float by=1.0) -> Tensor")
    'shifted'
    >>> @rg.library.impl("docs::shifted", "cpu")
    ... def shifted(x, *, by=1.0):
    ...     return rg.as_tensor(x.numpy() + by)
    >>> rg.ops.docs.shifted(rg.zeros(2), by=3)
    tensor([3., 3.])
    """
    if isinstance(qualname, Library):
        return functools.partial(_implement, qualname, qualname.define(schema, tags=tags), "")
    check_name(qualname)
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got '
            f'"{schema}": the name is the one of qualname'
        )
    ns, _, name = qualname.partition("::")
    return _get_library(ns, lib).define(name + schema, tags=tags)


def _implement(lib: Library, name: Any, key: str, func: Callable) -> Callable:
    lib.impl(name, func, key)
    return func


def impl(qualname: str | Library, types: str | Sequence[str], func: Any = None, *, lib: Library | None = None) -> Any:
    """Decorator: register a kernel for kinds of arrays: "cpu", "cuda", "nested" or "default"; or by a dispatch key.

    With `lib`, until that ends.  If no operator of that name is defined yet, the kernel is registered when it is.

    `impl(lib, name, dispatch_key)`, PyTorch's older form, is a decorator too.
    """
    if isinstance(qualname, Library):
        return functools.partial(_implement, qualname, types, func or "")
    keys = (types,) if isinstance(types, str) else tuple(types)
    kinds = tuple([key for key in keys if key not in KERNELS and key not in FIELDS])
    if kinds:
        check_device_types(qualname, kinds)
    if func is None:
        return functools.partial(impl, qualname, types, lib=lib)
    if isinstance(qualname, str) and "::" not in qualname:
        find_operator(qualname)  # raises the error for a name without namespace
    namespace = qualname.partition("::")[0] if isinstance(qualname, str) else qualname.namespace
    for key in keys:
        if key not in kinds:
            _get_library(namespace, lib).impl(qualname, func, key)
    if kinds:
        (when_defined if lib is None else lib.when_defined)(qualname, functools.partial(_implement_kinds, kinds, func))
    return func


def _implement_kinds(kinds: tuple[str, ...], func: Callable, op: CustomOperator) -> None:
    op.impl(kinds, func)


def _recording_in(lib: Library | None, op: CustomOperator) -> AbstractContextManager:
    return nullcontext() if lib is None else lib.recording(op)


def register_fake(
    op: str | CustomOperator,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Decorator: register the function that returns the result's shape and dtype; see `CustomOperator.impl_abstract`.

    With a library, until that ends.  With `allow_override=False` a second registration is a RuntimeError.

    >>> import retrograd as rg
    >>> name = rg.library.define("docs::row_sums", "(Tensor x) -> Tensor")
    >>> @rg.library.register_fake("docs::row_sums")
    ... def _(x):
    ...     return rg.empty(x.shape[:-1], dtype=x.dtype)
    """
    check_operator("register_fake", op)
    if func is None:
        return functools.partial(register_fake, op, lib=lib, allow_override=allow_override)
    operator = find_operator(op)
    known = operator.registrations.abstract
    if known is not None and not allow_override:
        raise RuntimeError(
            f"{operator.name}: register_fake: registered already, at {known.location}: the operator already has a fake "
            f"impl, that is a DispatchKey::Meta implementation"
        )
    if operator.registrations.composite is not None:
        raise RuntimeError(
            f"{operator.name}: register_fake: it has a CompositeImplicitAutograd kernel, so that its parts have the "
            "functions for shapes and dtypes"
        )
    with _recording_in(lib, operator):
        return operator.impl_abstract(func)


def impl_abstract(
    qualname: str | CustomOperator, func: Callable | None = None, *, lib: Library | None = None, _stacklevel: int = 1
) -> Any:
    """Decorator: `register_fake` by its deprecated name."""
    return register_fake(qualname, func, lib=lib, _stacklevel=_stacklevel + 1)


def register_kernel(
    op: str | CustomOperator,
    device_types: str | Sequence[str] | None,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Decorator: register a kernel for kinds of arrays, None for all; see `CustomOperator.impl`.

    With a library, until that ends.

    >>> import retrograd as rg
    >>> name = rg.library.define("docs::thrice", "(Tensor x) -> Tensor")
    >>> @rg.library.register_kernel("docs::thrice", "cpu")
    ... def thrice(x):
    ...     return rg.as_tensor(x.numpy() * 3)
    >>> rg.ops.docs.thrice(rg.ones(2))
    tensor([3., 3.])
    """
    check_operator("register_kernel", op)
    if func is None:
        return functools.partial(register_kernel, op, device_types, lib=lib)
    operator = find_operator(op)
    with _recording_in(lib, operator):
        return operator.register_kernel(device_types, func)


def register_autograd(
    op: str | CustomOperator,
    backward: Callable,
    /,
    *,
    setup_context: Callable | None = None,
    lib: Library | None = None,
) -> None:
    """Register a gradient formula; see `CustomOperator.register_autograd`.  With a library, until that ends.

    >>> import retrograd as rg
    >>> @rg.library.custom_op("docs::half", mutates_args=())
    ... def half(x: rg.Tensor) -> rg.Tensor:
    ...     return x / 2
    >>> rg.library.register_autograd("docs::half", lambda ctx, grad: grad / 2)
    >>> rg.func.grad(half)(rg.tensor(1.0))
    tensor(0.5000)
    """
    operator = find_operator(op)
    with _recording_in(lib, operator):
        operator.register_autograd(backward, setup_context=setup_context)


def register_autocast(
    op: str | CustomOperator, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None
) -> None:
    """Let the operator get its inputs in another dtype under autocast; see `CustomOperator.register_autocast`.

    With a library, until that ends.

    >>> import retrograd as rg
    >>> @rg.library.custom_op("docs::product", mutates_args=())
    ... def product(x: rg.Tensor, y: rg.Tensor) -> rg.Tensor:
    ...     return x * y
    >>> rg.library.register_autocast("docs::product", "cpu", rg.float16)
    >>> with rg.autocast("cpu"):
    ...     product(rg.ones(2), rg.ones(2)).dtype
    dtype('float16')
    """
    operator = find_operator(op)
    with _recording_in(lib, operator):
        operator.register_autocast(device_type, cast_inputs)


def register_vmap(op: str | CustomOperator, func: Callable | None = None, /, *, lib: Library | None = None) -> Any:
    """Decorator: register the batching rule; see `CustomOperator.impl_vmap`.  With a library, until that ends.

    >>> import retrograd as rg
    >>> @rg.library.custom_op("docs::negative", mutates_args=())
    ... def negative(x: rg.Tensor) -> rg.Tensor:
    ...     return -x
    >>> @rg.library.register_vmap("docs::negative")
    ... def _(info, in_dims, x):
    ...     return -x, in_dims[0]
    >>> rg.func.vmap(negative)(rg.ones(2))
    tensor([-1., -1.])
    """
    check_operator("register_vmap", op)
    if func is None:
        return functools.partial(register_vmap, op, lib=lib)
    operator = find_operator(op)
    with _recording_in(lib, operator):
        return operator.impl_vmap(func)


def register_torch_dispatch(
    op: str | CustomOperator, torch_dispatch_class: Any, func: Callable | None = None, /, *, lib: Library | None = None
) -> Any:
    """Decorator: register the function that runs for operands of a class; see the method of `CustomOperator`.

    With a library, until that ends.

    >>> import retrograd as rg
    >>> class Celsius:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     @classmethod
    ...     def __tensor_function__(cls, func, types, args, kwargs):
    ...         return NotImplemented
    >>> @rg.library.custom_op("docs::warmer", mutates_args=())
    ... def warmer(x: rg.Tensor) -> rg.Tensor:
    ...     return x + 1
    >>> @rg.library.register_torch_dispatch("docs::warmer", Celsius)
    ... def warmer_celsius(cls, func, types, args, kwargs):
    ...     return cls(func(args[0].value))
    >>> warmer(Celsius(rg.ones(2))).value
    tensor([2., 2.])
    """
    check_operator("register_torch_dispatch", op)
    if func is None:
        return functools.partial(register_torch_dispatch, op, torch_dispatch_class, lib=lib)
    operator = find_operator(op)
    with _recording_in(lib, operator):
        return operator.register_torch_dispatch(torch_dispatch_class, func)


suggest_in_module(globals())
