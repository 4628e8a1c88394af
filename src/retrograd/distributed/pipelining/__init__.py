"""`retrograd.pipelining` under the name that it has in PyTorch, with its modules."""

from retrograd.distributed.pipelining import _IR as _IR
from retrograd.distributed.pipelining import _backward as _backward
from retrograd.distributed.pipelining import _utils as _utils
from retrograd.distributed.pipelining import microbatch as microbatch
from retrograd.distributed.pipelining import schedules as schedules
from retrograd.distributed.pipelining import stage as stage
from retrograd.pipelining import *  # noqa: F403
from retrograd.pipelining import (  # noqa: F401
    _Action,
    _ComputationType,
    _PipelineSchedule,
    _PipelineScheduleRuntime,
    _PipelineStageBase,
    _ScheduleForwardOnly,
)
