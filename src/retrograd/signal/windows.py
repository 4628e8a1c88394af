"""Windows, symmetric unless sym=False: every function `signal.windows.<name>` of the registry."""

from retrograd import ops

globals().update(ops.public("signal.windows"))
