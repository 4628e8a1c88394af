"""`parallelize_module`: apply styles to the modules of a model by their names."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch

from retrograd.core.blocks import generator_block
from retrograd.distributed.device_mesh import DeviceMesh
from retrograd.distributed.tensor.dtensor import mesh_or_all_ranks
from retrograd.distributed.tensor.parallel.styles import ParallelStyle
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.module import Module


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | Mapping[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """Return a model, changed in place, whose modules are divided among ranks in some styles.

    - device_mesh: of one dimension, by default all ranks; a dimension of a larger one is `mesh["name"]`.
    - parallelize_plan: a style for the model, or a mapping from names of modules, such as "layers.*.w1", to styles.
    - src_data_rank: the rank of the mesh whose parameters count; None: those of each rank.

    Warns about a name that no module has.  Raises ValueError for another mesh, NotImplementedError for a kind of module
    that a style does not divide.

    Source: M. Shoeybi et al., Megatron-LM, arXiv 1909.08053.

    >>> import retrograd as rg
    >>> from retrograd.distributed import run_threads
    >>> from retrograd.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel
    >>> def script():
    ...     model = rg.nn.Sequential(rg.nn.Linear(2, 6), rg.nn.ReLU(), rg.nn.Linear(6, 1))
    ...     parallelize_module(model, parallelize_plan={"0": ColwiseParallel(), "2": RowwiseParallel()})
    ...     return model(rg.ones(3, 2)).shape, model[0].weight.to_local().shape
    >>> run_threads(script, 2)[0]
    ((3, 1), (3, 2))
    """
    mesh = mesh_or_all_ranks(device_mesh)
    if mesh.ndim > 1:
        raise ValueError(f"parallelize_module: expected a mesh of one dimension, such as mesh['tp'], got {mesh}")
    if isinstance(parallelize_plan, ParallelStyle):
        return _applied(parallelize_plan, module, mesh, src_data_rank)
    if parallelize_plan is None:
        warn_user("parallelize_module: no parallelize_plan is given, so nothing changes")
    for name, style in (parallelize_plan or {}).items():
        found = list(_matching(module, name.split(".") if name else []))
        if not found:
            warn_user(f"parallelize_module: no module has the name {name!r}, so nothing changes")
        for each in found:
            _applied(style, each, mesh, src_data_rank)
    return module


def _applied(style: ParallelStyle, module: Module, mesh: DeviceMesh, src_data_rank: int | None) -> Module:
    """Return a module that a style, maybe one of users, has divided."""
    style.src_data_rank = src_data_rank
    return style._apply(module, mesh)


def _matching(module: Module, parts: list[str]) -> Iterator[Module]:
    """Yield the modules in a module whose names match the parts of a pattern."""
    if not parts:
        yield module
        return
    for name, child in module.named_children():
        if fnmatch(name, parts[0]):
            yield from _matching(child, parts[1:])


@generator_block
def loss_parallel() -> Iterator[None]:
    """Have no effect: `cross_entropy` of a `DTensor` whose classes are divided never gathers the scores."""
    yield


suggest_in_module(globals())
