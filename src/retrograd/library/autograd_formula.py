"""Gradient formulas of custom operators: the saved values, the returned gradients, and checks of both."""

from collections.abc import Callable, Sequence
from typing import Any

import optree

from retrograd.autograd.function.cotangents import check_gradient
from retrograd.autograd.function.node_class import ContextNode
from retrograd.core import Aval, GradFn, Tensor, at, current, registry
from retrograd.core.dtype import is_differentiable
from retrograd.core.function_node import (
    contains_tensor,
    cotangents_for_users,
    describe_tensors,
    function_node,
    needed_inputs,
    save_tensors,
    select_fitting,
    shapes_and_dtypes,
    unpack_saved,
)
from retrograd.core.graph import note_output
from retrograd.core.level import transform_level
from retrograd.core.record import notify_watchers
from retrograd.core.tensor import is_real_array
from retrograd.foundation.describe_value import note_call
from retrograd.library import double_backward_check
from retrograd.library.operator_outputs import Structure, flatten
from retrograd.library.registration import Registration, Registrations
from retrograd.library.schema import CustomSchema


class Call:
    """One call: its flat inputs, params, output tensors, and the structure of the result (None: a single tensor)."""

    __slots__ = ("inputs", "outs", "params", "schema", "structure")

    def __init__(self, schema: CustomSchema, inputs: tuple, params: dict, out: Any) -> None:
        self.schema = schema
        self.inputs = inputs
        self.params = params
        self.outs, self.structure = split_result(out)

    @property
    def result(self) -> Any:
        """Return the result for the user."""
        return self.outs[0] if self.structure is None else self.structure.rebuild(self.outs)


def inputs_of(schema: CustomSchema, inputs: Sequence, params: dict) -> Any:
    """Return the arguments of a call as a named tuple that follows the schema."""
    return schema.arguments_type(*schema.values(inputs, params))


def split_result(out: Any) -> tuple[list[Tensor], Structure | None]:
    """Return the tensors of a flat result, and the structure of the user's result."""
    return ([out], None) if isinstance(out, Tensor) else (list(out[:-1]), out[-1])


# -------------------------------------------------------------------------------------------------- saved values


class Context(ContextNode):
    """The ctx that a call passes to its gradient formula."""

    _params: dict = {}  # noqa: RUF012 (set per call): its params
    _avals: list = []  # noqa: RUF012 (set per call): shape and dtype of each flat input, None for a non-tensor
    _structure: Structure | None = None
    _backward_formula: Registration | None = None  # the newer interface's formula at the time of the call
    _saved_structure: Structure | None = None  # the structure of impl_save_for_backward's result


def make_context(registrations: Registrations, call: Call, needed: Sequence[bool]) -> Context:
    """Return the ctx of a call with everything that the formula needs; `needed` marks inputs with gradients."""
    ctx, schema = Context(), call.schema
    ctx._params, ctx._structure, ctx._backward_formula = call.params, call.structure, registrations.pull
    ctx._avals = shapes_and_dtypes(call.inputs)
    ctx._outputs = describe_tensors(call.outs)
    ctx.needs_input_grad = (
        tuple(needed)
        if schema.passes_all
        else schema.group_flags(needed, call.params)[: schema.count_given(call.inputs, call.params)]
    )
    if registrations.pull is not None:
        if registrations.setup is not None:
            _call_setup(registrations.setup.function, ctx, call)
    elif registrations.save is not None:
        given = registrations.save.function(inputs_of(schema, call.inputs, call.params), call.result)
        tensors, ctx._saved_structure = flatten(given)
        ctx.to_save = tuple(tensors)
    return ctx


def _call_setup(setup: Callable, ctx: Context, call: Call) -> None:
    schema = call.schema
    if schema.passes_all:
        setup(ctx, call.inputs, call.result)
        return
    values = schema.values(call.inputs, call.params)
    if len(schema.by_position) == len(values):
        setup(ctx, values, call.result)
        return
    alone = {p.name: v for p, v in zip(schema.parameters, values, strict=True) if p.keyword_only}
    setup(ctx=ctx, inputs=values[: len(schema.by_position)], keyword_only_inputs=alone, output=call.result)


def record(op: Any, registrations: Registrations, call: Call, level: Any) -> None:
    """Attach a node to the outputs of a call, if some of them are differentiable."""
    differentiable_mask = differentiable_outputs(op.name, registrations, call)
    if True not in differentiable_mask:
        return
    needed = needed_inputs(call.inputs, level)
    with at(None, False) if level is None else level.unrecorded():
        ctx = make_context(registrations, call, needed)
    fn = function_node(op, ctx, call.inputs, needed)
    if len(call.outs) > 1:
        fn.out_avals = tuple([Aval(out.shape, out.dtype) for out in call.outs])
    else:
        note_output(fn, call.outs[0])
    for number, out in enumerate(call.outs):
        if differentiable_mask[number] and not contains_tensor(out, ctx.non_differentiable):
            out._grad_fn, out._output_nr, out._requires_grad = fn, number, True
    if ctx.to_save:
        save_tensors(fn, ctx, tuple(call.outs))
        ctx.to_save = ()
    if ctx.non_differentiable or ctx.saved_for_forward:
        ctx.non_differentiable = ctx.saved_for_forward = ()
    watchers = current().watchers
    if watchers is not None:
        notify_watchers(watchers, fn)


