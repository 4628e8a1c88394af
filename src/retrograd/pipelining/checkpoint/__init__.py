"""Save and resume training: each rank writes its tensors, and a manifest combines the files into one checkpoint.

The manifest is written last, so that an interrupted save is never mistaken for a checkpoint.
"""

from retrograd.pipelining.checkpoint.checkpoint import Checkpoints, Restored

__all__ = ["Checkpoints", "Restored"]
