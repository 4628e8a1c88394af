"""Pipeline parallelism: splits a model into stages, a batch into microbatches, and runs them by a schedule."""

from retrograd.pipelining.checkpoint.checkpoint import Checkpoints, Restored
from retrograd.pipelining.microbatch import (
    CustomReducer,
    Replicate,
    TensorChunkSpec,
    merge_chunks,
    split_args_kwargs_into_chunks,
    sum_reducer,
)
from retrograd.pipelining.microbatch import CustomReducer as _CustomReducer  # noqa: F401
from retrograd.pipelining.microbatch import Replicate as _Replicate  # noqa: F401
from retrograd.pipelining.pipeline_trainer import Pipeline
from retrograd.pipelining.planning import AutoSchedule, FoundSchedule, Plan, plan, search_schedule
from retrograd.pipelining.planning.simulate import Summary, peak_activations, simulate, simulate_costs, unit_cost
from retrograd.pipelining.runtime.executor import DetachExecutor
from retrograd.pipelining.runtime.manual_stage import PipelineStage
from retrograd.pipelining.runtime.rank import PipelineError
from retrograd.pipelining.runtime.split_backward import stage_backward_input, stage_backward_weight
from retrograd.pipelining.runtime.stage import PipelineStageBase as _PipelineStageBase  # noqa: F401
from retrograd.pipelining.runtime.stage import PipeliningMetadataError
from retrograd.pipelining.runtime.stage_backward import stage_backward
from retrograd.pipelining.schedule_base import PipelineSchedule as _PipelineSchedule  # noqa: F401
from retrograd.pipelining.schedule_classes import (
    PipelineScheduleMulti,
    PipelineScheduleSingle,
    Schedule1F1B,
    ScheduleChimera,
    ScheduleDualPipe,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    get_schedule_class,
)
from retrograd.pipelining.schedule_classes import PipelineScheduleRuntime as _PipelineScheduleRuntime  # noqa: F401
from retrograd.pipelining.schedule_classes import ScheduleForwardOnly as _ScheduleForwardOnly  # noqa: F401
from retrograd.pipelining.schedules import default_ranks, get_schedule, make_schedule, stage_ranks
from retrograd.pipelining.schedules.action_names import ComputationType as _ComputationType  # noqa: F401
from retrograd.pipelining.schedules.action_names import NamedAction as _Action  # noqa: F401
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.activations import with_offload, with_recomputation
from retrograd.pipelining.schedules.named_orders import add_reduce_grad as _add_reduce_grad  # noqa: F401
from retrograd.pipelining.schedules.named_orders import add_send_recv as _add_send_recv  # noqa: F401
from retrograd.pipelining.schedules.named_orders import add_unshard_reshard as _add_unshard_reshard  # noqa: F401
from retrograd.pipelining.schedules.named_orders import format_pipeline_order as _format_pipeline_order  # noqa: F401
from retrograd.pipelining.schedules.named_orders import merge_bw as _merge_bw  # noqa: F401
from retrograd.pipelining.schedules.named_orders import validate_schedule as _validate_schedule  # noqa: F401
from retrograd.pipelining.schedules.seq1f1b import seq1f1b
from retrograd.pipelining.schedules.tables import format_grid, read_csv, write_csv
from retrograd.pipelining.sequence_segments import SegmentCache, segment_lengths, split_segments
from retrograd.pipelining.split.loss import LossWrapper, TrivialLossWrapper
from retrograd.pipelining.split.markers import PipeSplitWrapper, SplitPoint, annotate_split_points, pipe_split
from retrograd.pipelining.split.pipe import Pipe, PipeInfo, build_stage, pipeline, split_into_equal_size
from retrograd.pipelining.split.sequential import PipeSequential
from retrograd.pipelining.split.shared_parameters import (
    MultiUseParameterConfig,
    MultiUseParamSpec,
    sum_replicated_gradients,
)
from retrograd.pipelining.timeline.clocks import merge_timelines
from retrograd.pipelining.timeline.recorder import TimelineRecorder
from retrograd.pipelining.timeline.timeline import (
    Event,
    Sample,
    Span,
    Step,
    Timeline,
    write_html,
    write_perfetto,
    write_png,
    write_svg,
)
from retrograd.pipelining.timeline.trace_reader import read_perfetto
from retrograd.pipelining.transports.interface import RankMismatchError

__all__ = [
    "Action",
    "AutoSchedule",
    "Checkpoints",
    "CustomReducer",
    "DetachExecutor",
    "Event",
    "FoundSchedule",
    "Kind",
    "LossWrapper",
    "MultiUseParamSpec",
    "MultiUseParameterConfig",
    "Pipe",
    "PipeInfo",
    "PipeSequential",
    "PipeSplitWrapper",
    "Pipeline",
    "PipelineError",
    "RankMismatchError",
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "PipelineStage",
    "PipeliningMetadataError",
    "Plan",
    "Replicate",
    "Restored",
    "Schedule1F1B",
    "ScheduleChimera",
    "ScheduleDualPipe",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "Sample",
    "SegmentCache",
    "Span",
    "SplitPoint",
    "Step",
    "Summary",
    "TensorChunkSpec",
    "Timeline",
    "TimelineRecorder",
    "TrivialLossWrapper",
    "annotate_split_points",
    "build_stage",
    "default_ranks",
    "format_grid",
    "get_schedule",
    "get_schedule_class",
    "make_schedule",
    "merge_chunks",
    "merge_timelines",
    "peak_activations",
    "pipe_split",
    "pipeline",
    "plan",
    "read_csv",
    "read_perfetto",
    "search_schedule",
    "segment_lengths",
    "seq1f1b",
    "simulate",
    "simulate_costs",
    "split_args_kwargs_into_chunks",
    "split_into_equal_size",
    "split_segments",
    "stage_backward",
    "stage_backward_input",
    "stage_backward_weight",
    "stage_ranks",
    "sum_reducer",
    "sum_replicated_gradients",
    "unit_cost",
    "with_offload",
    "with_recomputation",
    "write_csv",
    "write_html",
    "write_perfetto",
    "write_png",
    "write_svg",
]
