"""The backward passes of a stage, under the name of their module in PyTorch."""

from retrograd.pipelining import stage_backward, stage_backward_input, stage_backward_weight

__all__ = ["stage_backward", "stage_backward_input", "stage_backward_weight"]
