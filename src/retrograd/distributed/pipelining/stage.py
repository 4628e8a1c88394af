"""Stages, under the name of their module in PyTorch."""

from retrograd.pipelining import PipelineStage, _PipelineStageBase, build_stage
from retrograd.pipelining.split.pipe_stage import PipeStage as _PipelineStage

__all__ = ["PipelineStage", "_PipelineStage", "_PipelineStageBase", "build_stage"]
