"""`retrograd.pipelining` under the name that it has in PyTorch."""

from retrograd.pipelining import *  # noqa: F403
from retrograd.pipelining import (  # noqa: F401
    _Action,
    _ComputationType,
    _PipelineSchedule,
    _PipelineScheduleRuntime,
    _PipelineStageBase,
)
