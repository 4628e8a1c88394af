"""Special functions, under the names of torch.special: every operator `special.<name>` of the registry."""

from retrograd import ops

globals().update(ops.public("special"))