def differentiable_outputs(name: str, registrations: Registrations, call: Call) -> list[bool]:
    """Return for each output tensor whether it is differentiable."""
    floating = [is_real_array(out.value) or is_differentiable(out.dtype) for out in call.outs]
    if registrations.differentiable is None or registrations.pull is not None:
        return floating
    result = call.result if isinstance(call.result, tuple) else (call.result,)
    flags: list[bool] = []
    for i, (value, flag) in enumerate(zip(result, registrations.differentiable, strict=True)):
        leaves: list = optree.tree_leaves(value)
        others = [type(leaf).__name__ for leaf in leaves if not isinstance(leaf, Tensor)]
        if flag and others:
            raise RuntimeError(
                f"{name}: output {i} is not a Tensor, but a {others[0]}; the output_differentiability of the formula "
                f"registered at {registrations.backward and registrations.backward.location} says that it is "
                f"differentiable"
            )
        flags += [flag] * (len(leaves) - len(others))
    return [m and f for m, f in zip(flags, floating, strict=True)]


# --------------------------------------------------------------------------------------------- returned gradients


def gradients(
    op: Any, registrations: Registrations, fn: GradFn, cotangents: tuple, needs_input_grad: list[bool]
) -> list:
    """Return the cotangent of each edge of a node, by the user's formula."""
    ctx = fn.params["ctx"]
    recorded = transform_level() is not None or current().grad_enabled
    saved = (
        unpack_saved(fn) if recorded or ctx._saved_structure is not None else ()
    )  # otherwise ctx.saved_tensors unpacks them
    found = run_formula(op.schema, registrations, ctx, saved, cotangents, needs_input_grad)
    if not recorded:
        return found

    def rerun(others: list) -> list:
        return run_formula(op.schema, registrations, ctx, saved, others, needs_input_grad)

    return double_backward_check.check_differentiable(op.name, rerun, cotangents, [*saved, *vars(ctx).values()], found)


def run_formula(
    schema: CustomSchema,
    registrations: Registrations,
    ctx: Context,
    saved: tuple,
    cotangents: Sequence,
    needs_input_grad: Sequence[bool],
) -> list:
    """Return the cotangent of each flat input of a saved call; None where it is not needed or does not exist."""
    grad_outputs = cotangents_for_users(cotangents)
    if ctx.materialize_grads:
        for i, g in enumerate(grad_outputs):
            if g is None:
                grad_outputs[i] = registry["zeros"](ctx._outputs[i][1], dtype=ctx._outputs[i][2])
    grads = grad_outputs if ctx._structure is None else _group_by_output(ctx._structure, grad_outputs)
    pull = ctx._backward_formula or (registrations.pull if registrations.setup is None else None)
    try:
        if pull is not None:
            location = pull.location
            flat = _gradients_by_position(schema, ctx, pull.function(ctx, *grads), location)
        elif ctx._saved_structure is not None and registrations.backward is not None:
            location = registrations.backward.location
            flat = _gradients_by_name(
                schema, ctx, registrations.backward.function(ctx, ctx._saved_structure.rebuild(saved), *grads), location
            )
        else:
            raise missing_formula(schema.name, registrations)
    except Exception as error:
        note_call(error, f"the backward of {schema.name}", grads)
        raise
    found: list | None = select_fitting(flat, ctx._avals, needs_input_grad)
    if found is None:
        converted = [None if g is None else _convert_gradient(schema, ctx, location, i, g) for i, g in enumerate(flat)]
        found = [g if w else None for g, w in zip(converted, needs_input_grad, strict=True)]
    return found


def has_formula(registrations: Registrations) -> bool:
    """Return whether a gradient formula is registered."""
    return registrations.pull is not None or (registrations.save is not None and registrations.backward is not None)


def missing_formula(name: str, registrations: Registrations) -> RuntimeError:
    """Return the error for a gradient without a formula."""
    formula = registrations.pull or registrations.backward
    if formula is not None and has_formula(registrations):
        return RuntimeError(
            f"{name}: was called before its gradient formula was registered, at {formula.location}, so nothing was "
            f"kept "
            "for it; register it first"
        )
    if registrations.save is not None:
        return _incomplete_formula(name, "impl_save_for_backward", registrations.save, "impl_backward")
    if registrations.backward is not None:
        return _incomplete_formula(name, "impl_backward", registrations.backward, "impl_save_for_backward")
    words = (
        f"Autograd has not been implemented for operator {name}."
        if registrations.strict
        else f"Trying to backward through {name} but no autograd formula was registered. Please use "
        "register_autograd to add one."
    )
    return RuntimeError(
        f"{words} {name}: no gradient formula is registered for this operator, defined at {registrations.location}, "
        "and an input requires grad; use register_autograd, or run under no_grad()"
    )


