"""Styles: how the parameters, arguments and results of a module are divided among the ranks of a mesh."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from retrograd.core import Tensor
from retrograd.distributed.device_mesh import DeviceMesh
from retrograd.distributed.tensor.dtensor import DTensor
from retrograd.distributed.tensor.modules import distribute_module, distribute_parameter
from retrograd.distributed.tensor.placements import Placement, Replicate, Shard
from retrograd.nn import Embedding, Linear
from retrograd.nn.module import Module

Layouts = Placement | Sequence[Placement | None] | None


class ParallelStyle(ABC):
    """Base class of styles for `parallelize_module`, which calls their `_apply(module, device_mesh)`.

    src_data_rank: the rank of the mesh whose parameters count, as `parallelize_module` was given it.
    """

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Divide a module in place, and return it."""


class _DividedLayer(ParallelStyle):
    """Divide the parameters of a linear layer or an embedding, its argument and its result."""

    placements: ClassVar[dict[type, dict[str, Placement]]]

    def __init__(self, given: Placement, wanted: Placement | None, output: Placement, use_local_output: bool) -> None:
        self.given, self.wanted, self.output, self.use_local_output = given, wanted, output, use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Divide a module in place, and return it.  NotImplementedError for another kind of module."""
        kind = next((kind for kind in self.placements if isinstance(module, kind)), None)
        if kind is None:
            raise NotImplementedError(
                f"{type(self).__name__} currently only support nn.Linear and nn.Embedding! It was given "
                f"{type(module).__name__}; give it the layers in it by their names"
            )
        wanted = self.wanted if kind is Linear and self.wanted is not None else Replicate()

        def partition(name: str, owner: Module, mesh: DeviceMesh) -> None:
            for parameter, placement in self.placements[kind].items():
                distribute_parameter(owner, parameter, mesh, placement, self.src_data_rank)

        return distribute_module(
            module,
            device_mesh,
            partition,
            lambda module, args, mesh: (_placed(args[0], mesh, self.given, wanted), *args[1:]),
            lambda module, output, mesh: _returned(output, self.output, self.use_local_output),
        )


class ColwiseParallel(_DividedLayer):
    """Each rank computes a part of the features of a `Linear` or an `Embedding`.

    - input_layouts: how the argument is divided if it is a plain tensor; by default each rank has the whole one.
    - output_layouts: how the result is divided; by default along its last dimension.
    - use_local_output: return this rank's part as a plain tensor, not a `DTensor`.
    """

    placements: ClassVar = {Linear: {"weight": Shard(0), "bias": Shard(0)}, Embedding: {"weight": Shard(1)}}

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(input_layouts or Replicate(), Replicate(), output_layouts or Shard(-1), use_local_output)


class RowwiseParallel(_DividedLayer):
    """Each rank computes a term of the result of a `Linear`, or has some rows of an `Embedding`.

    - input_layouts: how the argument is divided if it is a plain tensor; by default along its last dimension.
    - output_layouts: how the result is divided; by default each rank has the whole one.
    - use_local_output: return this rank's part as a plain tensor, not a `DTensor`.
    """

    placements: ClassVar = {Linear: {"weight": Shard(1), "bias": Replicate()}, Embedding: {"weight": Shard(0)}}

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(input_layouts or Shard(-1), Shard(-1), output_layouts or Replicate(), use_local_output)


class SequenceParallel(ParallelStyle):
    """Each rank computes a part of a sequence by a module such as `LayerNorm`, whose parameters all ranks have.

    - sequence_dim: the dimension of the argument that is divided.
    - use_local_output: return this rank's part as a plain tensor, not a `DTensor`.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.placement, self.use_local_output = Shard(sequence_dim), use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Divide a module in place, and return it."""

        def partition(name: str, owner: Module, mesh: DeviceMesh) -> None:
            for parameter in list(owner._parameters):
                distribute_parameter(owner, parameter, mesh, Replicate(), self.src_data_rank)

        return distribute_module(
            module,
            device_mesh,
            partition,
            lambda module, args, mesh: (_placed(args[0], mesh, self.placement, self.placement), *args[1:]),
            lambda module, output, mesh: _returned(output, None, self.use_local_output),
        )


