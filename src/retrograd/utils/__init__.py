"""What is useful around training and belongs to no layer of it."""

from retrograd.utils import checkpoint as checkpoint
from retrograd.utils.progress import progress
from retrograd.utils.threads import blas_threads, short_turns

__all__ = ["blas_threads", "checkpoint", "progress", "short_turns"]
