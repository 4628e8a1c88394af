"""Products of matrices that are stored as small floats with scales."""

from enum import Enum

from retrograd.core import Tensor, current, registry
from retrograd.core.dtype import float32
from retrograd.ops.functions import check_tensor, function


class ScalingType(Enum):
    """Which elements of a matrix share a scale: all, those of a row, or of a block of rows x contracted elements."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(Enum):
    """The order of scales in memory: as their shape says, or an order of accelerators."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


_BLOCKS = {
    ScalingType.BlockWise1x16: (1, 16),
    ScalingType.BlockWise1x32: (1, 32),
    ScalingType.BlockWise1x128: (1, 128),
    ScalingType.BlockWise128x128: (128, 128),
}
for _name, _kind in (("ScalingType", ScalingType), ("SwizzleType", SwizzleType)):
    function(f"nn.functional.{_name}")(_kind)


@function("nn.functional.scaled_mm")
def scaled_mm(
    mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None, bias=None,
    output_dtype="bfloat16", contraction_dim=(), use_fast_accum=False,
) -> Tensor:  # fmt: skip
    """Return (mat_a * its scales) @ (mat_b * its scales) + bias, computed in float32, in `output_dtype`; no gradients.

    mat_a (m, k) and mat_b (k, n) have any dtypes, 8-bit floats for example.  The scales of mat_a are, by
    `scale_recipe_a`, a `ScalingType`: one element (TensorWise), (m, 1) (RowWise), or one for each block of rows and
    contracted elements: (m, k / 128) (BlockWise1x128), (m / 128, k / 128) (BlockWise128x128).  Those of mat_b are in
    the order of its dimensions: (1, n), (k / 128, n), (k / 128, n / 128).  Two scales, given as lists with their
    recipes, multiply.  bias: (n,).  `contraction_dim` is (), or (1, 0); `use_fast_accum` has no effect.

    Raises ValueError for shapes that do not fit, RuntimeError where gradients are wanted, NotImplementedError for
    scales in an accelerator's order.

    >>> import retrograd as rg
    >>> from retrograd.nn.functional import ScalingType, scaled_mm
    >>> a, one = rg.eye(2).to(rg.float8_e4m3fn), ScalingType.TensorWise
    >>> scaled_mm(a, a, rg.tensor(2.0), one, rg.tensor(4.0), one, output_dtype=rg.float32)
    tensor([[8., 0.],
            [0., 8.]])
    """
    a, b = check_tensor("scaled_mm", mat_a), check_tensor("scaled_mm", mat_b)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or tuple(contraction_dim) not in ((), (1, 0)):
        raise ValueError(
            f"scaled_mm: expected matrices (m, k) and (k, n) with contraction_dim (1, 0), got {a.shape}, {b.shape} and "
            f"{tuple(contraction_dim)}"
        )
    if current().grad_enabled and (a.requires_grad or b.requires_grad):
        raise RuntimeError("scaled_mm: there are no gradients; multiply scaled tensors by @, or use no_grad()")
    left = _scaled("scale_a", a, scale_a, scale_recipe_a, swizzle_a)
    out = left @ _scaled("scale_b", b.mT, scale_b, scale_recipe_b, swizzle_b, is_transposed=True).mT
    return (out if bias is None else out + bias.to(float32)).to(output_dtype or "bfloat16")


def _scaled(name, matrix, scales, recipes, swizzle, is_transposed=False):
    """Return a matrix (rows, contracted) times its scales, in float32."""
    scales, recipes = _listed(scales), _listed(recipes)
    if len(scales) != len(recipes):
        raise ValueError(f"scaled_mm: {name} needs a recipe for each scale, got {len(scales)} and {len(recipes)}")
    if any(one not in (None, SwizzleType.NO_SWIZZLE) for one in _listed(swizzle)):
        raise NotImplementedError(f"scaled_mm: {name} has to be in the order of its shape, SwizzleType.NO_SWIZZLE")
    out = matrix.to(float32)
    for scale, recipe in zip(scales, recipes, strict=True):
        scale = check_tensor("scaled_mm", scale).to(float32)
        out = out * _expanded(name, scale.mT if is_transposed and scale.ndim == 2 else scale, recipe, out.shape)
    return out


def _listed(given):
    return list(given) if isinstance(given, list | tuple) else [given]


def _expanded(name, scale, recipe, shape):
    """Return scales that broadcast to the shape of a matrix (rows, contracted)."""
    recipe = ScalingType(recipe)
    if recipe is ScalingType.TensorWise and scale.numel() == 1:
        return scale.reshape(())
    if recipe is ScalingType.RowWise and scale.numel() == shape[0]:
        return scale.reshape((shape[0], 1))
    if recipe in _BLOCKS:
        blocks = _BLOCKS[recipe]
        if tuple(scale.shape) == tuple(-(-size // block) for size, block in zip(shape, blocks, strict=True)):
            for dim, block in enumerate(blocks):
                scale = registry["narrow"](scale.repeat_interleave(block, dim), dim, 0, shape[dim])
            return scale
    raise ValueError(
        f"scaled_mm: {name} does not fit {recipe.name} of {tuple(shape)} rows and contracted elements, got the shape "
        f"{tuple(scale.shape)}"
    )
