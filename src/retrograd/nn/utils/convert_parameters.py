"""Convert between parameters and one vector."""

from collections.abc import Iterable
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor, operator_named
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.parameter_lists import list_tensors

_cat = operator_named("cat")


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """Concatenate the elements of all parameters into a vector; gradients flow to them.

    >>> import retrograd as rg
    >>> parameters_to_vector([rg.ones(1, 2), rg.zeros(1)])
    tensor([1., 1., 0.])
    """
    parts = [p.reshape(-1) for p in list_tensors("parameters_to_vector", parameters)]
    if not parts:
        raise ValueError("parameters_to_vector: expected at least one parameter, got none")
    return _cat(parts)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Any]) -> None:
    """Copy a vector's elements into the parameters, in place and in order.

    Raises ValueError, and changes nothing, for a vector of another size. The parameters keep their memory.

    >>> import retrograd as rg
    >>> x, y = rg.zeros(1, 2), rg.zeros(1)
    >>> vector_to_parameters(rg.tensor([1.0, 2.0, 3.0]), [x, y])
    >>> x, y
    (tensor([[1., 2.]]), tensor([3.]))
    """
    listed = list_tensors("vector_to_parameters", parameters)
    sizes = [p.numel() for p in listed]
    if tuple(vec.shape) != (sum(sizes),):
        raise ValueError(
            f"vector_to_parameters: the parameters have {sum(sizes)} elements, the vector has shape {vec.shape}"
        )
    with no_grad():
        for p, part in zip(listed, vec.split(sizes), strict=True):
            p.copy_(part.reshape(p.shape))


suggest_in_module(globals())
