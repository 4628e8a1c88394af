"""The definition of a custom operator for levels and the engine: kernels, shapes, tangents, batches, recording."""

import itertools
from collections.abc import Callable
from typing import Any

from retrograd.autograd.function.batch_rule import VmapInfo, move_batch_dims_first
from retrograd.core import Aval, Internal, NotBatchedError, Tensor, at, call, override_state, registry
from retrograd.levels import GradLevel, value_at
from retrograd.levels.batch import VmapOperands
from retrograd.levels.grad import leaf_at, pull_cotangents
from retrograd.library import autograd_formula
from retrograd.library.autograd_formula import Call, split_result
from retrograd.library.derived_jvp import check_transposed, probe_cotangent
from retrograd.library.fake_context import abstract_context
from retrograd.library.fallbacks import fallback_for
from retrograd.library.kernel_adapter import adapt_kernel, drop_written_results, user_arguments
from retrograd.library.operator_outputs import Structure, check_and_flatten
from retrograd.library.registration import Registrations
from retrograd.library.schema import CustomSchema
from retrograd.ops import batch_loop

DEVICE_TYPES = {"numpy": "cpu", "cupy": "cuda"}  # device types by namespace


def device_type_of(namespace: Any) -> str:
    """Return the device type of a namespace's arrays."""
    name = namespace.__name__.rpartition(".")[2]
    return DEVICE_TYPES.get(name, name)


class CustomDefinition(
    Internal,
):
    """The definition of one custom operator; each is a subclass with its own schema and parts."""

    schema: CustomSchema
    registrations: Registrations

    @classmethod
    def bind(cls, namespace: Any) -> Callable:
        """Return the kernel over one kind of arrays."""
        kind = device_type_of(namespace)
        found = cls.registrations.kernel_for(kind) or fallback_for(kind, cls.schema.name)
        if found is None:
            raise _missing_kernel(cls.schema, cls.registrations, kind)
        return adapt_kernel(cls.schema, found)

    @classmethod
    def bind_widened(cls, namespace: Any) -> Callable:
        """Return the kernel for bfloat16: the user's, which gets the arrays as they are."""
        return cls.bind(namespace)

    @classmethod
    def shape(cls, /, *avals: Any, **params: Any) -> Any:
        """Return the avals of the result, by the user's abstract function or a run on zeros."""
        with at(None, False), override_state("device", None):  # zeros on the meta device would need this shape again
            inputs = [_zeros(a) if isinstance(a, Aval) else a for a in avals]
            if cls.registrations.abstract is None:
                tensors, _ = split_result(call(registry[cls.schema.name], tuple(inputs), params))
            else:
                args, kwargs = user_arguments(cls.schema, inputs, params)
                with abstract_context(cls.schema.name):
                    result = drop_written_results(cls.schema, cls.registrations.abstract.function)(*args, **kwargs)
                tensors, _ = check_and_flatten(cls.schema.name, result, cls.schema.results)
        found = tuple([t.aval for t in tensors])
        return found[0] if cls.schema.results == "Tensor" else found

    @classmethod
    def record(cls, op: Any, args: tuple, params: dict, out: Any, level: Any) -> None:
        """Attach a node to the outputs of a call."""
        autograd_formula.record(op, cls.registrations, Call(cls.schema, args, params, out), level)

    # ---------------------------------------------------------------------------------------------- forward mode

    @classmethod
    def jvp(cls, op: Any, primals: tuple, tangents: tuple, out: Any, params: dict) -> Any:
        """Return the outputs' tangents, by the user's rule or by transposing the gradient formula, which is linear."""
        op_call = Call(cls.schema, primals, params, out)
        found = (
            cls._run_jvp_rule(op_call, tangents)
            if cls.registrations.jvp is not None
            else cls._transpose_formula(op_call, tangents)
        )
        return found[0] if op_call.structure is None else (*found, None)

    @classmethod
    def _run_jvp_rule(cls, op_call: Call, tangents: tuple) -> list:
        assert cls.registrations.jvp is not None
        along = autograd_formula.inputs_of(cls.schema, tangents, op_call.params)
        along = along._replace(**{p.name: None for p in cls.schema.params})
        result = cls.registrations.jvp.function(
            autograd_formula.inputs_of(cls.schema, op_call.inputs, op_call.params), along, op_call.result
        )
        return [result] if op_call.structure is None else op_call.structure.flatten_like(cls.schema.name, result)

    @classmethod
    def _transpose_formula(cls, op_call: Call, tangents: tuple) -> list:
        name, level = cls.schema.name, GradLevel()
        if cls.registrations.pull is None and cls.registrations.backward is None:
            raise NotImplementedError(
                f"{name}: has no forward derivative: register one by impl_jvp, or a gradient formula to derive it from"
            )
        has_tangent = [t is not None for t in tangents]
        ctx = autograd_formula.make_context(cls.registrations, op_call, has_tangent)
        marks = autograd_formula.differentiable_outputs(name, cls.registrations, op_call)
        differentiable = [
            m and not any(out is f for f in ctx.non_differentiable) for out, m in zip(op_call.outs, marks, strict=True)
        ]
        seeds = [probe_cotangent(out) for out, w in zip(op_call.outs, differentiable, strict=True) if w]
        with override_state("saving", None):  # this graph is temporary: no hooks of saved tensors
            with level:
                leaves = [leaf_at(level, x) for x in seeds]
                found = autograd_formula.run_formula(
                    cls.schema, cls.registrations, ctx, ctx.to_save, _fill_none(leaves, differentiable), has_tangent
                )
            pairs = [(g, t) for g, t in zip(found, tangents, strict=True) if g is not None]
            dots = pull_cotangents(level, [g for g, _ in pairs], [t for _, t in pairs], leaves)
        check_transposed(name, list(zip(seeds, dots, strict=True)), [(value_at(level, g), t) for g, t in pairs])
        return _fill_none(dots, differentiable)

    # ---------------------------------------------------------------------------------------------- batches

    @classmethod
    def batched_views(cls, shape: tuple, /, **params: Any) -> Any:
        """Raise: the view of a batch can't be derived from a kernel that returns the view of one example."""
        raise NotBatchedError(
            f"vmap: in-place write to a view that {cls.schema.name} returns; use vmap(..., fallback='loop')"
        )

    @classmethod
    def batch(cls, batched: tuple[bool, ...], n: int, /, *args: Any, vmap_operands: VmapOperands, **params: Any) -> Any:
        """Run all examples by the user's rule, or one by one."""
        operator = registry[cls.schema.name]
        if cls.registrations.vmap is None:
            return _batch_in_loop(operator, batched, n, args, params)
        operands, batch_dims = vmap_operands.as_given()
        given, kwargs = user_arguments(cls.schema, operands, params)
        dims = cls.schema.named(batch_dims, params)
        count = cls.schema.count_given(operands, params)
        in_dims = tuple([_in_dim_of(p, dims) for p in cls.schema.by_position[:count]])
        info = VmapInfo(n, vmap_operands.level.randomness)
        result = cls.registrations.vmap.function(info, in_dims, *given, **kwargs)
        tensors, structure = check_and_flatten(
            cls.schema.name, move_batch_dims_first(cls.schema.name, n, result, vmap_operands), cls.schema.results
        )
        return tensors[0] if cls.schema.results == "Tensor" else (*tensors, structure)


