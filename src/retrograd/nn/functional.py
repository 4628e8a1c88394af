"""Operators of neural networks, under their names in torch.nn.functional."""

from retrograd import ops

globals().update(ops.public("nn.functional"))
