"""`DTensor`: the part of a whole tensor that this rank has."""

import copy
from collections.abc import Sequence
from math import prod
from typing import Any

from retrograd.core import Aval, Tensor, current, operator_named
from retrograd.core.hooks import check_callable
from retrograd.core.overrides import as_subclass
from retrograd.core.state import override_state
from retrograd.distributed.collectives import all_gather_into_tensor, all_reduce, broadcast_all
from retrograd.distributed.device_mesh import DeviceMesh, current_mesh
from retrograd.distributed.groups import initialized_group
from retrograd.distributed.local_slice import LocalSlice, move_to_front
from retrograd.distributed.tensor.division import Division, divide
from retrograd.distributed.tensor.placements import Placement, Replicate, Shard
from retrograd.distributed.tensor.redistribution import cotangent_placements, exchange
from retrograd.nn.parameter import is_on_meta
from retrograd.nn.tensor_part import TensorPart, on_parts
from retrograd.ops.functions import functions

_alias = operator_named("alias")
_gradient: Any = Tensor.grad
_shape: Any = Tensor.shape
_stride: Any = Tensor.stride


class DTensor(TensorPart):
    """The part of a whole tensor that this rank has.

    Its shape is that of the whole tensor.  Operators give the results of whole tensors, which are divided as the
    operands where each rank can compute its part; otherwise the operands are exchanged, so all ranks of the mesh must
    call them.  Gradients pass through operators, `from_local`, `to_local`, `redistribute` and `full_tensor`.
    Parameters of `fully_shard` are parts, and so are their gradients, and the tensors of the state dicts of their
    modules and optimizers: `distributed.checkpoint` saves them as whole tensors.  Make it by `distribute_tensor`.

    >>> import retrograd as rg
    >>> import retrograd.distributed as dist
    >>> from retrograd.distributed.tensor import Shard, distribute_tensor
    >>> def script():
    ...     mesh = dist.init_device_mesh("cpu", (2,))
    ...     x = distribute_tensor(rg.arange(3), mesh, [Shard(0)])
    ...     return x.to_local(), x.full_tensor(), x.placements
    >>> dist.run_threads(script, 2)[1]
    (tensor([2]), tensor([0, 1, 2]), (Shard(dim=0),))
    """

    division: Division

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole tensor; that of the part where functions compute with parts."""
        found: tuple[int, ...] = _shape.__get__(self)
        return found if current().overrides_off else self.division.shape

    @property
    def aval(self) -> Aval:
        """The shape, as `shape`, and the dtype."""
        return Aval(self.shape, self.dtype)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape of the whole tensor, or one of its sizes."""
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides of the whole tensor, whose dimensions are in memory in the order of the part's."""
        local = _stride(self)
        found = local if current().overrides_off else _whole_strides(local, self.division.shape)
        return found if dim is None else found[dim]

    def numel(self) -> int:
        """Return the number of elements of the whole tensor."""
        return prod(self.shape)

    def numpy(self, **kwargs: Any) -> Any:
        """Raise RuntimeError: call it on `full_tensor()` or `to_local()`."""
        return self._as_plain("numpy").numpy(**kwargs)  # the stub knows no keyword

    def tolist(self) -> Any:
        """Raise RuntimeError: call it on `full_tensor()` or `to_local()`."""
        return self._as_plain("tolist").tolist()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self._as_plain("__array__").__array__(*args, **kwargs)

    def _as_plain(self, name: str) -> Tensor:
        """Return the part where functions compute with parts.  Raises RuntimeError elsewhere."""
        if not current().overrides_off:
            raise RuntimeError(
                f".{name}() is not supported for tensor subclasses, got DTensor; call it on full_tensor(), which is "
                f"the whole tensor, or on to_local(), which is this rank's part"
            )
        return local_of(self)

    def item(self) -> Any:
        """Return the only element; all ranks of the mesh must call it.  RuntimeError if there are several."""
        return self.full_tensor().item()

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """Return the shape of the whole tensor."""
        return self.division.shape

    @property
    def device_mesh(self) -> DeviceMesh:
        """Return the ranks that have parts."""
        return self.division.mesh

    @property
    def mesh_and_placement(self) -> tuple[DeviceMesh, tuple[Placement, ...]]:
        """Return the mesh, and how the tensor is divided over it."""
        return self.division.mesh, self.division.placements

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Return how the tensor is divided along each dimension of the mesh."""
        return self.division.placements

    @property
    def local_slice(self) -> LocalSlice:
        """Return the elements of the part, and which ones they are.

        Raises NotImplementedError if they are terms of the values.
        """
        d = self.division
        if d.is_partial:
            raise NotImplementedError(
                f"DTensor: a checkpoint takes values, and not terms of them, got {d.placements}; call "
                f"redistribute(placements=...) first"
            )
        copy, copies = 0, 1
        for mesh_dim, size in enumerate(d.mesh.shape):
            if mesh_dim not in d.sharded:
                copy, copies = copy * size + d.coordinate[mesh_dim], copies * size
        local = local_of(self).detach()
        if len(d.dims) > 1:
            return LocalSlice(local, d.shape, 0, copy, copies, box=tuple(d.bounds))
        return LocalSlice(move_to_front(local, d.dim), d.shape, d.low, copy, copies, d.dim)

    @property
    def grad(self) -> Tensor | None:
        """The gradient of the part, which is the same part of the gradient of the whole tensor; None: there is none.

        One that requires grad, by `create_graph=True`, is a plain tensor.
        """
        found: Tensor | None = _gradient.__get__(self)
        if found is None or isinstance(found, DTensor) or found.requires_grad:
            return found
        self.grad = part = self.as_gradient(found)  # kept, so that it is the same object each time
        return part

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        with on_parts():
            _gradient.__set__(self, value)

    @grad.deleter
    def grad(self) -> None:
        _gradient.__delete__(self)

    def register_hook(self, hook: Any) -> Any:
        """Call `hook(grad)` as `Tensor.register_hook` does, with the same part of the gradient of the whole tensor."""
        check_callable(hook)
        division = self.division

        def on_part(grad: Tensor) -> Tensor | None:
            with override_state("overrides_off", 0):  # a backward pass computes with parts, the hook with whole tensors
                found = hook(_gradient_part(grad, division))
                return None if found is None else local_of(found)

        return super().register_hook(on_part)

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Any = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> "DTensor":
        """Return the part of a whole tensor that has the memory of this rank's one; all ranks of the mesh must call it.

        Gradients pass through it: that of `local_tensor` is this rank's part of the gradient of the whole tensor, and
        the whole one where the ranks have copies or terms.

        device_mesh, placements: as in `distribute_tensor`.  shape: of the whole tensor; None: the ranks add up their
        sizes of the divided dimensions.  run_check: give all ranks the values of the first one where they have copies;
        then no gradient passes.  grad_placements: how the gradient of `local_tensor` is divided.  stride has no effect.

        Raises ValueError for a part that `distribute_tensor` would not make, and what that raises.
        """
        mesh, given = _mesh_and_placements("from_local", device_mesh, placements)
        division = divide(_whole_shape(local_tensor, mesh, given) if shape is None else shape, mesh, given)
        if tuple(local_tensor.shape) != division.local_shape:
            raise ValueError(
                f"from_local: rank {mesh.get_rank()} has a part of shape {tuple(local_tensor.shape)}, and that of "
                f"distribute_tensor has {division.local_shape}"
            )
        if run_check:
            local_tensor = local_tensor.detach()
            for dim, placement in enumerate(given):
                if placement.is_replicate():
                    broadcast_all([local_tensor], mesh.get_group(dim))
        own = None if grad_placements is None else divide(division.shape, mesh, grad_placements).placements
        return wrap(exchange(local_tensor, division, division.placements, of_gradient=own), division)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Return the part as a plain tensor with the same memory, through which gradients pass.

        grad_placements: how the gradient of the result is divided, by default as the tensor is, and whole where the
        ranks have terms.  `Partial()` where the ranks have copies, each of which computes another term of the loss.
        """
        d = self.division
        given = None if grad_placements is None else divide(d.shape, d.mesh, grad_placements).placements
        return exchange(local_of(self), d, d.placements, of_result_gradient=given)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Return the whole tensor, through which gradients pass; all ranks of the mesh must call it.

        grad_placements: how the gradient of the result is divided, by default whole on each rank.
        """
        d = self.division
        given = None if grad_placements is None else divide(d.shape, d.mesh, grad_placements).placements
        whole = (Replicate(),) * d.mesh.ndim
        found = exchange(local_of(self), d, whole, of_result_gradient=given)
        return found.clone() if d.placements == whole else found

    def as_part(self, x: Tensor) -> "DTensor":
        """Return a tensor with the shape of this part, such as a state of an optimizer, as the same part of another."""
        return _part(local_of(x), self.division)

    def local_tensor(self) -> Tensor:
        """Return the part as a plain tensor with the same memory, outside of the graph."""
        return local_of(self).detach()

    def same_part(self, x: Tensor) -> Tensor:
        """Return the elements of this part of a tensor that is whole, divided in any way, or the part already.

        If it is divided in another way, all ranks of both meshes must call it.
        """
        d = self.division
        if isinstance(x, DTensor):
            return x.local_tensor() if x.division == d else self.part_of(x.full_tensor())
        return self.part_of(x) if tuple(x.shape) == d.shape else x

    def as_gradient(self, x: Tensor) -> "DTensor":
        """Return this rank's part of a gradient, which is whole where this tensor has terms."""
        return _gradient_part(x, self.division)

    def part_of(self, whole: Tensor) -> Tensor:
        """Return the elements of this part, given those of the whole tensor.  ValueError for another shape."""
        d = self.division
        if tuple(whole.shape) != d.shape:
            raise ValueError(f"expected a whole tensor of shape {d.shape}, got {tuple(whole.shape)}")
        return d.taken(whole.detach())

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> "DTensor":
        """Return the whole tensor divided in another way; all ranks of the mesh must call it.

        Gradients pass through it, and are redistributed in the other direction.  `Partial` to `Replicate` adds up the
        terms, `Partial` to `Shard` gives each rank its part of the sum, `Shard` to `Replicate` gathers the parts.

        device_mesh: by default that of this tensor, and no other.  placements: by default the same.  async_op has no
        effect.  forward_dtype: that of the result, in which the parts are exchanged.  backward_dtype: that in which
        gradients are exchanged; they then get the dtype of this tensor.

        Raises ValueError for another mesh, and what `distribute_tensor` raises.
        """
        d = self.division
        if device_mesh is not None and device_mesh != d.mesh:
            raise ValueError(f"redistribute: the tensor is on {d.mesh}, and cannot be moved to {device_mesh}")
        new = divide(d.shape, d.mesh, _checked("redistribute", d.mesh, placements or d.placements))
        found = exchange(local_of(self), d, new.placements, dtype=forward_dtype, gradient_dtype=backward_dtype)
        return wrap(found.clone() if d == new else found, new)

    def stack_over_ranks(self, x: Tensor) -> Tensor:
        """Return the scalars of all ranks of the mesh that have other parts, as a vector; all must call it."""
        found, mesh = x.detach().reshape(1), self.division.mesh
        for mesh_dim in self.division.sharded:
            own, found = found, functions["empty"](found.numel() * mesh.size(mesh_dim), dtype=x.dtype)
            all_gather_into_tensor(found, own, mesh.get_group(mesh_dim))
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> "DTensor":
        memo[id(self)] = copied = self.as_part(copy.deepcopy(self.local_tensor()))  # of the same ranks
        copied.requires_grad = self.requires_grad
        copied.grad = copy.deepcopy(self.grad, memo)
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the part as a plain tensor, since a file or another process does not have the ranks."""
        return local_of(self).detach().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        local = local_of(self).detach()
        return f"DTensor(local_tensor={local!r}, device_mesh={self.device_mesh!r}, placements={self.placements})"


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Return this rank's part of a whole tensor, which is a leaf of the graph; all ranks of the mesh must call it.

    device_mesh: by default that of the innermost `with mesh:` block, otherwise all ranks, along one dimension.
    placements: one for each dimension of the mesh: `Shard(dim)`, `Partial()` or `Replicate()`, which is the default.
    src_data_rank: the rank of the mesh whose values count; None: those of each rank, without an exchange.

    Raises ValueError for another number of placements, or a dimension that the tensor lacks.
    """
    mesh, given = _mesh_and_placements("distribute_tensor", device_mesh, placements)
    whole = tensor.detach()
    if src_data_rank is not None and not is_on_meta(whole):
        whole = whole.clone()
        broadcast_over(mesh, [whole], src_data_rank)
    division = divide(whole.shape, mesh, given)
    if division.is_partial:
        copies = Division(division.shape, mesh, (Replicate(),) * mesh.ndim)
        found = _part(exchange(whole, copies, division.placements), division)
    else:
        found = _part(division.taken(whole).clone(), division)
    found.requires_grad = tensor.requires_grad
    return found


