"""The registration methods of operators: kernels, shapes, gradient formulas, and rules of transforms."""

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from retrograd.core import namespaces
from retrograd.core.device import DEVICE_NAMES
from retrograd.core.dtype import as_dtype
from retrograd.foundation.describe_value import describe
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.levels.autocast import cast_operand
from retrograd.library.custom_definition import device_type_of
from retrograd.library.registration import Registrations
from retrograd.library.schema import CustomSchema
from retrograd.library.tags import Tag


class RegistrationMixin:
    """The methods of an operator that register its parts."""

    name: str
    schema: CustomSchema
    registrations: Registrations
    tags: list[Tag]

    def _register(self, field: str, what: str, function: Callable | None) -> Any:
        """Register a function; without one, return the decorator that does."""
        take = functools.partial(self.registrations.register, f"{self.name}: {what}", field)
        return take if function is None else take(function)

    @suggest_keywords
    def impl(self, device_types: str | Sequence[str], func: Callable | None = None) -> Any:
        """Decorator: register the kernel for "cpu" arrays, which all are, or "default" for all.

        It gets tensors outside any graph, and params, and returns new tensors according to the schema.  A second
        kernel for the same kind replaces the first one; in the older interface it is a RuntimeError.  Kernels for
        PyTorch's other devices, such as "cuda", are stored, and run if there are such arrays.

        >>> import retrograd as rg
        >>> @rg.library.custom_op("docs::double", "(Tensor x) -> Tensor")
        ... def double(x): ...
        >>> @double.impl("cpu")
        ... def double_cpu(x):
        ...     return rg.as_tensor(x.numpy() * 2)
        >>> double(rg.ones(2))
        tensor([2., 2.])
        """
        kinds = check_device_types(self.name, device_types)
        if func is None:
            return functools.partial(self.impl, kinds)
        for kind in kinds:
            key = "" if kind == "default" else kind
            self.registrations.register_kernel(f"{self.name}: the kernel for {key or 'all'} arrays", key, func)
        return func

    def impl_factory(self, func: Callable | None = None, /) -> Any:
        """Decorator: register the kernel of an operator without tensor arguments."""
        return self.impl("default", func)

    def register_kernel(self, device_types: str | Sequence[str] | None, func: Callable | None = None, /) -> Any:
        """Decorator: `impl` by its newer name; None means all kinds of arrays.

        An operator without tensors needs an argument `device` for kernels of device types, or it is a ValueError.
        """
        kinds = "default" if device_types is None else device_types
        if kinds != "default" and not self.schema.inputs and not self.schema.has_device:
            raise ValueError(
                f"{self.name}: Functions without tensor inputs are required to have a `device: torch.device` argument, "
                "here `device: rg.device`, for kernels of device types"
            )
        return self.impl(kinds, func)

    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> AbstractContextManager[None]:
        """Context manager that disables the kernel for one device type, so that the one for all runs; or enables it.

        >>> import retrograd as rg
        >>> @rg.library.custom_op("docs::which", mutates_args=())
        ... def which(x: rg.Tensor) -> rg.Tensor:
        ...     return rg.zeros(1)
        >>> @which.register_kernel("cpu")
        ... def which_cpu(x):
        ...     return rg.ones(1)
        >>> with which.set_kernel_enabled("cpu", enabled=False):
        ...     which(rg.ones(1))
        tensor([0.])
        """
        if not isinstance(device_type, str):
            raise TypeError(f"{self.name}: set_kernel_enabled: device_type must be a str, got {describe(device_type)}")
        registrations, action = self.registrations, "enable" if enabled else "disable"
        problem = None
        if device_type not in registrations.kernels:
            problem = "no kernel was registered for this device type, so it changes nothing until there is one"
        elif enabled is (device_type not in registrations.disabled):
            problem = f"the kernel is already {action}d"
        if problem is not None:
            lazy_module("logging").getLogger("retrograd.library.custom_ops").warning(
                "%s: set_kernel_enabled(%r) to %s it: %s", self.name, device_type, action, problem
            )
        return registrations.kernel_enabled(device_type, enabled)

    def impl_abstract(self, func: Callable | None = None, /) -> Any:
        """Decorator: register the function that returns the shape and dtype of the result.

        It gets tensors without memory, whose values are meaningless, and returns tensors like the result.  Without it,
        the kernel runs on zeros.

        >>> import retrograd as rg
        >>> @rg.library.custom_op("docs::spectrum", mutates_args=())
        ... def spectrum(x: rg.Tensor) -> rg.Tensor:
        ...     return rg.linalg.eigvalsh(x)
        >>> @spectrum.impl_abstract()
        ... def _(x):
        ...     return rg.empty(x.shape[:-1], dtype=x.dtype)
        >>> rg.func.vmap(spectrum)(rg.ones(0, 3, 3)).shape
        (0, 3)
        """
        return self._register("abstract", "the abstract function", func)

    def register_fake(self, func: Callable | None = None, /) -> Any:
        """Decorator: `impl_abstract` by its newer name.

        Warns for an operator tagged with `rg.Tag.inplace` or `rg.Tag.out`, whose results are known arguments.
        """
        tag = next((tag for tag in self.tags if tag in (Tag.inplace, Tag.out)), None)
        if tag is not None:
            warn_user(
                f"{self.name}: register_fake: an operator tagged with rg.{tag} returns its own arguments, so that it "
                "needs no such function"
            )
        return self.impl_abstract(func)

    def impl_save_for_backward(self, func: Callable | None = None, /) -> Any:
        """Decorator: register `func(inputs, output)`, which returns what the gradient formula needs.

        `inputs` is a named tuple that follows the schema.  The function of `impl_backward` gets the result, any nesting
        of tensors and other values.
        """
        self._check_functional("impl_save_for_backward")
        return self._register("save", "impl_save_for_backward", func)

    def impl_backward(self, output_differentiability: Sequence[bool] | None = None) -> Callable:
        """Decorator: register the gradient formula `func(ctx, saved, *grads)`; it returns a dict by argument name.

        `grads` has a gradient for each output, zeros for unused ones.  The dict has a key for each tensor argument, and
        a list for a list of tensors.  `output_differentiability` has an entry for each output.

        >>> import retrograd as rg
        >>> @rg.library.custom_op("docs::total", mutates_args=())
        ... def total(xs: list[rg.Tensor]) -> tuple[rg.Tensor, int]:
        ...     return sum(xs, rg.zeros(())), len(xs)
        >>> @total.impl_save_for_backward()
        ... def save(inputs, output):
        ...     return {"count": output[1]}
        >>> @total.impl_backward(output_differentiability=[True, False])
        ... def backward(ctx, saved, g, _):
        ...     return {"xs": [g] * saved["count"]}
        >>> x = rg.tensor(2.0, requires_grad=True)
        >>> total([x, x])[0].backward()
        >>> x.grad
        tensor(2.)
        """
        self._check_functional("impl_backward")
        flags = self._check_flags(output_differentiability)

        def register(func: Callable) -> Callable:
            self.registrations.register(f"{self.name}: impl_backward", "backward", func)
            self.registrations.differentiable = flags
            return func

        return register

    def _check_flags(self, flags: Sequence[bool] | None) -> tuple[bool, ...] | None:
        if flags is None:
            return None
        expected = len(self.schema.results) if isinstance(self.schema.results, tuple) else 1
        bools = isinstance(flags, (list, tuple)) and all(isinstance(m, bool) for m in flags)
        if not bools or len(flags) != expected:
            raise RuntimeError(
                f"{self.name}: impl_backward: output_differentiability must be a list of bools, one for each output, "
                f"so {expected}; got {flags!r}"
            )
        return tuple(flags)

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Register the gradient formula `backward(ctx, *grads)`, which returns a gradient for each argument.

        `setup_context(ctx, inputs, output)` saves values by `ctx.save_for_backward` or as attributes.  Keyword-only
        arguments are passed as `keyword_only_inputs`, and have no gradients.  A second registration replaces the
        formula for later calls.

        >>> import retrograd as rg
        >>> @rg.library.custom_op("docs::power", mutates_args=())
        ... def power(x: rg.Tensor, n: int) -> rg.Tensor:
        ...     return x**n
        >>> def setup_context(ctx, inputs, output):
        ...     x, ctx.n = inputs
        ...     ctx.save_for_backward(x)
        >>> def backward(ctx, grad):
        ...     (x,) = ctx.saved_tensors
        ...     return grad * ctx.n * x ** (ctx.n - 1), None
        >>> power.register_autograd(backward, setup_context=setup_context)
        >>> rg.func.grad(power)(rg.tensor(2.0), 3)
        tensor(12.)
        """
        self._check_functional("register_autograd")
        if any(p.keyword_only for p in self.schema.inputs):
            raise NotImplementedError(
                f"{self.name}: register_autograd with kwarg-only Tensor args: its formula returns gradients by "
                "position, so please make your tensors not kwarg-only"
            )
        self.registrations.register(f"{self.name}: register_autograd", "pull", backward)
        if setup_context is None:
            self.registrations.setup = None
        else:
            self._register("setup", "register_autograd's setup_context", setup_context)

    def _check_functional(self, what: str) -> None:
        if self.schema.mutated:
            out = " Out variants do not support autograd." if Tag.out in self.tags else ""
            raise RuntimeError(
                f"{self.name}: {what}: not for an operator that writes to its arguments; register it for the "
                "operator's .functional, which returns their new values after the result. Cannot register autograd "
                f"formula for non-functional operator {self.name} with schema {self.schema}.{out}"
            )
        if self.schema.results == ():
            raise RuntimeError(f"{self.name}: {what}: not for an operator with no returns")

    def impl_autograd(self, func: Callable | None = None, /) -> Any:
        """Decorator: register the function that replaces the kernel if a gradient may be needed.

        It has precedence over formulas.  It gets the arguments of the call, in their graph, and may call the operator
        itself under `no_grad`.
        """
        self._check_functional("impl_autograd")
        return self._register("autograd", "impl_autograd", func)

    def impl_jvp(self, func: Callable | None = None, /) -> Any:
        """Decorator: register the forward derivative `func(inputs, tangents, output)`; it returns output tangents.

        `inputs` and `tangents` are named tuples that follow the schema; a tangent of zero is None.  Without it, the
        derivative is derived from the gradient formula.
        """
        self._check_functional("impl_jvp")
        return self._register("jvp", "impl_jvp", func)

    def impl_vmap(self, func: Callable | None = None, /) -> Any:
        """Decorator: register the batching rule `func(info, in_dims, *args, **kwargs)` -> (output, out_dims).

        It is like the static method vmap of a Function.  Without it, the examples run one by one.
        """
        self._check_functional("impl_vmap")
        if any(p.keyword_only for p in self.schema.inputs):
            raise NotImplementedError(
                f"{self.name}: register_vmap with kwarg-only Tensor args: in_dims are by position, so please make your "
                f"tensors not kwarg-only. Got: {self.schema}"
            )
        return self._register("vmap", "impl_vmap", func)

    def register_vmap(self, func: Callable | None = None) -> Any:
        """Decorator: `impl_vmap` by its newer name."""
        return self.impl_vmap(func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Let the operator get its inputs in the dtype `cast_inputs` where autocast is on for the device type.

        It casts floating tensors, but none of float64, also in lists, and calls operators in the kernel without
        autocast.  For other devices than the CPU it has no effect.

        Raises ValueError for an unknown device type, TypeError if `cast_inputs` is no dtype.
        """
        kinds = check_device_types(self.name, device_type)
        dtype = as_dtype(cast_inputs)
        if "cpu" in kinds:
            self._register("autocast", "register_autocast", functools.partial(cast_operand, dtype=dtype))

    def register_torch_dispatch(self, torch_dispatch_class: type, func: Callable | None = None, /) -> Any:
        """Decorator: register the function that runs if an operand has a class, in place of `__tensor_function__`.

        It is called as `func(cls, operator, types, args, kwargs)`, and may call the operator on tensors.
        """
        if func is None:
            return functools.partial(self.register_torch_dispatch, torch_dispatch_class)
        what = f"{self.name}: the function for {torch_dispatch_class.__name__}"
        return self.registrations.register_for_class(what, torch_dispatch_class, func)


class DeviceTypeError(RuntimeError, ValueError):
    """The error for a device type that does not exist; RuntimeError in PyTorch."""


def check_device_types(name: str, device_types: str | Sequence[str]) -> tuple[str, ...]:
    """Return the device types that a user named, after checking that each is known."""
    kinds = (device_types,) if isinstance(device_types, str) else tuple(device_types)
    known = ("default", *DEVICE_NAMES, *map(device_type_of, namespaces.values()))
    unknown = [kind for kind in kinds if kind not in known]
    if unknown or not kinds:
        raise DeviceTypeError(
            f"{name}: a kernel is for one of {', '.join(dict.fromkeys(known))}, not for "
            f"{', '.join(map(repr, unknown)) or 'no device type'}: Expected one of {', '.join(DEVICE_NAMES)} device "
            f"type at start of device string: {unknown[0] if unknown else ''}"
        )
    return kinds
