"""The class of tensors that users hold."""

from retrograd.core import dtype as dtypes
from retrograd.core.level import current
from retrograd.core.op import Arithmetic
from retrograd.core.tensor import set_tensor_class


class Tensor(Arithmetic):
    """An array with a place in the autograd graph.

    Made by `rg.tensor`, `rg.zeros` and their like, and by operators.  Has no fields of its own: the registry
    adds every operator as a method, and the packages above add theirs.
    """

    __slots__ = ()

    @property
    def requires_grad(self):
        """Whether operators on this tensor are recorded, so that gradients flow to it."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, flag):
        if self.grad_fn is not None:
            if flag:
                return  # it does already
            raise RuntimeError(
                "requires_grad: only leaves can change it; this tensor is the result of "
                f"{self.grad_fn.op.name}. Use x.detach() for one outside the graph."
            )
        if flag:
            dtypes.check_requires_grad(self.dtype)
            if self.level is not current().level:
                raise RuntimeError("requires_grad: this tensor belongs to an outer transform; use x.detach() first")
        self._requires_grad = bool(flag)

    @property
    def is_leaf(self):
        """Whether no recorded operator made this tensor."""
        return self.grad_fn is None

    @property
    def grad(self):
        """The gradient that `backward()` accumulated, or None."""
        return self._grad

    @grad.setter
    def grad(self, value):
        if value is not None:
            self._check_grad(value)
        self._grad = value

    @grad.deleter
    def grad(self):
        self._grad = None

    def _check_grad(self, value):
        if not isinstance(value, Tensor):
            raise TypeError(f"grad: expected a Tensor or None, got {type(value).__name__}")
        if value is self:
            raise RuntimeError("grad: a tensor can't be its own gradient")
        if value.shape != self.shape or value.dtype != self.dtype:
            raise RuntimeError(f"grad: expected {self.aval}, got {value.aval}")


set_tensor_class(Tensor)
