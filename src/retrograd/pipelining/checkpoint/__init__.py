"""Save and resume training: every rank writes its part, and a manifest makes the parts one checkpoint.

The manifest is written last, so that an interrupted save is never mistaken for a checkpoint.
"""

from retrograd.pipelining.checkpoint.checkpoint import Checkpoints, Restored

__all__ = ["Checkpoints", "Restored"]