class PrepareModuleInput(ParallelStyle):
    """Divide the arguments of a module.

    - input_layouts: how each plain argument is divided, None for those that are left; one for a single argument.
    - desired_input_layouts: how the module gets them.
    - input_kwarg_layouts, desired_input_kwarg_layouts: the same for keyword arguments, by name.
    - use_local_output: pass this rank's parts as plain tensors, not `DTensor`s.

    Raises ValueError if the two differ in length, or in names.
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: Mapping[str, Placement] | None = None,
        desired_input_kwarg_layouts: Mapping[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.given, self.wanted = _pairs_of("PrepareModuleInput", input_layouts, desired_input_layouts)
        self.by_name, self.wanted_by_name = dict(input_kwarg_layouts or {}), dict(desired_input_kwarg_layouts or {})
        if self.by_name.keys() != self.wanted_by_name.keys():
            raise ValueError(
                f"PrepareModuleInput: input_kwarg_layouts has {list(self.by_name)}, and desired_input_kwarg_layouts "
                f"{list(self.wanted_by_name)}"
            )
        self.use_local = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Divide the arguments of a module, and return it."""

        def prepare(module: Module, args: Any, kwargs: Any) -> Any:
            placed = _all_placed("PrepareModuleInput", args, device_mesh, self.given, self.wanted, self.use_local)
            named = {
                name: _placed_or_left(
                    x, device_mesh, self.by_name.get(name), self.wanted_by_name.get(name), self.use_local
                )
                for name, x in kwargs.items()
            }
            return placed, named

        module.register_forward_pre_hook(prepare, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Divide the results of a module.

    - output_layouts: how each plain result is divided, None for those that are left; one for a single result.
    - desired_output_layouts: how they are returned.
    - use_local_output: return this rank's parts as plain tensors, not `DTensor`s.

    Raises ValueError if the two differ in length.
    """

    def __init__(
        self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True
    ) -> None:
        self.given, self.wanted = _pairs_of("PrepareModuleOutput", output_layouts, desired_output_layouts)
        self.use_local = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Divide the results of a module, and return it."""

        def prepare(module: Module, args: Any, output: Any) -> Any:
            several = isinstance(output, tuple)
            outputs = output if several else (output,)
            found = _all_placed("PrepareModuleOutput", outputs, device_mesh, self.given, self.wanted, self.use_local)
            return found if several else found[0]

        module.register_forward_hook(prepare)
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """Divide the arguments of a module as `PrepareModuleInput`, its results as `PrepareModuleOutput`.

    use_local_input, use_local_output: pass, or return, this rank's parts as plain tensors, not `DTensor`s.
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: Mapping[str, Placement] | None = None,
        desired_input_kwarg_layouts: Mapping[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Layouts,
        desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:
        self.input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Divide the arguments and results of a module, and return it."""
        return self.output._apply(self.input._apply(module, device_mesh), device_mesh)


def _pairs_of(call: str, given: Layouts, wanted: Layouts) -> tuple[list[Placement | None], list[Placement | None]]:
    """Return two lists of placements.  Raises ValueError if they differ in length."""
    first, second = _listed(given), _listed(wanted)
    if len(first) != len(second):
        raise ValueError(f"{call}: the layouts and the desired layouts differ in length: {given} and {wanted}")
    return first, second


def _listed(layouts: Layouts) -> list[Placement | None]:
    return [layouts] if isinstance(layouts, Placement) else list(layouts or ())


def _all_placed(
    call: str, values: Any, mesh: DeviceMesh, given: list[Any], wanted: list[Any], use_local: bool
) -> tuple[Any, ...]:
    """Return values divided as wanted.  Raises ValueError for another number of them."""
    if not given:
        return tuple(values)
    if len(values) != len(given):
        raise ValueError(f"{call}: there are {len(values)} values, and layouts for {len(given)}")
    triples = zip(values, given, wanted, strict=True)
    return tuple([_placed_or_left(x, mesh, own, other, use_local) for x, own, other in triples])


def _placed_or_left(
    value: Any, mesh: DeviceMesh, given: Placement | None, wanted: Placement | None, use_local: bool
) -> Any:
    if given is None or wanted is None or not isinstance(value, Tensor):
        return value
    placed = _placed(value, mesh, given, wanted)
    return placed.to_local() if use_local else placed


def _placed(value: Tensor, mesh: DeviceMesh, given: Placement, wanted: Placement) -> DTensor:
    """Return a tensor divided as wanted; `given` says how a plain one is."""
    part = value if isinstance(value, DTensor) else DTensor.from_local(value, mesh, [given])
    return part.redistribute(placements=[wanted])


def _returned(output: DTensor, wanted: Placement | None, use_local: bool) -> Tensor:
    """Return a result divided as wanted, as a plain tensor if asked for."""
    if wanted is not None:
        output = output.redistribute(placements=[wanted])
    return output.to_local() if use_local else output
