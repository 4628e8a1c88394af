"""The class of tensors that users hold."""

import warnings

from numpy import generic, ndarray

from retrograd.core import dtype as dtypes
from retrograd.core.arithmetic import Arithmetic
from retrograd.core.errors import OperandTypeError
from retrograd.core.hooks import grad_dtype_of
from retrograd.core.level import grad_at, graph_level, set_grad_at
from retrograd.core.overrides import as_subclass, default_override, no_wrappers, prepare_subclass
from retrograd.core.state import current
from retrograd.core.tensor import TENSOR_SLOTS, TensorBase, count_of, new_of_class, set_tensor_class
from retrograd.core.views import requires_grad_synced, synced_grad_fn
from retrograd.foundation.read_only import read_only


class Tensor(Arithmetic):
    """An array with a position in the autograd graph.

    Created by `rg.tensor`, `rg.zeros` and the like, and by operators. Has no fields of its own, except for attributes
    that users set: the registry adds every operator as a method, and the packages above add theirs.
    """

    __slots__ = TENSOR_SLOTS
    _class_overrides = False  # whether the class overrides operators: see `prepare_subclass`

    def __new__(cls, value=(), level=None, tag=None, requires_grad=False, *sizes):
        if isinstance(value, TensorBase) and level is None:
            return as_subclass(value, cls)
        if isinstance(value, (ndarray, generic)) or not hasattr(value, "dtype"):  # PyTorch's legacy calls
            value = Tensor._legacy_array(value, level, tag, requires_grad, *sizes)
            level, tag, requires_grad = None, None, False
        return new_of_class(cls, value, level, tag, requires_grad)

    def __init__(self, *args, **kwargs):
        """Accept any arguments, as `__new__` has made the tensor: subclasses may define either method."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        prepare_subclass(cls)

    @classmethod
    def __tensor_function__(cls, func, types, args=(), kwargs=None):
        """Run a function on tensors of this class, and return its results as tensors of this class.

        Subclasses inherit this.  One that defines its own version calls this one by `super()` to run the function.
        """
        return default_override(cls, func, types, args, kwargs)

    __torch_function__ = __tensor_function__  # PyTorch's name

    def as_subclass(self, cls):
        """Return a tensor of a subclass that shares the memory and the history of this one.

        Operators on it run through the class's `__tensor_function__`.  Raises TypeError for a class that is none of
        Tensor.
        """
        _check_subclass("as_subclass", cls)
        return as_subclass(self, cls)

    @staticmethod
    def _make_subclass(cls, data, require_grad=False):
        _check_subclass("_make_subclass", cls)
        if not isinstance(data, Tensor):
            raise TypeError(f"_make_subclass: argument 'data' must be Tensor, not {type(data).__name__}")
        out = as_subclass(data.detach(), cls)
        out.requires_grad = require_grad
        return out

    @staticmethod
    def _make_wrapper_subclass(cls, *args, **kwargs):
        raise no_wrappers(cls if isinstance(cls, type) else type(cls))

    @property
    def requires_grad(self):
        """Whether operators on this tensor are recorded, here or below a transform, so that it receives gradients."""
        return requires_grad_synced(self) or (self.level is not None and self.value.requires_grad)

    @requires_grad.setter
    def requires_grad(self, flag):
        if type(flag).__name__ != "bool":  # NumPy's is as good
            raise OperandTypeError(f"requires_grad must be a bool, got {type(flag).__name__}")
        if synced_grad_fn(self) is not None:
            raise RuntimeError(
                f"requires_grad: you can only change requires_grad flags of leaf variables, and this one is the result "
                f"of {self._grad_fn.op.name}; x.detach() is its value outside the graph"
            )
        if flag:
            dtypes.check_requires_grad(self.dtype)
            if self.level is not graph_level():
                raise RuntimeError("requires_grad: this tensor belongs to an outer transform; use x.detach() first")
            if self.is_inference() and not current().inference:
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed; use a clone()"
                )
        self._requires_grad = bool(flag)

    @requires_grad.deleter
    def requires_grad(self):
        raise RuntimeError("requires_grad must be a bool, so it can't be deleted")

    @read_only
    def is_leaf(self):
        """Whether no recorded operator made this tensor."""
        return synced_grad_fn(self) is None

    @read_only
    def output_nr(self):
        """The index of this tensor among the outputs of its `grad_fn`."""
        return self._output_nr

    def is_inference(self):
        """Return whether the tensor was made in inference mode, so that it can't join a graph."""
        return self.version is not None and self.version.count < 0

    @read_only
    def _version(self):
        if self.is_inference():
            raise RuntimeError("_version: Inference tensors do not track version counter: their writes are not counted")
        return count_of(self)

    @read_only
    def _base(self):
        return self._view.base if self._is_view() else None

    def _is_view(self):
        return self._view is not None and not self.is_inference()  # whose views are not tracked

    @property
    def grad(self):
        """The gradient that `backward()` accumulated, or None; results show one after `retain_grad()` only."""
        g = self._grad if current().level is None else grad_at(graph_level(), self)
        if g is None and self._grad_fn is not None and not self.retains_grad:
            warnings.warn(
                f"grad: this tensor is no leaf but the result of {self._grad_fn.op.name}, so backward() leaves its "
                f".grad None; call .retain_grad() on it before, or look at the leaf that you meant",
                UserWarning,
                stacklevel=2,
            )
        return g

    @grad.setter
    def grad(self, value):
        if value is not None:
            self._check_grad(value)
        set_grad_at(graph_level(), self, value)

    @grad.deleter
    def grad(self):
        set_grad_at(graph_level(), self, None)

    def _check_grad(self, value):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
            )
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size "
                f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size"
            )
        expected = grad_dtype_of(self)
        if expected is not None and expected != value.dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with grad_dtype '{expected}'. "
                f"The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype, {self.dtype}); None "
                f"allows any"
            )


def _check_subclass(name, cls):
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(
            f"{name}: Creating a Tensor subclass from a class that does not inherit from Tensor is not possible: "
            f"expected a subclass of Tensor, got {cls!r}"
        )


set_tensor_class(Tensor)
