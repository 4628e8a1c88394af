"""Pipes, their split points and losses, under the name of their module in PyTorch."""

from retrograd.pipelining import (
    DetachExecutor,
    LossWrapper,
    MultiUseParameterConfig,
    MultiUseParamSpec,
    Pipe,
    PipeSequential,
    PipeSplitWrapper,
    SplitPoint,
    TrivialLossWrapper,
    annotate_split_points,
    pipe_split,
    pipeline,
)

__all__ = [
    "DetachExecutor",
    "LossWrapper",
    "MultiUseParamSpec",
    "MultiUseParameterConfig",
    "Pipe",
    "PipeSequential",
    "PipeSplitWrapper",
    "SplitPoint",
    "TrivialLossWrapper",
    "annotate_split_points",
    "pipe_split",
    "pipeline",
]
