"""The operator that a user defines: called, extended, listed like ours, and in the same registry."""

import functools
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import optree

from retrograd import backend
from retrograd.core import Operator, Tensor, call, current
from retrograd.core.dispatch import is_foreign, mark_inference, wants
from retrograd.core.schema import Parameter
from retrograd.core.tensor import make, touch
from retrograd.library import gradient, sanitizer
from retrograd.library.calls import arguments, copying, value_of
from retrograd.library.definition import KINDS, CustomDefinition
from retrograd.library.parts import Part, Parts
from retrograd.library.schema import CustomSchema, is_list
from retrograd.ops.mutate import check_write


class CustomOperator(Operator):
    """A registered operator of a user, `rg.ops.<namespace>.<name>`.

    Kernels, gradient formulas and rules are registered by its methods, in any order; what is missing is derived where
    that can be, and else refused by name when it is needed.

    >>> import retrograd as rg
    >>> @rg.library.custom_op("docs::square", mutates_args=())
    ... def square(x: rg.Tensor) -> rg.Tensor:
    ...     return x * x
    >>> square
    <op docs::square(Tensor x) -> Tensor>
    >>> rg.ops.docs.square(rg.tensor([1.0, 2.0]))
    tensor([1., 4.])
    """

    def __init__(self, schema: CustomSchema, parts: Parts) -> None:
        definition = type(re.sub(r"\W", "_", schema.name), (CustomDefinition,), {"schema": schema, "parts": parts})
        super().__init__(schema, definition)
        self.__doc__ = str(schema)
        self.rules = None  # all gradients come at once
        self.simple = 0
        self.parts = parts
        self.functional = self if not schema.mutated else self._functional()
        self._fixed = -1 if schema.params or any(map(is_list, schema.inputs)) else len(schema.by_position)
        if self._fixed != len(schema.inputs):
            self._fixed = -1  # else as many tensors by position need no binding
        self._single = schema.returns == "Tensor"
        parts.changed = self._refresh
        self._refresh()

    functional: "CustomOperator"
    """Of an operator that writes to arguments, the one that returns their new values after its result; else itself."""

    def _functional(self) -> "CustomOperator":
        kinds = [p.type for p in self.schema.parameters if p.name in self.schema.mutated]
        schema = CustomSchema(
            f"{self.name}.functional", self.schema.parameters, (self.schema.results, *kinds), mutated=()
        )
        return CustomOperator(schema, Parts(self.parts.place, strict=self.parts.strict))

    def _refresh(self) -> None:
        """What was bound or derived is bound and derived anew: something was registered."""
        parts = self.parts
        self.kernels.clear()
        self.kernel = None
        unsure = parts.strict and not gradient.has_formula(parts)
        self._plain = not (self.schema.mutated or parts.autograd or parts.composite or unsure)
        for_all = parts.kernels[""].function if [*parts.kernels] == [""] else None
        self._straight = for_all if self._plain and self._single and self._fixed >= 0 else None
        if self.schema.mutated:
            twin = self.functional.parts
            twin.kernels = {kind: copying(self.schema, known) for kind, known in parts.kernels.items()}
            twin.abstract = parts.abstract and copying(self.schema, parts.abstract)
            self.functional._refresh()

    @property
    def default(self) -> "CustomOperator":
        """The operator itself: PyTorch has overloads."""
        return self

    # ------------------------------------------------------------------------------------------------ calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator wherever the call stands."""
        state, kernel = current(), self._straight
        if kernel is None or state.level is not None or len(args) != self._fixed or kwargs or sanitizer.state.on:
            return self._run(args, kwargs)
        for a in args:
            if type(a) is not Tensor or a._requires_grad or a.tag is not None or a._view or a.level:
                return self._run(args, kwargs)
        # What `call` does in the simplest of cases: a kernel for all arrays, and tensors without history.  It is
        # written out, as each call of a function, or block for the grad mode, would take a tenth of the time.
        mode, state.grad_enabled = state.grad_enabled, False
        try:
            result = kernel(*args)
        finally:
            state.grad_enabled = mode
        value = result.value if type(result) is Tensor else None
        for a in args:
            if a.value is value:
                value = None
        if value is None or value.base is not None:
            value = value_of(self.schema, args, result)  # which refuses what must not be
        out = make(value, None, None)
        if state.inference:
            mark_inference(out)
        return out

    def _run(self, args: tuple, kwargs: dict) -> Any:
        """Run the operator in whatever case."""
        if len(args) == self._fixed and not kwargs:
            inputs, params = args, self.params
        else:
            inputs, params = self.schema.bind(args, kwargs)
        for a in inputs:
            if not isinstance(a, Tensor):
                self._check_inputs(inputs, params)
                break
        if not self._plain:
            instead = self._instead(inputs)
            if instead is not None:
                given, named = arguments(self.schema, inputs, params)
                return instead.function(*given, **named)
            if self.schema.mutated:
                return self._write(inputs, params)
        out = call(self, inputs, params)
        return out if self._single else self._result(out)

    def _result(self, out: Any) -> Any:
        """What the user gets."""
        return out if self._single else out[-1].rebuild(out[:-1])

    def _instead(self, inputs: Sequence) -> Part | None:
        """What runs in place of the operator here; RuntimeError if it must not run, having no gradient formula."""
        parts, state = self.parts, current()
        if parts.composite is not None and not parts.kernels:
            return parts.composite
        if not state.grad_enabled:
            return None
        if parts.autograd is not None:
            return parts.autograd if state.level is not None or _wanted(inputs) else None
        if parts.strict and not gradient.has_formula(parts) and _wanted(inputs):
            raise gradient.missing_formula(self.name, parts)
        return None

    def _check_inputs(self, inputs: Sequence, params: dict) -> None:
        named = self.schema.named(inputs, params)
        for p in self.schema.inputs:
            if not is_list(p):
                self._check_input(p, p.name, named[p.name], p.type.endswith("?"))
                continue
            for i, member in enumerate(named[p.name] or ()):
                self._check_input(p, f"{p.name}[{i}]", member, "?[]" in p.type)

    def _check_input(self, p: Parameter, where: str, value: Any, optional: bool) -> None:
        if not isinstance(value, Tensor) and not (value is None and optional) and not is_foreign(value):
            what = "a Tensor or None" if optional else "a Tensor"
            raise TypeError(f"{self.name}(): {where} must be {what}, got {type(value).__name__}; its type is {p.type}")

    # ------------------------------------------------------------------------------------------------ writing

    def _write(self, inputs: tuple, params: dict) -> Any:
        """Run an operator that writes to some of its arguments: straight, or as one that returns what is new."""
        targets = self._targets(inputs, params)
        operands = [a for a in inputs if isinstance(a, Tensor)]
        for x in targets:
            check_write(self.name, x, *operands)
        if current().level is None and not (current().grad_enabled and _wanted(inputs)):
            try:
                return self._result(call(self, inputs, params))
            finally:
                for x in targets:
                    touch(x)
        _check_apart(self.name, targets)
        args, kwargs = arguments(self.schema, inputs, params)
        result, *written = self.functional(*args, **kwargs)
        values: list = optree.tree_leaves(written)
        for x, value in zip(targets, values, strict=True):
            x.copy_(value)
        return result

    def _targets(self, inputs: tuple, params: dict) -> list[Tensor]:
        named = self.schema.named(inputs, params)
        written: Any = [named[name] for name in self.schema.mutated]
        leaves: list = optree.tree_leaves(written)
        return leaves

    # ------------------------------------------------------------------------------------------- registration

    def _take(self, field: str, what: str, function: Callable | None) -> Any:
        """Register a function; without one, the decorator that does."""
        if function is None:
            return functools.partial(self.parts.take, f"{self.name}: {what}", field)
        return self.parts.take(f"{self.name}: {what}", field, function)

    def impl(self, device_types: str | Sequence[str], func: Callable | None = None) -> Any:
        """Decorator: the kernel for "cpu" (NumPy), "cuda" (CuPy) or "nested" arrays, or for several of them;
        "default" is for all.

        It gets tensors, outside any graph, and params, and returns what the schema says, new tensors all.  A second
        kernel for the same kind takes the first one's place; in the older face it is a RuntimeError.

        >>> import retrograd as rg
        >>> @rg.library.custom_op("docs::double", "(Tensor x) -> Tensor")
        ... def double(x): ...
        >>> @double.impl("cpu")
        ... def double_cpu(x):
        ...     return rg.as_tensor(x.numpy() * 2)
        >>> double(rg.ones(2))
        tensor([2., 2.])
        """
        if func is None:
            return functools.partial(self.impl, device_types)
        for kind in array_kinds(self.name, device_types):
            self.parts.take_kernel(f"{self.name}: the kernel for {kind or 'all'} arrays", kind, func)
        return func

    def impl_factory(self, func: Callable | None = None, /) -> Any:
        """Decorator: the kernel of an operator without tensor arguments."""
        return self.impl("default", func)

    def register_kernel(self, device_types: str | Sequence[str] | None, func: Callable | None = None, /) -> Any:
        """Decorator: `impl` by its newer name; None is for all kinds of arrays."""
        return self.impl("default" if device_types is None else device_types, func)

    def impl_abstract(self, func: Callable | None = None, /) -> Any:
        """Decorator: the function that says the shape and dtype of the result.

        It gets tensors without memory, whose numbers mean nothing, and returns some like the result.  Without, the
        kernel runs on zeros.

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
        return self._take("abstract", "the abstract function", func)

    register_fake = impl_abstract

    def impl_save_for_backward(self, func: Callable | None = None, /) -> Any:
        """Decorator: what the gradient formula needs of a call, `func(inputs, output)`.

        `inputs` is a named tuple after the schema; what is returned, any nesting of tensors and other values, is what
        `impl_backward`'s function gets.
        """
        self._check_new("impl_save_for_backward")
        return self._take("save", "impl_save_for_backward", func)

    def impl_backward(self, output_differentiability: Sequence[bool] | None = None) -> Callable:
        """Decorator: the gradient formula, `func(ctx, saved, *grads)`, that returns a dict from argument to gradient.

        There is a gradient in `grads` for each output, zeros where nothing flows, and a key in the dict for each tensor
        argument; of a list of tensors a list.  `output_differentiability` has an entry for each output.

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
        self._check_new("impl_backward")
        marks = self._marks(output_differentiability)

        def register(func: Callable) -> Callable:
            self.parts.take(f"{self.name}: impl_backward", "backward", func)
            self.parts.differentiable = marks
            return func

        return register

    def _marks(self, marks: Sequence[bool] | None) -> tuple[bool, ...] | None:
        if marks is None:
            return None
        expected = len(self.schema.results) if isinstance(self.schema.results, tuple) else 1
        if (
            not isinstance(marks, (list, tuple))
            or not all(isinstance(m, bool) for m in marks)
            or len(marks) != expected
        ):
            raise RuntimeError(
                f"{self.name}: impl_backward: output_differentiability must be a list of bools, one for each "
                "output, so "
                f"{expected}; got {marks!r}"
            )
        return tuple(marks)

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Register the gradient formula `backward(ctx, *grads)`, that returns a gradient for each argument.

        `setup_context(ctx, inputs, output)` keeps what it needs, by `ctx.save_for_backward` or as attributes;
        arguments that must be named come as `keyword_only_inputs`, and have no gradients.  Registered again, the new
        formula takes the old one's place, for the calls that follow.

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
        self._check_new("register_autograd")
        if any(p.keyword_only for p in self.schema.inputs):
            raise NotImplementedError(
                f"{self.name}: register_autograd: tensors that must be named have no place in its formula; let "
                "them be given "
                f"by position"
            )
        self._take("pull", "register_autograd", backward)
        if setup_context is None:
            self.parts.setup = None
        else:
            self._take("setup", "register_autograd's setup_context", setup_context)

    def _check_new(self, what: str) -> None:
        if self.schema.mutated:
            raise RuntimeError(
                f"{self.name}: {what}: not for an operator that writes to its arguments; register it for the "
                "operator's "
                f".functional, which returns their new values after the result"
            )
        if self.schema.results == ():
            raise RuntimeError(f"{self.name}: {what}: not for an operator that returns nothing")

    def impl_autograd(self, func: Callable | None = None, /) -> Any:
        """Decorator: the function to call in place of the kernel where a gradient may be wanted; it goes before
        formulas.

        It gets the arguments of the call, in their graph, and may call the operator itself under `no_grad`.
        """
        self._check_new("impl_autograd")
        return self._take("autograd", "impl_autograd", func)

    def impl_jvp(self, func: Callable | None = None, /) -> Any:
        """Decorator: the forward derivative, `func(inputs, tangents, output)`, that returns tangents like the output.

        `inputs` and `tangents` are named tuples after the schema; a tangent is None for zero.  Without, it is derived
        from the gradient formula.
        """
        self._check_new("impl_jvp")
        return self._take("jvp", "impl_jvp", func)

    def impl_vmap(self, func: Callable | None = None, /) -> Any:
        """Decorator: the operator on a batch, `func(info, in_dims, *args, **kwargs)`, that returns (output, out_dims).

        As the static method vmap of a Function.  Without, the examples run one by one.
        """
        self._check_new("impl_vmap")
        return self._take("vmap", "impl_vmap", func)

    register_vmap = impl_vmap

    # ------------------------------------------------------------------------------------ what the engine asks

    def gradients(self, fn: Any, cotangents: tuple, wanted: list[bool]) -> list:
        """Per edge of a node the cotangent."""
        return gradient.gradients(self, self.parts, fn, cotangents, wanted)

    def saved(self, fn: Any) -> tuple:
        """The saved tensors of a node."""
        return gradient.saved_of(fn)


def array_kinds(name: str, device_types: str | Sequence[str]) -> list[str]:
    """The kinds of arrays that a user names, "" for all."""
    kinds = (device_types,) if isinstance(device_types, str) else tuple(device_types)
    for kind in kinds:
        if kind not in (*KINDS.values(), "default"):
            raise ValueError(
                f"{name}: there are kernels for {', '.join(KINDS.values())} and default, which is all; not for {kind!r}"
            )
    return ["" if kind == "default" else kind for kind in kinds]


def _wanted(inputs: Sequence) -> bool:
    return any(isinstance(a, Tensor) and wants(a) for a in inputs)


def _check_apart(name: str, targets: list[Tensor]) -> None:
    """Refuse targets that show the same memory: each would get its own new value, and the last one win."""
    for a, b in itertools.combinations(targets, 2):
        if _base(a) is _base(b) and (a.level is not None or backend.shares_memory(a.value, b.value)):
            raise RuntimeError(
                f"{name}: two of the arguments that it writes to show the same memory, and a gradient or a "
                "transform asks for "
                f"their new values; give it tensors of their own"
            )


def _base(x: Tensor) -> Tensor:
    return x if x._view is None else x._view.base
