"""Buckets and results of the hooks that `DistributedDataParallel.register_comm_hook` takes."""

from collections.abc import Callable, Sequence

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.foundation.describe_value import describe
from retrograd.futures import Future


class GradBucket:
    """Gradients that a hook of `DistributedDataParallel.register_comm_hook` exchanges, in one vector.

    >>> import retrograd as rg
    >>> from retrograd.distributed import GradBucket
    >>> w = rg.ones(1, 2, requires_grad=True)
    >>> bucket = GradBucket(0, rg.tensor([3.0, 4.0]), [w], is_last=True)
    >>> bucket.index(), bucket.is_last(), bucket.gradients()
    (0, True, [tensor([[3., 4.]])])
    """

    def __init__(self, index: int, buffer: Tensor, parameters: Sequence[Tensor], is_last: bool) -> None:
        self._index, self._buffer, self._is_last = index, buffer, is_last
        self._parameters = list(parameters)

    def index(self) -> int:
        """Return the number of the bucket; that of the gradients that come first is 0."""
        return self._index

    def buffer(self) -> Tensor:
        """Return the vector of all its gradients."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace what `buffer` and `gradients` return; the hook's future decides about the gradients."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Return the gradients, views of the vector, in the order of `parameters`."""
        parts = self._buffer.split([p.numel() for p in self._parameters])
        return [part.view(p.shape) for part, p in zip(parts, self._parameters, strict=True)]

    def parameters(self) -> list[Tensor]:
        """Return the parameters of the gradients."""
        return self._parameters

    def is_last(self) -> bool:
        """Return whether the other buckets have been exchanged before."""
        return self._is_last


Hook = Callable[[GradBucket], Future[Tensor]]


class HookWork:
    """The exchange of a bucket by a hook, whose result replaces the gradients of the bucket."""

    def __init__(self, future: Future[Tensor], flat: Tensor) -> None:
        if not hasattr(future, "wait"):
            raise TypeError(
                f"register_comm_hook: the hook returned {describe(future)}; it must return a Future of the bucket's "
                f"new values, as `work.get_future().then(lambda future: future.value()[0])`"
            )
        self._future, self._flat = future, flat

    def is_completed(self) -> bool:
        """Return whether the future has its result, after progress that needs no waiting."""
        return self._future.done()

    def wait(self) -> None:
        """Wait for the result and write it into the bucket.  Raises ValueError if it does not fit."""
        found = self._future.wait()
        values = found[0] if isinstance(found, list) and len(found) == 1 else found
        if not isinstance(values, Tensor) or values.numel() != self._flat.numel():
            raise ValueError(
                f"register_comm_hook: the future of the hook has the result {describe(values)}; it must be a tensor of "
                f"the bucket's {self._flat.numel()} elements"
            )
        with no_grad():
            if values.data_ptr() != self._flat.data_ptr() or values.dtype != self._flat.dtype:
                self._flat.copy_(values.detach().reshape(-1))
