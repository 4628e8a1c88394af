"""Initial values of tensors that are parts of whole ones."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from retrograd.autograd import no_grad
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.nn.tensor_part import TensorPart, on_parts
from retrograd.ops.create import zeros

Fill = TypeVar("Fill", bound=Callable[..., Any])


def fill_whole(fill: Fill) -> Fill:
    """Return a function that fills a part of a tensor with its elements of the whole one."""
    checked = suggest_keywords(fill)

    @functools.wraps(checked)
    def run(*args: Any, **kwargs: Any) -> Any:
        tensor = args[0] if args else kwargs.get("tensor")
        if not isinstance(tensor, TensorPart):
            return checked(*args, **kwargs)
        kwargs.pop("tensor", None)
        whole = checked(zeros(tensor.whole_shape, dtype=tensor.dtype, device=tensor.device), *args[1:], **kwargs)
        with no_grad(), on_parts():
            tensor.copy_(tensor.part_of(whole))
        return tensor

    return run  # type: ignore[return-value]