def _incomplete_formula(name: str, found: str, part: Registration, missing: str) -> RuntimeError:
    words = {"impl_backward": "a 'backward'", "impl_save_for_backward": "a 'save_for_backward'"}
    return RuntimeError(
        f"{name}: {found} is registered, at {part.location}, but {missing} is not: we were unable to find "
        f"{words[missing]} registration; both are needed"
    )


def _group_by_output(structure: Structure, grads: list) -> tuple:
    """Return the gradients of the outputs, one argument for each: lists for lists, None for non-tensors."""
    found = structure.rebuild_tensors(grads)
    return found if isinstance(found, tuple) else (found,)


def _gradients_by_position(schema: CustomSchema, ctx: Context, returned: Any, location: str) -> Sequence:
    """Return for each flat input what a formula of the newer interface returned by position."""
    given = returned if isinstance(returned, tuple) else (returned,)
    count = len(schema.by_position)
    if len(given) == count and schema.plain:
        return given
    least = len(ctx.needs_input_grad)
    if len(given) < least or any(g is not None for g in given[count:]):
        names = ", ".join(p.name for p in schema.by_position)
        expected = f"{count}" if least == count else f"{least} or {count}"
        raise RuntimeError(
            f"{schema.name}: the formula registered at {location} returned an incorrect number of gradients "
            f"(expected {expected}, got {len(given)}): one for each of {names}"
        )
    given = (*given[:count], *[None] * (count - len(given)))
    if schema.plain:
        return given
    named = dict(zip([p.name for p in schema.by_position], given, strict=False))
    empty = [p.name for p in schema.by_position if p.is_list and named[p.name] is None]
    return _flatten_gradients(schema, ctx, named, location, empty)


def _gradients_by_name(schema: CustomSchema, ctx: Context, returned: Any, location: str) -> Sequence:
    """Return for each flat input what a formula of the older interface returned by name."""
    if not isinstance(returned, dict):
        raise RuntimeError(
            f"{schema.name}: expected the output of the formula registered at {location} to be a dict from names of "
            f"arguments to gradients, got {type(returned).__name__}"
        )
    expected = {p.name for p in schema.inputs}
    if returned.keys() != expected:
        wrong = [f"no key {n!r}" for n in sorted(expected - set(returned))]
        wrong += [f"a key {n!r}" for n in sorted(map(str, set(returned) - expected))]
        keys = ", ".join(map(repr, sorted(expected)))
        raise RuntimeError(
            f"{schema.name}: expected the dict that the formula registered at {location} returns to have keys "
            f"{{{keys}}}, one for each tensor argument, and none for arguments of non-Tensor-like types; it has "
            f"{', '.join(wrong)}"
        )
    return _flatten_gradients(schema, ctx, returned, location)


def _flatten_gradients(
    schema: CustomSchema, ctx: Context, named: dict, location: str, empty: Sequence[str] = ()
) -> list:
    """Return the gradients by name as those of flat inputs; members of the lists `empty` have none."""
    numbers = schema.named(range(len(ctx._avals)), ctx._params)
    flat: list = []
    for p in schema.parameters:
        given = named.get(p.name)
        if not p.is_tensor:
            if given is not None:
                raise RuntimeError(
                    f"{schema.name}: the formula registered at {location} returned a gradient for {p.name!r}, which "
                    f"is no "
                    f"tensor: expected None, got {type(given).__name__}"
                )
        elif p.is_list:
            none = p.name in empty or numbers[p.name] is None
            count = len(numbers[p.name] or ())
            flat += (
                [None] * count
                if given is None and none
                else _check_gradient_list(schema.name, location, p.name, count, given)
            )
        else:
            flat.append(given)
    return flat


def _check_gradient_list(name: str, location: str, argument: str, count: int, given: Any) -> Sequence:
    if not isinstance(given, (list, tuple)):
        raise RuntimeError(
            f"{name}: for the list {argument!r} the formula registered at {location} must return a list of gradients, "
            f"got {type(given).__name__}"
        )
    if len(given) != count:
        raise RuntimeError(
            f"{name}: for the list {argument!r} the formula registered at {location} must return a list of {count} "
            f"gradients but got {len(given)}"
        )
    return given


def _convert_gradient(schema: CustomSchema, ctx: Context, location: str, number: int, g: Any) -> Tensor:
    """Return a gradient converted to its input's shape and dtype, or raise."""
    name, where, aval = schema.name, schema.input_name(number, len(ctx._avals), ctx._params), ctx._avals[number]
    if not isinstance(g, Tensor):
        raise RuntimeError(
            f"{name}: the formula registered at {location} returned a {type(g).__name__} as the gradient of {where!r}: "
            f"expected it to be either None or a Tensor, and in a list None or Tensor"
        )
    if aval is None:
        raise RuntimeError(
            f"{name}: the formula registered at {location} returned a gradient of {where!r}, which was no tensor: "
            f"expected None"
        )
    return check_gradient(f"{name}: the formula registered at {location}", where, g, *aval)
