"""Autocast: a level that casts the operands of listed operators to lower or to full precision."""

import threading
from typing import Any

from retrograd.core import Operator, Tensor, call, current
from retrograd.core.device import array_devices
from retrograd.core.dtype import is_floating
from retrograd.core.level import TransparentLevel
from retrograd.core.state import is_recording
from retrograd.core.tensor import count_of
from retrograd.ops.dtype_aliases import double, float

# PyTorch's lists for the CPU. Operators on no list take their operands as they are. einsum, inner and tensordot call
# `contract`.
LOWER_PRECISION = frozenset((
    "contract", "mm", "matmul", "bmm", "addmm", "addbmm", "baddbmm", "linear", "linalg.vecdot", "chain_matmul",
    "linalg.multi_dot", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "prelu", "scaled_dot_product_attention", "affine_grid", "rnn_tanh", "rnn_relu", "lstm",
))  # fmt: skip
FULL_PRECISION = frozenset((
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "nll_loss", "mse_loss", "l1_loss",
    "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss", "hinge_embedding_loss", "cosine_embedding_loss",
    "margin_ranking_loss", "soft_margin_loss", "triplet_margin_loss", "multi_margin_loss", "multilabel_margin_loss",
    "ctc_loss", "avg_pool3d", "adaptive_avg_pool3d", "max_pool3d", "adaptive_max_pool3d", "fractional_max_pool2d",
    "fractional_max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "grid_sample", "polar", "prod",
    "quantile", "nanquantile", "stft", "cdist", "trace", "view_as_complex", "cholesky_inverse", "cholesky_solve",
    "lu_solve", "pinverse", "local_response_norm", "ormqr", "orgqr", "geqrf", "svd", "qr", "lstsq",
    "linalg.cholesky", "linalg.inv", "linalg.solve", "linalg.svd", "linalg.svdvals", "linalg.eig", "linalg.eigh",
    "linalg.eigvals", "linalg.eigvalsh", "linalg.qr", "linalg.lstsq", "linalg.cond", "linalg.matrix_rank",
    "linalg.tensorinv", "linalg.tensorsolve", "linalg.householder_product",
))  # fmt: skip
# Composed here of listed operators, but operators of their own in PyTorch's list.
AS_THEY_ARE = frozenset(("mv", "dot", "vdot", "outer", "addmv", "addr", "bilinear", "kron", "linalg.matrix_exp"))


class _Decided(threading.local):
    """Whether an inner autocast level has cast the operands already, so that outer ones do not."""

    now = False


_decided = _Decided()


class AutocastLevel(TransparentLevel):
    """The level of one entered autocast block; `dtype` None disables the blocks around it.

    It casts operands of operators on devices of the type `device`.
    """

    def __init__(self, dtype: Any, cache_enabled: bool, device: str = "cpu") -> None:
        self.dtype, self.device = dtype, device
        self.casts: dict[int, tuple[Tensor, int, Tensor]] | None = {} if cache_enabled else None

    def on_exit(self, error: BaseException | None) -> None:
        """Drop the cached casts: parameters change between blocks."""
        if self.casts:
            self.casts.clear()

    def intercept(self, op: Operator, args: tuple, params: dict[str, Any]) -> Any:
        """Return the result of a listed operator on cast operands; others take their usual course."""
        if _decided.now or self.dtype is None or not self._is_for(args):
            return NotImplemented
        if op.name in LOWER_PRECISION:
            args = tuple([self._lowered(a) for a in args])
        elif op.name in FULL_PRECISION or op.name.startswith("fft."):
            args = tuple([cast_operand(a, float) for a in args])
        elif op.name == "index_copy":
            args = _promoted(args)
        elif op.name not in AS_THEY_ARE:
            registered = getattr(getattr(op.definition, "registrations", None), "autocast", None)
            if registered is None:
                return NotImplemented
            args = tuple([registered.function(a) for a in args])  # a user's operator: `register_autocast`
        return _call_decided(op, args, params)

    def process(self, op: Operator, args: tuple, params: dict[str, Any]) -> Any:
        """Run an operator that is on no list."""
        return call(op, args, params) if _decided.now or not self._is_for(args) else _call_decided(op, args, params)

    def _is_for(self, args: tuple) -> bool:
        """Return whether operands are on the level's device; with the CPU alone, there is no need to look."""
        if self.device == "cpu" and not array_devices:
            return True
        return any(isinstance(a, Tensor) and a.device.type == self.device for a in args)

    def _lowered(self, a: Any) -> Any:
        """Return an operand in lower precision; the cast of a parameter is made once in a block."""
        if self.casts is None or not (isinstance(a, Tensor) and a.requires_grad and a.is_leaf and is_recording()):
            return cast_operand(a, self.dtype)
        if not _is_castable(a) or a.dtype == self.dtype or a.level is not None:
            return cast_operand(a, self.dtype)
        known = self.casts.get(id(a))
        if known is None or known[1] != count_of(a):
            known = self.casts[id(a)] = (a, count_of(a), cast_operand(a, self.dtype))
        return known[2]


def _call_decided(op: Operator, args: tuple, params: dict[str, Any]) -> Any:
    """Run an operator whose operands outer autocast levels leave as they are."""
    _decided.now = True
    try:
        return call(op, args, params)
    finally:
        _decided.now = False


def _is_castable(a: Any) -> bool:
    return isinstance(a, Tensor) and is_floating(a.dtype) and a.dtype != double


def cast_operand(a: Any, dtype: Any) -> Any:
    """Return a floating tensor, but none of float64, in another dtype; everything else as it is."""
    if not _is_castable(a) or a.dtype == dtype:
        return a
    before, _decided.now = _decided.now, True
    try:
        return a.to(dtype)
    finally:
        _decided.now = before


def _promoted(args: tuple) -> tuple:
    """Return the operands in float32 if one of them is."""
    wide = any(isinstance(a, Tensor) and a.dtype == float for a in args)
    return tuple([cast_operand(a, float) for a in args]) if wide else args


def casts_operands() -> bool:
    """Return whether an autocast level casts the operands of listed operators now."""
    level = innermost_autocast()
    return level is not None and level.dtype is not None


def innermost_autocast() -> AutocastLevel | None:
    """Return the autocast level that decides now, if any."""
    level = current().level
    while level is not None and not isinstance(level, AutocastLevel):
        level = level.parent
    return level