def mesh_or_all_ranks(mesh: DeviceMesh | None) -> DeviceMesh:
    """Return a mesh; by default that of the innermost `with` block, or all ranks, along one dimension."""
    return mesh or current_mesh() or DeviceMesh.from_group(initialized_group(), "cpu")


def _mesh_and_placements(
    call: str, mesh: DeviceMesh | None, placements: Sequence[Placement] | None
) -> tuple[DeviceMesh, list[Placement]]:
    """Return the mesh, by default that of `mesh_or_all_ranks`, and a placement for each of its dimensions."""
    found = mesh_or_all_ranks(mesh)
    return found, _checked(call, found, [Replicate()] * found.ndim if placements is None else placements)


def _checked(call: str, mesh: DeviceMesh, placements: Sequence[Placement]) -> list[Placement]:
    """Return the placements; ValueError unless there is one for each dimension of the mesh."""
    if len(placements) != mesh.ndim:
        raise ValueError(f"{call}: expected a placement for each of {mesh.ndim} dimensions, got {placements}")
    return list(placements)


def _whole_strides(local: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a whole tensor without gaps, given those of a part; 0 where the part has 0."""
    found, step = [0] * len(shape), 1
    for dim in sorted(range(len(shape)), key=lambda dim: (local[dim], -dim)):
        if local[dim]:
            found[dim], step = step, step * max(shape[dim], 1)
    return tuple(found)


def _whole_shape(local: Tensor, mesh: DeviceMesh, placements: Sequence[Placement]) -> list[int]:
    """Return the shape of a whole tensor, given the parts of all ranks."""
    found = list(local.shape)
    for mesh_dim, placement in enumerate(placements):
        if isinstance(placement, Shard) and found:
            size = functions["tensor"](found[placement.dim])
            all_reduce(size, group=mesh.get_group(mesh_dim))
            found[placement.dim] = int(size)
    return found


def broadcast_over(mesh: DeviceMesh, tensors: Sequence[Tensor], source: int = 0) -> None:
    """Write the values of one rank of a mesh, which is given by its index, into the tensors of all its ranks."""
    for dim, index in enumerate((mesh.mesh == mesh.mesh.reshape(-1)[source]).nonzero()[0].tolist()):
        broadcast_all(list(tensors), mesh.get_group(dim), index)


def _part(x: Tensor, division: Division) -> DTensor:
    """Return a tensor as a part of a whole one, outside of the graph."""
    return wrap(x.detach(), division)


def _gradient_part(x: Tensor, division: Division) -> DTensor:
    placements = cotangent_placements(division.placements)
    return wrap(local_of(x), Division(division.shape, division.mesh, placements))


def local_of(x: Tensor) -> Tensor:
    """Return the part of a divided tensor, with its history; a plain tensor as it is."""
    if not isinstance(x, DTensor):
        return x
    with on_parts():
        found: Tensor = _alias(x)
    return found


def wrap(x: Tensor, division: Division) -> DTensor:
    """Return a tensor, with its history, as a part of a whole one."""
    assert tuple(x.shape) == division.local_shape, (x.shape, division)
    found: DTensor = as_subclass(x, DTensor)
    found.division = division
    return found
