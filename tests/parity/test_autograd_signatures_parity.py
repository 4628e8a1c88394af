"""The public names of torch.autograd, func, nested and checkpoint are there, with their parameters; exceptions have
reasons."""

import importlib
import inspect

import pytest

from .signatures import missing

MODULES = [
    "autograd",
    "autograd.anomaly_mode",
    "autograd.forward_ad",
    "autograd.function",
    "autograd.functional",
    "autograd.grad_mode",
    "autograd.gradcheck",
    "autograd.graph",
    "autograd.profiler",
    "autograd.variable",
    "func",
    "nested",
    "utils.checkpoint",
]

GPU = "it names what GPU profilers and streams are told, and there is no GPU here"
PROFILER = "the profiler makes these objects, from records of its own"
CTX = "instances of PyTorch's class held what ctx does: a forward_extended saves and marks with its ctx"
KINETO = "PyTorch's profiler is built on Kineto; ours is not"
JACOBIANS = "deprecated parts of gradcheck, whose own are private"
# Public names that are not ours, and why.
ABSENT = {
    **{
        f"autograd{module}.NestedIOFunction.{name}": CTX
        for module in ("", ".function")
        for name in ("mark_dirty", "mark_non_differentiable", "save_for_backward", "saved_tensors")
    },
    "autograd.function.BackwardCFunction.apply_boxed": "for PyTorch's compiled functions, which pass lists",
    "autograd.gradcheck.get_analytical_jacobian": JACOBIANS,
    "autograd.gradcheck.get_numerical_jacobian": JACOBIANS,
    "autograd.gradcheck.get_numerical_jacobian_wrt_specific_input": JACOBIANS,
    "autograd.graph.region_activation_memory_budget": "an annotation for torch.compile, which raises outside of it",
    "autograd.profiler.EnforceUnique": GPU,
    "autograd.profiler.EventList.export_stacks": "it reads the stacks of modules that Kineto records",
    "autograd.profiler.EventList.supported_export_stacks_metrics": "it reads the stacks of modules that Kineto records",
    "autograd.profiler.FunctionEvent.append_cpu_child": PROFILER,
    "autograd.profiler.FunctionEvent.append_kernel": GPU,
    "autograd.profiler.FunctionEvent.cuda_time_total": GPU,
    "autograd.profiler.FunctionEvent.device_time_total": GPU,
    "autograd.profiler.FunctionEvent.metadata_json": KINETO,
    "autograd.profiler.FunctionEvent.self_cuda_memory_usage": GPU,
    "autograd.profiler.FunctionEvent.self_cuda_time_total": GPU,
    "autograd.profiler.FunctionEvent.self_device_memory_usage": GPU,
    "autograd.profiler.FunctionEvent.self_device_time_total": GPU,
    "autograd.profiler.FunctionEvent.set_cpu_parent": PROFILER,
    "autograd.profiler.KinetoStepTracker": KINETO,
    "autograd.profiler.MemRecordsAcc": KINETO,
    "autograd.profiler.emit_itt": "annotates for Intel's profiler",
    "autograd.profiler.emit_nvtx": GPU,
    "autograd.profiler.load_nvprof": GPU,
    "autograd.profiler.parse_nvprof_trace": GPU,
    "autograd.profiler.profile.config": KINETO,
    "autograd.profiler.profile.create_trace_id": KINETO,
    "autograd.profiler.profile.default_trace_id": KINETO,
    "autograd.profiler.profile.export_stacks": "it reads the stacks of modules that Kineto records",
    "autograd.profiler.profile.toggle_collection_dynamic": KINETO,
    "autograd.variable.VariableMeta": "the metaclass of an alias",
    "utils.checkpoint.CheckpointFunction.forward": "checkpoints are no nodes; apply runs the reentrant kind",
    "utils.checkpoint.CheckpointFunction.backward": "checkpoints are no nodes; apply runs the reentrant kind",
}
# Parameters of PyTorch's that are not ours, and why; "" stands for all.
PARAMETERS = {
    "autograd.profiler.EventList.__init__": ({"args", "kwargs"}, PROFILER),
    "autograd.profiler.FunctionEvent.__init__": ("", PROFILER),
}


def theirs(module):
    return importlib.import_module(f"torch.{module}")


def ours(module):
    return importlib.import_module(f"retrograd.{module}")


def public(module):
    """Return the public names that a module defines, or lists in `__all__`."""
    found = theirs(module)
    defined = {name for name, value in vars(found).items() if _is_defined_in(found, value)}
    return sorted({name for name in defined if not name.startswith("_")} | {*getattr(found, "__all__", ())})


def _is_defined_in(module, value):
    return (inspect.isclass(value) or inspect.isroutine(value)) and value.__module__ == module.__name__


def members(cls):
    """Return the public members that a class defines, and its constructor."""
    kept = ("__init__", "__call__")
    return sorted(n for n in vars(cls) if n in kept or not n.startswith("_"))


NAMES = [f"{module}.{name}" for module in MODULES for name in public(module)]


def split(name):
    """Return the module and the rest of a dotted name."""
    module = max((m for m in MODULES if name.startswith(m + ".")), key=len)
    return module, name.removeprefix(module + ".")


def pair(name):
    """Return PyTorch's object and ours for a dotted name."""
    module, rest = split(name)
    peer, mine = theirs(module), ours(module)
    for part in rest.split("."):
        peer, mine = getattr(peer, part), getattr(mine, part)
    return peer, mine


def with_members(name):
    """Return a name, and those of a class's members."""
    module, rest = split(name)
    value = getattr(theirs(module), rest)
    return [name, *(f"{name}.{member}" for member in members(value))] if inspect.isclass(value) else [name]


def has_signature(name):
    """Return whether Python knows the parameters of PyTorch's object."""
    module, rest = split(name)
    value = theirs(module)
    for part in rest.split("."):
        value = getattr(value, part)
    try:
        return not inspect.isclass(value) and callable(value) and bool(inspect.signature(value))
    except ValueError:  # some functions in C++
        return False


ALL = [one for name in NAMES for one in with_members(name) if one not in ABSENT and name not in ABSENT]


@pytest.mark.parametrize("name", ALL)
def test_every_name_is_there_and_can_be_used_in_the_same_way(name):
    peer, mine = pair(name)
    assert callable(mine) == callable(peer)
    assert inspect.isclass(mine) or not inspect.isclass(peer)


@pytest.mark.parametrize("name", [n for n in ALL if has_signature(n) and PARAMETERS.get(n, (0,))[0] != ""])
def test_its_parameters_are_pytorchs(name):
    peer, mine = pair(name)
    assert missing(peer, mine, PARAMETERS.get(name, ((), ""))[0]) == []


@pytest.mark.parametrize("name", ABSENT)
def test_absent_names_exist_in_pytorch_only(name):
    module, rest = split(name)
    value = theirs(module)
    for part in rest.split("."):
        value = getattr(value, part)
    with pytest.raises(AttributeError):
        pair(name)


@pytest.mark.parametrize("name", PARAMETERS)
def test_other_parameters_are_listed_only_where_they_differ(name):
    assert missing(*pair(name)) != []
