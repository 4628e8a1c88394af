"""The public names of torch.distributed.pipelining are there, with its parameters; the exceptions have reasons."""

import inspect

import pytest
import torch.distributed as theirs_distributed
from torch.distributed import pipelining
from torch.distributed.pipelining import _IR, _backward, _utils, microbatch, schedules, stage

import retrograd as rg

from ..pipelining.action_texts import ACTION_TEXTS
from .signatures import missing

PRIVATE = ("_PipelineStageBase", "_Action", "_ComputationType")
MORE = {
    _IR: ("MultiUseParameterConfig", "MultiUseParamSpec", "PipeSequential", "PipeSplitWrapper", "LossWrapper",
          "TrivialLossWrapper", "DetachExecutor", "annotate_split_points"),
    _backward: ("stage_backward", "stage_backward_input", "stage_backward_weight"),
    _utils: ("PipeInfo", "PipeliningMetadataError"),
    microbatch: (*microbatch.__all__, "sum_reducer"),
    schedules: (*schedules.__all__, "_Action", "_ComputationType"),
    stage: (*stage.__all__, "_PipelineStageBase"),
}  # fmt: skip
NAMES = {name: getattr(module, name) for module, names in {pipelining: pipelining.__all__, **MORE}.items()
         for name in names}  # fmt: skip
METHODS = {
    "Pipe": ("forward", "get_stage_module", "print_readable", "from_tracing", "info", "build_stage"),
    "PipelineScheduleSingle": ("step", "eval"),
    "PipelineScheduleMulti": ("step", "eval", "_dump_csv", "_load_csv"),
    "TensorChunkSpec": ("from_tuple", "from_dict"),
    "_Action": ("from_str",),
    "LossWrapper": ("forward",),
    "TrivialLossWrapper": ("forward",),
    "PipeSequential": ("from_sequential", "forward"),
}
DISTRIBUTED = ("init_process_group", "destroy_process_group", "get_rank", "get_world_size", "get_backend", "barrier",
               "is_available", "is_initialized")  # fmt: skip

# Parameters of PyTorch's that are not ours, and why.
EXCEPTIONS = {
    "init_process_group": ({"_ranks"}, "a private parameter, for groups of groups"),
}


def both_objects(name):
    """Return PyTorch's object and ours, if they are functions or classes with a signature."""
    return NAMES[name], getattr(rg.pipelining, name)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there_and_is_of_the_same_kind(name):
    peer, mine = both_objects(name)
    assert inspect.isclass(mine) == inspect.isclass(peer)
    if inspect.isclass(peer) and issubclass(peer, Exception):
        assert mine.__mro__[1] is peer.__mro__[1]


@pytest.mark.parametrize("name", [n for n, x in NAMES.items() if inspect.isclass(x) or inspect.isfunction(x)])
def test_its_parameters_are_pytorchs(name):
    peer, mine = both_objects(name)
    if hasattr(peer, "__members__"):
        assert set(peer.__members__) == set(mine.__members__)
        return
    if name == "PipeInfo" or (inspect.isclass(peer) and issubclass(peer, Exception)):
        return
    assert missing(peer, mine, EXCEPTIONS.get(name, ((), ""))[0]) == []


@pytest.mark.parametrize(
    ("name", "method"), [(name, method) for name, methods in METHODS.items() for method in methods]
)
def test_the_parameters_of_its_methods_are_pytorchs(name, method):
    peer, mine = both_objects(name)
    assert missing(getattr(peer, method), getattr(mine, method)) == []


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_the_parameters_of_distributed_are_pytorchs(name):
    peer, mine = getattr(theirs_distributed, name), getattr(rg.distributed, name)
    assert missing(peer, mine, EXCEPTIONS.get(name, ((), ""))[0]) == []


def test_a_module_is_a_module_and_stages_and_schedules_have_pytorchs_bases():
    assert issubclass(rg.pipelining.Pipe, rg.nn.Module)
    for name in schedules.__all__[1:]:
        peer, mine = both_objects(name)
        for base in ("PipelineScheduleSingle", "PipelineScheduleMulti", "_PipelineSchedule"):
            assert issubclass(mine, getattr(rg.pipelining, base)) == issubclass(peer, getattr(schedules, base))
    assert issubclass(rg.pipelining._PipelineScheduleRuntime, rg.pipelining.PipelineScheduleMulti)
    assert issubclass(rg.pipelining.PipelineStage, rg.pipelining._PipelineStageBase)


def test_actions_have_pytorchs_texts():
    mine, peer = rg.pipelining._Action, schedules._Action
    for text in ACTION_TEXTS:
        a, b = mine.from_str(text), peer.from_str(text)
        assert (a.stage_index, a.computation_type.name, a.microbatch_index) == (
            b.stage_index, b.computation_type.name, b.microbatch_index,
        )  # fmt: skip
        assert (repr(a), str(a), a.is_compute_op) == (repr(b), str(b), b.is_compute_op)
    assert {k: v.value for k, v in rg.pipelining._ComputationType.__members__.items()} == {
        k: v.value for k, v in schedules._ComputationType.__members__.items()
    }


@pytest.mark.parametrize("name", ["1f1b", "GPIPE", "interleaved1F1B", *schedules.__all__[1:3], "zbvZeroBubble"])
def test_a_schedules_name_has_pytorchs_class(name):
    assert rg.pipelining.get_schedule_class(name).__name__ == schedules.get_schedule_class(name).__name__


def test_every_exception_is_needed():
    assert EXCEPTIONS.keys() <= {*NAMES, *DISTRIBUTED, *(f"{n}.{m}" for n, ms in METHODS.items() for m in ms)}
    for name, (parameters, _) in EXCEPTIONS.items():
        peer, mine = (
            both_objects(name) if name in NAMES else (getattr(m, name) for m in (theirs_distributed, rg.distributed))
        )
        assert parameters <= set(inspect.signature(peer).parameters) - set(inspect.signature(mine).parameters)
    assert set(PRIVATE) <= set(NAMES)
