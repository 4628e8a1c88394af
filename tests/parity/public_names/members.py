"""The public members of PyTorch's classes, by the class that defines them."""

import inspect
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache

from .namespaces import NAMESPACES, _find, names, retrograd, torch

_Listed = type(torch.Tensor), type(torch.FloatTensor)  # metaclasses of Tensor, a namespace itself, and of its dtypes

# Why members do not exist here: patterns of "Class.member" by reason.
ABSENT_MEMBERS = {
    "dtypes are NumPy's": "dtype.*",
    "numbers whose values are not known are integers of Python here": "SymInt.* SymFloat.*",
    "members of enumerations have a name and a value, classes do not": """
        Tag.* _ScalingType.* _SwizzleType.* _SDPBackend.* ProfilerActivity.name ProfilerActivity.value
    """,
    "the context of a Function is another class here": "_FunctionBase.* BackwardCFunction.*",
    "NumPy's memory has no handle of its own": "TypedStorage.* _StorageBase.* Adagrad.share_memory",
    "accelerators, their graphs and their libraries": """
        Generator.*_offset Generator.graphsafe_* Module.ipu Module.mtia Module.xpu CUDAGraph.* Event.*ipc_handle
        Library.register_symm_mem_args ProfilerAction.DEVICE_STOPPED
    """,
    "lists of operations that PyTorch's own dispatch reads": "Partial.*_REDUCE_OPS",
    "replicas in one process, and hooks of collectives:": """
        DataParallel.* DistributedDataParallel.*
    """,
    "ranks exchange tensors by functions, over the connections of the launcher": """
        Backend.* ProcessGroup.* ReduceOp.* Work.* TCPStore.libuvBackend
    """,
    "blocks of fully_shard gather and reduce in one way": "FSDPModule.* Shard.local_shard_size_and_offset",
    "a checkpoint is a manifest and safetensors in a folder, without plans and other storages": """
        *Planner.* Storage*.* *FileSystem*.* AsyncStager.*
    """,
    "pipelines are run by another runtime": "_PipelineStageBase.* _PipelineScheduleRuntime.*",
    "deprecated by PyTorch": "ConcatDataset.cummulative_sizes",
    "TorchScript, or parts of PyTorch's implementation": """
        Module.T_destination Module.dump_patches RNNBase.check_* RNNBase.get_* RNNBase.permute_*
        LSTM.* MultiheadAttention.merge_masks Optimizer.Optimizer*Hook ConcatDataset.cumsum
        Optimizer.profile_hook_step SequentialLR.recursive_undo DataLoader.check_worker_number_*
        FunctionEvent.* FormattedTimesMixin.* EventList.*export_stacks* profile.*
        _KinetoProfile.*
    """,
}


def members() -> dict[str, bool]:
    """Return whether each public member, as "Class.member", of PyTorch's classes that exist here does, too."""
    found: dict[str, bool] = {}
    for namespace in NAMESPACES:
        theirs, ours = _find(torch, namespace), _find(retrograd, namespace)
        for name in names(namespace):
            member = name.path.rpartition(".")[2]
            cls, own = getattr(theirs, member), getattr(ours, member, None)
            if isinstance(cls, type) and isinstance(own, type) and not isinstance(cls, _Listed):
                for path, exists in _of_class(cls, own):
                    found[path] = exists or found.get(path, False)
    return found


def _of_class(cls: type, own: type) -> Iterator[tuple[str, bool]]:
    source = "".join(_source(base) for base in own.__mro__ if base.__module__.startswith("retrograd"))
    for name in dir(cls):
        if not name.startswith("_") and not hasattr(object, name):
            owner = next(base for base in reversed(cls.__mro__) if name in vars(base))
            if owner.__module__.startswith("torch"):
                yield f"{owner.__qualname__}.{name}", hasattr(own, name) or _is_set(source, name)


def _is_set(source: str, name: str) -> bool:
    """Return whether a class sets an attribute of its objects, or declares it."""
    return re.search(rf"\bself\.{name}\b[^(\n]* = |^    {name}:", source, re.MULTILINE) is not None


@cache
def _source(cls: type) -> str:
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):
        return ""


def patterns_of(path: str) -> set[str]:
    """Return the patterns of absent members that match a member."""
    return {p for patterns in ABSENT_MEMBERS.values() for p in patterns.split() if fnmatchcase(path, p)}
