"""Reductions under masks, under the names of torch.masked: every operator `masked.<name>` of the registry."""

from retrograd import ops

globals().update(ops.public("masked"))
