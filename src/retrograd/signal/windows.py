"""Windows, symmetric unless sym=False: every function `signal.windows.<name>` of the registry."""

from retrograd import ops

__path__: list[str] = []  # this module is a package too: `module_aliases.py` has its modules
globals().update(ops.public("signal.windows"))
