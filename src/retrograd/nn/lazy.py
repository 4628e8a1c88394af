"""Layers that infer the size of their input from the first call."""

import inspect
from typing import Any, ClassVar

from retrograd.core import Tensor
from retrograd.foundation.suggestions import bind_arguments
from retrograd.nn.batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from retrograd.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from retrograd.nn.linear import Linear
from retrograd.nn.module import Module
from retrograd.nn.module_tree import BUFFER, PARAMETER
from retrograd.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from retrograd.nn.settings import uninitialized
from retrograd.ops.conv import check_images


class LazyModuleMixin(Module):
    """Base of modules whose parameters get their shapes in the first call.

    A subclass registers `UninitializedParameter`s and defines `initialize_parameters`, which is called with the
    arguments of the first call and materializes them. The module then becomes one of the class `cls_to_become`, if that
    is not None. Loading a state gives the parameters their shapes as well.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> class Scale(nn.lazy.LazyModuleMixin, nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.weight = nn.UninitializedParameter()
    ...
    ...     def initialize_parameters(self, x):
    ...         self.weight.materialize(x.shape[-1:])
    ...         nn.init.ones_(self.weight)
    ...
    ...     def forward(self, x):
    ...         return x * self.weight
    >>> scale = Scale()
    >>> scale(rg.ones(2, 3)).shape, scale.weight.shape
    ((2, 3), (3,))
    """

    cls_to_become: ClassVar[type[Module] | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy_hooks = (
            self.register_load_state_dict_pre_hook(_materialize_as_in_state),
            self.register_forward_pre_hook(_infer_parameters, with_kwargs=True),
        )

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize all parameters, given the arguments of the first call; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} has no initialize_parameters(); define it")

    def has_uninitialized_params(self) -> bool:
        """Return whether a parameter or buffer of this module has no shape yet."""
        return any(is_lazy(tensor) for _, tensor in self._members(PARAMETER, BUFFER))


