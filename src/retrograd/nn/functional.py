"""The operators of neural networks, under the names that torch.nn.functional gives them."""

from retrograd import ops

globals().update(ops.public("nn.functional"))
