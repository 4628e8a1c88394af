"""Functions of tensors of which each rank has a part: the `__tensor_function__` of `DTensor`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from math import prod
from typing import Any

from retrograd.core import Aval, Op, Tensor, registry
from retrograd.core import dtype as dtypes
from retrograd.core.blocks import generator_block
from retrograd.core.dispatch import run_compose
from retrograd.core.overrides import resolve_call, write_out
from retrograd.distributed.device_mesh import DeviceMesh
from retrograd.distributed.tensor.division import Division, Placements
from retrograd.distributed.tensor.dtensor import DTensor, broadcast_over, distribute_tensor, local_of, wrap
from retrograd.distributed.tensor.placements import Partial, Replicate, Shard
from retrograd.distributed.tensor.propagation import Plan, call_of, local_params, nest_of, plan_for, result_avals
from retrograd.distributed.tensor.redistribution import cotangent_placements, exchange
from retrograd.nn.tensor_part import local_tensor, on_parts
from retrograd.ops.family import canonical_dims
from retrograd.ops.functions import functions
from retrograd.ops.gather import Part
from retrograd.ops.index import PLAIN, index

_takes_copies = ContextVar("takes_copies", default=False)  # whether plain tensors are copies that each rank has
Arguments = Sequence[Any]
Keywords = Mapping[str, Any]


def run(func: Any, args: Arguments, kwargs: Keywords) -> Any:
    """Return the result of a function on tensors of which some are divided."""
    name = getattr(func, "__name__", "")
    if isinstance(func, Op):
        return _run_operator(func, args, kwargs)
    if hasattr(func, "without_override"):  # it only calls operators
        return func.without_override(*args, **kwargs)
    if name in ("__get__", "__set__", "__delete__"):
        return _run_property(func, args)
    if name in ("backward", "grad"):
        return _run_backward(func, args, kwargs)
    if name.endswith("_like"):
        return _run_like(func, args, kwargs)
    if name.startswith("new_"):
        return _run_new(func, args, kwargs)
    if name == "__getitem__" and isinstance(args[0], DTensor) and _selects_no_elements(args[1]):
        return index(args[0], args[1])
    if name == "set_item":
        return _write_whole(func, args, kwargs)
    if name.endswith("_") and not name.endswith("__"):
        return _run_in_place(name, func, args, kwargs)
    return _run_on_whole(func, args, kwargs)


# ------------------------------------------------------------------------------------------------ operators


def _run_operator(op: Any, args: Arguments, kwargs: Keywords) -> Any:
    if "out" in kwargs:
        return write_out(op, args, kwargs)
    op, args, kwargs = resolve_call(op, args, kwargs)
    operands, params = op.schema.bind(args, kwargs)
    if _needs_whole(operands, params):
        return _run_on_whole(op, args, kwargs)
    if op.composite:
        return _composed(run_compose, op, tuple(operands), params)
    mesh = _common_mesh(op.name, operands)
    divisions = [_division_of(op.name, a, mesh) for a in operands]
    whole = [a if d is None else Aval(d.shape, a.dtype) for a, d in zip(operands, divisions, strict=True)]
    call = call_of(op, whole, params)
    try:
        avals = result_avals(call)
    except NotImplementedError:  # it depends on values
        return _run_on_whole(op, args, kwargs)
    results = avals if isinstance(avals, tuple) else (avals,)
    if not all(isinstance(r, Aval) for r in results):
        return _run_on_whole(op, args, kwargs)
    given = [tuple([None if d is None else d.placements[dim] for d in divisions]) for dim in range(mesh.ndim)]
    plans = [plan_for(call, own, nest_of(dim, divisions)) for dim, own in enumerate(given)]
    if any(plan.gathers(own) for plan, own in zip(plans, given, strict=True)):
        if op.definition.compose_divided is not None:
            return _composed(op.definition.compose_divided, *operands, **params)
        if getattr(op.definition, "in_stages", False) and operands[0].shape and not operands[0].division.is_partial:
            return _reduced_in_stages(op, operands[0], params)
    targets = tuple([plan.results for plan in plans])
    parts = [
        a if d is None else _exchanged(a, d, tuple([p for plan in plans if (p := plan.operands[i])]), targets)
        for i, (a, d) in enumerate(zip(operands, divisions, strict=True))
    ]
    made = [Division(tuple(r.shape), mesh, targets) for r in results]
    with on_parts():
        if any(plan.indexed is not None for plan in plans):
            found = _selected(op, parts, params, operands[0].division, plans)
        else:
            positional, keywords = op.call_arguments(tuple(parts), local_params(params, made[0]))
            found = op(*positional, **keywords)
    if isinstance(found, tuple):
        return tuple([wrap(x, d) for x, d in zip(found, made, strict=True)])
    return wrap(found, made[0])


def _composed(compose: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """Return the result of an operator in others, which may combine divided tensors with whole ones that it makes."""
    with plain_as_copies():
        return compose(*args, **params)


@generator_block
def plain_as_copies() -> Iterator[None]:
    """Within the block, let operators combine divided tensors with plain ones, of which each rank has an equal copy.

    Outside of it, they refuse plain tensors of more than one element.

    >>> import retrograd as rg
    >>> from retrograd.distributed import run_threads
    >>> from retrograd.distributed.tensor import Shard, distribute_tensor
    >>> def script():
    ...     x = distribute_tensor(rg.ones(4, 2), placements=[Shard(0)])
    ...     with plain_as_copies():
    ...         return (x + rg.arange(2)).to_local()
    >>> run_threads(script, 2)[0]
    tensor([[1., 2.],
            [1., 2.]])
    """
    token = _takes_copies.set(True)
    try:
        yield
    finally:
        _takes_copies.reset(token)


def _selected(op: Any, parts: list[Any], params: Keywords, division: Division, plans: Sequence[Plan]) -> Tensor:
    """Return the elements that this rank has of those that others among the operands are indices of; 0 for others."""
    (dim,) = {plan.indexed for plan in plans if plan.indexed is not None}
    own = Division(division.shape, division.mesh, tuple([p for plan in plans if (p := plan.operands[0])]))
    (low, high), size = own.bounds[dim], own.shape[dim]
    if low == high:  # a row that no index means, as operators refuse indices into no rows
        parts[0] = registry["constant_pad_nd"](parts[0], (0, 0) * (len(own.shape) - 1 - dim) + (0, 1))
    found: Tensor = op.definition.select_part(Part(low, high, size), *parts, **params)
    return found


def _reduced_in_stages(op: Any, x: DTensor, params: Keywords) -> Any:
    """Return a reduction of the results of all ranks, each of which reduces its part."""
    d, dims = x.division, canonical_dims(op.name, params["dim"], x.ndim)
    with on_parts():
        own = op(local_of(x), **{**params, "dim": dims, "keepdim": True})
    shape = tuple([
        prod([d.mesh.size(i) for i in d.sharded if d.placements[i].is_shard(dim)]) if dim in dims else size
        for dim, size in enumerate(d.shape)
    ])  # fmt: skip
    whole = tuple([Replicate() if isinstance(p, Shard) and p.dim in dims else p for p in d.placements])
    results = exchange(own, Division(shape, d.mesh, d.placements), whole)
    return op(wrap(results, Division(shape, d.mesh, whole)), **{**params, "dim": dims})


def _needs_whole(operands: Sequence[Any], params: Keywords) -> bool:
    """Return whether an operator draws numbers, or runs functions: each rank does so for the whole tensors."""
    return "generator" in params or any(callable(value) for value in (*operands, *params.values()))


def _common_mesh(name: str, operands: Sequence[Any]) -> DeviceMesh:
    """Return the mesh of the divided operands.  Raises RuntimeError if they have several."""
    meshes = [a.division.mesh for a in operands if isinstance(a, DTensor)]
    if any(mesh != meshes[0] for mesh in meshes):
        raise RuntimeError(f"{name}: tensors on the meshes {meshes} cannot be combined")
    return meshes[0]


def _division_of(name: str, operand: Any, mesh: DeviceMesh) -> Division | None:
    """Return how an operand is divided; every rank has a tensor of one element.  None for other values."""
    if isinstance(operand, DTensor):
        return operand.division
    if not isinstance(operand, Tensor):
        return None
    if operand.numel() > 1 and not _takes_copies.get():
        raise RuntimeError(
            f"{name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
            f"distributed operators: use distribute_tensor, DTensor.from_local, or to_local()"
        )
    return Division(tuple(operand.shape), mesh, (Replicate(),) * mesh.ndim)


def _exchanged(x: Tensor, division: Division, target: Placements, results: Placements) -> Tensor:
    """Return the part of an operand with which this rank computes.

    Where ranks have copies of it and compute different parts of the results, each has a term of its gradient.
    """
    local, terms = local_of(x), None
    if dtypes.is_differentiable(x.dtype) and local.requires_grad:
        terms = tuple([
            Partial() if isinstance(own, Replicate) and not isinstance(result, Replicate) else kept
            for own, result, kept in zip(target, results, cotangent_placements(target), strict=True)
        ])  # fmt: skip
    return exchange(local, division, target, of_result_gradient=terms)


# ------------------------------------------------------------------------------------------------ functions


def _run_property(access: Any, args: Arguments) -> Any:
    """Read or write an attribute; the code of most properties calls operators, which are then run on whole tensors."""
    if access.__self__ is not Tensor.data:
        return access(*args)
    with on_parts():
        found = access(args[0], *[local_tensor(value) for value in args[1:]])
    return None if found is None else args[0].as_part(found)


def _run_backward(func: Any, args: Arguments, kwargs: Keywords) -> Any:
    """Run a backward pass; gradients of divided tensors are divided as these."""
    with on_parts():
        found = func(*args, **kwargs)
    if found is None:
        return None
    inputs = args[1] if isinstance(args[1], (tuple, list)) else [args[1]]
    return tuple([
        x.as_gradient(g) if isinstance(x, DTensor) and g is not None else g for x, g in zip(inputs, found, strict=True)
    ])  # fmt: skip


def _run_like(func: Any, args: Arguments, kwargs: Keywords) -> Any:
    """Return a new tensor that is divided as another one; random values are those that the first rank draws."""
    model: DTensor = args[0]
    division = Division(model.division.shape, model.division.mesh, cotangent_placements(model.division.placements))
    if func.__name__.startswith("rand"):
        drawn = func(functions["empty"](division.shape, dtype=model.dtype), *args[1:], **kwargs)
        return distribute_tensor(drawn, division.mesh, division.placements)
    local = local_of(model)
    if model.division.is_partial:
        local = exchange(local.detach(), model.division, division.placements)
    return wrap(func(local, *args[1:], **kwargs), division)


def _selects_no_elements(key: Any) -> bool:
    """Return whether a key consists of numbers, slices, None and the ellipsis."""
    return PLAIN.issuperset(map(type, key if type(key) is tuple else (key,)))


def _run_new(func: Any, args: Arguments, kwargs: Keywords) -> Any:
    """Return a new tensor that is divided as another one if it has its shape; otherwise every rank has all of it."""
    model: DTensor = args[0]
    made = func(local_of(model).detach(), *[_gather(a) for a in args[1:]], **kwargs)
    division = Division(tuple(made.shape), model.division.mesh, (Replicate(),) * model.division.mesh.ndim)
    if made.shape == model.shape:
        division = Division(division.shape, division.mesh, cotangent_placements(model.division.placements))
    found = wrap(division.taken(made.detach()).contiguous(), division)
    found.requires_grad = made.requires_grad
    return found


def _run_in_place(name: str, func: Any, args: Arguments, kwargs: Keywords) -> Any:
    """Write the results of a function into a tensor, which stays divided as it is."""
    target = args[0]
    if not isinstance(target, DTensor):
        raise RuntimeError(f"{name}: a DTensor cannot be written into a plain tensor; use to_local() or full_tensor()")
    if name in ("zero_", "fill_", "requires_grad_") and not any(isinstance(a, DTensor) for a in args[1:]):
        with on_parts():
            func(*args, **kwargs)
        return target
    if name == "copy_":
        result = args[1]
    elif hasattr(Tensor, name[:-1]):
        result = getattr(Tensor, name[:-1])(*args, **kwargs)
    else:
        return _write_whole(func, args, kwargs)
    return _write(target, result)


def _write(target: DTensor, values: Any) -> DTensor:
    """Write values, which are divided in any way, into a tensor."""
    if isinstance(values, DTensor):
        values = values if values.shape == target.shape else values.expand(target.shape)
        values = exchange(local_of(values), values.division, target.division.placements)
    elif isinstance(values, Tensor) and values.numel() > 1:
        values = target.division.taken(values)
    with on_parts():
        target.copy_(values)
    return target


def _write_whole(func: Any, args: Arguments, kwargs: Keywords) -> Any:
    """Let a function write into the whole tensor, on the first rank of the mesh if values are random; divide it."""
    target: DTensor = args[0]
    whole = target.full_tensor().detach()
    func(whole, *[_gather(a) for a in args[1:]], **{name: _gather(a) for name, a in kwargs.items()})
    broadcast_over(target.division.mesh, [whole])
    return _write(target, whole)


def _run_on_whole(func: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Return the result of a function on whole tensors, of which every rank then has a copy."""
    mesh = _common_mesh(getattr(func, "__name__", str(func)), _divided(args) + _divided(kwargs.values()))
    found = func(*[_gather(a) for a in args], **{name: _gather(a) for name, a in kwargs.items()})
    return _copies(found, mesh)


def _divided(values: Any) -> list[DTensor]:
    """Return the divided tensors among values, and in lists and tuples of them."""
    found = []
    for value in values:
        if isinstance(value, DTensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _divided(value)
    return found


def _gather(value: Any) -> Any:
    if isinstance(value, DTensor):
        return value.full_tensor()
    if isinstance(value, (list, tuple)):
        return type(value)([_gather(member) for member in value])
    return value


def _copies(value: Any, mesh: DeviceMesh) -> Any:
    """Return the tensors of a result as divided ones, of which every rank has a copy."""
    if isinstance(value, (list, tuple)):
        members = [_copies(member, mesh) for member in value]
        return type(value)(*members) if hasattr(value, "_fields") else type(value)(members)
    if not isinstance(value, Tensor) or isinstance(value, DTensor):
        return value
    return wrap(value, Division(tuple(value.shape), mesh, (Replicate(),) * mesh.ndim))


DTensor.dispatch = staticmethod(run)  # type: ignore[method-assign]
