"""Normalisation of each channel, over a batch or per sample."""

from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor, operator_named
from retrograd.nn import functional as F
from retrograd.nn.normalization import Affine
from retrograd.nn.parameter import is_on_meta
from retrograd.ops.create import ones, zeros
from retrograd.ops.mutate import check_write

cat = operator_named("cat")


class _NormBase(Affine):
    """Base of batch and instance norm: a weight and a bias for each channel, and running statistics."""

    running_mean: Any
    running_var: Any
    num_batches_tracked: Any
    _version = 2  # since `num_batches_tracked` is saved
    input_ndims: tuple[int, ...]  # how many dimensions the input may have

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._register_affine((num_features,), affine, affine and bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, dtype=dtype, device=device) if tracked else None)
        self.register_buffer("running_var", ones(num_features, dtype=dtype, device=device) if tracked else None)
        self.register_buffer("num_batches_tracked", zeros((), dtype="int64", device=device) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset to mean 0, variance 1, and a batch count of 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset weights to one, biases to zero, and the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _complete_state(self, state_dict: dict[str, Any], prefix: str) -> None:
        # Checkpoints from before PyTorch 0.4.1, and converted ones, have no count of batches.
        count = self.num_batches_tracked
        if count is not None:
            state_dict.setdefault(
                f"{prefix}num_batches_tracked", zeros((), dtype="int64") if is_on_meta(count) else count
            )

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self.input_ndims:
            numbers = " or ".join(f"{ndim}D" for ndim in self.input_ndims)
            raise ValueError(
                f"{type(self).__name__}: expected {numbers} input (got {input.ndim}D input), of shape {input.shape}"
            )

    def extra_repr(self) -> str:
        """Return channels, eps, momentum, and the enabled settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        self._check_input_dim(input)
        if not (self.training and self.track_running_stats):
            use_batch_stats = self.training or self.running_mean is None
            mean, var = (None, None) if self.training else (self.running_mean, self.running_var)
            return F.batch_norm(input, mean, var, self.weight, self.bias, use_batch_stats, 0.0, self.eps)
        check_write("add_", self.num_batches_tracked)  # before anything changes
        # With momentum None, average over all batches so far: the factor is 1 / their number.
        momentum = 1 / (int(self.num_batches_tracked) + 1) if self.momentum is None else self.momentum
        mean, var = self.running_mean, self.running_var
        out = F.batch_norm(input, mean, var, self.weight, self.bias, True, momentum, self.eps)
        self.num_batches_tracked.add_(1)
        return out

    def _remove_running_stats(self) -> None:
        """Normalise by the statistics of the batch from now on, also in evaluation."""
        if self.track_running_stats:
            self.running_mean = self.running_var = self.num_batches_tracked = None
            self.track_running_stats = False


class BatchNorm1d(_BatchNorm):
    """(x - mean) / sqrt(var + eps) · weight + bias for each channel of x (n, num_features) or (n, num_features, l).

    In training, mean and variance (divided by the number of elements) are those of the batch, over all dimensions
    except the channels; a single element raises ValueError. The buffers `running_mean` and `running_var` (unbiased)
    move towards them by the factor `momentum`; with momentum=None they are the mean over all batches, counted in
    `num_batches_tracked`. Evaluation uses the buffers. With track_running_stats=False there are no buffers. Nested
    tensors (n, num_features, j) are normalised over all their elements. Ioffe and Szegedy, arXiv 1502.03167.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> norm = nn.BatchNorm1d(1, eps=0.0)
    >>> norm(rg.tensor([[2.0], [4.0]])).tolist(), norm.running_mean
    ([[-1.0], [1.0]], tensor([0.3000]))
    """

    input_ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` of images (n, num_features, h, w).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.BatchNorm2d(3)(rg.randn(2, 3, 4, 5)).shape
    (2, 3, 4, 5)
    """

    input_ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` of images (n, num_features, d, h, w).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.BatchNorm3d(3)(rg.randn(2, 3, 2, 4, 5)).shape
    (2, 3, 2, 4, 5)
    """

    input_ndims = (5,)


class rank_sums:
    """Sums over the ranks of a group; `retrograd.distributed`, when it is imported, sets both.

    size: the number of ranks.  total: the sum of a tensor over ranks, through which gradients pass.
    """

    size: Callable[[Any], int] = staticmethod(lambda group: 1)
    total: Callable[[Tensor, Any], Tensor] = staticmethod(lambda x, group: x)


class SyncBatchNorm(_BatchNorm):
    """Batch norm over the batches of all ranks of a process group, of any number of dimensions.

    process_group: by default that of `init_process_group`; without one, the statistics are those of this process.  In
    training all ranks must call it, and run the backward pass.  The gradients of weight and bias are those of this
    rank's batch.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
    >>> model[1]
    SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"SyncBatchNorm: expected at least 2 dimensions, got shape {input.shape}")

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        if not self.training or rank_sums.size(self.process_group) == 1:
            return super().forward(input)
        self._check_input_dim(input)
        count, mean, var = self._statistics(input)
        if self.track_running_stats:
            self._update_running_stats(count, mean.detach(), var.detach())
        sizes = (1, -1, *[1] * (input.ndim - 2))
        out = (input - mean.reshape(sizes)) / (var + self.eps).sqrt().reshape(sizes)
        if self.weight is not None:
            out = out * self.weight.reshape(sizes)
        return out if self.bias is None else out + self.bias.reshape(sizes)

    def _statistics(self, input: Tensor) -> tuple[float, Tensor, Tensor]:
        """Return the number of elements of a channel, their mean and their variance, over all ranks."""
        dims, sizes = [0, *range(2, input.ndim)], (1, -1, *[1] * (input.ndim - 2))
        own = input.sum(dims)
        elements = ones(1, dtype=own.dtype) * (input.numel() // self.num_features)
        total = rank_sums.total(cat([own, elements]), self.process_group)
        count = total[-1].item()
        if count <= 1:
            raise ValueError("Expected more than 1 value per channel when training, over all ranks")
        mean = total[:-1] / count
        squares = (input - mean.reshape(sizes)).square().sum(dims)
        return count, mean, rank_sums.total(squares, self.process_group) / count

    def _update_running_stats(self, count: float, mean: Tensor, var: Tensor) -> None:
        self.num_batches_tracked.add_(1)
        momentum = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum
        for running, value in ((self.running_mean, mean), (self.running_var, var * (count / (count - 1)))):
            running.mul_(1 - momentum).add_(value, alpha=momentum)

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Return a module in which every batch norm is replaced by one of this class with the same tensors."""
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            return cls._of(module, process_group)
        for name, child in module.named_children():
            setattr(module, name, cls.convert_sync_batchnorm(child, process_group))
        return module

    @classmethod
    def _of(cls, norm: Any, process_group: Any) -> Any:
        converted = cls(
            norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats, process_group
        )
        for name, tensor in (*norm._parameters.items(), *norm._buffers.items()):
            setattr(converted, name, tensor)
        converted.training = norm.training
        return converted


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        self._check_input_dim(input)
        batch = input if input.ndim == max(self.input_ndims) else input.unsqueeze(0)
        out = F.instance_norm(
            batch,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum or 0.0,
            self.eps,
        )
        return out if batch is input else out.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """`BatchNorm1d` of each sample separately: x (n, num_features, l) or (num_features, l).

    Weights and running statistics are off by default; enable them with `affine` and `track_running_stats`. The running
    statistics are means over the samples. Ulyanov et al., arXiv 1607.08022.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.InstanceNorm1d(1, eps=0.0)(rg.tensor([[[2.0, 4.0]]]))
    tensor([[[-1.,  1.]]])
    """

    input_ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` of images (n, num_features, h, w) or (num_features, h, w).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.InstanceNorm2d(3)(rg.randn(2, 3, 4, 5)).shape
    (2, 3, 4, 5)
    """

    input_ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` of images (n, num_features, d, h, w) or (num_features, d, h, w).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.InstanceNorm3d(3)(rg.randn(2, 3, 2, 4, 5)).shape
    (2, 3, 2, 4, 5)
    """

    input_ndims = (4, 5)
