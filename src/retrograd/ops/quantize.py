"""Fake quantisation: values rounded to those of an integer grid, with the gradient of the identity inside the grid."""

from retrograd.core import Tensor, registry
from retrograd.core.dtype import is_floating
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.ops.functions import check_tensor, function, overridable


@function()
@overridable
@suggest_keywords
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Tensor | float, zero_point: Tensor | int, quant_min: int, quant_max: int
) -> Tensor:
    """Return the value of each element after rounding to an integer q = input / scale + zero_point and back.

    q is limited to quant_min, ..., quant_max.  Gradients pass where it is not limited (Bengio et al., Estimating or
    propagating gradients through stochastic neurons, arXiv 1308.3432); scale and zero_point, numbers or tensors of one
    element, get none.

    Raises TypeError for an input that is not floating, RuntimeError for limits that do not fit.

    >>> import retrograd as rg
    >>> rg.fake_quantize_per_tensor_affine(rg.tensor([0.12, 0.26, 9.0]), 0.125, 0, 0, 15)
    tensor([0.1250, 0.2500, 1.8750])
    """
    _check("fake_quantize_per_tensor_affine", input, quant_min, quant_max)
    if not isinstance(zero_point, Tensor) and not quant_min <= zero_point <= quant_max:
        raise RuntimeError(
            f"fake_quantize_per_tensor_affine: `zero_point` must be between `quant_min` and `quant_max`, got "
            f"{zero_point} for {quant_min} to {quant_max}"
        )
    return _on_grid(input, _constant(scale, input), _constant(zero_point, input), quant_min, quant_max)


@function()
@overridable
@suggest_keywords
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """Return `fake_quantize_per_tensor_affine` of each slice along dimension `axis`, with its own scale and zero point.

    scale and zero_point are vectors of the size of this dimension.  Raises RuntimeError for other sizes.

    >>> import retrograd as rg
    >>> x = rg.tensor([[0.3, 0.6], [0.3, 0.6]])
    >>> rg.fake_quantize_per_channel_affine(x, rg.tensor([0.5, 0.25]), rg.tensor([0, 0]), 0, 0, 15)
    tensor([[0.5000, 0.5000],
            [0.2500, 0.5000]])
    """
    name = "fake_quantize_per_channel_affine"
    _check(name, input, quant_min, quant_max)
    count = input.shape[axis]
    if scale.shape != (count,) or zero_point.shape != (count,):
        raise RuntimeError(
            f"{name}: dimensions of scale and zero-point are not consistent with input tensor: {scale.shape} and "
            f"{zero_point.shape} for dimension {axis} of {input.shape}"
        )
    shape = [count if d == axis % input.ndim else 1 for d in range(input.ndim)]
    steps, zeros = (_constant(v, input).reshape(shape) for v in (scale, zero_point))
    return _on_grid(input, steps, zeros, quant_min, quant_max)


def _check(name, x, low, high):
    if not is_floating(check_tensor(name, x).dtype):
        raise TypeError(f"{name}: expected a floating dtype, got {x.dtype}")
    if low > high:
        raise RuntimeError(f"{name}: `quant_min` should be less than or equal to `quant_max`, got {low} and {high}")


def _constant(value, like):
    return value.detach().to(like.dtype) if isinstance(value, Tensor) else registry["full"]((), value, dtype=like.dtype)


def _on_grid(x, scale, zero_point, low, high):
    value = x.detach()
    grid = registry["round"](value * (1 / scale)) + zero_point  # times the inverse, as PyTorch rounds
    rounded = (grid.clamp(low, high) - zero_point) * scale
    inside = (grid >= low) & (grid <= high)
    return rounded + registry["where"](inside, x - value, 0)  # x - value is 0, with the derivative of x


@function()
@overridable
def dequantize(tensor):
    """Return a tensor, or each of a list, in float32: no tensor here is quantised.

    >>> import retrograd as rg
    >>> rg.dequantize(rg.tensor([1, 2]))
    tensor([1., 2.])
    """
    if isinstance(tensor, (list, tuple)):
        return [dequantize(one) for one in tensor]
    return check_tensor("dequantize", tensor).to("float32")


Tensor.dequantize = dequantize
