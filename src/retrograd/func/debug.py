"""Inspection of tensors inside transforms."""

from retrograd.core import Tensor


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return the value of a tensor inside a transform: in `vmap` all examples, in `grad` the same values.

    Arguments of `vmap` have their batch dimension where `in_dims` has it; other results have it first.
    With `recurse` it is the tensor outside all transforms, else the one a level below; a tensor outside is itself.
    Use it in debuggers and for print(): the transform does not see computations with the result.

    Raises TypeError if the argument is not a tensor.

    >>> import retrograd as rg
    >>> def f(x):
    ...     print(rg.func.debug_unwrap(x))
    ...     return x.sum()
    >>> rg.func.vmap(f)(rg.ones(3, 2))
    tensor([[1., 1.],
            [1., 1.],
            [1., 1.]])
    tensor([2., 2., 2.])
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"debug_unwrap: expected a Tensor, got {type(tensor).__name__}")
    if tensor.level is None:
        return tensor
    below: Tensor
    below, _ = tensor.level.value_as_given(tensor)
    return debug_unwrap(below) if recurse else below
