"""The classes of several named results, under the names of the operators that return them, as in torch.return_types.

>>> import retrograd as rg
>>> isinstance(rg.tensor([3.0, 1.0]).topk(1), rg.return_types.topk)
True
"""

from retrograd import ops

globals().update(ops.return_types())