def _infer_parameters(module: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    """Give a module's parameters their shapes before its first call, and make it one of its ordinary class."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"{type(module).__name__}: initialize_parameters() has not materialized all parameters")
    for handle in module._lazy_hooks:
        handle.remove()
    del module._lazy_hooks
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


def _materialize_as_in_state(module: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
    for name, tensor in module._members(PARAMETER, BUFFER):
        given = state.get(prefix + name)
        if is_lazy(tensor) and given is not None and not is_lazy(given):
            tensor.materialize(given.shape)


class _InferredSize(LazyModuleMixin):
    """Base of layers that differ from their last base, `cls_to_become`, in one argument: the size `size_name`.

    It is the size of the input along `size_dim`.  `lazy_defaults` are the defaults that differ, as in PyTorch.
    """

    size_name: ClassVar[str]
    size_dim: ClassVar[int]
    cls_to_become: ClassVar[Any] = None
    lazy_defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        ordinary = cls.__bases__[-1]
        if not issubclass(ordinary, LazyModuleMixin):
            cls.cls_to_become = ordinary
            signature = inspect.signature(ordinary.__init__)
            parameters = [
                p.replace(default=cls.lazy_defaults.get(name, p.default))
                for name, p in signature.parameters.items()
                if name != cls.size_name
            ]
            cls._signature = signature.replace(parameters=parameters)
            cls.__signature__ = signature.replace(parameters=parameters[1:])  # type: ignore[attr-defined]

    _signature: ClassVar[inspect.Signature]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        bound = bind_arguments(f"{type(self).__name__}.__init__", self._signature, (None, *args), kwargs)
        settings = {**self.lazy_defaults, **bound.arguments}
        del settings["self"]
        super().__init__(**settings, **{self.size_name: 0})
        self._lazy_settings = settings
        for name, tensor in self._members(PARAMETER):
            if tensor is not None:
                setattr(self, name, UninitializedParameter(dtype=tensor.dtype))
        for name, tensor in self._members(BUFFER):
            if tensor is not None and not tensor.numel():
                setattr(self, name, UninitializedBuffer(dtype=tensor.dtype))

    def reset_parameters(self) -> None:
        """Reinitialize the parameters, if their shapes are known."""
        if getattr(self, self.size_name):
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the size from the first input, and initialize all parameters as the ordinary layer would."""
        self._check_first_input(input)
        size = input.shape[self.size_dim]
        settings = {**self._lazy_settings, self.size_name: size}
        model = uninitialized(type(self).__name__, self.cls_to_become, (), settings)
        setattr(self, self.size_name, size)
        if self.has_uninitialized_params():  # and no state was loaded
            for name, tensor in self._members(PARAMETER, BUFFER):
                if is_lazy(tensor):
                    tensor.materialize(getattr(model, name).shape)
            self.reset_parameters()
        del self._lazy_settings

    def _check_first_input(self, input: Tensor) -> None:
        """Raise if the layer does not take inputs of that number of dimensions."""


class LazyLinear(_InferredSize, Linear):
    """`Linear` without `in_features`, which is the last size of the first input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.LazyLinear(3)
    >>> layer(rg.ones(2, 4)).shape, layer
    ((2, 3), Linear(in_features=4, out_features=3, bias=True))
    """

    size_name, size_dim = "in_features", -1


class _LazyConvolution(_InferredSize):
    size_name = "in_channels"
    dims: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.size_dim = -1 - cls.dims

    def _check_first_input(self, input: Tensor) -> None:
        check_images(type(self).__name__, input, self.dims)


class _LazyNorm(_InferredSize):
    size_name, size_dim = "num_features", 1
    _check_input_dim: Any

    def _check_first_input(self, input: Tensor) -> None:
        self._check_input_dim(input)


class _LazyInstanceNorm(_LazyNorm):
    lazy_defaults: ClassVar[dict[str, Any]] = {"affine": True, "track_running_stats": True}
    input_ndims: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.size_dim = -min(cls.input_ndims)


class LazyConv1d(_LazyConvolution, Conv1d):
    """`Conv1d` without `in_channels`, which is the number of channels of the first input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.LazyConv1d(2, 3)
    >>> layer(rg.ones(2, 3, 5)).shape, type(layer).__name__
    ((2, 2, 3), 'Conv1d')
    """


class LazyConv2d(_LazyConvolution, Conv2d):
    """`Conv2d` without `in_channels`, which is the number of channels of the first input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.LazyConv2d(2, 3)
    >>> layer(rg.ones(2, 3, 5, 5)).shape, type(layer).__name__
    ((2, 2, 3, 3), 'Conv2d')
    """


class LazyConv3d(_LazyConvolution, Conv3d):
    """`Conv3d` without `in_channels`, which is the number of channels of the first input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.LazyConv3d(2, 3)
    >>> layer(rg.ones(2, 3, 5, 5, 5)).shape, type(layer).__name__
    ((2, 2, 3, 3, 3), 'Conv3d')
    """


class LazyConvTranspose1d(_LazyConvolution, ConvTranspose1d):
    """`ConvTranspose1d` without `in_channels`, which is the number of channels of the first input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.LazyConvTranspose1d(2, 3)
    >>> layer(rg.ones(2, 3, 5)).shape, type(layer).__name__
    ((2, 2, 7), 'ConvTranspose1d')
    """


class LazyConvTranspose2d(_LazyConvolution, ConvTranspose2d):
    """`ConvTranspose2d` without `in_channels`, which is the number of channels of the first input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.LazyConvTranspose2d(2, 3)
    >>> layer(rg.ones(2, 3, 5, 5)).shape, type(layer).__name__
    ((2, 2, 7, 7), 'ConvTranspose2d')
    """


class LazyConvTranspose3d(_LazyConvolution, ConvTranspose3d):
    """`ConvTranspose3d` without `in_channels`, which is the number of channels of the first input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.LazyConvTranspose3d(2, 3)
    >>> layer(rg.ones(2, 3, 5, 5, 5)).shape, type(layer).__name__
    ((2, 2, 7, 7, 7), 'ConvTranspose3d')
    """


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """`BatchNorm1d` without `num_features`, which is the number of channels of the first input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.LazyBatchNorm1d()
    >>> layer(rg.ones(2, 3, 5)).shape, type(layer).__name__
    ((2, 3, 5), 'BatchNorm1d')
    """


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """`BatchNorm2d` without `num_features`, which is the number of channels of the first input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.LazyBatchNorm2d()
    >>> layer(rg.ones(2, 3, 5, 5)).shape, type(layer).__name__
    ((2, 3, 5, 5), 'BatchNorm2d')
    """


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """`BatchNorm3d` without `num_features`, which is the number of channels of the first input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.LazyBatchNorm3d()
    >>> layer(rg.ones(2, 3, 5, 5, 5)).shape, type(layer).__name__
    ((2, 3, 5, 5, 5), 'BatchNorm3d')
    """


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """`InstanceNorm1d` without `num_features`, which is the number of channels of the first input.

    `affine` and `track_running_stats` are True by default, as in PyTorch.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.LazyInstanceNorm1d()
    >>> layer(rg.ones(2, 3, 5)).shape, type(layer).__name__
    ((2, 3, 5), 'InstanceNorm1d')
    """


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """`InstanceNorm2d` without `num_features`, which is the number of channels of the first input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.LazyInstanceNorm2d()
    >>> layer(rg.ones(2, 3, 5, 5)).shape, type(layer).__name__
    ((2, 3, 5, 5), 'InstanceNorm2d')
    """


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """`InstanceNorm3d` without `num_features`, which is the number of channels of the first input.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.LazyInstanceNorm3d()
    >>> layer(rg.ones(2, 3, 5, 5, 5)).shape, type(layer).__name__
    ((2, 3, 5, 5, 5), 'InstanceNorm3d')
    """
