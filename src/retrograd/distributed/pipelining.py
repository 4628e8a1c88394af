"""`retrograd.pipelining` under the name that it has in PyTorch."""

from retrograd.pipelining import *  # noqa: F403
from retrograd.pipelining import _Action, _ComputationType, _PipelineStageBase  # noqa: F401
