"""The settings of PyTorch's compiler, `torch._dynamo.config`: accepted without effect."""

from collections.abc import Iterator
from typing import Any

from retrograd.core.blocks import generator_block

suppress_errors = capture_scalar_outputs = capture_dynamic_output_shape_ops = cache_size_limit = recompile_limit = None
optimize_ddp = inline_inbuilt_nn_modules = automatic_dynamic_shapes = compiled_autograd = None


@generator_block
def patch(*args: Any, **settings: Any) -> Iterator[None]:
    """Return a block, or decorator, in which nothing changes."""
    yield
