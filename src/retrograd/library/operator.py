"""The operators that users define: called, extended and listed like built-in ones."""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import optree

from retrograd import backend
from retrograd.core import Operator, Tensor, call, current, override_state
from retrograd.core.errors import OperandTypeError
from retrograd.core.function_node import run_on_plain
from retrograd.core.op import is_foreign
from retrograd.core.overrides import override_result, overriding_types
from retrograd.core.schema import Parameter
from retrograd.core.tensor import bump_version, preserve_snapshots
from retrograd.core.views import requires_grad_synced
from retrograd.library import autograd_formula, sanitizer
from retrograd.library.custom_definition import CustomDefinition
from retrograd.library.function_schema import FunctionSchema
from retrograd.library.kernel_adapter import check_single_result, make_functional, user_arguments
from retrograd.library.mixin import RegistrationMixin
from retrograd.library.operator_outputs import flatten
from retrograd.library.registration import Registration, Registrations
from retrograd.library.schema import CustomSchema
from retrograd.library.tags import Tag
from retrograd.ops.mutate import check_write
from retrograd.ops.user_namespaces import Namespace


class CustomOperator(Operator, RegistrationMixin):
    """A registered user-defined operator, `rg.ops.<namespace>.<name>`.

    Kernels, gradient formulas and rules are registered by its methods, in any order.  A missing part is derived if
    possible; otherwise its first use raises an error that names it.

    >>> import retrograd as rg
    >>> @rg.library.custom_op("docs::square", mutates_args=())
    ... def square(x: rg.Tensor) -> rg.Tensor:
    ...     return x * x
    >>> square
    <op docs::square(Tensor x) -> Tensor>
    >>> rg.ops.docs.square(rg.tensor([1.0, 2.0]))
    tensor([1., 4.])
    """

    def __init__(self, schema: CustomSchema, registrations: Registrations, tags: Sequence[Tag] = ()) -> None:
        definition = type(re.sub(r"\W", "_", schema.name), (CustomDefinition,), {
            "schema": schema, "registrations": registrations, "view": "" if schema.view_of is None else "one",
        })  # fmt: skip
        super().__init__(schema, definition)
        self.__doc__ = str(schema)
        self.rules = None  # one formula returns all gradients at once
        self.simple, self.unary = 0, False
        self.registrations = registrations
        self.tags = list(tags)
        self.functional = self if not schema.mutated else self._define_functional()
        plain = schema.plain and not any(p.keyword_only for p in schema.inputs)
        self._num_tensors = len(schema.inputs) if plain else -1  # this many positional tensors need no binding
        self._returns_one_tensor = schema.results == "Tensor"
        registrations.changed = self._refresh
        self._refresh()

    calls_user_code = True
    functional: "CustomOperator"
    """The variant that returns the new values of written arguments after the result; the operator itself if none."""

    def _define_functional(self) -> "CustomOperator":
        kinds = [p.type for p in self.schema.parameters if p.mutated]
        parameters = [p._replace(mutated=False) for p in self.schema.parameters]
        schema = CustomSchema(f"{self.name}.functional", parameters, (self.schema.results, *kinds))
        return CustomOperator(schema, Registrations(self.registrations.location, strict=self.registrations.strict))

    def _refresh(self) -> None:
        """Rebuild cached and derived attributes after a registration."""
        registrations = self.registrations
        self.kernels.clear()
        self.kernel = None
        unsure = registrations.strict and not autograd_formula.has_formula(registrations)
        self._runs_directly = not (self.schema.mutated or registrations.autograd or registrations.composite or unsure)
        for_all = registrations.kernels[""].function if [*registrations.kernels] == [""] else None
        fast = self._runs_directly and self._returns_one_tensor and self._num_tensors >= 0 and not self.view
        self._fast_kernel = for_all if fast else None
        if self.schema.mutated:
            functional_registrations = self.functional.registrations
            functional_registrations.kernels = {
                kind: make_functional(self.schema, known) for kind, known in registrations.kernels.items()
            }
            functional_registrations.disabled = registrations.disabled
            abstract = registrations.abstract
            if abstract is None and self.schema.results == () and not self.schema.returned:
                abstract = Registration(_return_none, registrations.location)  # only arguments have shapes
            functional_registrations.abstract = abstract and make_functional(self.schema, abstract)
            self.functional._refresh()

    @property
    def default(self) -> "CustomOperator":
        """The operator itself; in PyTorch, its default overload."""
        return self

    _opoverload = default

    @property
    def _qualname(self) -> str:
        return self.name

    @property
    def namespace(self) -> str:
        """The part of the name before "::"."""
        return self.name.partition("::")[0]

    @property
    def _schema(self) -> FunctionSchema:
        return FunctionSchema(self.schema)

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"The underlying op of '{self.namespace}.{self._opname}' has no overload name {name!r}: no overload "
            f"{name!r} is registered, and operators have no such attribute"
        )

    @property
    def _name(self) -> str:
        return self.name

    _qualified_op_name = _name

    @property
    def _opname(self) -> str:
        return self.name.partition("::")[2].partition(".")[0]

    @property
    def _namespace(self) -> str:
        return self.namespace

    @property
    def _defined_in_python(self) -> bool:
        return True

    @property
    def _overloadname(self) -> str:
        return self.name.partition("::")[2].partition(".")[2] or "default"

    @property
    def overloadpacket(self) -> Any:
        """The operator with all its overloads: `rg.ops.ns.name` for "ns::name.overload"."""
        return getattr(Namespace(self.namespace), self.name.partition("::")[2].partition(".")[0])

    def overloads(self) -> list[str]:
        """Return the names of the overloads of an operator that has only one."""
        return ["default"]

    # ------------------------------------------------------------------------------------------------ calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator at the current level."""
        kernel = self._fast_kernel
        if kernel is not None and not kwargs and len(args) == self._num_tensors and not sanitizer.state.on:
            out = run_on_plain(self, kernel, args)
            if out is not None:
                return out
        return self._run(args, kwargs)

    def _check_result(self, operands: Sequence, result: Any) -> Any:
        """Return the array of a kernel's only result; raise RuntimeError unless it is a tensor with its own memory."""
        return check_single_result(self.schema, operands, result)

    def _run(self, args: tuple, kwargs: dict) -> Any:
        """Run the operator in the general case."""
        if len(args) == self._num_tensors and not kwargs:
            inputs, params = args, self.params
        else:
            inputs, params = self.schema.bind(args, kwargs)
        exact = True  # no operand of another class: the common case, found without function calls
        for a in inputs:
            if type(a) is not Tensor:
                exact = False
        if not exact and not all(isinstance(a, Tensor) for a in inputs):
            self._check_inputs(inputs, params)
        level = current().level
        if level is not None and level.intercept is not None:
            with override_state("level", level.parent):
                out = level.intercept(self, inputs, params)
            if out is not NotImplemented:
                return out
        foreign = [] if exact else [x for x in inputs if is_foreign(x)]
        if foreign:
            return self._override_result(foreign, *user_arguments(self.schema, inputs, params))
        if not inputs and self.schema.has_device:
            self._check_device(params)
        if not self._runs_directly:
            replacement = self._replacement(inputs)
            if replacement is not None:
                given, named = user_arguments(self.schema, inputs, params)
                return replacement.function(*given, **named)
            if self.schema.mutated:
                return self._write(inputs, params)
        return self._result(call(self, inputs, params))

    def _override_result(self, foreign: list, args: tuple, kwargs: dict) -> Any:
        """Return the result that the classes of operands compute, by functions registered for them if there are any."""
        types = overriding_types(foreign)
        for cls in types:
            rule = self.override_for_class(cls)
            result = NotImplemented if rule is None else rule(cls, self, types, args, kwargs)
            if result is not NotImplemented:
                return result
        return override_result(self, foreign, args, kwargs)

    def accepts(self, args: tuple, kwargs: dict) -> bool:
        """Return whether the schema has room for these arguments, which may have to be converted."""
        try:
            inputs, params = self.schema.bind(args, kwargs)
            self._check_inputs(inputs, params)
        except TypeError:
            return False
        return True

    def call_arguments(self, args: tuple, params: dict) -> tuple[tuple, dict]:
        """Return the positional and the keyword arguments by which a call has these flat inputs and params."""
        return user_arguments(self.schema, args, params)

    def override_for_class(self, kind: type) -> Any:
        """Return the function that is registered for operands, or for a mode, of a class; None if there is none."""
        part = self.registrations.class_overrides.get(kind)
        return part and part.function

    def flat_result(self, result: Any) -> Any:
        """Return the result of a call as levels pass it: a tensor, or the flat tuple of tensors and the structure."""
        if self._returns_one_tensor:
            return result
        tensors, structure = flatten(result)
        return (*tensors, structure)

    def _result(self, out: Any) -> Any:
        """Return the result for the user."""
        return out if self._returns_one_tensor else out[-1].rebuild(out[:-1])

    def _replacement(self, inputs: Sequence) -> Registration | None:
        """Return what runs instead of the operator here; raise a RuntimeError if a gradient formula is missing."""
        registrations, state = self.registrations, current()
        if registrations.composite is not None and not registrations.kernels:
            return registrations.composite
        if not state.grad_enabled:
            return None
        if registrations.autograd is not None:
            return registrations.autograd if _may_be_differentiated(inputs) else None
        if registrations.strict and not autograd_formula.has_formula(registrations) and _any_requires_grad(inputs):
            raise autograd_formula.missing_formula(self.name, registrations)
        return None

    def _check_device(self, params: dict) -> None:
        """Raise if an operator that makes tensors has no kernel for the device that a call asks for."""
        name = next(p.name for p in self.schema.params if p.type.startswith("device"))
        kind = getattr(params[name], "type", "cpu")
        if self.registrations.kernel_for(kind) is None and kind != "cpu":
            raise RuntimeError(
                f"{self.name} does not have a kernel registered for {kind}. Please use register_kernel to do so."
            )

    def _check_inputs(self, inputs: Sequence, params: dict) -> None:
        named = self.schema.named(inputs, params)
        for p in self.schema.inputs:
            if not p.is_list:
                self._check_input(p, p.name, named[p.name], p.type.endswith("?"))
                continue
            for i, member in enumerate(named[p.name] or ()):
                self._check_input(p, f"{p.name}[{i}]", member, "?[]" in p.type)

    def _check_input(self, p: Parameter, where: str, value: Any, optional: bool) -> None:
        if not isinstance(value, Tensor) and not (value is None and optional) and not is_foreign(value):
            what = "a Tensor or None" if optional else "a Tensor"
            raise OperandTypeError(
                f"{self.name}(): {where} must be {what}, got {type(value).__name__}; its type is {p.type}. "
                f"{self.schema.mismatch(p, type(value).__name__)}"
            )

    # ------------------------------------------------------------------------------------------ in-place writes

    def _write(self, inputs: tuple, params: dict) -> Any:
        """Run an operator that writes to arguments: directly, or as one that returns the new values."""
        targets = self._written_tensors(inputs, params)
        operands = [a for a in inputs if isinstance(a, Tensor)]
        if Tag.out in self.tags:
            self._check_no_gradient(inputs)
        for x in targets:
            check_write(self.name, x, *operands)
        direct = current().level is None and not (current().grad_enabled and _any_requires_grad(inputs))
        result = (self._write_directly if direct else self._write_new_values)(inputs, params, targets)
        return self.schema.with_returned(result, inputs, params)

    def _check_no_gradient(self, inputs: tuple) -> None:
        """Raise if a gradient is needed of an operator that writes to `out=`, and has no formula for it."""
        if not (current().grad_enabled and _any_requires_grad(inputs)):
            return
        if not autograd_formula.has_formula(self.functional.registrations):
            raise RuntimeError(
                f"{self.name}(): functions with out=... arguments don't support automatic differentiation, but one of "
                "the arguments requires grad; run under no_grad(), or register a formula for its .functional"
            )

    def _write_directly(self, inputs: tuple, params: dict, targets: list[Tensor]) -> Any:
        for x in targets:
            preserve_snapshots(x)
        try:
            return self._result(call(self, inputs, params))
        finally:
            for x in targets:
                bump_version(x)

    def _write_new_values(self, inputs: tuple, params: dict, targets: list[Tensor]) -> Any:
        _check_no_overlap(self.name, targets)
        args, kwargs = user_arguments(self.schema, inputs, params)
        result, *written = self.functional(*args, **kwargs)
        values: list = optree.tree_leaves(written)
        for x, value in zip(targets, values, strict=True):
            x.copy_(value)
        return result

    def _written_tensors(self, inputs: tuple, params: dict) -> list[Tensor]:
        named = self.schema.named(inputs, params)
        written: Any = [named[name] for name in self.schema.mutated]
        leaves: list = optree.tree_leaves(written)
        return leaves

    # ------------------------------------------------------------------------------------ used by the engine

    def backward_functions(self) -> list[Callable]:
        """Return the user's functions that a backward pass calls."""
        given = [self.registrations.pull, self.registrations.backward]
        return [part.function for part in given if part is not None]

    def gradients(self, fn: Any, cotangents: tuple, needs_input_grad: list[bool]) -> list:
        """Return the cotangent of each edge."""
        return autograd_formula.gradients(self, self.registrations, fn, cotangents, needs_input_grad)


def _return_none(*args: Any, **kwargs: Any) -> None:
    """Return nothing, as an operator that only writes to its arguments."""


def _may_be_differentiated(inputs: Sequence) -> bool:
    """Return whether a gradient may be needed: above the ground always, in a trace only of its own tensors."""
    level = current().level
    if level is None or not level.traces:
        return level is not None or _any_requires_grad(inputs)
    return _any_requires_grad([a for a in inputs if isinstance(a, Tensor) and a.level is level])


def _any_requires_grad(inputs: Sequence) -> bool:
    return any(isinstance(a, Tensor) and requires_grad_synced(a) for a in inputs)


def _check_no_overlap(name: str, targets: list[Tensor]) -> None:
    """Raise if written arguments share memory, because each would get its own new value and the last would win."""
    for a, b in itertools.combinations(targets, 2):
        if _base(a) is _base(b) and (a.level is not None or backend.shares_memory(a.value, b.value)):
            raise RuntimeError(
                f"{name}: two of the arguments that it writes to show the same memory, and a gradient or a transform "
                "asks for their new values; give it tensors of their own"
            )


def _base(x: Tensor) -> Tensor:
    return x if x._view is None else x._view.base
