"""Operators of neural networks, under their names in torch.nn.functional."""

from retrograd import ops
from retrograd.nn import grad as grad
from retrograd.overrides import has_torch_function as has_torch_function
from retrograd.overrides import has_torch_function_unary as has_torch_function_unary
from retrograd.overrides import has_torch_function_variadic as has_torch_function_variadic

globals().update(ops.public("nn.functional"))
