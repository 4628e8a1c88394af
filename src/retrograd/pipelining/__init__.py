"""Pipeline parallelism: a model cut into stages, micro-batches, schedules as data, and a runtime for them."""

from retrograd.pipelining.actions import Action, Kind
from retrograd.pipelining.backward import stage_backward
from retrograd.pipelining.executor import DetachExecutor
from retrograd.pipelining.halves import stage_backward_input, stage_backward_weight
from retrograd.pipelining.ir import Pipe, PipeInfo, pipeline, split_into_equal_size
from retrograd.pipelining.loss import LossWrapper, TrivialLossWrapper
from retrograd.pipelining.marker import SplitPoint, annotate_split_points, pipe_split
from retrograd.pipelining.microbatch import (
    MicroBatch,
    Replicate,
    TensorChunkSpec,
    merge_chunks,
    split_args_kwargs_into_chunks,
)
from retrograd.pipelining.parameters import MultiUseParameterConfig, sum_replicated_gradients
from retrograd.pipelining.runtime import PipelineError
from retrograd.pipelining.schedules import get_schedule, make_schedule
from retrograd.pipelining.sequential import PipeSequential
from retrograd.pipelining.simulate import simulate
from retrograd.pipelining.stage import PipelineStage
from retrograd.pipelining.timeline import Event, Timeline, write_html, write_perfetto, write_png, write_svg
from retrograd.pipelining.training import Pipeline

__all__ = [
    "Action",
    "DetachExecutor",
    "Event",
    "Kind",
    "LossWrapper",
    "MicroBatch",
    "MultiUseParameterConfig",
    "Pipe",
    "PipeInfo",
    "PipeSequential",
    "Pipeline",
    "PipelineError",
    "PipelineStage",
    "Replicate",
    "SplitPoint",
    "TensorChunkSpec",
    "Timeline",
    "TrivialLossWrapper",
    "annotate_split_points",
    "get_schedule",
    "make_schedule",
    "merge_chunks",
    "pipe_split",
    "pipeline",
    "simulate",
    "split_args_kwargs_into_chunks",
    "split_into_equal_size",
    "stage_backward",
    "stage_backward_input",
    "stage_backward_weight",
    "sum_replicated_gradients",
    "write_html",
    "write_perfetto",
    "write_png",
    "write_svg",
]
