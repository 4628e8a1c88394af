"""Placements of stages and errors about metadata, under the name of their module in PyTorch."""

from retrograd.pipelining import PipeInfo, PipeliningMetadataError
from retrograd.pipelining.schedules.stage_placement import (
    generate_rank_to_stage_mapping,
    generate_stage_to_rank_mapping,
)

PipeliningShapeError = PipeliningMetadataError  # its name before PyTorch 2.10

__all__ = [
    "PipeInfo",
    "PipeliningMetadataError",
    "PipeliningShapeError",
    "generate_rank_to_stage_mapping",
    "generate_stage_to_rank_mapping",
]