def _missing_kernel(schema: CustomSchema, registrations: Registrations, kind: str) -> NotImplementedError:
    """Return the error for a call on arrays without a kernel."""
    known = ", ".join(sorted(registrations.kernels)) or "none"
    if schema.inputs:
        why = f"there is no {kind} impl registered, that is no kernel is registered for {kind} arrays"
    else:
        why = (
            "There were no Tensor inputs to this operator, and no kernel is registered that needs none; if it makes "
            "tensors, use impl_factory"
        )
    return NotImplementedError(
        f"Could not run '{schema.name}' with arguments from the '{kind.upper()}' backend: {why} (there is {known}); "
        f"the operator is defined at {registrations.location}"
    )


def _in_dim_of(parameter: Any, dims: dict) -> Any:
    if not parameter.is_tensor:
        return None
    value = dims[parameter.name]
    return list(value) if isinstance(value, tuple) else value


def _zeros(aval: Aval) -> Tensor:
    """Return zeros, expanded from one element to save memory."""
    return registry["expand"](registry["zeros"]((), dtype=aval.dtype), aval.shape)


def _fill_none(tensors: list, differentiable: list[bool]) -> list:
    """Return a list with the tensors in the marked positions, and None elsewhere."""
    rest = iter(tensors)
    return [next(rest) if w else None for w in differentiable]


def _batch_in_loop(op: Any, batched: tuple[bool, ...], n: int, args: tuple, params: dict) -> Any:
    if n == 0:
        return batch_loop.empty_batch(op, batched, args, params)
    results = [split_result(call(op, one, params)) for one in batch_loop.iter_examples(batched, n, args)]
    structure = _common_structure(op.name, [structure for _, structure in results])
    outs = [batch_loop.stack_results(list(part)) for part in zip(*[tensors for tensors, _ in results], strict=True)]
    return outs[0] if structure is None else (*outs, structure)


def _common_structure(name: str, structures: list[Structure | None]) -> Structure | None:
    """Return the structure of the results of all examples; their values that are no tensors must be equal."""
    first = structures[0]
    for i, other in enumerate(structures):
        if first is not None and other is not None and (other.leaves, other.spec) != (first.leaves, first.spec):
            one, two = (s.rebuild(itertools.repeat("Tensor")) for s in (first, other))
            raise NotBatchedError(
                f"vmap: {name} returns {one} for example 0, but {two} for example {i}: the number of tensors, "
                "and all other values, must be the same; return values that differ as tensors, or run example by "
                "example, by vmap(..., fallback='loop')"
            )
    return first
