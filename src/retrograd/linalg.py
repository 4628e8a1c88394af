"""Linear algebra, under the names of torch.linalg: every operator `linalg.<name>` of the registry."""

from retrograd import ops

globals().update(ops.public("linalg"))
